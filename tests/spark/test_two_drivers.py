"""Two drivers on one checkpoint: Spark stops one of them, and neither rows nor state are lost, repeated or mixed."""

from __future__ import annotations

import re
import shutil

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame

import panes as pn
from panes.testing import assert_same_answers, events
from tests.spark.job import QUERY
from tests.spark.late import last_events
from tests.spark.processes import Job, answers, begun, committed
from tests.spark.streams import START, VALUES, Collected, Recorded, split

pytestmark = pytest.mark.usefixtures("one_partition")

REFUSED = "Multiple streaming jobs detected for"


@pytest.fixture
def batches() -> list[pa.Table]:
    """Micro-batches of all keys within a minute: the state is that of all of them, and each adds its own to it."""
    values = {**VALUES, "id": pa.int64()}
    table = events(600, keys={"k": pa.string()}, values=values, start=START, step="50ms", distinct=9, seed=3)
    found = split(table.sort_by("ts"), [200, 20, 250, 10, 10, 10])
    return [*found, last_events(found)]


@pytest.fixture
def record(spark, tmp_path, batches) -> Recorded:
    found = Recorded(spark, tmp_path, batches[0].schema)
    found.add(*batches[:4])
    return found


@pytest.mark.soak
@pytest.mark.parametrize(("sink", "format"), [("files", "1"), ("batches", "1"), ("batches", "2")])
def test_a_driver_that_was_held_up_is_refused_after_another_took_over(record, batches, tmp_path, sink, format):
    """The first driver is stopped within a micro-batch; the second runs it again, and those after it.

    When the first goes on, the second has run later micro-batches from its own state. A third job starts from what both
    have left: state that the first wrote last is not taken for the second's. In format 1, it is in its place.
    """
    folder, options = tmp_path / "taken", ("--sink", sink, "--format", format)
    slow = Job(record, folder, *options)
    slow.until_begun(3)
    slow.until(lambda: sink == "files" or "2" in (folder / "calls").read_text().split())
    slow.hold()
    assert committed(folder) == 2
    Job(record, folder, *options).finish()
    taken = begun(folder)
    slow.go_on()
    assert slow.wait() != 0
    assert REFUSED in slow.said
    assert begun(folder) == taken
    record.add(*batches[4:])
    third = Job(record, folder, *options)
    if third.wait() != 0:
        assert format == "1"
        assert re.search(r"StateError: shard \d+: the blob \w+ of the state is missing", third.said)
        return
    Job(record, tmp_path / "calm", *options).finish()
    assert_same_answers(answers(record, folder), answers(record, tmp_path / "calm"), absolute=1e-9)
    if sink == "batches":
        calls = (folder / "calls").read_text().split()
        assert sorted(set(calls), key=int) == list(map(str, range(begun(folder))))
        assert [number for number in calls if calls.count(number) > 1] == ["2", "2"]


@pytest.mark.soak
@pytest.mark.parametrize("sink", ["files", "batches"])
def test_a_driver_that_was_idle_is_refused_before_it_computes_anything(record, batches, tmp_path, sink):
    """Between micro-batches nothing tells a driver that another has taken over; the next micro-batch does."""
    folder, options = tmp_path / "taken", ("--sink", sink)
    idle = Job(record, folder, *options, "--live")
    idle.until(lambda: committed(folder) >= 5)
    idle.hold()
    record.add(batches[4])
    Job(record, folder, *options).finish()
    taken, before = begun(folder), answers(record, folder)
    idle.go_on()
    record.add(*batches[5:])
    assert idle.wait() != 0
    assert REFUSED in idle.said
    assert begun(folder) == taken
    assert_same_answers(answers(record, folder), before)
    Job(record, folder, *options).finish()
    Job(record, tmp_path / "calm", *options).finish()
    assert_same_answers(answers(record, folder), answers(record, tmp_path / "calm"), absolute=1e-9)


def test_within_a_session_the_second_takes_over(record, batches, tmp_path):
    """Spark stops the first, as ``spark.sql.streaming.stopActiveRunOnRestart`` says."""
    stream = pn.plan(QUERY).stream(record.stream(), shards=1)
    first = Collected(stream, tmp_path / "checkpoint", live=True)
    first.query.processAllAvailable()
    record.add(*batches[4:])
    second = Collected(stream, tmp_path / "checkpoint").finish()
    assert not first.query.isActive
    assert first.query.exception() is None
    assert not first.batches.keys() & second.batches.keys()
    found = pa.concat_tables([first.rows, second.rows])
    assert found.num_rows > 100
    expected = pn.plan(QUERY).run(pa.concat_tables(batches[:-1]))
    ends = pc.struct_field(found["window"], "end")
    ended = found.filter(pc.less(ends, pc.min(batches[-1]["ts"])))
    assert_same_answers(ended.select(expected.column_names), expected, absolute=1e-9)


@pytest.mark.soak
def test_a_function_that_computes_its_rows_twice(spark, record, batches, tmp_path):
    """Each use of the rows in ``foreachBatch`` runs the micro-batch again, with other names for its blobs."""
    found: dict[int, pa.Table] = {}

    def keep(rows: DataFrame, number: int) -> None:
        assert rows.count() == rows.toArrow().num_rows
        found[number] = rows.toArrow()

    plan = pn.plan(QUERY)
    for number, batch in enumerate(batches[4:]):
        record.add(batch)
        # A copy: what the process still holds of the last run is not looked for there.
        place = tmp_path / f"checkpoint{number}"
        if number:
            shutil.copytree(tmp_path / f"checkpoint{number - 1}", place, ignore=shutil.ignore_patterns(".*"))
        writer = plan.stream(record.stream(), shards=1).writeStream.foreachBatch(keep)
        writer.option("checkpointLocation", str(place)).trigger(availableNow=True).start().awaitTermination()
    calm = Collected(plan.stream(record.stream(), shards=1), tmp_path / "calm").finish().rows
    assert_same_answers(pa.concat_tables(found.values()), calm, absolute=1e-9)


@pytest.mark.soak
def test_a_driver_that_died_between_the_log_of_its_sink_and_that_of_spark(record, batches, tmp_path):
    """Spark runs the micro-batch again and leaves out the sink, and with it the state: what is there has to do."""
    folder = tmp_path / "killed"
    Job(record, folder).finish()
    last = committed(folder) - 1
    for entry in (str(last), f".{last}.crc"):
        (folder / "checkpoint" / "commits" / entry).unlink()
    record.add(*batches[4:])
    for place in (folder, tmp_path / "calm"):
        Job(record, place).finish()
    assert_same_answers(answers(record, folder), answers(record, tmp_path / "calm"), absolute=1e-9)
