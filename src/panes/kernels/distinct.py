"""Distinct: in which pairs is a row the first of its value?

A row counts in a pair that holds it unless its value occurs earlier in the same pair. The pairs that hold a row are
neighbours, and so are those that begin after the value's previous occurrence; so each row counts in one range of
pairs, and sums of +1 and -1 at the ends of these ranges are the answers.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from panes.aggregates.operations import Array
from panes.errors import AlgebraError


class Distinct:
    """Different values in many pairs over one column of codes.

    ==========  =====================================================================
    requires    pairs in order: neither lo nor hi ever falls
    build       O(n log n): where the value of each row occurred before
    answer      O(n + pairs), however wide the pairs and however much they overlap
    memory      one index per row
    paper       most recent appearances, Patroumpas & Sellis 2011, section 4; the
                previous occurrence is the same seen from the other side
    ==========  =====================================================================
    """

    def __init__(self, code: Array) -> None:
        self._code = code

    @cached_property
    def previous(self) -> Array:
        """The row where each row's value occurred before; -1 for the first time."""
        order = np.argsort(self._code, kind="stable")
        again = self._code[order[1:]] == self._code[order[:-1]]
        before = np.full(len(order), -1, np.int64)
        before[order[1:][again]] = order[:-1][again]
        return before

    def counts(self, lo: Array, hi: Array) -> Array:
        """How many different values each pair ``[lo, hi)`` has.

        Examples
        --------
        >>> Distinct(np.array([7, 7, 3, 7])).counts(np.array([0, 1, 3]), np.array([2, 4, 4]))
        array([1, 2, 1])
        """
        first, last = self._owners(lo, hi)
        some = first <= last
        change = np.bincount(first[some], minlength=len(lo) + 1) - np.bincount(last[some] + 1, minlength=len(lo) + 1)
        counts: Array = np.cumsum(change[: len(lo)])
        return counts

    def rows(self, lo: Array, hi: Array) -> tuple[Array, Array]:
        """For every pair the rows that are the first of their value: pair and row, by row."""
        first, last = self._owners(lo, hi)
        width = np.maximum(last - first + 1, 0)
        row = np.repeat(np.arange(len(width)), width)
        pair = np.arange(len(row)) - np.repeat(np.cumsum(width) - width - first, width)
        return pair, row

    def _owners(self, lo: Array, hi: Array) -> tuple[Array, Array]:
        """The first and the last pair in which each row is the first of its value."""
        if (lo[1:] < lo[:-1]).any() or (hi[1:] < hi[:-1]).any():
            raise AlgebraError("pairs must be in order for distinct values: sort them by lo and hi.")
        rows = len(self._code)
        # How many pairs begin, and how many end, at or before each row.
        begun = np.cumsum(np.bincount(lo, minlength=rows + 1))[:rows]
        ended = np.cumsum(np.bincount(np.maximum(lo, hi), minlength=rows + 1))[:rows]
        before = self.previous
        begun_before = np.where(before < 0, 0, begun[before]) if rows else begun
        return np.maximum(ended, begun_before), begun - 1
