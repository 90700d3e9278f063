"""Windows in, tiers out: which granules a state keeps, coarser ones for older data.

Paper: Patroumpas and Sellis, Multi-granular Time-based Sliding Windows over Data Streams (2010), section III, which
calls them stairs. Data of some age matter only to windows wider than that age, so the older the data, the fewer edges
there are between granules. All windows share the granules of one column.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

import numpy as np

from panes.timeline import Edges, Geometry, all_within

_FEW = 8


@dataclass(frozen=True)
class Tier:
    """The granules of data up to an age.

    Parameters
    ----------
    edges
        Where granules begin and end.
    reach
        The age at which the next tier's granules suffice, or nothing is needed any more.
    """

    edges: tuple[Edges, ...]
    reach: int


def tiers(windows: Iterable[Geometry], most: int | None = None) -> tuple[Tier, ...]:
    """Return the tiers of some windows, from the youngest data to the oldest.

    Parameters
    ----------
    most
        Leave out tiers with more progressions of edges than this; a younger tier, which has more edges, covers their
        age. Thousands of windows would have as many tiers, each with up to as many progressions.

    Examples
    --------
    >>> for tier in tiers([Geometry(8, 2), Geometry(24, 8)]):
    ...     print(tier.reach, [edge.period for edge in tier.edges])
    8 [2]
    24 [8]
    """
    by_range: dict[int, set[Edges]] = {}
    for window in windows:
        by_range.setdefault(window.range, set()).update(window.edges())
    found: list[Tier] = []
    sparsest, left_out = _Sparsest(), 0
    # From the oldest data on: the younger the data, the more windows read them.
    for reach in sorted(by_range, reverse=True):
        if sparsest.add(by_range[reach]):
            left_out = left_out or reach
            if most is None or len(sparsest) <= most:
                found.append(Tier(sparsest.edges(), left_out))
                left_out = 0
    if left_out:
        found.append(Tier(sparsest.edges(), left_out))
    return tuple(reversed(found))


def worthwhile(windows: Iterable[Geometry], finest: tuple[Edges, ...]) -> tuple[Tier, ...]:
    """Return the tiers that a state keeps: those that halve the granules of their age and save a quarter of all.

    Moving data from tier to tier rewrites the granules of that age, so it must pay off.

    Parameters
    ----------
    finest
        Where the panes of new events begin and end: at least where windows do.

    Examples
    --------
    >>> windows = [Geometry(10, 10), Geometry(15, 15), Geometry(300, 60)]
    >>> [(tier.edges[0].period, tier.reach) for tier in worthwhile(windows, (Edges(5),))]
    [(5, 15), (60, 300)]
    """
    steps = tiers(windows, _FEW)
    found = [Tier(finest, steps[0].reach)]
    for tier in steps[1:]:
        finer = found[-1].edges
        if all_within(tier.edges, finer) and len(tier.edges) <= _FEW and 2 * _density(tier.edges) <= _density(finer):
            found.append(tier)
        else:
            found[-1] = Tier(finer, tier.reach)
    while len(found) > 1:
        saved = [
            (tier.reach - younger.reach) * (_density(younger.edges) - _density(tier.edges))
            for younger, tier in pairwise(found)
        ]
        least = min(range(len(saved)), key=saved.__getitem__)
        if 4 * saved[least] >= granules_kept(found):
            break
        # The younger tier covers both.
        found[least : least + 2] = [Tier(found[least].edges, found[least + 1].reach)]
    return tuple(found)


def granules_kept(steps: Iterable[Tier]) -> float:
    """Return the most granules of one key that the tiers hold."""
    total, younger = 0.0, 0
    for tier in steps:
        total += (tier.reach - younger) * _density(tier.edges)
        younger = tier.reach
    return total


def _density(edges: tuple[Edges, ...]) -> float:
    """Return the most granules per unit of time."""
    return min(sum(1 / edge.period for edge in edges), 1 / reduce(Edges.common, edges).period)


class _Sparsest:
    """Progressions of edges, without those that lie within others."""

    def __init__(self) -> None:
        self._period = np.zeros(0, np.int64)
        self._offset = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._period)

    def add(self, edges: Iterable[Edges]) -> bool:
        """Add edges, and return whether any of them is new."""
        changed = False
        for e in edges:
            if ((e.period % self._period == 0) & ((e.offset - self._offset) % self._period == 0)).any():
                continue
            others = (self._period % e.period != 0) | ((self._offset - e.offset) % e.period != 0)
            self._period = np.append(self._period[others], e.period)
            self._offset = np.append(self._offset[others], e.offset)
            changed = True
        return changed

    def edges(self) -> tuple[Edges, ...]:
        return tuple(sorted(Edges(int(p), int(o)) for p, o in zip(self._period, self._offset, strict=True)))
