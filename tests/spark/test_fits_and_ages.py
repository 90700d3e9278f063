"""``corr``, ``trend`` and ``aged`` on Spark: every strategy and a stream, against brute force and Spark itself.

The JVM counts times from the start of a pane, a lane or a window, and Python from events: each has to come to the same.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

import panes as pn
from panes.errors import PlanError
from panes.spark.run import run_steps
from panes.testing import assert_same_answers, brute_force, events, spark_answers
from tests.spark.streams import START, Collected, finished, recorded

LINE = {"slope": "line.slope", "intercept": "line.intercept", "r2": "line.r2"}
SELECT = LINE | {
    "together": pn.corr("x", "y"),
    "mean": pn.aged(pn.mean("d"), half_life="20s"),
    "fading": pn.aged(pn.mean("x"), half_life="40s", power=2),
}
ROUNDING = {"slope": 1e-6, "intercept": 1e-6, "r2": 1e-9, "together": 1e-9, "mean": 1e-9, "fading": 1e-9}
VALUES = {"x": pa.float64(), "y": pa.int32(), "d": pa.decimal128(9, 2)}


def frame(spark, table):
    return spark.createDataFrame(table, schema=from_arrow_schema(table.schema, prefer_timestamp_ntz=True))


def drawn(seed, time=None, **how):
    keys = {"k": pa.string(), "j": pa.int32()}
    return events(120, keys=keys, values=VALUES, start=START, step="5s", time=time, seed=seed, **how)


def queries(how):
    over = [pn.tumbling("40s", offset="7s"), pn.hopping("100s", every="20s", bounds="(]")]
    hidden = {"line": pn.trend("x")}
    # Lanes multiply columns, and what Spark has to compile.
    select = LINE | {"fading": SELECT["fading"]} if how == "panes side by side" else SELECT
    fine = pn.query("fine", at="ts", by=["k", "j"], select=select, hidden=hidden, over=over)
    coarse = pn.query("coarse", at="ts", by="k", select=select, hidden=hidden, over=over[1], where="y > -50")
    return [fine, coarse] if how.startswith("panes") else [fine]


BELIEFS = {
    "a tree of group-bys": {"rate": 10},
    "panes apart": {"rate": 1000, "keys": 20},
    "panes side by side": {"rate": 1000, "keys": 20},
    "events": {"rate": 0.01, "keys": 100},
}


@pytest.mark.parametrize("how", BELIEFS)
def test_every_strategy_against_brute_force(spark, how):
    # Local time too: its µs are another SQL.
    table = drawn(1, pa.timestamp("us") if how in ("a tree of group-bys", "panes side by side") else None, special=0.02)
    plan = pn.plan(queries(how), **BELIEFS[how])
    physical = plan.physical_plan(strategy="rewrite" if how == "a tree of group-bys" else "columnar")
    if how.startswith("panes"):
        assert [store.source for store in physical.stores] == [None, 0]
        # Whether lanes pay is a matter of calibration; whether they are right is not.
        lanes = 4 if how == "panes side by side" else 1
        physical = replace(physical, stores=tuple(replace(store, lanes=lanes) for store in physical.stores))
    assert physical.stores[0].from_events == (how == "events")
    answers = run_steps(physical, frame(spark, table)).carry_out()
    assert_same_answers(answers, brute_force(queries(how), table), absolute=ROUNDING)


def test_spark_s_own_functions_agree(spark):
    table = drawn(2)
    data = frame(spark, table)
    over = pn.hopping("100s", every="40s")
    line = pn.query("q", at="ts", by="k", select=LINE, hidden={"line": pn.trend("x")}, over=over)
    assert_same_answers(pn.plan(line).run(data), by_spark(data, line, LINE), absolute=ROUNDING)
    corr = pn.query("q", at="ts", by="k", select={"together": pn.corr("x", "d * y")}, over=over)
    expected = spark_answers(corr, data).toArrow()
    for strategy in ("native", "columnar"):
        assert_same_answers(pn.plan(corr).run(data, strategy=strategy).toArrow(), expected, absolute=1e-9)
    with pytest.raises(PlanError, match=r"Spark has no trend\(x\).*strategy='columnar'"):
        pn.plan(line).run(data, strategy="native")


def test_regular_series(spark):
    table = drawn(5)
    query = pn.query(
        "q",
        at="ts",
        by="k",
        select=LINE,
        hidden={"line": pn.trend("x", every="5s")},
        over=pn.hopping("2min", every="20s"),
    )
    assert_same_answers(pn.plan(query).run(frame(spark, table)), brute_force(query, table), absolute=ROUNDING)


def test_far_more_half_lives_than_a_double_has_exponents(spark):
    table = drawn(3)
    query = pn.query("q", at="ts", select={"m": pn.aged(pn.mean("x"), half_life="1ms")}, over=pn.tumbling("2min"))
    data = frame(spark, table)
    assert_same_answers(pn.plan(query, rate=1e5).run(data), brute_force(query, table))
    with pytest.raises(PlanError, match="only Python"):
        pn.plan(query).run(data, strategy="rewrite")


def by_spark(data, query, columns):
    """What Spark's own functions say, with times in seconds from an instant near the events."""
    (window,) = query.windows
    size, slide = (f"{micros} microseconds" for micros in (window.geometry.range, window.geometry.slide))
    seconds = f"((unix_micros(ts) - {START}) / 1000000D)"
    start, end = (f"((unix_micros(window.{bound}) - {START}) / 1000000D)" for bound in ("start", "end"))
    found = {
        "slope": f"regr_slope(x, {seconds})",
        "intercept": f"regr_intercept(x, {seconds}) + regr_slope(x, {seconds}) * {start}",
        "r2": f"regr_r2(x, {seconds})",
        "total": f"sum(y * power(2D, {seconds} / 20)) * power(2D, -{end} / 20)",
    }
    placed = data.withColumn("window", F.window("ts", size, slide))
    answers = placed.groupBy("window", "k").agg(*(F.expr(found[name]).alias(name) for name in columns))
    titles = [F.lit("q").alias("query"), F.lit(window.name).alias("window_name")]
    return answers.select(*titles, "window", "k", *columns)


@pytest.mark.usefixtures("one_partition")
@pytest.mark.soak
def test_a_stream_with_late_events(spark, tmp_path):
    record = recorded(spark, tmp_path, seed=2, batches=5)
    stream = record.stream(delay="2 seconds").withColumnRenamed("i", "y")
    select = LINE | {"total": pn.aged(pn.sum("y"), half_life="20s")}
    query = pn.query(
        "q", by="k", at="ts", select=select, hidden={"line": pn.trend("x")}, over=pn.hopping("30s", every="10s")
    )
    ours = Collected(pn.plan(query).stream(stream, shards=2), tmp_path / "ours")
    theirs = Collected(by_spark(stream, query, select), tmp_path / "theirs")
    finished([ours, theirs])
    assert ours.metrics["late"] > 0
    assert ours.rows.num_rows > 50
    assert_same_answers(ours.rows, theirs.rows, absolute=ROUNDING | {"slope": 1e-4, "intercept": 1e-4})
