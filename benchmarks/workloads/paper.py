"""Tables I, II and III of Factor Windows, row by row, on Spark.

The paper's events come one per unit of time (its η is 1). Here the unit is a second: 100 events per second by 100
keys are one event per second and key. Boosts are over Spark's own windows, as the paper's are over Trill's.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import correlation, mean, median
from typing import Any

import panes as pn
from benchmarks import data
from benchmarks.contenders import panes, spark_own
from benchmarks.data import Dataset
from benchmarks.report import mean_and_max
from benchmarks.runner import Bench
from benchmarks.workloads.planning import windows
from benchmarks.workloads.price import WARM, lowest
from panes.testing import random_gen, sequential_gen
from panes.timeline import SECOND, Geometry

OWN, WITHOUT, WITH, COLUMNAR, SCAN = "Spark's own", "rewrite w/o FW", "rewrite w/ FW", "columnar", "one scan"

_SHORTER, _WARM_ON = 5.0, 1_000_000  # seconds and events, for those who take long
_MORE = 4

_NOTES = (
    "Boost: times the throughput of Spark's own windows, mean and max over the window sets. Paper: on Trill, one core.",
    "Limit: Spark's own for all windows ÷ one scan. One scan: a single Spark window (MIN by key) whose size is the "
    "finest period of the columnar plan's pane edges.",
    "Of limit: how near columnar comes to it, one scan ÷ columnar.",
    f"Columnar and the scan are raced by themselves, {_MORE} rounds more than the others: those compile so many stages "
    f"that the JVM is busy with them long after. These two have warmed up for {WARM:.0f} seconds, the others for "
    f"{_SHORTER:.0f} on the first {_WARM_ON:,} events.",
)


@dataclass(frozen=True)
class Boosts:
    """The paper's figures of one row: without and with factor windows, mean and max."""

    without_mean: float
    without_max: float
    with_mean: float
    with_max: float


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper; a row is called R or S (RandomGen, SequentialGen), how many windows, and their kind."""

    number: int
    title: str
    real: bool
    rows: dict[str, Boosts]


TABLES = (
    PaperTable(
        1,
        "Table I (Synthetic-10M)",
        False,
        {
            "R-5-tumbling": Boosts(1.21, 1.92, 1.85, 2.54),
            "R-10-tumbling": Boosts(1.34, 1.77, 1.88, 3.38),
            "R-5-hopping": Boosts(1.18, 1.82, 3.26, 4.29),
            "R-10-hopping": Boosts(1.34, 1.71, 3.20, 6.15),
            "S-5-tumbling": Boosts(1.63, 1.67, 4.28, 4.81),
            "S-10-tumbling": Boosts(1.98, 2.05, 7.91, 9.38),
            "S-5-hopping": Boosts(1.34, 1.48, 2.17, 2.81),
            "S-10-hopping": Boosts(1.58, 1.73, 2.92, 3.79),
        },
    ),
    PaperTable(
        2,
        "Table II (Real-32M)",
        True,
        {
            "R-5-tumbling": Boosts(1.19, 1.78, 1.43, 1.91),
            "R-10-tumbling": Boosts(1.30, 1.71, 1.53, 2.86),
            "R-5-hopping": Boosts(1.09, 1.39, 1.54, 2.63),
            "R-10-hopping": Boosts(1.18, 1.39, 1.46, 3.53),
            "S-5-tumbling": Boosts(1.63, 1.67, 4.12, 4.85),
            "S-10-tumbling": Boosts(1.90, 1.97, 7.53, 9.14),
            "S-5-hopping": Boosts(1.12, 1.30, 1.22, 1.77),
            "S-10-hopping": Boosts(1.22, 1.51, 1.45, 2.31),
        },
    ),
    PaperTable(
        3,
        "Table III (scalability)",
        False,
        {
            "R-15-tumbling": Boosts(1.55, 1.96, 2.97, 4.34),
            "R-20-tumbling": Boosts(1.49, 2.29, 2.10, 4.83),
            "R-15-hopping": Boosts(1.55, 1.95, 4.67, 6.59),
            "R-20-hopping": Boosts(1.68, 2.20, 4.23, 7.65),
            "S-15-tumbling": Boosts(2.43, 2.49, 11.29, 13.83),
            "S-20-tumbling": Boosts(2.42, 2.53, 14.28, 16.82),
            "S-15-hopping": Boosts(1.85, 2.09, 3.51, 4.68),
            "S-20-hopping": Boosts(1.91, 2.15, 4.02, 5.32),
        },
    ),
)


@dataclass(frozen=True)
class Measured:
    """One window set: seconds and predicted costs by contender."""

    seconds: dict[str, float]
    predicted: dict[str, float]

    def boost(self, name: str) -> float:
        """The throughput over that of Spark's own windows."""
        return self.seconds[OWN] / self.seconds[name]


def table(bench: Bench, which: PaperTable) -> None:
    """Measure every row of a table on every dataset it is about."""
    every: dict[str, list[Measured]] = {}
    for events, by, note in _datasets(bench, which):
        keys = f"{events.keys[by]} keys" if by else "no keys"
        shown = bench.report.table(
            f"{which.title}: {events.name}, {events.events:,} events, {keys}, {bench.sets()} window sets per row",
            *_NOTES,
            *note,
        )
        for name, paper in bench.few(list(which.rows.items()), quick=3):
            measured = [
                _measure(
                    bench, f"{events.name}, {name}, set {number}", draw(name, number), events, by, check=not number
                )
                for number in range(bench.sets())
            ]
            every.setdefault(events.name, []).extend(measured)
            shown.rows.append({"setup": name, **_row(measured, paper)})
    if not every:
        bench.report.table(which.title, "Skipped: the real data are not beside the checkout.")
    _show_correlations(bench, every)


def draw(name: str, number: int) -> list[Geometry]:
    """The window set of a row with a number: the same for all tables and runs."""
    kind, count, shape = name.split("-")
    generator = random_gen if kind == "R" else sequential_gen
    return generator(int(count), shape == "tumbling", rng=random.Random(f"{name} {number}"), unit=SECOND)


def _datasets(bench: Bench, which: PaperTable) -> list[tuple[Dataset, tuple[str, ...], tuple[str, ...]]]:
    count = bench.events(1_000_000)
    if not which.real:
        return [(data.synthetic(count, bench.options.keys or 100), ("key",), ())]
    found: list[tuple[Dataset, tuple[str, ...], tuple[str, ...]]] = []
    if (trades := data.trades()) is not None:
        trades = trades.prefix(count) if bench.options.quick or bench.options.events else trades
        found.append((trades, ("symbol",), ()))
    if (debs := data.debs(count)) is not None:
        tiled = "The DEBS sample has 17,000 rows (170 s); they are laid end to end in time until there are enough."
        found.append((debs, (), (tiled,)))
    return found


def _measure(
    bench: Bench, case: str, drawn: Sequence[Geometry], events: Dataset, by: tuple[str, ...], *, check: bool
) -> Measured:
    value = "price" if "symbol" in by else "value"
    queries = lowest(windows(list(drawn)), by, value)
    known: dict[str, Any] = {"rate": events.rate, "keys": {by: events.keys[by]} if by else None}
    plans = {
        WITHOUT: {"strategy": "rewrite", "factor_windows": False, **known},
        WITH: {"strategy": "rewrite", **known},
        COLUMNAR: {"strategy": "columnar", **known},
    }
    finest = min(edge.period for edge in pn.plan(queries, **plans[COLUMNAR]).physical_plan().stores[0].edges)
    one = lowest(windows([Geometry(finest, finest)]), by, value)
    spark = bench.spark
    contenders = [spark_own(spark, queries), *(panes(spark, queries, name, **plan) for name, plan in plans.items())]
    if check:
        bench.check(case, contenders, events)
    *long, columnar = contenders
    short = [columnar, spark_own(spark, one, SCAN)]
    timings = (
        bench.race(case, short, events, warm=WARM, rounds=bench.repeats + _MORE),
        bench.race(case, long, events, warm=_SHORTER, warm_on=events.prefix(_WARM_ON)),
    )
    seconds = {name: median(rounds) for each in timings for name, rounds in each.seconds.items()}
    forests = {name: pn.plan(queries, **plans[name]).physical_plan().stores[0].forest for name in (WITHOUT, WITH)}
    elements = {name: _elements(forest.total, events, by) for name, forest in forests.items()}
    elements[OWN] = _elements(forests[WITH].naive, events, by)
    return Measured(seconds, elements)


def _elements(cost: float, events: Dataset, by: tuple[str, ...]) -> float:
    """A cost per µs and key as events and partials read in all."""
    return cost * SECOND * events.seconds * (events.keys[by] if by else 1)


def _row(measured: Sequence[Measured], paper: Boosts) -> dict[str, Any]:
    without, with_ = (mean_and_max([m.boost(name) for m in measured]) for name in (WITHOUT, WITH))
    columnar = mean_and_max([m.boost(COLUMNAR) for m in measured])
    return {
        "w/o FW mean": without[0],
        "paper w/o mean": paper.without_mean,
        "w/o FW max": without[1],
        "paper w/o max": paper.without_max,
        "w/ FW mean": with_[0],
        "paper w/ mean": paper.with_mean,
        "w/ FW max": with_[1],
        "paper w/ max": paper.with_max,
        "columnar mean": columnar[0],
        "columnar max": columnar[1],
        "limit mean": mean(m.boost(SCAN) for m in measured),
        "of limit": mean(m.seconds[SCAN] / m.seconds[COLUMNAR] for m in measured),
    }


def _correlations(sets: Sequence[Measured]) -> dict[str, float | None]:
    """Pearson's r between the cost model and the clock, by plan and over all plans."""
    names = (OWN, WITHOUT, WITH)
    points = {name: [(m.predicted[name], m.seconds[name]) for m in sets] for name in names}
    points["all plans"] = [point for name in names for point in points[name]]
    return {name: _pearson(pairs) for name, pairs in points.items()}


def _pearson(pairs: Sequence[tuple[float, float]]) -> float | None:
    predicted, measured = zip(*pairs, strict=True)
    if len(set(predicted)) < 2 or len(set(measured)) < 2:
        return None
    return correlation(predicted, measured)


def _show_correlations(bench: Bench, every: dict[str, list[Measured]]) -> None:
    shown = bench.report.table(
        "Pearson's r between predicted cost and measured time",
        "Predicted: events and partials that all windows read, in the paper's cost model; a point per set and plan.",
    )
    for name, sets in every.items():
        shown.rows.append({"data": name, "sets": len(sets), **_correlations(sets)})
