"""Stairs: which granules a state keeps, the coarser the older.

Paper: Patroumpas and Sellis, Multi-granular Time-based Sliding Windows over Data Streams (2010), section III. A datum
of some age matters only to windows wider than that age, and a group's wider windows slide by ever longer steps; so
the edges between granules thin out from stair to stair. The granules of all groups lie on one column: it has the
edges that any group still needs, which are never more than the groups would have apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

from panes.plan.manager import Group
from panes.timeline import Edges

_FEW = 8


@dataclass(frozen=True)
class Stair:
    """The granules of data up to an age.

    Parameters
    ----------
    edges
        Where granules begin and end.
    reach
        The age from which on the next stair's granules are enough, or nothing is needed any more.
    """

    edges: tuple[Edges, ...]
    reach: int


def stairs(groups: Iterable[Group]) -> tuple[Stair, ...]:
    """The stairs of all groups together, from the youngest data to the oldest.

    Examples
    --------
    >>> from panes.plan.manager import WindowManager
    >>> from panes.timeline import Geometry
    >>> for stair in stairs(WindowManager([Geometry(8, 2), Geometry(24, 8)]).groups):
    ...     print(stair.reach, [edge.period for edge in stair.edges])
    8 [2]
    24 [8]
    """
    # From the oldest data on: the younger the data, the more windows look at them.
    by_range: dict[int, set[Edges]] = {}
    for group in groups:
        for window in group.windows:
            by_range.setdefault(window.range, set()).update(window.edges())
    found: list[Stair] = []
    edges: set[Edges] = set()
    for reach in sorted(by_range, reverse=True):
        denser = _sparsest(edges | by_range[reach])
        if denser != edges:
            found.append(Stair(tuple(sorted(denser)), reach))
            edges = denser
    return tuple(reversed(found))


def worthwhile(steps: tuple[Stair, ...], finest: tuple[Edges, ...]) -> tuple[Stair, ...]:
    """The stairs that a state keeps: each has half the granules of the one before, or fewer.

    A step from stair to stair rewrites the granules of that age, and thousands of windows have thousands of stairs.

    Parameters
    ----------
    finest
        Where the panes of new events begin and end, at least wherever a window does.

    Examples
    --------
    >>> steps = [Stair((Edges(10),), 10), Stair((Edges(15), Edges(20)), 20), Stair((Edges(60),), 300)]
    >>> [(stair.edges[0].period, stair.reach) for stair in worthwhile(tuple(steps), (Edges(5),))]
    [(5, 20), (60, 300)]
    """
    found: list[Stair] = []
    edges = finest
    for younger, stair in pairwise(steps):
        nested = all(any(e.within(finer) for finer in edges) for e in stair.edges)
        if nested and len(stair.edges) <= _FEW and 2 * _density(stair.edges) <= _density(edges):
            found.append(Stair(edges, younger.reach))
            edges = stair.edges
    return (*found, Stair(edges, steps[-1].reach))


def granules_kept(steps: Iterable[Stair]) -> float:
    """How many granules of one key the stairs hold at most, whatever the windows are."""
    total, younger = 0.0, 0
    for stair in steps:
        total += (stair.reach - younger) * _density(stair.edges)
        younger = stair.reach
    return total


def _density(edges: tuple[Edges, ...]) -> float:
    """Granules per unit of time, at most."""
    return min(sum(1 / edge.period for edge in edges), 1 / reduce(Edges.common, edges).period)


def _sparsest(edges: set[Edges]) -> set[Edges]:
    """Without the progressions that lie within others."""
    return {e for e in edges if not any(e != other and e.within(other) for other in edges)}
