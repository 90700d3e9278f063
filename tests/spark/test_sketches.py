"""Sketches on Spark give what they give in process: on batches, and in a stream whose state is made of them."""

from __future__ import annotations

import sys

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

import panes as pn
from panes.errors import DeclarationError, SchemaError
from panes.testing import assert_same_answers, events
from tests.spark.streams import START, VALUES, Collected, Recorded, split

pytest.importorskip("datasketches")

# Small windows, in which quantiles and frequencies are exact, and distinct counts are what they are anywhere.
SELECT = {
    "distinct": pn.approx_count_distinct("s"),
    "numbers": pn.approx_count_distinct("i"),
    "mid": pn.approx_quantile("x", 0.5),
    "high": pn.approx_quantile("i", 0.9),
    "top": pn.top("s", 3),
    "often": pn.top("i", 2),
    "n": pn.count(),
}
OVER = [pn.tumbling("10s"), pn.hopping("30s", every="10s"), pn.hopping("25s", every="5s")]


def query(**changes):
    return pn.query("q", **{"at": "ts", "by": "k", "select": SELECT, "over": OVER, **changes})


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.soak)])
def test_batches(spark, seed):
    table = events(300, keys={"k": pa.string()}, values=VALUES, start=START, null_times=0.03, seed=seed)
    frame = spark.createDataFrame(table, schema=from_arrow_schema(table.schema))
    where = [None, "i > 0"][seed]
    plan = pn.plan([query(where=where), pn.query("all", at="ts", select={"n": pn.count()}, over=OVER)])
    assert_same_answers(plan.run(frame).toArrow(), plan.run(table))


def test_items_keep_their_types(spark):
    types = {"d": pa.date32(), "t": pa.timestamp("us", "UTC"), "b": pa.bool_(), "bin": pa.binary(), "f": pa.float32()}
    types["money"] = pa.decimal128(9, 2)
    table = events(60, values=types, start=START, seed=3)
    plan = pn.plan(query(by=(), select={name: pn.top(name, 3) for name in types}, over=pn.tumbling("1 min")))
    frame = spark.createDataFrame(table, schema=from_arrow_schema(table.schema))
    assert_same_answers(plan.run(frame).toArrow(), plan.run(table))


@pytest.mark.usefixtures("one_partition")
def test_a_stream(spark, tmp_path):
    """Micro-batches in the order of time: every instance that is answered is answered as in one table."""
    table = events(160, keys={"k": pa.string()}, values=VALUES, start=START, seed=5).sort_by("ts")
    record = Recorded(spark, tmp_path, table.schema)
    record.add(*split(table, [40, 50, 30]))
    plan = pn.plan(query())
    found = Collected(plan.stream(record.stream()), tmp_path / "checkpoint").finish().rows
    expected = plan.run(table)
    ends = found["window"].combine_chunks().field("end")
    assert len(found) > 20
    last = pa.compute.max(ends)
    passed = pa.compute.less_equal(expected["window"].combine_chunks().field("end").cast(ends.type), last)
    assert_same_answers(found.select(expected.column_names), expected.filter(passed))


def test_what_does_not_fit_is_said_before_a_job_runs(spark, monkeypatch):
    frame = spark.createDataFrame([("a",)], "s string").selectExpr("s", "current_timestamp() AS ts", "s AS k")
    with pytest.raises(SchemaError, match="needs a number"):
        pn.plan(query(select={"mid": pn.approx_quantile("s", 0.5)})).run(frame)
    monkeypatch.setitem(sys.modules, "datasketches", None)
    with pytest.raises(DeclarationError, match="pip install"):
        pn.sql("SELECT APPROX_COUNT_DISTINCT(s) AS n FROM e TIMESTAMP BY ts GROUP BY TumblingWindow(minute, 1)")
