"""Quantiles: base intervals, each of them sorted.

The place is a parameter of each lookup, so that one structure serves all quantiles. A level is as long as the column: a
base interval lies sorted where its rows lie in their order.
"""

from __future__ import annotations

import numpy as np

from panes.aggregates.operations import Array, State
from panes.kernels.dyadic import base_intervals
from panes.live.dyadic import completed
from panes.live.rings import Rings, RowRuns, SlotColumn

# Selection: which value stands at a place of several sorted stretches taken together?
#
# The greedy search of B-INT-QNT (Arasu & Widom 2004, section 3.3), for many questions in step. A pivot is taken from
# the widest stretch, where the answer would be if all stretches were alike; every second time from its middle, which
# leaves at most half of it whatever the values are. Stretches are cut down to the values below or above the pivot.


def select(values: Array, owner: Array, begin: Array, end: Array, rank: Array) -> Array:
    """The value at a place of each question's stretches taken together, counted from 0.

    Parameters
    ----------
    values
        Where the stretches lie.
    owner
        Of each stretch the question that it belongs to, in order. Every question has one.
    begin, end
        Of each stretch, half-open; its values are sorted.
    rank
        Of each question; its stretches hold more values.

    Examples
    --------
    >>> values = np.array([1, 5, 9, 2, 3, 7, 8])
    >>> select(values, np.array([0, 0, 1]), np.array([0, 3, 3]), np.array([3, 7, 7]), np.array([4, 0]))
    array([7, 2])
    """
    answers = np.empty(len(rank), values.dtype)
    unanswered, in_the_middle = np.arange(len(rank)), False
    while len(unanswered):
        width = end - begin
        firsts = np.flatnonzero(np.diff(owner, prepend=-1))
        widest = np.maximum.reduceat(width * len(width) + np.arange(len(width)), firsts) % len(width)
        alike = rank * width[widest] // np.add.reduceat(width, firsts)
        pivot = values[begin[widest] + (width[widest] >> 1 if in_the_middle else alike)]
        below = _search(values, begin, end, pivot[owner], including=False)
        less = np.add.reduceat(below - begin, firsts)
        lower = rank < less
        upto = below.copy()
        others = np.flatnonzero(~lower[owner])
        upto[others] = _search(values, below[others], end[others], pivot[owner[others]], including=True)
        at_most = np.add.reduceat(upto - begin, firsts)
        found = ~lower & (rank < at_most)
        answers[unanswered[found]] = pivot[found]
        begin, end = np.where(lower[owner], begin, upto), np.where(lower[owner], below, end)
        rank, unanswered = np.where(lower, rank, rank - at_most)[~found], unanswered[~found]
        left = ~found[owner] & (begin < end)
        owner, begin, end = (np.cumsum(~found) - 1)[owner[left]], begin[left], end[left]
        in_the_middle = not in_the_middle
    return answers


def _search(values: Array, begin: Array, end: Array, pivot: Array, *, including: bool) -> Array:
    """In each stretch, the place behind the values below a pivot, or at or below it."""
    place = begin.copy()
    for power in reversed(range(int((end - begin).max(initial=0)).bit_length())):
        further = place + (1 << power)
        probe = values.take(np.minimum(further, end) - 1)
        passed = (probe <= pivot if including else probe < pivot).astype(np.bool_, copy=False)
        np.copyto(place, further, where=passed & (further <= end))
    return place


class SortedIntervals(SlotColumn):
    """By level, the codes of every active base interval in order.

    ==========  =====================================================================
    requires    codes in the order of the values: 64-bit integers, or Python objects
    update      O(log rows) amortised: a row is merged once per level
    lookup      O(log² width) comparisons and more: see ``select``
    memory      one code per row and level
    paper       B-INT-QNT, Arasu & Widom 2004, section 3.3
    ==========  =====================================================================

    Parameters
    ----------
    like
        A state of one array with the type of the codes.
    """

    name = "quantiles"

    def __init__(self, like: State, rings: Rings) -> None:
        super().__init__(rings)
        self._sorted = np.zeros((1, 0), like[0].dtype)

    def resize(self, slots: int) -> None:  # noqa: D102
        levels = max(int(self.rings.size.max(initial=1)).bit_length() - 1, 1)
        if (levels, slots) != self._sorted.shape:
            grown = np.zeros((levels, slots), self._sorted.dtype)
            kept = tuple(map(min, grown.shape, self._sorted.shape))
            grown[: kept[0], : kept[1]] = self._sorted[: kept[0], : kept[1]]
            self._sorted = grown

    def append(self, rows: RowRuns, state: State) -> None:  # noqa: D102
        self._sorted[0, rows.slot] = state[0]
        for level, key, interval in completed(self.rings, rows):
            begin = self.rings.slot(key, interval << level)
            at = begin[:, None] + np.arange(1 << level)
            # Two sorted halves: a stable sort merges them.
            self._sorted[level, at] = np.sort(self._sorted[level - 1, at], axis=1, kind="stable")

    def elements(self, rows: RowRuns) -> State:  # noqa: D102
        return (self._sorted[0, rows.slot],)

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
