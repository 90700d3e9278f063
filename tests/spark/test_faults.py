"""Jobs that are killed while they run, and started again, write what undisturbed ones write."""

from __future__ import annotations

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
import pytest

import panes as pn
from panes.testing import assert_same_answers, events
from panes.timeline import SECOND
from tests.spark.job import QUERY
from tests.spark.streams import START, VALUES, Collected, Recorded, recorded

pytestmark = pytest.mark.usefixtures("one_partition")

_PATIENCE = 900


def test_a_driver_killed_twice_loses_nothing_and_repeats_nothing(spark, tmp_path):
    record = recorded(spark, tmp_path, 7, rows=300, batches=3)
    assert_same_answers(killed(record, tmp_path / "killed", kills=2), calm(record, tmp_path), absolute=1e-9)


@pytest.mark.soak
def test_a_driver_killed_twenty_times(spark, tmp_path):
    record = recorded(spark, tmp_path, 8, rows=4000, batches=60)
    assert_same_answers(killed(record, tmp_path / "killed", kills=20), calm(record, tmp_path), absolute=1e-9)


@pytest.mark.soak
def test_a_cluster_that_loses_a_worker(spark, tmp_path):
    record = recorded(spark, tmp_path, 9, rows=2000, batches=30)
    folder = tmp_path / "killed"
    folder.mkdir()
    with cluster(tmp_path) as (master, workers):
        job = started(record, folder, master)
        wait_for(folder, job, micro_batches=8)
        os.killpg(workers[0].pid, signal.SIGKILL)
        finished(job)
    assert_same_answers(answers(record, folder), calm(record, tmp_path), absolute=1e-9)


def calm(record: Recorded, folder: Path) -> pa.Table:
    """What a job writes that nobody disturbs."""
    rows = Collected(pn.plan(QUERY).stream(record.stream()), folder / "calm").finish().rows
    assert rows.num_rows > 100
    return rows


def killed(record: Recorded, folder: Path, *, kills: int) -> pa.Table:
    """What a job has written when it has run to its end, after its driver was killed some times.

    The last events come when it has been killed for the last time.
    """
    folder.mkdir()
    rng = random.Random(kills)
    for _ in range(kills):
        before = begun(folder)
        job = started(record, folder)
        # Killed in the middle of its work: some time after it has begun a micro-batch of its own.
        wait_for(folder, job, micro_batches=before + 1)
        time.sleep(rng.random() * 2)
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
        job.communicate()
    # A micro-batch without events answers what the last watermark passed. Where a job is killed just before it, Spark
    # does not know of it any more when it starts again, until events come: so some come after the last kill.
    record.add(events(20, keys={"k": pa.string()}, values=VALUES, start=START + 3600 * SECOND))
    finished(started(record, folder))
    return answers(record, folder)


def started(record: Recorded, folder: Path, *master: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.spark.job", str(record.folder), str(folder), *master]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)


def finished(job: subprocess.Popen[bytes]) -> None:
    said, _ = job.communicate(timeout=_PATIENCE)
    assert job.returncode == 0, said.decode()[-3000:]


def wait_for(folder: Path, job: subprocess.Popen[bytes], *, micro_batches: int) -> None:
    """Until a job has begun so many micro-batches, or has ended."""
    end = time.monotonic() + _PATIENCE
    while job.poll() is None and begun(folder) < micro_batches:
        assert time.monotonic() < end, "the job does not get on"
        time.sleep(0.05)


def begun(folder: Path) -> int:
    """How many micro-batches a job has begun."""
    offsets = folder / "checkpoint" / "offsets"
    return len(list(offsets.glob("[0-9]*"))) if offsets.exists() else 0


def answers(record: Recorded, folder: Path) -> pa.Table:
    return record.spark.read.parquet(str(folder / "answers")).toArrow()


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A standalone master and two workers of one core each, on this machine."""
    address = "spark://127.0.0.1:17077"
    master = _daemon(folder, "master", "Master", "--host", "127.0.0.1", "--port", "17077", "--webui-port", "0")
    options = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0"]
    workers = [
        _daemon(folder, f"worker{i}", "Worker", *options, "--work-dir", str(folder / f"work{i}"), address)
        for i in range(2)
    ]
    try:
        yield address, workers
    finally:
        for process in [*workers, master]:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _daemon(folder: Path, name: str, kind: str, *options: str) -> subprocess.Popen[bytes]:
    import pyspark

    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind.lower()}.{kind}", *options]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env=environment)
