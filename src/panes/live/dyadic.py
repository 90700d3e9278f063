"""Dyadic: states of rows, and of pairs of rows, pairs of pairs, and so on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from panes.aggregates.operations import Array, State
from panes.kernels.dyadic import climb
from panes.kernels.kernel import gather, place
from panes.live.algorithm import LiveAlgorithm
from panes.live.rings import Rings, RowRuns


class BaseIntervals(LiveAlgorithm):
    """By level, the states of the active base intervals.

    ==========  =====================================================================
    requires    any monoid
    update      O(1) amortised: as many combinations as rows
    lookup      O(log width)
    memory      two states per row
    paper       B-INT, Arasu & Widom 2004, section 3.1.1, figure 3
    ==========  =====================================================================

    Base interval i of level l is ``[i * 2**l, (i + 1) * 2**l)`` in ordinals of its key, combined once when its last row
    comes. Since rings are aligned powers of two, level l of a ring is the ring shrunk by ``2**l``, and all levels
    together are one array per power.
    """

    name = "dyadic"

    _levels: tuple[State, ...] = ((),)

    def resize(self, slots: int) -> None:  # noqa: D102
        count = max(slots.bit_length(), 1)
        levels = self._levels + ((),) * (count - len(self._levels))
        self._levels = tuple(self._resized(state, slots >> level) for level, state in enumerate(levels[:count]))

    def append(self, rows: RowRuns, state: State) -> None:  # noqa: D102
        place(self._levels[0], rows.slot, state)
        for level, key, interval in completed(self.rings, rows):
            slot = self._slot(level, key, interval)
            # Rings are aligned, so that the halves of an interval lie below it, as in a tree.
            halves = (gather(self._levels[level - 1], 2 * slot + side) for side in (0, 1))
            place(self._levels[level], slot, self.operations.combine(*halves))

    def elements(self, rows: RowRuns) -> State:  # noqa: D102
        return gather(self._levels[0], rows.slot)

    def _lookup(self, key: Array, lo: Array, hi: Array) -> State:
        def fetch(level: int, windows: Array, interval: Array) -> State:
            return gather(self._levels[level], self._slot(level, key[windows], interval))

        return climb(self.operations, self.like, lo, hi, fetch)

    def _slot(self, level: int, key: Array, interval: Array) -> Array:
        rings = self.rings
        slots: Array = (rings.base[key] >> level) + (interval & ((rings.size[key] >> level) - 1))
        return slots


def completed(rings: Rings, rows: RowRuns) -> Iterator[tuple[int, Array, Array]]:
    """By level from 1 on, the active base intervals that new rows complete: the key of each, or of all, and which.

    Active are those that begin with a row that is held (step 4 of figure 3).
    """
    key, lo, hi, first, level = rows.key, rows.lo, rows.hi, rings.first[rows.key], 1
    while len(key) > 1:
        crossed = lo >> level < hi >> level
        key, lo, hi, first = key[crossed], lo[crossed], hi[crossed], first[crossed]
        begin = np.maximum(lo >> level, -(-first >> level))
        count = np.maximum((hi >> level) - begin, 0)
        run = np.repeat(np.arange(len(key)), count)
        if len(run):
            yield level, key[run], np.arange(len(run)) + (begin - (np.cumsum(count) - count))[run]
        level += 1
    if len(key):
        yield from _completed_by_one(key, int(lo[0]), int(hi[0]), int(first[0]), level)


def _completed_by_one(key: Array, lo: int, hi: int, first: int, level: int) -> Iterator[tuple[int, Array, Array]]:
    """The same for the rows of one key, from a level on."""
    while lo >> level < hi >> level:
        begin = max(lo >> level, -(-first >> level))
        if begin < hi >> level:
            yield level, key, np.arange(begin, hi >> level)
        level += 1
