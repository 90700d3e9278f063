"""Lookups on Spark against Spark's own range joins and window functions, and against the in-process runner."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

import panes as pn
from panes.spark.lookup_chunks import lookup_chunks
from panes.testing import assert_same_answers, events, spark_lookups
from tests.spark.test_corner_cases import setting

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

UTC_TIME, LOCAL_TIME = pa.timestamp("us", "UTC"), pa.timestamp("us")
SELECT = {
    "n": pn.count(),
    "known": pn.count("v"),
    "total": pn.sum("v"),
    "low": pn.min("x"),
    "spread": pn.std("v"),
    "late": pn.last("x"),
    "different": pn.count_distinct("v"),
}
BOUNDS = ["(]", "[)", "[]", "()"]
SEEDS = [1, 2, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(3, 20))]


def frame(spark, table):
    return spark.createDataFrame(table, schema=from_arrow_schema(table.schema, prefer_timestamp_ntz=True))


def sides(seed, rows=120, asked=50, **options):
    # Of two keys each, so that both sides have the same ones.
    keys = {"key": pa.bool_(), "other key": pa.bool_()}
    options = {"keys": keys, "distinct": 2, "null_times": 0.05, **options}
    happened = events(rows, values={"v": pa.int32(), "x": pa.string()}, seed=2 * seed, **options)
    asking = events(asked, values={"label": pa.string()}, seed=2 * seed + 1, **options)
    # Some at the very instants of events.
    times = asking["ts"].to_pylist()[::2] + happened["ts"].to_pylist()[: asked // 2]
    asking = asking.set_column(0, "ts", pa.array(times, asking.schema.field("ts").type))
    return happened, asking.append_column("id", pa.array(range(asked)))


def plan_of(**changed):
    terms = {"by": "key", "at": "ts", "select": {"n": pn.count()}, "over": pn.sliding("1s")} | changed
    return pn.plan(pn.query(**terms))


@pytest.mark.parametrize("seed", SEEDS)
def test_equals_a_range_join_per_window(spark, seed):
    rng = random.Random(seed)
    tables = sides(seed, time=[UTC_TIME, LOCAL_TIME][seed % 2])
    happened, asking = (frame(spark, table) for table in tables)
    sizes = [("3s", None), ("20s", None), ("1h", None), ("10s", "5s")]
    bounds = rng.choice(BOUNDS)
    query = pn.query(
        by=[["key"], ["key", "other key"]][seed % 2],
        at="ts",
        select=SELECT,
        over=[pn.sliding(size, ago=ago, bounds=bounds, name=size) for size, ago in sizes],
        where=[None, "v > 0"][seed % 2],
    )
    found = pn.plan(query).lookup(happened, asking)
    assert found.columns[: len(asking.columns)] == asking.columns
    expected = spark_lookups(query, happened, asking).select(*found.columns).toArrow()
    assert sum(expected["n_20s"].to_pylist()) > 20
    assert_same_answers(found, expected)
    assert_same_answers(pn.plan(query).lookup(*tables), expected)


def test_equals_a_window_function_per_window(spark):
    table, _ = sides(5, rows=300, null_times=0)
    rows = frame(spark, table)
    over = [pn.sliding("4s", name="a"), pn.sliding("1 min", name="b")]
    select = {"n": pn.count(), "total": pn.sum("v"), "high": pn.max("x")}
    found = plan_of(select=select, over=over).lookup(rows, rows)
    expected = rows
    for name, micros in (("a", 4 * 10**6), ("b", 60 * 10**6)):
        frames = Window.partitionBy("key").orderBy(F.unix_micros("ts")).rangeBetween(1 - micros, 0)
        expected = expected.withColumns(
            {
                f"n_{name}": F.count(F.lit(1)).over(frames),
                f"total_{name}": F.sum("v").over(frames),
                f"high_{name}": F.max("x").over(frames),
            }
        )
    assert_same_answers(found, expected.toArrow())


@pytest.mark.parametrize("by", [[], "key"])
def test_counted_rows_and_layouts_as_in_this_process(spark, by):
    tables = sides(7)
    happened, asking = (frame(spark, table) for table in tables)
    over = [pn.sliding(pn.rows(5)), pn.sliding(pn.rows(3), ago=pn.rows(2)), pn.sliding("20s")]
    plan = plan_of(by=by, select=SELECT | {"per": "total / NULLIF(n, 0)"}, over=over)
    assert_same_answers(plan.lookup(happened, asking), plan.lookup(*tables))
    assert_same_answers(plan.lookup(happened, asking, layout="long"), plan.lookup(*tables, layout="long"))


def test_a_key_with_most_of_the_events(spark):
    # Cut into slices of time, since nearly all events are of one key; those of others are not.
    rng = np.random.default_rng(3)
    names = np.where(rng.random(4_000) < 0.95, "heavy", rng.choice(["a", "b"], 4_000))
    happened = pa.table(
        {
            "ts": pa.array(rng.integers(-(10**9), 10**9, 4_000), UTC_TIME),
            "key": names,
            "v": rng.integers(0, 99, 4_000),
        }
    )
    asking = pa.table({"ts": happened["ts"].slice(0, 500), "key": happened["key"].slice(1_000, 500)})
    for by in ("key", []):
        terms = {"by": by, "select": {"n": pn.count(), "v": pn.sum("v")}}
        plan = plan_of(over=[pn.sliding("1s"), pn.sliding("50s")], **terms)
        found = plan.lookup(frame(spark, happened), frame(spark, asking))
        assert "__panes_slice" in found._jdf.queryExecution().toString()
        assert_same_answers(found, plan.lookup(happened, asking))
    plan = plan_of(over=pn.sliding(pn.rows(9)), **terms)
    assert_same_answers(plan.lookup(frame(spark, happened), frame(spark, asking)), plan.lookup(happened, asking))


def test_nothing_to_look_up(spark):
    happened, asking = (frame(spark, table) for table in sides(1))
    none = plan_of().lookup(happened.limit(0), asking).toArrow()
    assert none["n_1s"].to_pylist() == [0] * 50
    assert plan_of().lookup(happened, asking.limit(0)).toArrow().num_rows == 0


def test_errors(spark):
    happened, asking = (frame(spark, table) for table in sides(1))
    plan = plan_of()
    with pytest.raises(pn.PanesError, match="one side is a Spark DataFrame"):
        plan.lookup(happened, asking.toArrow())
    with pytest.raises(pn.PanesError, match=r"'ky' is not a column of the data .did you mean 'key'"):
        plan_of(by="ky").lookup(happened, asking)
    with pytest.raises(pn.PanesError, match="by='key' is not a column of the requests"):
        plan.lookup(happened, asking.drop("key"))
    odd = asking.withColumn("odd", F.expr("make_interval(1)"))
    with pytest.raises(pn.PanesError, match="cannot carry"):
        plan.lookup(happened, odd)
    stream = happened.sparkSession.readStream.format("rate").load()
    with pytest.raises(pn.PanesError, match="the requests are a stream"):
        plan.lookup(happened, stream)


@pytest.mark.parametrize("size", [1, 3, 10, 1000])
@pytest.mark.parametrize(("reach", "rows"), [(0, 0), (5, 0), (10**6, 0), (0, 3), (4, 2)])
def test_chunks_have_all_that_their_requests_reach(size, reach, rows):
    rng = np.random.default_rng(size + reach + rows)
    key = np.sort(rng.choice(["a", "b"], 200, p=[0.9, 0.1]))
    instants = np.concatenate([np.sort(rng.integers(0, 60, (key == name).sum())) for name in "ab"])
    asks = rng.random(200) < 0.3
    table = pa.table({"key": key, "at": instants, "asks": asks, "row": np.arange(200)})
    seen = []
    for chunk in lookup_chunks(table.to_batches(max_chunksize=7), 1, size, reach=reach, rows=rows):
        assert chunk.key_starts[-1] == len(chunk.events)
        at, row = (chunk.events.column(name).to_numpy() for name in ("at", "row"))
        for request, ordinal in zip(chunk.requests.to_pylist(), chunk.ordinals, strict=True):
            seen.append(request["row"])
            own = slice(chunk.key_starts[ordinal], chunk.key_starts[ordinal + 1])
            before = ~asks & (key == request["key"]) & (instants <= request["at"])
            wanted = np.flatnonzero(before & (instants >= request["at"] - reach))
            last = np.flatnonzero(before)[-rows:] if rows else []
            held = {*row[own][at[own] <= request["at"]]}
            assert {*wanted, *last} <= held
    assert seen == np.flatnonzero(asks).tolist()


def test_what_the_zone_of_the_session_decides_is_refused(spark):
    events_ = frame(spark, pa.table({"ts": pa.array([0], UTC_TIME), "date_n": [1]}))
    asked = {"by": "date_n", "over": pn.sliding("1h")}
    late = {"n": pn.count(), "late": "window.end > TIMESTAMP '2026-01-01 00:00:00'"}
    day = {"n": pn.count(), "late": "window.end > DATE '2026-01-01'"}
    alike = {"n": pn.count(), "begun": "window.start", "more": "date_n + n"}
    with setting(spark, "spark.sql.session.timeZone", "America/New_York"):
        for select in (late, day):
            with pytest.raises(pn.PanesError, match="time zone of the session, America/New_York"):
                plan_of(select=select, **asked).lookup(events_, events_)
        assert plan_of(select=alike, **asked).lookup(events_, events_).collect()[0]["more_1h"] == 2
    assert plan_of(select=late, **asked).lookup(events_, events_).collect()[0]["late_1h"] is False
