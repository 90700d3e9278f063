"""Quantile: every pair as base intervals, each of them sorted; the value is searched for in all of them together.

==========  =====================================================================
requires    codes: values as numbers 0, 1, 2, ... in their order
build       O(n log n) for each level, levels only as far as the widest pair needs
answer      O(log values · log width · log n)
memory      n codes for each level
paper       B-INT-QNT, Arasu & Widom 2004, section 3.3
==========  =====================================================================

The paper's own algorithm, and the one to take where rows are appended: a new base interval disturbs no other. On a
column that is there as a whole, `ranks` gives the same answers some hundred times faster (10,000 pairs of 6,000 rows
over a million rows: 3 ms instead of 500 ms, after half the build).
"""

from __future__ import annotations

import numpy as np

from panes.algebra.operations import Array


class Quantile:
    """Values by their place in many pairs over one column of codes."""

    def __init__(self, code: Array) -> None:
        self._values = int(code.max(initial=0)) + 1
        # Level l holds the rows of each base interval [i * 2**l, (i + 1) * 2**l) sorted: as i * values + code, so
        # that the whole level is sorted and one search serves all its intervals.
        self._levels = [np.arange(len(code)) * self._values + code]

    def at(self, lo: Array, hi: Array, rank: Array) -> Array:
        """The code at a place of each sorted pair ``[lo, hi)``, counted from 0. Every pair is longer than its rank.

        Examples
        --------
        >>> Quantile(np.array([5, 1, 4, 1])).at(np.array([0, 0, 2]), np.array([4, 3, 4]), np.array([0, 1, 1]))
        array([1, 4, 4])
        """
        intervals = base_intervals(lo, hi)
        self._grow(max((level for level, _, _ in intervals), default=0))
        least, most = np.zeros(len(lo), np.int64), np.full(len(lo), self._values - 1)
        # The smallest value of which the pair holds more rows at or below it than the rank.
        while (least < most).any():
            middle = (least + most) >> 1
            enough = self._at_most(intervals, len(lo), middle) > rank
            least, most = np.where(enough, least, middle + 1), np.where(enough, middle, most)
        return least

    def _at_most(self, intervals: list[tuple[int, Array, Array]], pairs: int, value: Array) -> Array:
        """How many rows of each pair have a value at or below one."""
        count = np.zeros(pairs, np.int64)
        for level, pair, interval in intervals:
            below = np.searchsorted(self._levels[level], interval * self._values + value[pair], side="right")
            np.add.at(count, pair, below - (interval << level))
        return count

    def _grow(self, level: int) -> None:
        while len(self._levels) <= level:
            below = self._levels[-1]
            code = below % self._values
            interval = (below // self._values) >> 1
            self._levels.append(np.sort(interval * self._values + code, kind="stable"))


def base_intervals(lo: Array, hi: Array) -> list[tuple[int, Array, Array]]:
    """By level, the pairs ``[lo, hi)`` that have a base interval there and which (Theorem 3.1: at most two each).

    Examples
    --------
    >>> [(level, interval.tolist()) for level, _, interval in base_intervals(np.array([0]), np.array([43]))]
    [(0, [42]), (1, [20]), (3, [4]), (5, [0])]
    """
    found, level = [], 0
    pair = np.flatnonzero(lo < hi)
    lo, hi = lo[pair], hi[pair]
    while len(pair):
        for odd, interval in ((lo & 1 == 1, lo), (hi & 1 == 1, hi - 1)):
            if odd.any():
                found.append((level, pair[odd], interval[odd]))
        lo, hi, level = (lo + 1) >> 1, hi >> 1, level + 1
        held = lo < hi
        pair, lo, hi = pair[held], lo[held], hi[held]
    return found
