"""Hopping windows: Spark copies an event into every instance that holds it, Panes does not."""

from __future__ import annotations

from collections.abc import Sequence

import panes as pn
from benchmarks import data
from benchmarks.contenders import decided, in_duckdb, in_polars, panes, spark_own
from benchmarks.runner import Bench
from benchmarks.workloads.price import lowest


def hopping(bench: Bench) -> None:
    """An hour every minute."""
    _hops(bench, ["1 min"])


def slides(bench: Bench) -> None:
    """An hour at every slide from an hour to a minute."""
    _hops(bench, bench.few(["1 hour", "30 min", "15 min", "10 min", "5 min", "1 min"]))


def _hops(bench: Bench, slides: Sequence[str]) -> None:
    spark = bench.spark
    events = data.synthetic(bench.events(10_000_000), bench.options.keys or 100)
    table = bench.report.table(
        f"MIN by key over one window of an hour, {events.events:,} events, {events.keys['key',]:,} keys; seconds"
    )
    for slide in slides:
        queries = lowest([pn.hopping("1 hour", every=slide)])
        contenders, in_memory = (
            [spark_own(spark, queries), panes(spark, queries)],
            [in_duckdb(queries), in_polars(queries)],
        )
        case = f"1 hour every {slide}"
        bench.check(case, [*contenders, *in_memory], events)
        timings = bench.race(case, contenders, events, apart=in_memory)
        table.rows.append(
            {
                "every": slide,
                "chosen": decided(spark, queries, events).stores[0].strategy,
                "Spark's own": timings.median("Spark's own"),
                "Panes": timings.median("Panes"),
                "DuckDB": timings.median("DuckDB"),
                "Polars": timings.median("Polars"),
                "Panes is faster ×": timings.ratio("Spark's own", "Panes"),
            }
        )
