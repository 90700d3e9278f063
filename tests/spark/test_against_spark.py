"""Panes on Spark against Spark itself: every strategy gives what ``groupBy(window(...))`` gives, schema included.

Each test puts many windows and aggregates into few jobs. The oracle is ``panes.testing.spark_answers``, which knows
nothing of the planner; its answers are computed once per case and compared with all strategies.
"""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

import panes as pn
from panes.spark.run import run_steps
from panes.testing import assert_same_answers, brute_force, events, spark_answers
from panes.timeline import SECOND, Edges

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

STRATEGIES = ("native", "rewrite", "columnar", None)
UTC_TIME, LOCAL_TIME = pa.timestamp("us", "UTC"), pa.timestamp("us")
VALUES = {
    "i8": pa.int8(),
    "i": pa.int32(),
    "l": pa.int64(),
    "f": pa.float32(),
    "x": pa.float64(),
    "d": pa.decimal128(9, 2),
    "s": pa.string(),
    "b": pa.bool_(),
    "day": pa.date32(),
    "t": UTC_TIME,
    "n": LOCAL_TIME,
    "bin": pa.binary(),
}
NUMBERS = ("i8", "i", "l", "f", "x", "d")
ORDERED = tuple(VALUES)


def frame(spark, table):
    """A DataFrame of the same types: without a schema, PySpark takes local times for instants."""
    return spark.createDataFrame(table, schema=from_arrow_schema(table.schema, prefer_timestamp_ntz=True))


def once(spark, expected):
    """An oracle's answers, computed once, with their Spark types."""
    return spark.createDataFrame(expected.toArrow(), schema=expected.schema)


def random_windows(rng, count):
    found = {}
    for _ in range(count):
        size = rng.choice([rng.randint(1, 90), 10, 20, 30, 60, 120])
        every = rng.choice([size, size, rng.randint(1 + size // 8, 2 * size), max(1, size // 2)])
        offset = rng.choice([0, 0, rng.randint(-30, 70)])
        window = pn.hopping(f"{size}s", every=f"{every}s", offset=f"{offset}s", bounds=rng.choice(["[)", "[)", "(]"]))
        if rng.random() < 0.08:
            window = pn.cumulate(f"{every}s", upto=f"{every * rng.randint(2, 3)}s", offset=f"{offset}s")
        found[window.name] = window
    return list(found.values())


def random_aggregates(rng, count):
    found = {}
    for i in range(count):
        number, ordered, other = rng.choice(NUMBERS), rng.choice(ORDERED), rng.choice(ORDERED)
        kinds = {
            f"n{i}": pn.count(),
            f"n_{ordered}": pn.count(ordered),
            f"sum_{number}": pn.sum(number),
            f"mean_{number}": pn.mean(number),
            f"low_{ordered}": pn.min(ordered),
            f"high_{ordered}": pn.max(ordered),
            f"var_{number}": pn.var(number),
            f"std_pop_{number}": pn.std(number, ddof=0),
            f"first_{ordered}": pn.first(ordered),
            f"last_{ordered}": pn.last(ordered),
            f"at_low_{ordered}_{other}": pn.arg_min(ordered, other),
            f"at_high_{ordered}_{other}": pn.arg_max(ordered, other),
            "sum_of_expression": pn.sum("i * 2 + l"),
        }
        alias = rng.choice(list(kinds))
        found[alias] = kinds[alias]
    return found


def random_queries(rng, keys, prefix=""):
    queries = []
    for i in range(rng.randint(1, 3)):
        select = random_aggregates(rng, rng.randint(2, 5))
        where = rng.choice([None, None, "i > 0", "x < 100 OR s = 'a'", "b", "i > 1000"])
        having = rng.choice([None, None, "events > 1", "twice >= 4", "unseen > 2"])
        select |= {"events": pn.count(), "twice": "events * 2", "ends": "window.end"}
        by = tuple(rng.sample(keys, rng.randint(0, len(keys))))
        over = random_windows(rng, rng.randint(1, 2))
        asked = {
            "where": where,
            "having": having,
            "hidden": {"unseen": pn.count("i")} if having == "unseen > 2" else {},
        }
        queries.append(pn.query(f"{prefix}q{i}", at="ts", by=by, select=select, over=over, **asked))
    return queries


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 12))])
def test_random_query_sets(spark, seed):
    rng = random.Random(seed)
    time = rng.choice([UTC_TIME, LOCAL_TIME])
    keys = {"k": pa.string(), "j": pa.int32()}
    table = events(90, keys=keys, values=VALUES, time=time, special=0.05, null_times=0.05, seed=seed, step="5s")
    data = frame(spark, table)
    queries = random_queries(rng, list(keys))
    expected = once(spark, spark_answers(queries, data))
    # Beliefs that make the planner merge panes, feed coarser keys from finer ones, or put panes side by side.
    plan = pn.plan(queries, rate=rng.choice([0.01, 10.0, 1e5]), keys=rng.choice([2, 1000]))
    for strategy in ("rewrite", "columnar"):
        assert_same_answers(plan.run(data, strategy=strategy), expected, absolute=1e-6)
    if seed == 1:
        for strategy in ("native", None):
            assert_same_answers(plan.run(data, strategy=strategy), expected, absolute=1e-6)
    local = plan.run(table)
    assert_same_answers(local, expected, absolute=1e-6)


def test_distinct_values_and_quantiles(spark):
    table = events(300, keys={"k": pa.string()}, values=VALUES, special=0.05, null_times=0.05, seed=3, step="5s")
    data = frame(spark, table)
    select = {f"n_{name}": pn.count_distinct(name) for name in VALUES}
    select |= {"all": pn.distinct("i8"), "words": pn.distinct("s"), "between": pn.quantile("x", 0.3)}
    select |= {f"median_{name}": pn.quantile(name, 0.5) for name in NUMBERS}
    over = [pn.tumbling("1m"), pn.hopping("5m", every="1m"), pn.hopping("70s", every="50s", offset="3s")]
    queries = [
        pn.query("q", at="ts", by="k", select=select, over=over),
        pn.query("some", at="ts", by="k", select={"n_s": pn.count_distinct("s")}, over=over[1], where="i > 0"),
    ]
    expected = once(spark, spark_answers(queries, data))
    assert_same_answers(pn.plan(queries).run(data), expected, absolute=1e-6)
    assert_same_answers(pn.plan(queries, strategy="native").run(data), expected, absolute=1e-6)


@pytest.mark.parametrize("rate", [pytest.param(0.01, marks=pytest.mark.soak), 1e5])
def test_dozens_of_random_query_sets_in_one_plan(spark, rate):
    """Twenty sets of queries share stores, panes and conditions in one job; brute force knows each alone."""
    keys = {"k": pa.string(), "j": pa.int32()}
    table = events(80, keys=keys, values=VALUES, special=0.05, null_times=0.05, seed=int(rate), step="5s")
    sets = [random_queries(random.Random(100 + seed), list(keys), prefix=f"s{seed}") for seed in range(20)]
    queries = [query for queries in sets for query in queries]
    answers = pn.plan(queries, rate=rate, keys=5, strategy="columnar").run(frame(spark, table))
    assert_same_answers(answers, brute_force(queries, table), absolute=1e-6)


@pytest.mark.usefixtures("codegen")
def test_every_aggregate_of_every_type(spark):
    """All aggregates over all types in one job per strategy, against Spark and against brute force."""
    select = {"n": pn.count()}
    for name in NUMBERS:
        select |= {
            f"sum_{name}": pn.sum(name),
            f"mean_{name}": pn.mean(name),
            f"var_{name}": pn.var(name),
            f"std_{name}": pn.std(name),
            f"var_pop_{name}": pn.var(name, ddof=0),
        }
    for name in ORDERED:
        select |= {
            f"n_{name}": pn.count(name),
            f"low_{name}": pn.min(name),
            f"high_{name}": pn.max(name),
            f"first_{name}": pn.first(name),
            f"last_{name}": pn.last(name),
            f"at_low_{name}": pn.arg_min(name, "x"),
            f"at_high_{name}": pn.arg_max("x", name),
        }
    table = events(150, values=VALUES, special=0.1, nulls=0.3, seed=3)
    data = frame(spark, table)
    over = [pn.tumbling("10s"), pn.hopping("30s", every="20s", offset="5s")]
    query = pn.query("q", by="key", at="ts", select=select, over=over)
    expected = once(spark, spark_answers(query, data))
    assert_same_answers(brute_force(query, table), expected, absolute=1e-9)
    for strategy in STRATEGIES:
        assert_same_answers(pn.plan(query).run(data, strategy=strategy), expected, absolute=1e-9)


KEYS = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "small": pa.int8(),
    "text": pa.string(),
    "double": pa.float64(),
    "float": pa.float32(),
    "decimal": pa.decimal128(10, 3),
    "date": pa.date32(),
    "instant": UTC_TIME,
    "local": LOCAL_TIME,
    "yes": pa.bool_(),
    "raw": pa.binary(),
    "pair": pa.struct([("a", pa.int32()), ("b", pa.float64())]),
    "list": pa.list_(pa.float64()),
    "nested": pa.struct([("a", pa.list_(pa.struct([("b", pa.string())]))), ("c", UTC_TIME)]),
}


def test_keys_of_every_type(spark):
    """Null, NaN and -0.0 as keys and inside keys; every type alone and pairs of them, many queries in one job."""
    table = events(100, keys=KEYS, values={"v": pa.int32()}, nulls=0.15, distinct=3, seed=5)
    data = frame(spark, table)
    pairs = [("double", "pair"), ("list", "text"), ("nested", "yes")]
    by = [(), *((name,) for name in KEYS), *pairs]
    select = {"n": pn.count(), "total": pn.sum("v")}
    queries = [pn.query(f"q{i}", at="ts", by=b, select=select, over=pn.tumbling("40s")) for i, b in enumerate(by)]
    expected = once(spark, spark_answers(queries, data))
    assert_same_answers(pn.plan(queries).run(data, strategy="columnar"), expected)
    assert_same_answers(pn.plan(queries).run(table), expected)
    few = [queries[0], *queries[5:6], *queries[-3:]]
    of_few = expected.where(expected["query"].isin([query.name for query in few]))
    rewritten = pn.plan(few).run(data, strategy="rewrite")
    assert_same_answers(rewritten, of_few.select(rewritten.columns))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 6))])
def test_coarser_keys_are_fed_by_finer_ones(spark, seed):
    """Four sets of keys over one store of panes, each with windows and conditions of its own."""
    rng = random.Random(seed)
    keys = {"a": pa.int32(), "b": pa.string()}
    table = events(120, keys=keys, values=VALUES, special=0.05, seed=seed)
    data = frame(spark, table)
    queries = [
        pn.query(
            f"by {' and '.join(by) or 'nothing'}",
            at="ts",
            by=by,
            select={
                "n": pn.count(),
                "mean": pn.mean("x"),
                "last": pn.last("s"),
                "var": pn.var("i"),
                "sum": pn.sum("d"),
            },
            over=random_windows(rng, 2),
            where=where,
        )
        for by, where in [(("a", "b"), None), (("a",), "i > 0"), (("b",), None), ((), "x < 500")]
    ]
    plan = pn.plan(queries, rate=1e5, keys=4, strategy="columnar")
    sources = [store.source for store in plan.physical_plan().stores]
    assert sources == [None, 0, 0, 0], "the case is meant to be fed"
    expected = once(spark, spark_answers(queries, data))
    assert_same_answers(plan.run(data), expected, absolute=1e-6)


def test_idempotent_aggregates_may_read_overlapping_windows(spark):
    """Only extrema and picks, so that hopping windows are read from hopping windows that cover them."""
    table = events(120, values=VALUES, special=0.05, seed=21)
    data = frame(spark, table)
    select = {"low": pn.min("x"), "high": pn.max("s"), "last": pn.last("i"), "at": pn.arg_min("d", "t")}
    over = [
        pn.hopping(f"{size}s", every=f"{every}s") for size, every in [(20, 10), (40, 10), (60, 20), (70, 30), (30, 10)]
    ]
    query = pn.query("q", by="key", at="ts", select=select, over=over)
    plan = pn.plan(query, rate=1e5, keys=4)
    providers = plan.physical_plan(strategy="rewrite").stores[0].forest.providers
    assert any(provider is not None and provider.range > provider.slide for provider in providers.values())
    expected = once(spark, spark_answers(query, data))
    for strategy in ("rewrite", "columnar"):
        assert_same_answers(plan.run(data, strategy=strategy), expected)


@pytest.mark.parametrize(
    "add", [[], [pn.tumbling("7s"), pn.tumbling("11s", offset="3s")]], ids=["equal panes", "uneven panes"]
)
def test_panes_side_by_side(spark, add):
    """Where panes are rarely empty several of them travel in one row; the data here leave most of them empty."""
    keys = {"a": pa.int32(), "b": pa.string()}
    table = events(150, keys=keys, values=VALUES, special=0.05, seed=22)
    data = frame(spark, table)
    select = {"n": pn.count(), "mean": pn.mean("x"), "last": pn.last("s"), "low": pn.min("d"), "total": pn.sum("l")}
    over = [
        pn.tumbling("10s"),
        pn.tumbling("30s"),
        pn.hopping("40s", every="20s"),
        pn.hopping("10s", every="30s"),
        *add,
    ]
    queries = [
        pn.query("fine", by=("a", "b"), at="ts", select=select, over=over),
        pn.query("coarse", by="b", at="ts", select=select, over=over, where="i > 0"),
    ]
    physical = pn.plan(queries, rate=1e6, keys=2).physical_plan(strategy="columnar")
    assert physical.stores[1].source == 0
    # Whether lanes pay is a matter of calibration; whether they are right is not.
    edges = (Edges(10 * SECOND), *(edge for window in add for edge in window.geometry.edges()))
    stores = tuple(replace(store, edges=edges, lanes=4 if not add else 16) for store in physical.stores)
    answers = run_steps(replace(physical, stores=stores), data).carry_out()
    assert_same_answers(answers, once(spark, spark_answers(queries, data)), absolute=1e-6)


@pytest.mark.parametrize("lanes", [2, 32])
def test_few_and_many_panes_side_by_side_without_keys(spark, lanes):
    """Fine edges, which are divided, and every type that has an order."""
    table = events(300, keys={}, values=VALUES, special=0.05, step="2 ms", seed=23)
    data = frame(spark, table)
    over = [pn.tumbling("7 ms"), pn.tumbling("11 ms", offset="3 ms"), pn.hopping("60 ms", every="28 ms")]
    select = {f"low_{name}": pn.min(name) for name in ORDERED} | {"n": pn.count()}
    query = pn.query("q", at="ts", select=select, over=over)
    physical = pn.plan(query).physical_plan(strategy="columnar")
    edges = tuple(dict.fromkeys(edge for window in over for edge in window.geometry.edges()))
    stores = (replace(physical.stores[0], edges=edges, lanes=lanes, from_events=False),)
    answers = run_steps(replace(physical, stores=stores), data).carry_out()
    assert_same_answers(answers, once(spark, spark_answers(query, data)))


@pytest.mark.filterwarnings("ignore::panes.errors.ZoneWarning")
@pytest.mark.parametrize("time", [UTC_TIME, LOCAL_TIME], ids=["timestamp", "timestamp_ntz"])
def test_a_session_time_zone_with_a_change_of_clocks(spark, time):
    """Windows are instants since the epoch, whatever the clocks say: 2024-03-31 in Berlin has 23 hours."""
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        change = int(datetime(2024, 3, 31, 1, tzinfo=UTC).timestamp()) * 10**6
        table = events(60, values={"v": pa.int32()}, time=time, start=change, step="10 min", seed=1)
        data = frame(spark, table)
        over = [pn.tumbling("1h"), pn.hopping("1d", every="6h", offset="2h"), pn.hopping("30 min", every="2h")]
        select = {"n": pn.count(), "first": pn.first("v"), "latest": pn.max("ts")}
        query = pn.query("q", by="key", at="ts", select=select, over=over)
        expected = once(spark, spark_answers(query, data))
        for strategy in ("native", "rewrite", "columnar"):
            assert_same_answers(pn.plan(query).run(data, strategy=strategy), expected)
        assert_same_answers(pn.plan(query).run(table), expected)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_wide_layout_is_the_same_everywhere(spark):
    table = events(100, keys={"k": pa.string(), "j": pa.float64()}, values=VALUES, special=0.05, seed=11)
    data = frame(spark, table)
    over = [pn.tumbling("20s"), pn.tumbling("40s", name="long"), pn.hopping("50s", every="20s")]
    queries = [
        pn.query("q", by=("k", "j"), at="ts", select={"n": pn.count(), "low": pn.min("s")}, over=over),
        pn.query(
            "p", by=("j", "k"), at="ts", select={"mean": pn.mean("x"), "bin": pn.last("bin")}, over=over, where="b"
        ),
    ]
    plan = pn.plan(queries)
    wide = {
        strategy: plan.run(data, strategy=strategy, layout="wide") for strategy in ("native", "columnar", "rewrite")
    }
    local = plan.run(table, layout="wide")
    assert local.column_names[:3] == ["k", "j", "window_end"]
    assert "mean_50s_by_20s" in local.column_names
    for result in wide.values():
        assert_same_answers(result, local, absolute=1e-9)
    long = spark_answers(queries, data).where("query = 'p' AND window_name = 'long' AND mean IS NOT NULL")
    column = wide["columnar"].where("mean_long IS NOT NULL")
    ours = column.selectExpr("k", "j", "window_end AS end", "mean_long AS mean")
    assert_same_answers(ours, long.selectExpr("k", "j", "window.end AS end", "mean"), absolute=1e-9)


def test_user_defined_aggregates(spark):
    """Built in Python from raw events: equal to Spark's own where Spark has the like, and to brute force."""
    table = events(150, values={"v": pa.int32(), "w": pa.float64()}, special=0.0, seed=2)
    data = frame(spark, table)
    over = [pn.tumbling("10s"), pn.hopping("30s", every="10s"), pn.hopping("7s", every="11s")]
    total = pn.aggregate(
        "v * 2",
        name="total",
        state={"sum": np.int64},
        identity=(0,),
        lift=lambda v: (v.astype(np.int64),),
        combine=lambda a, b: (a[0] + b[0],),
        subtract=lambda a, b: (a[0] - b[0],),
        lower=lambda s: s,
        output=np.int64,
    )
    weighted = pn.aggregate(
        "v",
        "w",
        name="weighted mean",
        state={"top": np.float64, "bottom": np.float64},
        identity=(0.0, 0.0),
        lift=lambda v, w: (v * w, np.abs(w)),
        combine=lambda a, b: (a[0] + b[0], a[1] + b[1]),
        lower=lambda top, bottom: np.divide(top, bottom, out=np.full(len(top), np.nan), where=bottom > 0),
    )
    prime = 1_000_003
    horner = pn.aggregate(
        "v",
        name="horner",
        state={"factor": np.int64, "value": np.int64},
        identity=(1, 0),
        lift=lambda v: (np.full(len(v), 31), v.astype(np.int64) % prime),
        combine=lambda a, b: (a[0] * b[0] % prime, (a[1] * b[0] + b[1]) % prime),
        lower=lambda factor, value: value,
        output=np.int64,
    )
    own = {"total": total, "weighted": weighted, "horner": horner, "n": pn.count(), "var": pn.var("w")}
    query = pn.query("q", by="key", at="ts", select=own, over=over, where="v > -90")
    answers = pn.plan(query).run(data)
    assert_same_answers(answers, brute_force(query, table), absolute=1e-9)
    like = pn.query(
        "q", by="key", at="ts", select={"total": pn.sum("v * 2"), "n": pn.count()}, over=over, where="v > -90"
    )
    ours = answers.select("query", "window_name", "window", "key", "total", "n")
    assert_same_answers(ours, spark_answers(like, data))
    for strategy in ("native", "rewrite"):
        with pytest.raises(pn.PanesError, match="columnar"):
            pn.plan(query).run(data, strategy=strategy)


@pytest.mark.usefixtures("codegen")
@pytest.mark.parametrize("strategy", ["native", "columnar"])
def test_null_timestamps_are_dropped_and_counted(spark, strategy):
    from pyspark.sql import Observation

    table = events(80, null_times=0.3, seed=4)
    missing = table["ts"].null_count
    assert missing > 5
    query = pn.query("q", by="key", at="ts", select={"n": pn.count()}, over=pn.tumbling("1h"))
    seen = Observation("seen")
    answers = pn.plan(query).run(frame(spark, table), strategy=strategy, observation=seen)
    assert sum(row["n"] for row in answers.collect()) == len(table) - missing
    assert seen.get == {"events": len(table), "null_timestamps": missing}


def test_sums_that_overflow_fail_in_every_strategy(spark):
    """Spark with ANSI mode fails on a BIGINT sum that overflows; so does Panes, and not on a prefix that would."""
    huge = 2**62
    table = pa.table({"ts": pa.array([0, 1, 10**6, 10**6 + 1], UTC_TIME), "v": [huge, huge, huge, -huge]})
    data = frame(spark, table)
    query = pn.query("q", at="ts", select={"total": pn.sum("v")}, over=pn.tumbling("1s"))
    for strategy in ("native", "rewrite", "columnar"):
        with pytest.raises(Exception, match=r"(?i)overflow|does not fit"):
            pn.plan(query).run(data, strategy=strategy).collect()
    fine = data.where("ts >= timestamp_micros(1000000)").union(data.where("v > 0").limit(1))
    for strategy in ("rewrite", "columnar"):
        rows = pn.plan(query).run(fine, strategy=strategy).collect()
        assert sorted(row["total"] for row in rows) == [0, huge]


def test_no_events_and_names_in_any_case(spark):
    table = events(0, values={"v": pa.int32()})
    query = pn.query("q", by="KEY", at="Ts", select={"N": pn.count(), "m": pn.mean("V")}, over=pn.tumbling("1s"))
    for strategy in STRATEGIES:
        answers = pn.plan(query).run(frame(spark, table), strategy=strategy)
        assert_same_answers(answers, spark_answers(query, frame(spark, table)))
    filled = events(30, values={"v": pa.int32()}, seed=8)
    for strategy in ("native", "rewrite", "columnar"):
        answers = pn.plan(query).run(frame(spark, filled), strategy=strategy)
        assert_same_answers(answers, brute_force(query, filled))


@pytest.mark.usefixtures("codegen")
def test_columns_with_odd_names(spark):
    table = pa.table(
        {
            "event time": pa.array([0, 5, 10**6], UTC_TIME),
            "a.b": ["x", "y", "x"],
            "tick`ed": pa.array([Decimal("1.5"), None, Decimal("2.5")], pa.decimal128(4, 1)),
        }
    )
    query = pn.query(
        "it's a \\ query",
        by="a.b",
        at="event time",
        select={"sum of it": pn.sum("`tick``ed`"), "x.y": pn.last("`tick``ed`"), "more`": "`sum of it` + 1"},
        over=pn.tumbling("1s", name="it's 1\\s"),
        having="`x.y` IS NOT NULL",
    )
    expected = spark_answers(query, frame(spark, table))
    for strategy in ("native", "rewrite", "columnar"):
        assert_same_answers(pn.plan(query).run(frame(spark, table), strategy=strategy), expected)
    assert_same_answers(pn.plan(query).run(table), expected)
