"""Dyadic: every pair as base intervals, each a power of two long and aligned to it.

==========  =====================================================================
requires    any monoid
build       O(n), levels only as far as the widest pair needs
answer      O(log width)
memory      n states for all levels together
paper       B-INT, Arasu & Widom 2004, section 3.1.1, theorem 3.1
==========  =====================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from panes.algebra.operations import Array, Operations, State, take
from panes.kernels.kernel import Kernel, Work
from panes.kernels.pairs import Pairs, gather, place

Fetch: TypeAlias = Callable[[int, Array, Array], State]
"""From a level, some pairs and a base interval of each there to the states of these intervals."""


class Dyadic(Kernel):
    """Disjoint base intervals, combined from both ends of a pair inwards."""

    name = "dyadic"

    def __init__(self, operations: Operations, state: State) -> None:
        super().__init__(operations, state)
        # Level l holds at i the base interval of rows [i * 2**l, (i + 1) * 2**l).
        self._levels = [state]

    def work(self, pairs: Pairs) -> Work:  # noqa: D102
        levels = pairs.widest.bit_length()
        missing = sum(self.rows >> level for level in range(len(self._levels), levels))
        return Work(build=missing, steps=2 * len(pairs) * levels)

    def _level(self, level: int) -> State:
        while len(self._levels) <= level:
            below = self._levels[-1]
            even = len(below[0]) & ~1
            halves = take(below, slice(0, even, 2)), take(below, slice(1, even, 2))
            self._levels.append(self.operations.combine(*halves))
        return self._levels[level]

    def _answer(self, pairs: Pairs) -> State:
        return climb(
            self.operations, self.state, pairs.lo, pairs.hi, lambda level, _, index: gather(self._level(level), index)
        )


def climb(operations: Operations, like: State, lo: Array, hi: Array, fetch: Fetch) -> State:
    """Each pair ``[lo, hi)``, which holds a row, out of its base intervals; the states have the types of another.

    Up the levels, an odd lo gives the left part a base interval, an odd hi the right part. The left part grows to the
    right and the right part to the left, so order is kept.
    """
    combine = operations.combine
    left, right = operations.identities(like, len(lo)), operations.identities(like, len(lo))
    rows, level = np.arange(len(lo)), 0
    while len(rows):
        odd = np.flatnonzero(lo & 1)
        at = rows[odd]
        place(left, at, combine(gather(left, at), fetch(level, at, lo[odd])))
        odd = np.flatnonzero(hi & 1)
        at = rows[odd]
        place(right, at, combine(fetch(level, at, hi[odd] - 1), gather(right, at)))
        lo, hi, level = (lo + 1) >> 1, hi >> 1, level + 1
        open_ = lo < hi
        if not open_.all():
            rows, lo, hi = rows[open_], lo[open_], hi[open_]
    return combine(left, right)
