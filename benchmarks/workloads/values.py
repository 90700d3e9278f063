"""Fifty hopping windows of distinct prices over real trades, beside Spark's own."""

from __future__ import annotations

import panes as pn
from benchmarks import data
from benchmarks.contenders import panes, spark_own
from benchmarks.report import Timings
from benchmarks.runner import Bench, timed

_SLIDES = ["30s", "1m", "2m", "5m", "10m", "15m", "30m", "1h", "2h", "4h"]
_TIMES = (1, 2, 3, 4, 6)


def values(bench: Bench) -> None:
    """Race both."""
    events = data.trades()
    if events is None:
        bench.report.table("Real trades", "Skipped: the data are not beside the checkout.")
        return
    if bench.options.quick:
        events = events.prefix(bench.events(events.events))
    table = bench.report.table(f"{events.events:,} trades by symbol; seconds", "Spark's own runs once.")
    windows = [pn.hopping(several(slide, times), every=slide) for slide in bench.few(_SLIDES, 1) for times in _TIMES]
    query = pn.query("q", at="ts", by="symbol", select={"prices": pn.count_distinct("price")}, over=windows)
    own, ours = spark_own(bench.spark, [query]), panes(bench.spark, [query])
    case = f"distinct prices, {len(windows)} windows"
    bench.check(case, [own, ours], events)
    timings = bench.race(case, [ours], events)
    # Once, and without a warm-up: it takes long.
    took, _ = timed(own.run, events)
    bench.report.record(case, events.name, Timings({own.name: [took]}))
    seconds = timings.median(ours.name)
    assert seconds is not None
    table.rows.append(
        {"windows": len(windows), "Spark's own": took, "Panes": seconds, "Panes is faster ×": took / seconds}
    )


def several(slide: str, times: int) -> str:
    """A duration several times as long."""
    return f"{int(slide[:-1]) * times}{slide[-1]}"
