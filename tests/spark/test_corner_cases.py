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
from panes.errors import SchemaError


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
