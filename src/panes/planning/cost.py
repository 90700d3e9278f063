"""Windows in, the cheapest provider of each out.

Requires: a coverage graph and a cost model. Costs: one vectorised test per provider. Paper: Factor Windows,
section III-B, Algorithm 1. Since a window's choice does not change what others pay, choosing each one's cheapest
provider is optimal for a fixed set of windows, and leaves a forest (Theorem 7).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from panes.errors import PlanError
from panes.planning.coverage import CoverageGraph, Floats, Integers, multiplier
from panes.timeline import Geometry

# What a window costs, read from raw events or from another window's partials.
#
# Paper: Factor Windows, section III-B. The cost of a window is how often it recurs times what one instance costs:
# ``eta * range`` events from the raw stream, or the covering multiplier from a provider.
#
# The paper counts recurrences within ``R = lcm(ranges)``, a number with thousands of digits for a thousand windows.
# Dividing by R and letting it grow, ``n / R`` becomes ``1 / slide``; so costs here are per unit of time unless a finite
# period is given, as in the paper's worked examples.


@dataclass(frozen=True, slots=True)
class Period:
    """The time over which costs are counted: finite, or unbounded (costs are then per unit of time).

    Examples
    --------
    >>> Period().recurrences(Geometry(20, 5)), Period(120).recurrences(Geometry(20, 5))
    (0.2, 21.0)
    """

    length: int | None = None

    @classmethod
    def of(cls, windows: Iterable[Geometry]) -> Period:
        """The paper's period, the least common multiple of all ranges.

        Examples
        --------
        >>> Period.of([Geometry(20, 20), Geometry(30, 30), Geometry(40, 40)])
        Period(length=120)
        """
        return cls(math.lcm(*(window.range for window in windows)))

    def recurrences(self, window: Geometry) -> float:
        """Return how many instances a window has in the period (equation 1), or per unit of time."""
        if self.length is None:
            return 1 / window.slide
        return 1 + (self.length - window.range) / window.slide

    def recurrences_of(self, ranges: Integers, slides: Integers) -> Floats:
        """The same for columns of windows."""
        if self.length is None:
            return 1 / slides
        return 1 + (self.length - ranges) / slides

    def ticks(self, tick: int) -> Period:
        """The same period, measured in ticks."""
        if self.length is None:
            return self
        if self.length % tick:
            raise PlanError(f"a period of {self.length} is not a multiple of the tick {tick}. Give a multiple.")
        return Period(self.length // tick)


@dataclass(frozen=True, slots=True)
class CostModel:
    """What windows cost, for a rate of events and a period.

    Parameters
    ----------
    eta
        Events per unit of time, in the unit of the windows; may be below one.
    period
        The time over which costs are counted.

    Examples
    --------
    >>> model = CostModel(eta=1.0, period=Period(120))
    >>> model.cost(Geometry(20, 20)), model.cost(Geometry(20, 20), Geometry(10, 10))
    (120.0, 12.0)
    """

    eta: float = 1.0
    period: Period = Period()

    def __post_init__(self) -> None:
        if not (self.eta > 0 and math.isfinite(self.eta)):
            raise PlanError(f"eta={self.eta} is not a rate. Give a positive number of events per unit of time.")

    def cost(self, window: Geometry, provider: Geometry | None = None) -> float:
        """Return what a window costs, read from a provider or from the raw stream."""
        instance = self.eta * window.range if provider is None else multiplier(window, provider)
        return self.period.recurrences(window) * instance

    def naive(self, windows: Iterable[Geometry]) -> float:
        """Return what windows cost if each reads the raw stream."""
        return math.fsum(self.cost(window) for window in windows)


#: The provider's index where a window reads the raw stream.
RAW: Final = -1


@dataclass(frozen=True, slots=True)
class Assignment:
    """The provider of each vertex of a graph, as an index or ``RAW``, and what each vertex then costs."""

    graph: CoverageGraph
    providers: Integers = field(compare=False)
    costs: Floats = field(compare=False)

    @property
    def total(self) -> float:
        """The cost of all vertices together."""
        return math.fsum(self.costs.tolist())


def min_cost(graph: CoverageGraph, model: CostModel) -> Assignment:
    """Give each window its cheapest provider (Algorithm 1).

    Examples
    --------
    >>> from panes.planning.cost import Period
    >>> from panes.planning.coverage import Semantics
    >>> windows = tuple(Geometry(r, r) for r in (10, 20, 30, 40))
    >>> best = min_cost(CoverageGraph(windows, Semantics.PARTITIONED_BY), CostModel(period=Period.of(windows)))
    >>> best.providers.tolist(), best.costs.tolist(), best.total
    ([-1, 0, 0, 1], [120.0, 12.0, 12.0, 6.0], 150.0)
    """
    recurrences = model.period.recurrences_of(graph.ranges, graph.slides)
    costs = recurrences * (model.eta * graph.ranges)
    providers = np.full(len(graph), RAW, dtype=np.int64)
    for at, window in enumerate(graph.windows):
        relax(graph, recurrences, costs, providers, at, window)
    return Assignment(graph, providers, costs)


def extend(assignment: Assignment, windows: Iterable[Geometry], model: CostModel) -> Assignment:
    """Run Algorithm 1 over a graph with more vertices, looking only at the edges that the new ones bring."""
    before = assignment.graph
    graph = before.extended(windows)
    recurrences = model.period.recurrences_of(graph.ranges, graph.slides)
    costs = recurrences * (model.eta * graph.ranges)
    providers = np.full(len(graph), RAW, dtype=np.int64)
    costs[: len(before)], providers[: len(before)] = assignment.costs, assignment.providers
    for at in range(len(before), len(graph)):
        found, cost = cheapest_provider(before, graph.windows[at], model)
        if cost < costs[at]:
            providers[at], costs[at] = found, cost
    for at in range(len(before), len(graph)):
        relax(graph, recurrences, costs, providers, at, graph.windows[at])
    return Assignment(graph, providers, costs)


def relax(
    graph: CoverageGraph, recurrences: Floats, costs: Floats, providers: Integers, at: int, window: Geometry
) -> Integers:
    """Let every window that vertex ``at`` can answer read from it if that is cheaper; return all those windows.

    Writes into ``costs`` and ``providers``: they are the working arrays of one call of ``min_cost``.
    """
    hits = graph.downstream(window)
    if hits.size:
        offered = recurrences[hits] * (1 + (graph.ranges[hits] - window.range) // window.slide)
        cheaper = offered < costs[hits]
        chosen = hits[cheaper]
        costs[chosen], providers[chosen] = offered[cheaper], at
    return hits


def cheapest_provider(graph: CoverageGraph, window: Geometry, model: CostModel) -> tuple[int, float]:
    """Return the best provider of a window among the vertices of a graph, or ``RAW``, and the window's cost."""
    at, cost = RAW, model.cost(window)
    hits = graph.upstream(window)
    if hits.size:
        multipliers = 1 + (window.range - graph.ranges[hits]) // graph.slides[hits]
        least = int(np.argmin(multipliers))
        offered = model.period.recurrences(window) * int(multipliers[least])
        if offered < cost:
            at, cost = int(hits[least]), offered
    return at, cost


def without_childless(assignment: Assignment, keep: int) -> Assignment:
    """Drop vertices after the first ``keep`` that nothing reads, until none is left.

    A factor window that nothing reads only costs; its provider may become childless in turn.
    """
    graph, providers = assignment.graph, assignment.providers
    alive = np.ones(len(graph), dtype=np.bool_)
    while True:
        read = np.zeros(len(graph) + 1, dtype=np.bool_)
        read[providers[alive]] = True  # RAW, being -1, marks the spare last place
        doomed = alive & ~read[:-1]
        doomed[:keep] = False
        if not doomed.any():
            break
        alive &= ~doomed
    if alive.all():
        return assignment
    renumbered = np.append(np.cumsum(alive) - 1, RAW)
    left = CoverageGraph(tuple(graph.windows[i] for i in np.flatnonzero(alive)), graph.semantics, graph.root)
    return Assignment(left, renumbered[providers[alive]], assignment.costs[alive])
