"""Windows in, the edges of the cheapest panes out.

The instances of every window start and end on arithmetic progressions of instants. Panes between *all* of those edges
answer every window, and no coarser panes do. For 15, 17 and 19 seconds that is a pane every 5.6 seconds on average; the
gcd of the three would be panes of one second. Each progression costs a little per event, so progressions are merged
into their gcd if that is cheaper: 20, 30, ..., 100 seconds => 10 seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations, product

import numpy as np

from panes.planning.calibration import EDGE, EVENT, LANE, PANE, PANE_EVENT, SCAN, STORED
from panes.planning.statistics import Keys, Statistics
from panes.queries.windows import geometry_name
from panes.timeline import SECOND, Edges, Geometry

_FEW, _MANY = 24, 512
_LANES = (1, 2, 4, 8, 16, 32)
_MOST_COLUMNS = 64
"""Of a row with several panes: the code that Spark generates for twice as many columns runs six times as long."""
_RATE_ERROR = 16
"""By which factor the rate may exceed the one of a sample."""


@dataclass(frozen=True)
class PaneCost:
    """What panes with some edges cost per second: work per event, and panes to move and sort."""

    statistics: Statistics
    keys: Keys

    def rows(self, edges: Sequence[Edges], lanes: int = 1) -> float:
        """Return the panes per second over all keys, or the rows if ``lanes`` panes share one."""
        density = sum(SECOND / e.period for e in edges) / lanes
        return self.statistics.rows(self.keys, SECOND / density, density)

    def __call__(self, edges: Sequence[Edges]) -> float:
        """Return the cost per second."""
        return self.statistics.rate * EDGE * len(edges) + self.rows(edges) * PANE

    def side_by_side(self, edges: Sequence[Edges], lanes: int, columns: int) -> float:
        """Return the cost per second if ``lanes`` panes share a row, each with some stored columns."""
        per_event = EDGE * len(edges) + (LANE * lanes * columns if lanes > 1 else 0.0)
        return self.statistics.rate * per_event + self.rows(edges, lanes) * (PANE + STORED * lanes * columns)


def pane_edges(windows: Iterable[Geometry], cost: PaneCost) -> tuple[Edges, ...]:
    """Return the edges of the cheapest panes that answer all windows.

    Examples
    --------
    >>> cost = PaneCost(Statistics(rate=100), keys=("device",))
    >>> [e.period // SECOND for e in pane_edges([Geometry(r * SECOND, r * SECOND) for r in range(20, 110, 10)], cost)]
    [10]
    >>> [e.period // SECOND for e in pane_edges([Geometry(r * SECOND, r * SECOND) for r in (15, 17, 19)], cost)]
    [15, 17, 19]
    """
    distinct = sorted({edge for window in windows for edge in window.edges()})
    edges = _absorb(distinct) if len(distinct) <= _MANY else distinct
    if len(edges) > _FEW:
        # Too many to try every pair: the gcd of all, or all as they are.
        return min((tuple(edges), (reduce(Edges.common, edges),)), key=cost)
    current = tuple(edges)
    while len(current) > 1:
        merged = min((_merged(current, a, b) for a, b in combinations(current, 2)), key=cost)
        if cost(merged) > cost(current):
            break
        current = merged
    return current


@dataclass(frozen=True)
class PanesColumn:
    """The panes of a store, or its events, as the column from which all windows are read.

    Parameters
    ----------
    edges
        Where panes begin and end.
    lanes
        How many panes share a row.
    from_events
        Whether the events themselves are sorted and sent to Python, because there would be almost as many panes, or
        because the JVM cannot build them.
    cost
        Per second of event time.
    """

    edges: tuple[Edges, ...]
    lanes: int
    from_events: bool
    cost: float


def finest_column(windows: Iterable[Geometry], stored: int, cost: PaneCost, *, in_jvm: bool = True) -> PanesColumn:
    """Return the cheapest column that answers all windows.

    Parameters
    ----------
    stored
        How many stored columns a pane has.
    in_jvm
        Whether the JVM can build them.

    Examples
    --------
    >>> windows = [Geometry(20 * SECOND, 10 * SECOND)]
    >>> dense = finest_column(windows, 1, PaneCost(Statistics(rate=100), ("device",)))
    >>> dense.lanes, dense.from_events
    (16, False)
    >>> sparse = finest_column(windows, 1, PaneCost(Statistics(rate=100, default_keys=1e6), ("device",)))
    >>> sparse.lanes, sparse.from_events
    (1, True)
    """
    windows = tuple(windows)
    edges = pane_edges(windows, cost)
    events = PanesColumn(edges, 1, True, events_cost(cost.statistics, stored))
    if not in_jvm:
        return events
    # Equal panes need fewer rows, so the gcd of all edges may still be cheaper.
    side_by_side = [lanes for lanes in _LANES if lanes == 1 or lanes * stored <= _MOST_COLUMNS]
    options = product((edges, (reduce(Edges.common, edges),)), side_by_side)
    panes, edges, lanes = min((cost.side_by_side(some, lanes, stored), some, lanes) for some, lanes in options)
    built = panes + cost.statistics.rate * (SCAN + PANE_EVENT)
    if built > events.cost and not _sample_may_mislead(windows, stored, cost):
        return events
    return PanesColumn(edges, lanes, False, built)


def _sample_may_mislead(windows: Iterable[Geometry], stored: int, cost: PaneCost) -> bool:
    """Whether there may be far fewer panes than events after all.

    A sample of files that overlap in time misses most events. Sorting the events gains little if there are
    almost as many panes, and costs many times as much if there are not.
    """
    known = cost.statistics
    if known.origin != "sampled":
        return False
    faster = replace(known, rate=known.rate * _RATE_ERROR, origin="given")
    return not finest_column(windows, stored, replace(cost, statistics=faster)).from_events


def events_cost(statistics: Statistics, stored: int) -> float:
    """Return the cost per second of sorting the events and sending them to Python."""
    return statistics.rate * (SCAN + EVENT + STORED * stored)


def describe_edges(edges: Iterable[Edges]) -> str:
    """Return where panes begin, in words.

    Examples
    --------
    >>> describe_edges([Edges(10 * SECOND), Edges(15 * SECOND, SECOND)])
    'every 10s and every 15s+1s'
    """
    return " and ".join(f"every {geometry_name(Geometry(e.period, e.period, e.offset))}" for e in edges)


def _merged(edges: tuple[Edges, ...], a: Edges, b: Edges) -> tuple[Edges, ...]:
    together = a.common(b)
    return (together, *(e for e in edges if not e.within(together)))


def _absorb(edges: list[Edges]) -> list[Edges]:
    """Drop progressions within others, and merge two whose gcd has no more edges than both together."""
    period = np.array([e.period for e in edges])
    offset = np.array([e.offset for e in edges])
    kept: list[Edges] = []
    while len(period):
        densest = int(np.argmin(period))
        p, o = int(period[densest]), int(offset[densest])
        while True:
            common = np.gcd(np.gcd(period, p), offset - o)
            free = 1 / common <= 1 / period + 1 / p
            free[densest] = False
            better = np.flatnonzero(free & (common < p))
            if not len(better):
                break
            p = int(common[better].max())
            o %= p
        within = (period % p == 0) & ((offset - o) % p == 0)
        within[densest] = True
        kept.append(Edges(p, o))
        period, offset = period[~within], offset[~within]
    return kept
