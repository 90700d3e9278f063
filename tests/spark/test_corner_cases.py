"""Corners that were wrong once: hours that clocks skip, collations, overflow without ANSI mode, names."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import panes as pn
from panes.errors import PlanError, SchemaError
from panes.planning.strategy import Costs, Strategy
from panes.spark.run import run_steps


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, before)


@pytest.mark.parametrize("strategy", ["native", "rewrite", "columnar"])
def test_local_times_in_an_hour_that_the_clocks_skip(spark: SparkSession, strategy: str) -> None:
    over = [pn.tumbling("10 min"), pn.hopping("20 min", every="10 min"), pn.hopping("10 min", every="30 min")]
    plan = pn.plan(pn.query("q", at="ts", select={"n": pn.count()}, over=over))
    with setting(spark, "spark.sql.session.timeZone", "Europe/Berlin"):
        times = ("2024-03-31 02:31:00.000001", "1969-12-31 23:59:59.999999")
        rows = ", ".join(f"(timestamp_ntz'{time}')" for time in times)
        events = spark.sql(f"SELECT * FROM VALUES {rows} AS t(ts)")
        answers = plan.run(events, strategy=strategy)
        starts = {(row.window_name, row.start) for row in answers.selectExpr("window_name", "window.start").collect()}
    assert starts == {
        ("10m", dt.datetime(2024, 3, 31, 2, 30)),
        ("10m", dt.datetime(1969, 12, 31, 23, 50)),
        ("20m/10m", dt.datetime(2024, 3, 31, 2, 20)),
        ("20m/10m", dt.datetime(2024, 3, 31, 2, 30)),
        ("20m/10m", dt.datetime(1969, 12, 31, 23, 40)),
        ("20m/10m", dt.datetime(1969, 12, 31, 23, 50)),
        ("10m/30m", dt.datetime(2024, 3, 31, 2, 30)),
    }


def test_collated_keys_are_refused(spark: SparkSession) -> None:
    events = spark.sql("SELECT current_timestamp() AS ts, 'A' COLLATE UTF8_LCASE AS k")
    plan = pn.plan(pn.query("q", by="k", at="ts", select={"n": pn.count()}, over=pn.tumbling("10 min")))
    with pytest.raises(SchemaError, match="collation UTF8_LCASE"):
        plan.run(events)


def test_a_sum_of_decimals_overflows_loudly_without_ansi_mode(spark: SparkSession) -> None:
    big = Decimal(9 * 10**37)
    hour = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    times = [hour, hour, hour, hour + dt.timedelta(minutes=10)]
    table = pa.table({"ts": times, "x": pa.array([big, big, big, Decimal(5)], pa.decimal128(38, 0))})
    plan = pn.plan(pn.query("q", at="ts", select={"s": pn.sum("x")}, over=pn.hopping("20 min", every="10 min")))
    with setting(spark, "spark.sql.ansi.enabled", "false"):
        answers = plan.run(spark.createDataFrame(table), strategy="columnar")
        with pytest.raises(PySparkException, match="does not fit its type"):
            answers.collect()


@pytest.mark.parametrize(("strategy", "apart"), [("columnar", 1), ("rewrite", 11)])
def test_a_sum_of_merged_decimals_overflows_loudly_without_ansi_mode(
    spark: SparkSession, strategy: Strategy, apart: int
) -> None:
    """What is built does not overflow, only what is merged of it: panes for coarser keys, windows in a tree."""
    big, hour = Decimal(9 * 10**37), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    times = [hour, hour + dt.timedelta(seconds=apart), hour + dt.timedelta(seconds=32)]
    values = pa.array([big, big, Decimal(5)], pa.decimal128(38, 0))
    events = spark.createDataFrame(pa.table({"ts": times, "a": [1, 1, 1], "b": [1, 2, 1], "x": values}))
    over = [pn.tumbling("10 s"), pn.tumbling("20 s"), pn.tumbling("40 s")]
    queries = [pn.query(str(by), by=by, at="ts", select={"s": pn.sum("x")}, over=over) for by in (("a", "b"), ("a",))]
    physical = pn.plan(queries, rate=1e6, keys=2).physical_plan(strategy=strategy)
    assert strategy == "rewrite" or physical.stores[1].source == 0
    with setting(spark, "spark.sql.ansi.enabled", "false"):
        answers = run_steps(physical, events).carry_out()
        with pytest.raises(PySparkException, match="does not fit its type"):
            answers.collect()


def test_names_that_are_ambiguous_or_spelt_otherwise(spark: SparkSession) -> None:
    plan = pn.plan(pn.query("q", by="K", at="ts", select={"n": pn.count()}, over=pn.tumbling("10 min")))
    events = spark.sql("SELECT current_timestamp() AS ts, 1 AS k")
    assert plan.run(events).collect()[0].n == 1
    with setting(spark, "spark.sql.caseSensitive", "true"), pytest.raises(SchemaError, match="spelt 'k'"):
        plan.run(events)
    with pytest.raises(SchemaError, match="2 columns called 'K'"):
        plan.run(spark.sql("SELECT current_timestamp() AS ts, 1 AS k, 2 AS K"))


def test_day_time_intervals_are_keys(spark: SparkSession) -> None:
    events = spark.sql("SELECT current_timestamp() AS ts, INTERVAL '1' DAY AS k")
    plan = pn.plan(pn.query("q", by="k", at="ts", select={"n": pn.count()}, over=pn.tumbling("10 min")))
    rows = plan.run(events, strategy="columnar").collect()
    assert [(row.k, row.n) for row in rows] == [(dt.timedelta(days=1), 1)]


def digits(*arguments: str) -> pn.Aggregate:
    """Reads its first argument as the digits of a number: order matters."""
    return pn.aggregate(
        *arguments,
        name="digits",
        state={"scale": np.int64, "value": np.int64},
        identity=(1, 0),
        lift=lambda *x: (np.full(len(x[0]), 10), x[0]),
        combine=lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]),
        lower=lambda scale, value: value,
        output=np.int64,
    )


def test_ties_are_broken_by_the_aggregates_own_values(spark: SparkSession) -> None:
    noon = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
    table = pa.table({"ts": [noon] * 3, "a": [2, 1, 3], "b": [2, 3, 1]})
    over = pn.tumbling("1 h")
    queries = [
        pn.query("a", at="ts", select={"a": digits("a")}, over=over),
        pn.query("b", at="ts", select={"b": digits("b")}, over=over),
        pn.query("ab", at="ts", select={"ab": digits("b", "a")}, over=over),
    ]
    for answers in (pn.plan(queries).run(table), pn.plan(queries).run(spark.createDataFrame(table)).toArrow()):
        rows = {row["query"]: row for row in answers.to_pylist()}
        assert (rows["a"]["a"], rows["b"]["b"], rows["ab"]["ab"]) == (123, 123, 123)


@pytest.mark.parametrize("zone", ["Etc/UTC", "Europe/Berlin"])
def test_times_among_the_answers_of_several_queries_in_a_session_with_a_zone(spark: SparkSession, zone: str) -> None:
    queries = [
        pn.query("latest", at="ts", select={"latest": pn.max("ts")}, over=pn.tumbling("10 min")),
        pn.query("count", at="ts", select={"n": pn.count()}, over=pn.tumbling("20 min")),
    ]
    with setting(spark, "spark.sql.session.timeZone", zone):
        events = spark.sql(
            "SELECT explode(sequence(timestamp_seconds(0), timestamp_seconds(3000), INTERVAL 1 MINUTE)) ts"
        )
        found, expected = (
            {
                tuple(row)
                for row in pn.plan(queries).run(events, strategy=strategy).select("window", "latest", "n").collect()
            }
            for strategy in ("columnar", "native")
        )
    assert found == expected
    assert len(found) == 9


def test_averages_of_wide_decimals_have_all_their_digits(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    hour = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    data = pa.table({"ts": [hour] * 3, "x": pa.array([Decimal(1), Decimal(1), Decimal(2)], pa.decimal128(38, 18))})
    events = spark.createDataFrame(data)
    plan = pn.plan(pn.query("q", at="ts", select={"x": pn.mean("x")}, over=pn.tumbling("1 hour")))
    digits = Decimal("1." + 22 * "3")
    for strategy in ("native", "columnar"):
        assert plan.run(events, strategy=strategy).first().x == digits
    assert plan.run(data).column("x").to_pylist() == [digits]
    with pytest.raises(PlanError, match="column 'x': the average of decimals"):
        plan.run(events, strategy="rewrite")
    # Nobody has asked for a tree of group-bys: the planner takes something else.
    monkeypatch.setattr(Costs, "cheapest", property(lambda costs: "rewrite"))
    assert pn.plan(plan.queries, rate=100).run(events).first().x == digits


def test_a_condition_is_not_asked_of_events_without_a_time(spark: SparkSession) -> None:
    rows = "VALUES (timestamp_seconds(60), 2), (NULL, 0) AS t(ts, x)"
    plan = pn.plan(pn.query("q", at="ts", select={"n": pn.count()}, over=pn.tumbling("1 hour"), where="1 / x > 0"))
    events = spark.sql(f"SELECT * FROM {rows}")
    assert [row.n for row in plan.run(events).collect()] == [1]
    assert plan.run(events.toArrow()).column("n").to_pylist() == [1]
