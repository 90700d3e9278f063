"""Point-in-time lookups over twenty windows at once, beside Spark's range joins and window functions, DuckDB, Polars.

Requests at any time: Spark joins each window (as most users write it) or the widest once, with a condition per window.
DuckDB and Polars have as-of joins, which answer counts and sums by differences of running totals, two per window.
Requests that are the events themselves: Spark has a window function per window, as DuckDB and Polars have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import panes as pn
from benchmarks import data
from benchmarks.contenders import Contender, common, connection, events, on_spark
from benchmarks.data import Dataset
from benchmarks.report import Timings
from benchmarks.runner import Bench, timed
from panes.testing import spark_lookups
from panes.timeline import MINUTE

if TYPE_CHECKING:
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession

KEYS = 10_000
SELECT = {"n": pn.count(), "total": pn.sum("units")}
PANES, JOINS, ONCE, FUNCTIONS = "Panes", "Spark's joins", "Spark's join, once", "Spark's functions"
DUCKDB, POLARS = "DuckDB", "Polars"


def lookups(bench: Bench) -> None:
    """Race both cases."""
    sizes = {f"{minutes}m": minutes * MINUTE for minutes in bench.few(range(15, 301, 15), 3)}
    happened = data.synthetic(bench.events(2_000_000), bench.options.keys or KEYS)
    _requests_of_their_own(bench, happened, sizes)
    _events_themselves(bench, sizes)
    _one_key(bench, sizes)


def _requests_of_their_own(bench: Bench, happened: Dataset, sizes: dict[str, int]) -> None:
    spark = bench.spark
    query = _query(sizes)
    ours = on_spark(PANES, lambda d: pn.plan(query).lookup(events(spark, d), events(spark, requests_of(d))))
    joins = on_spark(JOINS, lambda d: spark_lookups(query, events(spark, d), events(spark, requests_of(d))))
    once = on_spark(ONCE, lambda d: _joined_once(spark, d, sizes))
    duck = _in_memory(DUCKDB, lambda d: _as_of_in_duckdb(d, sizes))
    polars = _in_memory(POLARS, lambda d: _as_of_in_polars(d, sizes))
    asked = requests_of(happened).events
    table = bench.report.table(
        f"{asked:,} requests, {happened.events:,} events of {KEYS:,} keys, count and sum over {len(sizes)} windows, "
        "15 minutes to 5 hours; seconds",
        f"× is times {PANES}. Spark's joins run once, the others in interleaved rounds.",
    )
    case = f"{asked:,} requests"
    bench.check(case, [joins, ours, once, duck, polars], happened)
    timings = bench.race(case, [ours, duck, polars], happened)
    for slow in (once, joins):
        took, _ = timed(slow.run, happened)
        bench.report.record(case, happened.name, Timings({slow.name: [took]}))
        timings = Timings({**timings.seconds, slow.name: [took]})
    table.rows.append(_row(len(sizes), timings, [JOINS, ONCE, DUCKDB, POLARS]))


def _events_themselves(bench: Bench, sizes: dict[str, int]) -> None:
    spark = bench.spark
    query = _query(sizes)

    def rows(d: Dataset) -> DataFrame:
        return events(spark, d).select("key", "ts", "units")

    ours = on_spark(PANES, lambda d: pn.plan(query).lookup(rows(d), rows(d)))
    functions = on_spark(FUNCTIONS, lambda d: _window_functions(rows(d), sizes))
    duck = _in_memory(DUCKDB, lambda d: _functions_in_duckdb(d, sizes))
    polars = _in_memory(POLARS, lambda d: _rolling_in_polars(d, sizes))
    table = bench.report.table(
        "Every event is a request, the same windows; seconds",
        f"× is times {PANES}. Spark's functions run once, the others in interleaved rounds.",
    )
    for keys in (KEYS, KEYS // 10):
        happened = data.synthetic(bench.events(2_000_000), keys)
        case = f"events themselves, {keys:,} keys"
        bench.check(case, [functions, ours, duck, polars], happened)
        timings = bench.race(case, [ours, duck, polars], happened)
        took, _ = timed(functions.run, happened)
        bench.report.record(case, happened.name, Timings({FUNCTIONS: [took]}))
        timings = Timings({**timings.seconds, FUNCTIONS: [took]})
        row = _row(len(sizes), timings, [FUNCTIONS, DUCKDB, POLARS])
        table.rows.append({"events": happened.events, "keys": keys, **row})


def _one_key(bench: Bench, sizes: dict[str, int]) -> None:
    """Ten million events of many keys, and of one."""
    spark = bench.spark
    table = bench.report.table(
        f"Lookups over {len(sizes)} windows, a request for every ten events; seconds",
        "All events of one key: its time is cut into slices that tasks share.",
    )
    count = bench.events(10_000_000)
    for keys in (KEYS, 1):
        happened = data.synthetic(count, keys)
        query = _query(sizes)
        ours = on_spark(PANES, lambda d, q=query: pn.plan(q).lookup(events(spark, d), events(spark, requests_of(d))))
        timings = bench.race(f"{keys:,} keys", [ours], happened)
        table.rows.append({"events": count, "keys": keys, PANES: timings.median(PANES)})


def _query(sizes: dict[str, int]) -> pn.Query:
    over = [pn.sliding(f"{size} us", name=name) for name, size in sizes.items()]
    return pn.query("lookups", by="key", at="ts", select=SELECT, over=over)


def _row(windows: int, timings: Timings, others: list[str]) -> dict[str, object]:
    row: dict[str, object] = {"windows": windows, PANES: timings.median(PANES)}
    for other in others:
        row |= {other: timings.median(other), f"{other} ×": timings.ratio(other, PANES)}
    return row


def requests_of(happened: Dataset) -> Dataset:
    """A tenth as many requests as events: any of their keys, at any time that they span."""

    def parts() -> Iterator[pa.Table]:
        rng = np.random.default_rng(1)
        count = happened.events // 10
        instants = np.sort(rng.integers(0, int(happened.seconds * 1e6) + 1, count)) + data.START
        yield pa.table(
            {
                "id": np.arange(count),
                "key": rng.integers(0, happened.keys["key",], count, dtype=np.int32),
                "ts": pa.array(instants).cast(pa.timestamp("us", "UTC")),
            }
        )

    return data.kept(f"requests-of-{happened.name}", dict(happened.keys), parts)


def _joined_once(spark: SparkSession, happened: Dataset, sizes: dict[str, int]) -> DataFrame:
    """One join of the widest window; every narrower one is a condition of an aggregate."""
    asked = events(spark, requests_of(happened)).alias("r")
    rows = events(spark, happened).selectExpr("key AS k", "ts AS t", "units AS u")
    near = f"r.key = k AND t <= r.ts AND t > r.ts - INTERVAL '{max(sizes.values())}' MICROSECOND"
    columns = []
    for name, size in sizes.items():
        held = f"FILTER (WHERE t > ts - INTERVAL '{size}' MICROSECOND)"
        columns += [f"count(u) {held} AS n_{name}", f"sum(u) {held} AS total_{name}"]
    from pyspark.sql import functions as F

    return asked.join(rows, F.expr(near), "left").groupBy("id", "key", "ts").agg(*map(F.expr, columns))


def _window_functions(rows: DataFrame, sizes: dict[str, int]) -> DataFrame:
    over = "OVER (PARTITION BY key ORDER BY unix_micros(ts) RANGE BETWEEN {} PRECEDING AND CURRENT ROW)"
    columns = []
    for name, size in sizes.items():
        frame = over.format(size - 1)
        columns += [f"count(1) {frame} AS n_{name}", f"sum(units) {frame} AS total_{name}"]
    return rows.selectExpr("*", *columns)


def _in_memory(name: str, table: Callable[[Dataset], pa.Table]) -> Contender:
    return Contender(name, table, lambda d: common(table(d)))


def _as_of_in_duckdb(happened: Dataset, sizes: dict[str, int]) -> pa.Table:
    """Running totals once; per window what they were at the request less what they were when the window began."""
    duck = connection()
    duck.execute(
        "CREATE OR REPLACE TEMP TABLE running AS SELECT key, ts, count(*) OVER w AS c, sum(units) OVER w AS s FROM "
        f"'{happened.files}' WINDOW w AS (PARTITION BY key ORDER BY ts)"
    )
    text = f"SELECT r.*, e.c AS c0, e.s AS s0 FROM '{requests_of(happened).files}' r ASOF LEFT JOIN running e "
    text += "ON r.key = e.key AND r.ts >= e.ts"
    for number, size in enumerate(sizes.values(), 1):
        before = f"r.ts - INTERVAL '{size} microseconds' >= e.ts"
        text = f"SELECT r.*, e.c AS c{number}, e.s AS s{number} FROM ({text}) r ASOF LEFT JOIN running e "
        text += f"ON r.key = e.key AND {before}"
    columns = []
    for number, name in enumerate(sizes, 1):
        n = f"coalesce(c0, 0) - coalesce(c{number}, 0)"
        columns.append(f"{n} AS n_{name}")
        columns.append(f"CASE WHEN {n} > 0 THEN s0 - coalesce(s{number}, 0) END AS total_{name}")
    return duck.sql(f"SELECT id, key, ts, {', '.join(columns)} FROM ({text})").to_arrow_table()


def _as_of_in_polars(happened: Dataset, sizes: dict[str, int]) -> pa.Table:
    import polars as pl

    rows = pl.scan_parquet(happened.files).sort("ts")
    running = rows.select(
        "key",
        "ts",
        pl.int_range(1, pl.len() + 1).over("key").alias("c"),
        pl.col("units").cast(pl.Int64).cum_sum().over("key").alias("s"),
    )
    asked = pl.scan_parquet(requests_of(happened).files).sort("ts")
    found = _as_of(asked, running, "0", 0)
    columns = []
    for number, (name, size) in enumerate(sizes.items(), 1):
        found = _as_of(found, running, str(number), size)
        n = pl.col("c0").fill_null(0) - pl.col(f"c{number}").fill_null(0)
        total = pl.col("s0") - pl.col(f"s{number}").fill_null(0)
        columns += [n.alias(f"n_{name}"), pl.when(n > 0).then(total).alias(f"total_{name}")]
    return found.select("id", "key", "ts", *columns).collect().to_arrow()


def _as_of(asked: pl.LazyFrame, running: pl.LazyFrame, suffix: str, size: int) -> pl.LazyFrame:
    import polars as pl

    named = running.select(
        "key", pl.col("ts").alias("t"), pl.col("c").alias(f"c{suffix}"), pl.col("s").alias(f"s{suffix}")
    )
    moved = asked.with_columns((pl.col("ts") - pl.duration(microseconds=size)).alias("from"))
    joined = moved.join_asof(named, left_on="from", right_on="t", by="key", check_sortedness=False)
    return joined.drop("from", "t")


def _functions_in_duckdb(happened: Dataset, sizes: dict[str, int]) -> pa.Table:
    columns = []
    for name, size in sizes.items():
        frame = f"(PARTITION BY key ORDER BY epoch_us(ts) RANGE BETWEEN {size - 1} PRECEDING AND CURRENT ROW)"
        columns += [f"count(*) OVER {frame} AS n_{name}", f"sum(units) OVER {frame} AS total_{name}"]
    text = f"SELECT key, ts, units, {', '.join(columns)} FROM '{happened.files}'"
    return connection().sql(text).to_arrow_table()


def _rolling_in_polars(happened: Dataset, sizes: dict[str, int]) -> pa.Table:
    import polars as pl

    rows = pl.scan_parquet(happened.files).sort("ts").select("key", "ts", pl.col("units").cast(pl.Int64))
    columns = []
    for name, size in sizes.items():
        for alias, column in (("n", "one"), ("total", "units")):
            rolled = pl.col(column).rolling_sum_by("ts", window_size=f"{size}us", closed="right")
            columns.append(rolled.over("key").alias(f"{alias}_{name}"))
    counted = rows.with_columns(pl.lit(1, pl.Int64).alias("one"))
    return counted.with_columns(*columns).drop("one").collect().to_arrow()
