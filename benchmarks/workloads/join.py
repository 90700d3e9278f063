"""A join of real trades on two exchanges over ten windows at once, beside ten joins of Spark's own.

Spark's own joins are written twice: as most users write them (equal keys, times less than a window apart), where Spark
compares all rows of a key; and by hand in buckets of time as wide as each window, where it compares those nearby.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import panes as pn
from benchmarks import data
from benchmarks.contenders import Contender, events, on_spark
from benchmarks.data import Dataset
from benchmarks.runner import Bench
from panes.testing import spark_joins
from panes.timeline import parse_duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OVER = [f"{size}ms" for size in range(100, 1001, 100)]
PANES, ONCE, OWN, BUCKETS = "Panes", "Panes, each match once", "Spark's own", "Spark's own in buckets"
_COLUMNS = ["ts", "price", "qty"]
_FILES = 8
_CHECKED = 3000


def join(bench: Bench) -> None:
    """Race a join over ten windows: all contenders on some trades, those that do not compare all rows on more."""
    whole = data.trades()
    if whole is None:
        bench.report.table("Join of trades", "Skipped: the data are not beside the checkout.")
        return
    spark = bench.spark
    table = bench.report.table(
        f"Trades on exchanges P and Q with the same symbol, less than ω apart, for {len(OVER)} windows ω from 100 ms "
        "to 1 s; seconds",
        f"× is times {PANES}. Trades: on both exchanges. Matches: in the widest window; rows: in all windows. "
        "Blank: not run.",
    )
    everybody = [_own(spark), _panes(spark), _buckets(spark)]
    # Compared on few trades: a join has many more rows than its sides.
    bench.check("few trades", everybody, _two_exchanges(whole, _CHECKED))
    few = bench.events(8_000)
    for count in (few,) if bench.options.quick else (few, 25 * few):
        trades = _two_exchanges(whole, count)
        contenders = [*(everybody if count == few else everybody[1:]), _once(spark)]
        name = f"{trades.events:,} trades"
        timings = bench.race(name, contenders, trades)
        left, right = _sides(spark, trades)
        levels = pn.join(left, right, on="symbol", at="ts", over=OVER, layout="matches").groupBy("level").count()
        found = {row["level"]: row["count"] for row in levels.collect()}
        row: dict[str, object] = {
            "trades": trades.events,
            "matches": sum(found.values()),
            "rows": sum(count * (len(OVER) - level) for level, count in found.items()),
            PANES: timings.median(PANES),
            ONCE: timings.median(ONCE),
        }
        for other in (OWN, BUCKETS):
            if other in timings.seconds:
                row |= {other: timings.median(other), f"{other} ×": timings.ratio(other, PANES)}
        table.rows.append(row)


def _panes(spark: SparkSession) -> Contender:
    return on_spark(PANES, lambda trades: pn.join(*_sides(spark, trades), on="symbol", at="ts", over=OVER))


def _once(spark: SparkSession) -> Contender:
    def frame(trades: Dataset) -> DataFrame:
        return pn.join(*_sides(spark, trades), on="symbol", at="ts", over=OVER, layout="matches")

    return on_spark(ONCE, frame)


def _own(spark: SparkSession) -> Contender:
    return on_spark(
        OWN, lambda trades: spark_joins(*_sides(spark, trades), on="symbol", over={size: size for size in OVER})
    )


def _buckets(spark: SparkSession) -> Contender:
    def frame(trades: Dataset) -> DataFrame:
        left, right = _sides(spark, trades)
        parts = [_in_buckets(left, right, size, parse_duration(size)) for size in OVER]
        return reduce(lambda a, b: a.unionAll(b), parts)

    return on_spark(BUCKETS, frame)


def _in_buckets(left: DataFrame, right: DataFrame, name: str, size: int) -> DataFrame:
    """One window by hand: rows of the right side go into three buckets each, and keys are joined with buckets."""
    bucket = f"unix_micros(ts) div {size}"
    left = left.selectExpr(*(f"{c} AS {c}_left" for c in _COLUMNS), "symbol", f"{bucket} AS bucket")
    copies = f"explode(array({bucket} - 1, {bucket}, {bucket} + 1)) AS bucket"
    right = right.selectExpr(*(f"{c} AS {c}_right" for c in _COLUMNS), "symbol", copies)
    together = left.join(right, ["symbol", "bucket"])
    near = together.where(f"abs(unix_micros(ts_left) - unix_micros(ts_right)) < {size}")
    return near.selectExpr(
        f"'{name}' AS window_name",
        "symbol",
        *(f"{c}_{side}" for side in ("left", "right") for c in _COLUMNS),
        f"timestamp_micros(unix_micros(least(ts_left, ts_right)) + {size}) AS expires",
    )


def _sides(spark: SparkSession, trades: Dataset) -> tuple[DataFrame, DataFrame]:
    rows = events(spark, trades)
    left, right = (rows.where(f"exch = '{exchange}'").select("symbol", *_COLUMNS) for exchange in "PQ")
    return left, right


def _two_exchanges(trades: Dataset, count: int) -> Dataset:
    """The first trades of two exchanges."""

    def parts() -> Iterator[pa.Table]:
        table = pq.read_table(trades.path)
        table = table.filter(pc.is_in(table["exch"], pa.array(["P", "Q"], table["exch"].type)))
        cuts = np.linspace(0, min(count, len(table)), _FILES + 1).astype(int)
        return (table.slice(a, b - a) for a, b in pairwise(cuts))

    return data.kept(f"trades-on-P-and-Q-{count}", {("symbol",): 4}, parts)
