"""The table of workloads, in the order in which ``all`` runs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks.runner import Bench
from benchmarks.workloads.accumulators import accumulators
from benchmarks.workloads.asw import asw
from benchmarks.workloads.by_events import by_events
from benchmarks.workloads.calibrate import calibrate
from benchmarks.workloads.day import day
from benchmarks.workloads.granular import granular
from benchmarks.workloads.guard import guard
from benchmarks.workloads.hopping import hopping, slides
from benchmarks.workloads.join import join
from benchmarks.workloads.keys import keys
from benchmarks.workloads.lookups import lookups
from benchmarks.workloads.paper import TABLES, table
from benchmarks.workloads.planning import planning
from benchmarks.workloads.price import price
from benchmarks.workloads.sketches import sketches
from benchmarks.workloads.sliding import sliding
from benchmarks.workloads.state import state
from benchmarks.workloads.streaming import streaming
from benchmarks.workloads.thresholds import thresholds
from benchmarks.workloads.trades import trades
from benchmarks.workloads.values import values
from benchmarks.workloads.windowed import windowed
from benchmarks.workloads.windowing import windowing


@dataclass(frozen=True)
class Workload:
    """A name's meaning: what to run, and one line about it."""

    run: Callable[[Bench], None]
    about: str


WORKLOADS = {
    "price": Workload(price, "1 to 1000 tumbling windows, in units of one Spark window; DuckDB and Polars beside"),
    "hopping": Workload(hopping, "one hopping window of an hour every minute, beside Spark's own"),
    "slides": Workload(slides, "an hour every hour, 30, 15, 10, 5 and 1 minutes, beside Spark's own"),
    "keys": Workload(keys, "the planner's choice for 1 to 1,000,000 keys: never slower than Spark's own"),
    **{f"table{t.number}": Workload(partial(table, which=t), f"{t.title} of Factor Windows") for t in TABLES},
    "planning": Workload(planning, "how long a plan takes, and how far it is from the exact optimum"),
    "trades": Workload(trades, "queries about real trades: Panes, Spark's own, DuckDB, Polars"),
    "values": Workload(values, "50 hopping windows of distinct prices over real trades, beside Spark's own"),
    "sketches": Workload(sketches, "50 hopping windows of approximate counts and quantiles, beside Spark's own"),
    "sliding": Workload(sliding, "20 windows with an answer per event, beside Spark's own window functions"),
    "by_events": Workload(by_events, "1 to 20 sessions, and windows of the last events, beside Spark's own"),
    "streaming": Workload(streaming, "1 to 1000 windows over a stream, beside one native streaming query per window"),
    "state": Workload(state, "what a stream keeps: thousands of windows of three classes"),
    "granular": Workload(granular, "nested windows: cost per event by rate, levels and extent, and memory"),
    "day": Workload(day, "a stream with a window of a day every minute: state, memory, bytes written"),
    "join": Workload(join, "trades of two exchanges joined over ten windows at once, beside ten joins of Spark's own"),
    "lookups": Workload(lookups, "point-in-time lookups over 20 windows, beside Spark's joins, DuckDB and Polars"),
    "asw": Workload(asw, "any window of a live stream: updates and lookups per second of each algorithm"),
    "thresholds": Workload(thresholds, "which keys have many events: the collective index beside looking at every key"),
    "windowing": Workload(windowing, "Aggregate of the windowing library beside loops by hand; 100,000 partitions"),
    "accumulators": Workload(accumulators, "aggregates of single tuples: by hand, and derived from the algebra"),
    "windowed": Workload(windowed, "windows by policy over a table, beside the same windows one tuple after another"),
    "guard": Workload(guard, "this tree beside an earlier commit (--against), side by side in one run"),
    "calibrate": Workload(calibrate, "the figures of panes.planning.calibration, measured"),
}
