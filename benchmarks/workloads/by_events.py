"""Sessions and windows of the last rows, many of each in one plan, beside what Spark has: one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import panes as pn
from benchmarks import data
from benchmarks.contenders import events, on_spark, panes
from benchmarks.runner import Bench

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OWN = "Spark's own"
SELECT = {"n": pn.count(), "total": pn.sum("units"), "top": pn.max("units")}


def by_events(bench: Bench) -> None:
    """Race both for one window and for many."""
    spark, source = bench.spark, data.synthetic(bench.events(2_000_000), bench.options.keys or 1000)
    table = bench.report.table(
        f"Count, sum and maximum by key over N windows by rows, {source.events:,} events, "
        f"{source.keys['key',]:,} keys; seconds",
        f"{OWN}: session_window once per gap; for the last rows a window function of so many rows per window, and of "
        "its rows every 10th. × is times Panes.",
    )
    for kind in ("sessions", "last rows"):
        for count in bench.few((1, 5, 20)):
            over = _windows(kind, count)
            asked = pn.query("q", at="ts", by="key", select=SELECT, over=over)
            own = on_spark(OWN, lambda found, over=over: _own(spark, over, found))
            ours = panes(spark, [asked])
            bench.check(f"{kind}, {count}", [own, ours], source)
            timings = bench.race(f"{kind}, {count}", [ours, own], source, prepared=True)
            row = {"windows": kind, "number": count, "Panes": timings.median("Panes"), OWN: timings.median(OWN)}
            table.rows.append(row | {f"{OWN} ×": timings.ratio(OWN, "Panes")})


def _windows(kind: str, count: int) -> list[Any]:
    if kind == "sessions":
        return [pn.session(f"{5 + 2 * i} s") for i in range(count)]
    return [pn.hopping(pn.rows(10 * (i + 1)), every=pn.rows(10)) for i in range(count)]


def _own(spark: SparkSession, over: Sequence[Any], source: data.Dataset) -> DataFrame:
    from pyspark.sql import functions as F
    from pyspark.sql.window import Window

    frame, parts = events(spark, source), []
    aggregates = {"n": F.count(F.lit(1)), "total": F.sum("units"), "top": F.max("units")}
    for window in over:
        if window.kind == "session":
            session = F.session_window("ts", f"{window.size} microseconds").alias("window")
            found = frame.groupBy("key", session).agg(*(value.alias(name) for name, value in aggregates.items()))
        else:
            by_key = Window.partitionBy("key").orderBy("ts", "units")
            last = by_key.rowsBetween(1 - window.size.n, 0)
            columns = {name: value.over(last) for name, value in aggregates.items()}
            bounds = F.struct(F.min("ts").over(last).alias("start"), F.col("ts").alias("end"))
            columns |= {"window": bounds, "row": F.row_number().over(by_key)}
            numbered = frame.select("key", *(column.alias(name) for name, column in columns.items()))
            found = numbered.where(F.col("row") % window.every.n == 0)
        named = F.lit("q").alias("query"), F.lit(str(window)).alias("window_name")
        parts.append(found.select(*named, "window", "key", *aggregates))
    return reduce(lambda one, other: one.unionByName(other), parts)
