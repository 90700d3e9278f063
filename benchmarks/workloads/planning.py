"""How long a plan takes, and how far heuristic plans are from the exact optimum.

Paper: Factor Windows, section V-E and figure 12 (up to 20 windows), and the gap that section IV-C leaves open.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean

import panes as pn
from benchmarks.report import Timings
from benchmarks.runner import Bench, timed
from panes.errors import PlanError
from panes.planning.coverage import Semantics
from panes.planning.optimize import optimize
from panes.queries.windows import Window
from panes.testing import optimum, random_gen, sequential_gen
from panes.timeline import SECOND, Geometry

KINDS = {
    "random tumbling": (random_gen, True),
    "random hopping": (random_gen, False),
    "sequential tumbling": (sequential_gen, True),
    "sequential hopping": (sequential_gen, False),
}
AGGREGATES = {"min (covered by)": pn.min("value"), "sum (partitioned by)": pn.sum("value")}
_LIMIT = 60.0  # seconds for one optimum


def planning(bench: Bench) -> None:
    """Time plans, then compare heuristics with the optimum."""
    _times(bench)
    _gaps(bench)


def draw(kind: str, count: int, seed: int, unit: int = SECOND) -> list[Geometry]:
    """A window set of the paper's generators; beyond its 50 multiples where more windows are asked for."""
    generator, tumbling = KINDS[kind]
    return generator(count, tumbling, multiplier=max(50, 2 * count), rng=seed, unit=unit)


def windows(geometries: list[Geometry]) -> list[Window]:
    """What a user would declare."""
    return [pn.hopping(f"{g.range} us", every=f"{g.slide} us") for g in geometries]


def _times(bench: Bench) -> None:
    table = bench.report.table("Time of pn.plan, in milliseconds", "Median; one query by key, 100 events per second.")
    for kind in KINDS:
        for name, aggregate in AGGREGATES.items():
            row: dict[str, object] = {"windows of kind": kind, "aggregate": name}
            for count in bench.few((20, 100, 1000, 10_000), quick=1):
                over = windows(draw(kind, count, seed=1))
                query = pn.query("q", at="ts", by="key", select={"x": aggregate}, over=over)
                case = f"plan {count} windows, {kind}, {name}"
                took = [timed(pn.plan, query)[0] for _ in range(bench.repeats + 1)][1:]
                timings = Timings({"pn.plan": took})
                bench.report.record(case, "no data", timings)
                row[f"{count:,} windows"] = 1000 * (timings.median("pn.plan") or 0)
            table.rows.append(row)


def _gaps(bench: Bench) -> None:
    table = bench.report.table(
        "Cost of heuristic plans, as a multiple of the exact optimum",
        "In the paper's cost model, one event per unit of time. Algorithm 3 is the paper's, the search is ours.",
        f"solved: sets whose optimum was found within {_LIMIT:.0f} s; only those are compared.",
    )
    for kind in KINDS:
        for semantics in Semantics:
            for count in bench.few((5, 10, 20), quick=1):
                table.rows.append({"windows of kind": kind, **_gap(bench, kind, semantics, count)})


def _gap(bench: Bench, kind: str, semantics: Semantics, count: int) -> dict[str, object]:
    heuristics: dict[str, Callable[[list[Geometry]], float]] = {
        "Algorithm 3": lambda drawn: optimize(drawn, semantics, paper=True).total,
        "search": lambda drawn: optimize(drawn, semantics).total,
    }
    gaps: dict[str, list[float]] = {name: [] for name in heuristics}
    seconds = []
    for seed in range(bench.sets(10)):
        drawn = draw(kind, count, seed, unit=1)
        try:
            took, best = timed(optimum, drawn, semantics, time_limit=_LIMIT)
        except PlanError:
            continue
        seconds.append(took)
        for name, heuristic in heuristics.items():
            gaps[name].append(heuristic(drawn) / best.total)
    row: dict[str, object] = {
        "semantics": semantics.name.lower().replace("_", " "),
        "windows": count,
        "solved": f"{len(seconds)} of {bench.sets(10)}",
    }
    for name, values in gaps.items():
        row |= {f"{name} mean": mean(values) if values else None, f"{name} max": max(values, default=None)}
    return row | {"exact, seconds": mean(seconds) if seconds else None}
