"""What windows cost, and the cheapest provider of each (Algorithm 1).

The cost of a window, per unit of time, is how often it recurs (``1 / slide``) times what an instance costs: its
events, ``eta * range``, from the raw stream, or the covering multiplier from a provider.

Paper: Factor Windows, section III-B. It counts recurrences within the least common multiple of all ranges, a number
with thousands of digits for a thousand windows; per unit of time is the limit. Since a window's choice does not change
what others pay, choosing each one's cheapest provider is optimal for given windows, and leaves a forest (Theorem 7).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from panes.planning.coverage import CoverageGraph, Floats, Integers
from panes.timeline import Geometry

#: The provider's index where a window reads the raw stream.
RAW: Final = -1


def window_cost(window: Geometry, provider: Geometry | None, eta: float) -> float:
    """Return what a window costs per unit of time, read from a provider or from the raw stream.

    Parameters
    ----------
    eta
        Events per unit of time, in the unit of the windows; may be below one.

    Examples
    --------
    >>> window_cost(Geometry(20, 20), None, eta=1.0), window_cost(Geometry(20, 20), Geometry(10, 10), eta=1.0)
    (1.0, 0.1)
    """
    if provider is None:
        return eta * window.range / window.slide
    return (1 + (window.range - provider.range) // provider.slide) / window.slide


def naive_cost(windows: Iterable[Geometry], eta: float) -> float:
    """Return what windows cost if each reads the raw stream."""
    return math.fsum(window_cost(window, None, eta) for window in windows)


@dataclass(frozen=True, slots=True)
class Assignment:
    """The provider of each vertex of a graph, as an index or ``RAW``, and what each vertex then costs."""

    graph: CoverageGraph
    providers: Integers = field(compare=False)
    costs: Floats = field(compare=False)

    @classmethod
    def raw(cls, graph: CoverageGraph, eta: float) -> Assignment:
        """Let every window read the raw stream."""
        return cls(graph, np.full(len(graph), RAW, dtype=np.int64), eta * graph.ranges / graph.slides)

    @property
    def total(self) -> float:
        """The cost of all vertices together."""
        return math.fsum(self.costs.tolist())


def min_cost(graph: CoverageGraph, eta: float, visit: Callable[[Geometry, Integers], None] | None = None) -> Assignment:
    """Give each window its cheapest provider (Algorithm 1).

    Parameters
    ----------
    visit
        Called with each window that others can be read from, and with the indices of those.

    Examples
    --------
    >>> from panes.planning.coverage import Semantics
    >>> windows = tuple(Geometry(r, r) for r in (10, 20, 30, 40))
    >>> best = min_cost(CoverageGraph(windows, Semantics.PARTITIONED_BY), eta=1.0)
    >>> best.providers.tolist(), best.costs.tolist()
    ([-1, 0, 0, 1], [1.0, 0.1, 0.1, 0.05])
    """
    best = Assignment.raw(graph, eta)
    for at, window in enumerate(graph.windows):
        consumers = _offer(best, at)
        if visit is not None and consumers.size:
            visit(window, consumers)
    return best


def extend(assignment: Assignment, windows: Iterable[Geometry], eta: float) -> Assignment:
    """Run Algorithm 1 over a graph with more vertices, looking only at the edges that the new ones bring."""
    before = assignment.graph
    best = Assignment.raw(before.extended(windows), eta)
    best.providers[: len(before)], best.costs[: len(before)] = assignment.providers, assignment.costs
    added = range(len(before), len(best.graph))
    for at in added:
        provider, cost = cheapest_provider(before, best.graph.windows[at], eta)
        best.providers[at], best.costs[at] = provider, cost
    for at in added:
        _offer(best, at)
    return best


def costs_from(provider: Geometry, graph: CoverageGraph, consumers: Integers) -> Floats:
    """Return what some vertices of a graph cost if they are read from a provider."""
    costs: Floats = (1 + (graph.ranges[consumers] - provider.range) // provider.slide) / graph.slides[consumers]
    return costs


def _offer(best: Assignment, provider: int) -> Integers:
    """Let every window that a vertex can answer read from it if that is cheaper, in place; return those windows."""
    window = best.graph.windows[provider]
    consumers = best.graph.downstream(window)
    if consumers.size:
        offered = costs_from(window, best.graph, consumers)
        cheaper = offered < best.costs[consumers]
        best.costs[consumers[cheaper]] = offered[cheaper]
        best.providers[consumers[cheaper]] = provider
    return consumers


def cheapest_provider(graph: CoverageGraph, window: Geometry, eta: float) -> tuple[int, float]:
    """Return the best provider of a window among the vertices of a graph, or ``RAW``, and the window's cost."""
    providers = graph.upstream(window)
    raw = window_cost(window, None, eta)
    if not providers.size:
        return RAW, raw
    costs = (1 + (window.range - graph.ranges[providers]) // graph.slides[providers]) / window.slide
    least = int(np.argmin(costs))
    return (int(providers[least]), float(costs[least])) if costs[least] < raw else (RAW, raw)


def without_childless(assignment: Assignment, keep: int) -> Assignment:
    """Drop vertices after the first ``keep`` that nothing reads, until none is left.

    A factor window that nothing reads only costs; its provider may become childless in turn.
    """
    graph, providers = assignment.graph, assignment.providers
    alive = np.ones(len(graph), dtype=np.bool_)
    while True:
        read = np.zeros(len(graph) + 1, dtype=np.bool_)
        read[providers[alive]] = True  # RAW, being -1, marks the spare last place
        childless = alive & ~read[:-1]
        childless[:keep] = False
        if not childless.any():
            break
        alive &= ~childless
    if alive.all():
        return assignment
    renumbered = np.append(np.cumsum(alive) - 1, RAW)
    windows = tuple(graph.windows[at] for at in np.flatnonzero(alive))
    return Assignment(CoverageGraph(windows, graph.semantics), renumbered[providers[alive]], assignment.costs[alive])
