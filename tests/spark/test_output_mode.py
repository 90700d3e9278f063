"""A stream that is written in another mode than it was declared in fails before it has written anything."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

import panes as pn
from tests.spark.streams import Collected, Recorded

pytestmark = pytest.mark.usefixtures("one_partition")

PLAN = pn.plan(pn.query("q", by="k", at="ts", select={"n": pn.count()}, over=pn.tumbling("10s")))


@pytest.fixture
def record(spark, tmp_path) -> Recorded:
    record = Recorded(spark, tmp_path, pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.string())]))
    record.add(pa.table({"ts": pa.array([10**6, 60 * 10**6], pa.timestamp("us", "UTC")), "k": ["a", "a"]}))
    return record


@pytest.mark.parametrize(("declared", "written"), [("update", "append"), ("append", "update")])
def test_another_mode_of_the_writer_is_refused(record, tmp_path, declared, written):
    # Whatever stands between.
    rows = PLAN.stream(record.stream(), mode=declared, shards=1).where("n > 0").selectExpr("*", "2 * n AS m")
    stream = Collected(rows, tmp_path / "checkpoint", written)
    says = (
        rf"PlanError: plan.stream\(mode='{declared}'\) is written with outputMode\('{written}'\): .*"
        rf"Write .writeStream.outputMode\('{declared}'\), or plan.stream\(..., mode='{written}'\)"
    )
    with pytest.raises(StreamingQueryException, match=says):
        stream.finish()
    assert not stream.batches


def test_a_file_sink_has_written_nothing(record, tmp_path):
    """Files are appended, and ``append`` is what ``writeStream`` does unless told otherwise."""
    writer = PLAN.stream(record.stream(), mode="update", shards=1).writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    with pytest.raises(StreamingQueryException, match=r"every correction of an answer would be added as one more row"):
        writer.start(str(tmp_path / "answers")).awaitTermination()
    assert not list(tmp_path.glob("answers/*.parquet"))


def test_streams_of_others_are_left_alone(spark, record, tmp_path):
    PLAN.stream(record.stream(), shards=1)
    counts = record.stream().groupBy("k").count()
    assert Collected(counts, tmp_path / "checkpoint", "update").finish().rows.num_rows == 1
