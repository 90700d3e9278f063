"""States by powers of two over the slots of rings: base intervals (dyadic), and a search tree to compare with."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from panes.aggregates.operations import Array, State
from panes.kernels.dyadic import climb
from panes.kernels.kernel import gather, place
from panes.live.algorithm import LiveAlgorithm
from panes.live.rings import Rings, Runs


class Levelled(LiveAlgorithm):
    """Level 0 has the rows, and level l a state for every ``2**l`` slots."""

    _levels: tuple[State, ...] = ((),)

    def resize(self, slots: int) -> None:  # noqa: D102
        count = max(slots.bit_length(), 1)
        levels = self._levels + ((),) * (count - len(self._levels))
        self._levels = tuple(self._resized(state, slots >> level) for level, state in enumerate(levels[:count]))

    def elements(self, rows: Runs) -> State:  # noqa: D102
        return gather(self._levels[0], rows.slot)


class BaseIntervals(Levelled):
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

    def append(self, rows: Runs, state: State) -> None:  # noqa: D102
        place(self._levels[0], rows.slot, state)
        for level, key, interval in completed(self.rings, rows):
            slot = self._slot(level, key, interval)
            # Rings are aligned, so that the halves of an interval lie below it, as in a tree.
            halves = (gather(self._levels[level - 1], 2 * slot + side) for side in (0, 1))
            place(self._levels[level], slot, self.operations.combine(*halves))

    def _lookup(self, key: Array | int, lo: Array, hi: Array) -> State:
        def fetch(level: int, pairs: Array, interval: Array) -> State:
            own = key if isinstance(key, int) else key[pairs]
            return gather(self._levels[level], self._slot(level, own, interval))

        return climb(self.operations, self.like, lo, hi, fetch)

    def _slot(self, level: int, key: Array | int, interval: Array) -> Array:
        rings = self.rings
        slots: Array = (rings.base[key] >> level) + (interval & ((rings.size[key] >> level) - 1))
        return slots


def completed(rings: Rings, rows: Runs) -> Iterator[tuple[int, Array | int, Array]]:
    """By level from 1 on, the active base intervals that new rows complete: the key of each, or of all, and which.

    Active are those that begin with a row that is held (step 4 of figure 3).
    """
    key, lo, hi, first, level = rows.key, rows.lo, rows.hi, rings.first[rows.key], 1
    while len(key) > 1:
        crossed = lo >> level < hi >> level
        key, lo, hi, first = key[crossed], lo[crossed], hi[crossed], first[crossed]
        begin = np.maximum(lo >> level, -(-first >> level))
        count = np.maximum((hi >> level) - begin, 0)
        owner = np.repeat(np.arange(len(key)), count)
        if len(owner):
            yield level, key[owner], np.arange(len(owner)) + (begin - (np.cumsum(count) - count))[owner]
        level += 1
    for one in zip(key.tolist(), lo.tolist(), hi.tolist(), first.tolist(), strict=True):
        yield from _completed_of_one(*one, level)


def _completed_of_one(key: int, lo: int, hi: int, first: int, level: int) -> Iterator[tuple[int, int, Array]]:
    """The same for one key, from a level on."""
    while lo >> level < hi >> level:
        begin = max(lo >> level, -(-first >> level))
        if begin < hi >> level:
            yield level, key, np.arange(begin, hi >> level)
        level += 1


class SearchTree(Levelled):
    """By level, the states of the nodes over slots ``[i * 2**l, (i + 1) * 2**l)``.

    ==========  =====================================================================
    requires    any monoid
    update      O(log rows): all nodes above a new row, once per batch
    lookup      O(log rows)
    memory      two states per row
    paper       PSoup, as in Arasu & Widom 2004, section 3.1.3; a baseline
    ==========  =====================================================================

    PSoup has an n-ary search tree by time of insertion. Rows come in the order of time, so the tree need not search:
    here it is binary, and its leaves are the slots of a ring. A window that wraps around is two ranges of leaves.
    """

    name = "tree"

    def append(self, rows: Runs, state: State) -> None:  # noqa: D102
        place(self._levels[0], rows.slot, state)
        nodes, highest = rows.slot, int(self.rings.size[rows.key].max(initial=1)).bit_length() - 1
        for level in range(1, highest + 1):
            nodes = np.unique(nodes >> 1)
            children = (gather(self._levels[level - 1], 2 * nodes + side) for side in (0, 1))
            place(self._levels[level], nodes, self.operations.combine(*children))

    def _lookup(self, key: Array | int, lo: Array, hi: Array) -> State:
        def over(begin: Array, end: Array) -> State:
            return climb(
                self.operations, self.like, begin, end, lambda level, _, node: gather(self._levels[level], node)
            )

        return self._over_slots(key, lo, hi, over)
