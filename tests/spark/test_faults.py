"""Jobs that are killed while they run, and started again, write what undisturbed ones write."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import panes as pn
from panes.testing import assert_same_answers, events
from panes.timeline import SECOND
from tests.spark.job import ALL_KINDS, QUERY, SELECT, table_key
from tests.spark.late import PUNCTUAL, answers_in_time, last_events, late_events, with_watermarks
from tests.spark.processes import Job, answers, begun, early_answers
from tests.spark.streams import START, VALUES, Collected, Recorded, recorded

pytestmark = pytest.mark.usefixtures("one_partition")

KILLS = int(os.environ.get("PANES_TESTS_KILLS", "100"))


def test_a_driver_killed_twice_loses_nothing_and_repeats_nothing(spark, tmp_path):
    record = recorded(spark, tmp_path, 7, rows=300, batches=3)
    kill_at_random(record, tmp_path / "killed", kills=2)
    # A micro-batch without events answers what the last watermark passed. Where a job is killed just before it, Spark
    # does not know of it any more when it starts again, until events come: so some come after the last kill.
    record.add(events(20, keys={"k": pa.string()}, values=VALUES, start=START + 3600 * SECOND))
    Job(record, tmp_path / "killed").finish()
    assert_same_answers(answers(record, tmp_path / "killed"), calm(record, tmp_path), absolute=1e-9)


@pytest.mark.soak
def test_a_driver_killed_a_hundred_times_while_events_come_late(spark, tmp_path):
    """All kinds of windows in append mode to files, and windows on the clock in update mode to a table, in one job."""
    batches = late_events(20 * KILLS + 600, KILLS + KILLS // 4 + 5, seed=8)
    record = Recorded(spark, tmp_path, batches[0].schema)
    record.add(*batches)
    folder, options = tmp_path / "killed", ("--kinds", "all", "--early")
    in_a_micro_batch = kill_at_random(record, folder, *options, kills=KILLS)
    record.add(last_events(batches))
    Job(record, folder, *options).finish()
    print(f"{KILLS} kills, {in_a_micro_batch} of them within a micro-batch; {begun(folder)} micro-batches")
    check_append(record, folder, tmp_path)
    check_update(record, folder, tmp_path)


def check_append(record: Recorded, folder: Path, place: Path) -> None:
    """What a job has added is what an undisturbed one adds, and what ``plan.run`` says of the events in time."""
    batches = micro_batches(record, folder, "checkpoint")
    known = with_watermarks(batches)
    late = pc.sum(pc.less(known["ts"].cast(pa.int64()), known["passed"])).as_py()
    assert late > len(known) / 50
    again = Recorded(record.spark, place / "append", batches[0].schema)
    again.add(*batches)
    found = answers(record, folder)
    calm = Collected(pn.plan(ALL_KINDS).stream(again.stream(), shards=2), place / "append" / "checkpoint").finish()
    assert_same_answers(found, calm.rows, absolute=1e-9)
    until = pc.subtract(pc.max(batches[-1]["ts"]), pa.scalar(1800 * SECOND, pa.duration("us")))
    for query in ALL_KINDS:
        expected = answers_in_time(query, batches)
        mine = found.filter(pc.equal(found["query"], query.name)).select(expected.column_names)
        if query.name in ("up to", "sessions"):
            mine, expected = (table.filter(pc.is_in(table["k"], pa.array(PUNCTUAL))) for table in (mine, expected))
        ended = [table.filter(pc.less(pc.struct_field(table["window"], "end"), until)) for table in (mine, expected)]
        assert ended[1].num_rows > 100, query.name
        assert_same_answers(*ended, absolute=1e-9)


def check_update(record: Recorded, folder: Path, place: Path) -> None:
    """The table that a job has corrected is that of an undisturbed one, and again what ``plan.run`` says."""
    batches = micro_batches(record, folder, "early")
    again = Recorded(record.spark, place / "update", batches[0].schema)
    again.add(*batches)
    stream = pn.plan(QUERY).stream(again.stream(), mode="update", shards=2)
    calm = Collected(stream, place / "update" / "checkpoint", "update").finish()
    expected = {}
    for _, rows in sorted(calm.batches.items()):
        expected |= {table_key(row): tuple(row[name] for name in SELECT) for row in rows.to_pylist()}
    found = early_answers(folder)
    assert len(found) > 100
    assert found == expected
    in_time = answers_in_time(QUERY, batches).to_pylist()
    assert found == {table_key(row): tuple(row[name] for name in SELECT) for row in in_time}


def micro_batches(record: Recorded, folder: Path, checkpoint: str) -> list[pa.Table]:
    """The events of each micro-batch, as the checkpoint has it.

    A source may be killed when it has listed the next file and the micro-batch has not begun: then that file comes with
    the one after it, though a micro-batch should have only one.
    """
    found, before = [], -1
    entries = (folder / checkpoint / "offsets").glob("[0-9]*")
    for entry in sorted(entries, key=lambda entry: int(entry.name)):
        last = json.loads(entry.read_text().splitlines()[2])["logOffset"]
        files = [pq.read_table(record.folder / f"{number:05}.parquet") for number in range(before + 1, last + 1)]
        found += [pa.concat_tables(files)] if files else []
        before = last
    return found


@pytest.mark.soak
@pytest.mark.parametrize("sink", ["files", "batches"])
def test_a_cluster_that_loses_a_worker_that_held_state(spark, tmp_path, sink):
    """Into files at any instant of a micro-batch; into batches while ``foreachBatch`` has begun one."""
    record = recorded(spark, tmp_path, 9, rows=2000, batches=30)
    folder, lost = tmp_path / "killed", 0
    with cluster(tmp_path) as (master, workers):
        job = Job(record, folder, "--master", master, "--sink", sink)
        job.until_begun(8)
        if sink == "batches":
            calls = len((folder / "calls").read_text().split())
            job.until(lambda: len((folder / "calls").read_text().split()) > calls)
        held = [held_state(tmp_path, number) for number in range(len(workers))]
        lost = max(range(len(workers)), key=lambda number: len(held[number]))
        assert held[lost]
        os.killpg(workers[lost].pid, signal.SIGKILL)
        job.finish()
        # The other one has taken over all of it.
        assert held_state(tmp_path, 1 - lost) == held[0] | held[1]
    assert_same_answers(answers(record, folder), calm(record, tmp_path), absolute=1e-9)


def held_state(folder: Path, worker: int) -> set[str]:
    """The partitions of the state that the executors of a worker have opened, from the folders of their RocksDB."""
    found = (folder / f"local{worker}").rglob("StateStoreId*")
    return {place.name.split("partId=")[1].split(",")[0] for place in found}


def calm(record: Recorded, folder: Path) -> pa.Table:
    """What a job writes that nobody disturbs."""
    rows = Collected(pn.plan(QUERY).stream(record.stream()), folder / "calm").finish().rows
    assert rows.num_rows > 100
    return rows


def kill_at_random(record: Recorded, folder: Path, *options: str, kills: int) -> int:
    """Start a job and kill its driver, again and again; return how many kills came after it had begun a micro-batch.

    One in four comes at any instant since the start, the others within two seconds after a micro-batch has begun.
    """
    rng, within = random.Random(kills), 0
    usual = 10.0
    for number in range(kills):
        before, began = begun(folder), time.monotonic()
        job = Job(record, folder, *options)
        if number % 4 == 3:
            time.sleep(rng.random() * usual)
        else:
            job.until_begun(before + 1)
            usual = time.monotonic() - began
            time.sleep(rng.random() * 2)
        within += begun(folder) > before
        job.kill()
    return within


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A standalone master and two workers of one core each, on this machine."""
    address = "spark://127.0.0.1:17077"
    master = _daemon(folder, "master", "Master", "--host", "127.0.0.1", "--port", "17077", "--webui-port", "0")
    options = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0"]
    workers = [
        _daemon(folder, f"worker{i}", "Worker", *options, "--work-dir", str(folder / f"work{i}"), address, local=i)
        for i in range(2)
    ]
    try:
        yield address, workers
    finally:
        for process in [*workers, master]:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _daemon(folder: Path, name: str, kind: str, *options: str, local: int | None = None) -> subprocess.Popen[bytes]:
    import pyspark

    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind.lower()}.{kind}", *options]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    if local is not None:
        environment["SPARK_LOCAL_DIRS"] = str(folder / f"local{local}")
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env=environment)
