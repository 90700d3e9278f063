"""Quantiles: base intervals, each of them sorted.

==========  =====================================================================
requires    codes in the order of the values: 64-bit integers, or Python objects
update      O(log rows) amortised: a row is merged once per level
lookup      O(log² width) comparisons and more: see `selection`
memory      one code per row and level
paper       B-INT-QNT, Arasu & Widom 2004, section 3.3
==========  =====================================================================

The place is a parameter of each lookup, so that one structure serves all quantiles. A level is as long as the column: a
base interval lies sorted where its rows lie in their order.
"""

from __future__ import annotations

import numpy as np

from panes.algebra.operations import Array, State
from panes.kernels.quantile import base_intervals
from panes.live.dyadic import completed
from panes.live.rings import Rings, Runs
from panes.live.selection import select


class SortedIntervals:
    """By level, the codes of every active base interval in order.

    Parameters
    ----------
    like
        A state of one array with the type of the codes.
    rings
        Where rows lie.
    """

    name = "quantiles"

    def __init__(self, like: State, rings: Rings) -> None:
        self.rings = rings
        self._sorted = np.zeros((1, 0), like[0].dtype)

    @property
    def states(self) -> int:
        """How many codes there is room for."""
        return int(self._sorted.size)

    def resize(self, slots: int) -> None:
        """Have so many slots, and as many levels as the largest ring has."""
        levels = max(int(self.rings.size.max(initial=1)).bit_length() - 1, 1)
        if (levels, slots) != self._sorted.shape:
            grown = np.zeros((levels, slots), self._sorted.dtype)
            kept = tuple(map(min, grown.shape, self._sorted.shape))
            grown[: kept[0], : kept[1]] = self._sorted[: kept[0], : kept[1]]
            self._sorted = grown

    def append(self, rows: Runs, state: State) -> None:
        """Take in the codes of the next rows of some keys."""
        self._sorted[0, rows.slot] = state[0]
        for level, key, interval in completed(self.rings, rows):
            begin = self.rings.slot(key, interval << level)
            at = begin[:, None] + np.arange(1 << level)
            # Two sorted halves: a stable sort merges them.
            self._sorted[level, at] = np.sort(self._sorted[level - 1, at], axis=1, kind="stable")

    def move(self, rows: Runs, state: State) -> None:
        """Take in again what a key has held before, elsewhere."""
        self.append(rows, state)

    def elements(self, rows: Runs) -> State:
        """The codes of single rows."""
        return (self._sorted[0, rows.slot],)

    def expire(self, key: Array, first: Array) -> None:
        """Nothing to do: what lies there is never asked for again."""

    def keep(self, chosen: Array) -> None:
        """Nothing to do: nothing is kept by key."""

    def at(self, key: Array, lo: Array, hi: Array, rank: Array) -> Array:
        """The code at a place of the sorted rows ``[lo, hi)`` of each key, counted from 0; there are more rows."""
        self.rings.check(key, lo, hi)
        found = base_intervals(lo, hi)
        if not found:
            return np.zeros(0, self._sorted.dtype)
        owner = np.concatenate([pair for _, pair, _ in found])
        order = np.argsort(owner, kind="stable")
        slots = self._sorted.shape[1]
        begin = np.concatenate(
            [level * slots + self.rings.slot(key[pair], interval << level) for level, pair, interval in found]
        )
        width = np.concatenate([np.full(len(pair), 1 << level) for level, pair, _ in found])
        return select(self._sorted.ravel(), owner[order], begin[order], (begin + width)[order], rank)
