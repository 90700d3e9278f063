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

from panes.plan.manager import Group
from panes.timeline import Edges


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


def granules_kept(steps: Iterable[Stair]) -> float:
    """How many granules of one key the stairs hold at most, whatever the windows are."""
    total, younger = 0.0, 0
    for stair in steps:
        apart = sum(1 / edge.period for edge in stair.edges)
        tick = reduce(Edges.common, stair.edges).period
        total += (stair.reach - younger) * min(apart, 1 / tick)
        younger = stair.reach
    return total


def _sparsest(edges: set[Edges]) -> set[Edges]:
    """Without the progressions that lie within others."""
    return {e for e in edges if not any(e != other and e.within(other) for other in edges)}
