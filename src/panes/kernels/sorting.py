"""Sorting: every pair copied out and sorted on its own.

==========  =====================================================================
requires    numbers in the order of values; no weights
build       –
answer      O(width log width), for all pairs of one width together
memory      a piece of the pairs at a time, whatever they hold in all
paper       –; the naive way, which processors that sort in vectors make cheap
==========  =====================================================================

The one to take for narrow pairs: `ranks` has to sort the whole column first, and splits it once for each bit. NumPy
sorts a hundred doubles in 0.3 µs where the processor has AVX-512, four times as fast as it selects one place of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from panes.algebra.operations import Array
from panes.kernels.pairs import Pairs

_AT_ONCE: Final = 1 << 15
"""Numbers that are copied out at a time: they stay in the cache of a core."""


class Sorting:
    """Values by their place in many pairs over one column of numbers."""

    def __init__(self, numbers: Array) -> None:
        self._numbers = numbers

    def at(self, lo: Array, hi: Array, *ranks: Array) -> tuple[Array, ...]:
        """The numbers at some places of each sorted pair ``[lo, hi)``, counted from 0.

        Every pair has to be longer than its ranks.

        Examples
        --------
        >>> sorting = Sorting(np.array([5.5, 1.0, 4.0, 1.0]))
        >>> sorting.at(np.array([0, 0, 2]), np.array([4, 3, 4]), np.array([0, 1, 1]), np.array([3, 2, 0]))
        (array([1., 4., 4.]), array([5.5, 5.5, 1. ]))
        """
        found = tuple(np.empty(len(lo), self._numbers.dtype) for _ in ranks)
        for width, pairs in _by_width(Pairs(lo, hi, len(self._numbers))):
            windows = sliding_window_view(self._numbers, width)
            at_once = max(_AT_ONCE // width, 1)
            for begin in range(0, len(pairs), at_once):
                some = pairs[begin : begin + at_once]
                rows = windows[lo[some]]
                rows.sort(axis=1)
                for into, rank in zip(found, ranks, strict=True):
                    into[some] = rows[np.arange(len(some)), rank[some]]
        return found


def _by_width(pairs: Pairs) -> Iterator[tuple[int, Array]]:
    """The pairs of each width."""
    if not len(pairs):
        return
    if pairs.narrowest == pairs.widest:
        yield pairs.widest, np.arange(len(pairs))
        return
    order = np.argsort(pairs.width)
    widths, begins = np.unique(pairs.width[order], return_index=True)
    for width, begin, end in zip(widths.tolist(), begins, np.append(begins[1:], len(order)), strict=True):
        yield width, order[begin:end]
