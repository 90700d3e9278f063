"""A stream in the wide layout: the rows of a batch, as soon as they are complete; and times without a zone."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import panes as pn
from panes.errors import PlanError, SchemaError
from panes.testing import assert_same_answers
from tests.spark.streams import Collected, Recorded, recorded

pytestmark = pytest.mark.usefixtures("one_partition")

SELECT = {"n": pn.count(), "low": pn.min("x"), "twice": "n * 2"}
PLANS = {
    "clock": [
        pn.query("all", by="k", at="ts", select=SELECT, over=[pn.tumbling("10s"), pn.hopping("30s", every="10s")]),
        pn.query("some", by="k", at="ts", select={"m": pn.max("s")}, over=pn.tumbling("20s"), where="i > 0"),
        pn.query("few", by="k", at="ts", select={"f": pn.count()}, over=pn.hopping("40s", every="20s"), having="f > 2"),
    ],
    "sliding": pn.query("last", by="k", at="ts", select=SELECT, over=[pn.sliding("10s"), pn.sliding("30s")]),
    "everything": pn.query("q", at="ts", select=SELECT, over=pn.cumulate("10s", upto="40s")),
}


def column(rows: pa.Table, name: str) -> pa.ChunkedArray:
    return rows.column(name).cast(pa.int64())


@pytest.mark.parametrize("name", PLANS)
def test_the_rows_of_a_batch_that_are_complete(spark, tmp_path, name):
    record = recorded(spark, tmp_path, 5)
    plan = pn.plan(PLANS[name])
    answers = plan.stream(record.stream(delay="1 minute"), layout="wide", shards=2)
    found = Collected(answers, tmp_path / "checkpoint").finish()
    assert not found.metrics.get("late")
    batch = plan.run(record.spark.read.schema(record.stream().schema).parquet(str(record.folder)), layout="wide")
    assert answers.columns == batch.columns
    rows = batch.toArrow()
    watermark = max(p.observedMetrics["panes"]["watermark"] for p in found.query.recentProgress)
    reached = pc.less if name == "sliding" else pc.less_equal
    complete = rows.filter(reached(column(rows, "window_end"), watermark))
    assert sum(map(len, found.batches.values())) > 0
    assert len([batch for batch in found.batches.values() if len(batch)]) > 1
    assert_same_answers(found.rows, complete)


def test_times_without_a_zone(spark, tmp_path):
    """Spark keeps watermarks on TIMESTAMP alone: what to write is said before Spark says that."""
    schema = pa.schema([("ts", pa.timestamp("us")), ("k", pa.string())])
    record = Recorded(spark, tmp_path, schema)
    record.add(pa.table([[dt.datetime(2026, 1, 1, 12, 0, s) for s in (1, 2, 30)], ["a", "b", "a"]], schema=schema))
    bare = spark.readStream.schema("ts TIMESTAMP_NTZ, k STRING").parquet(str(record.folder))
    for over in (pn.tumbling("10s"), pn.sliding(pn.rows(2))):
        plan = pn.plan(pn.query("q", by="k", at="ts", select={"n": pn.count()}, over=over))
        said = r"'ts' of the stream is TIMESTAMP_NTZ.*F.col\('ts'\).cast\('timestamp'\)\).withWatermark.* session, UTC"
        for run in (plan.run, plan.stream):
            with pytest.raises(PlanError, match=said):
                run(bare)
        marked = bare.withColumn("ts", bare["ts"].cast("timestamp")).withWatermark("ts", "1 second")
        found = Collected(plan.stream(marked, shards=1), tmp_path / str(over).replace("/", " by ")).finish()
        assert sorted(row["n"] for row in found.rows.to_pylist()) == [1, 1]
    with pytest.raises(PlanError, match=r"'ts' of the left side is TIMESTAMP_NTZ.*left.withColumn\('ts'"):
        pn.join(bare, bare, on="k", at="ts", over="1 min", suffixes=("_a", "_b"))
    batch = spark.read.parquet(str(record.folder))
    plan = pn.plan(pn.query("q", by="k", at="ts", select={"n": pn.count()}, over=pn.sliding("10s")))
    assert plan.lookup(batch, batch).count() == 3
    with pytest.raises(SchemaError, match=r"Cast the one without: F.col\('ts'\).cast\('timestamp'\)"):
        plan.lookup(batch, batch.withColumn("ts", batch["ts"].cast("timestamp")))
    text = spark.readStream.schema("ts STRING, k STRING").parquet(str(record.folder))
    with pytest.raises(SchemaError, match="to_timestamp"):
        plan.stream(text)
