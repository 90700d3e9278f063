"""Queries about real trades, as a trading desk would keep on a screen."""

from __future__ import annotations

import panes as pn
from benchmarks import data
from benchmarks.contenders import in_duckdb, in_polars, panes, spark_own
from benchmarks.runner import Bench

_BARS = [pn.tumbling(size) for size in ["5s", "10s", "15s", "30s", "1m", "2m", "5m", "10m", "30m", "1h"]]
_ROLLING = [
    *(pn.tumbling(size) for size in ["1m", "5m", "15m", "30m", "1h"]),
    *(pn.hopping(size, every=slide) for size, slide in (("2m", "1m"), ("5m", "1m"), ("15m", "5m"), ("30m", "5m"))),
    pn.hopping("1h", every="10m"),
]

BARS = pn.query(
    "bars",
    at="ts",
    by="symbol",
    select={"low": pn.min("price"), "high": pn.max("price"), "volume": pn.sum("qty"), "n": pn.count()},
    over=_BARS,
)
VENUES = pn.query(
    "venues",
    at="ts",
    by=("symbol", "exch"),
    select={"turnover": pn.sum("price * qty"), "volume": pn.sum("qty"), "price": pn.mean("price")},
    over=_BARS,
)
ROLLING = pn.query(
    "rolling",
    at="ts",
    by=("symbol", "exch"),
    select={"low": pn.min("price"), "high": pn.max("price"), "n": pn.count()},
    over=_ROLLING,
    where="qty >= 100",
)

SCREENS = {
    "bars by symbol, 10 tumbling": [BARS],
    "venues by symbol and exchange, 10 tumbling": [VENUES],
    "rolling by symbol and exchange, 5 tumbling and 5 hopping": [ROLLING],
    "all three together, 30 windows": [BARS, VENUES, ROLLING],
}


def trades(bench: Bench) -> None:
    """Race everybody on every screen."""
    events = data.trades()
    if events is None:
        bench.report.table("Real trades", "Skipped: the data are not beside the checkout.")
        return
    if bench.options.quick:
        events = events.prefix(bench.events(events.events))
    table = bench.report.table(f"Real trades, {events.events:,} events; seconds", "× is times Panes.")
    for name, queries in SCREENS.items():
        contenders = [
            spark_own(bench.spark, queries),
            panes(bench.spark, queries),
            in_duckdb(queries),
            in_polars(queries),
        ]
        bench.check(name, contenders, events)
        timings = bench.race(name, contenders, events)
        row: dict[str, object] = {"queries": name, "Panes": timings.median("Panes")}
        for other in ("Spark's own", "DuckDB", "Polars"):
            row |= {other: timings.median(other), f"{other} ×": timings.ratio(other, "Panes")}
        table.rows.append(row)
