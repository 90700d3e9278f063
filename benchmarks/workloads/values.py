"""Fifty hopping windows of distinct prices and of medians over real trades, beside Spark's own."""

from __future__ import annotations

import panes as pn
from benchmarks import data
from benchmarks.contenders import panes, spark_own
from benchmarks.report import Timings
from benchmarks.runner import Bench, timed
from panes.algebra.aggregates import Aggregate

_SLIDES = ["30s", "1m", "2m", "5m", "10m", "15m", "30m", "1h", "2h", "4h"]
_TIMES = (1, 2, 3, 4, 6)

ASKED: dict[str, Aggregate] = {
    "distinct prices": pn.count_distinct("price"),
    "median price": pn.quantile("price", 0.5),
}


def values(bench: Bench) -> None:
    """Race both on each aggregate."""
    events = data.trades()
    if events is None:
        bench.report.table("Real trades", "Skipped: the data are not beside the checkout.")
        return
    if bench.options.quick:
        events = events.prefix(bench.events(events.events))
    table = bench.report.table(
        f"{events.events:,} trades by symbol; seconds", "Spark's own runs once: it takes minutes."
    )
    windows = [pn.hopping(several(slide, times), every=slide) for slide in bench.few(_SLIDES, 1) for times in _TIMES]
    for name, aggregate in ASKED.items():
        queries = [pn.query("q", at="ts", by="symbol", select={"answer": aggregate}, over=windows)]
        contenders = [spark_own(bench.spark, queries), panes(bench.spark, queries)]
        bench.check(name, contenders, events)
        own, ours = contenders
        timings = bench.race(name, [ours], events)
        # Once, and without a warm-up: it takes minutes.
        took, _ = timed(own.run, events)
        bench.report.record(name, events.name, Timings({own.name: [took]}))
        table.rows.append(
            {
                "aggregate": name,
                "windows": len(windows),
                "Spark's own": took,
                "Panes": timings.median("Panes"),
                "Panes is faster ×": took / timings.median("Panes"),
            }
        )


def several(slide: str, times: int) -> str:
    """A duration several times as long."""
    return f"{int(slide[:-1]) * times}{slide[-1]}"
