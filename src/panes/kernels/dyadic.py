"""Intervals of a power of two: disjoint and aligned ones (dyadic), or two that overlap and cover a pair."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from panes.aggregates.operations import Array, Operations, State, take
from panes.kernels.kernel import Kernel, Pairs, Work, gather, place

Fetch: TypeAlias = Callable[[int, Array, Array], State]
"""From a level, some pairs and a base interval of each there to the states of these intervals."""


class Dyadic(Kernel):
    """Disjoint base intervals, combined from both ends of a pair inwards.

    ==========  =====================================================================
    requires    any monoid
    build       O(n), levels only as far as the widest pair needs
    answer      O(log width)
    memory      n states for all levels together
    paper       B-INT, Arasu & Widom 2004, section 3.1.1, theorem 3.1
    ==========  =====================================================================
    """

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


_KEPT: Final = 1 << 25
"""Numbers that are kept between calls; the levels of a larger column are built anew for each, one after another."""


class Overlapping(Kernel):
    """Two spans of a power of two, one from the left end of a pair and one from the right.

    ==========  =====================================================================
    requires    idempotent: rows covered twice count once
    build       O(n) for each power of two up to the widest pair, when first asked for
    answer      O(1)
    memory      n states for each power of two; beyond a limit, built anew each time
    paper       B-INT, Arasu & Widom 2004, section 3.1.1, with intervals at every row
    ==========  =====================================================================
    """

    name = "overlapping"
    needs = "an idempotent combine"

    def __init__(self, operations: Operations, state: State) -> None:
        super().__init__(operations, state)
        # Level p holds at row i the rows [i, i + 2**p).
        self._levels = [state]

    @classmethod
    def can(cls, operations: Operations) -> bool:  # noqa: D102
        return operations.idempotent

    def work(self, pairs: Pairs) -> Work:  # noqa: D102
        missing = max(0, pairs.widest.bit_length() - (len(self._levels) if self._keeps(pairs) else 1))
        return Work(build=missing * self.rows, steps=2 * len(pairs))

    def _keeps(self, pairs: Pairs) -> bool:
        return pairs.widest.bit_length() * self.rows * len(self.state) <= _KEPT

    def _answer(self, pairs: Pairs) -> State:
        keeps = self._keeps(pairs)
        levels = self._levels if keeps else self._levels[:1]

        # Magnitudes come in rising order.
        def answer(power: int, some: Pairs) -> State:
            while len(levels) <= power:
                half = 1 << (len(levels) - 1)
                below = levels[-1]
                levels.append(self.operations.combine(take(below, slice(None, -half)), take(below, slice(half, None))))
                if not keeps:
                    levels[-2] = ()
            level = levels[power]
            left = gather(level, some.lo)
            return left if power == 0 else self.operations.combine(left, gather(level, some.hi - (1 << power)))

        return pairs.answer_by_magnitude(answer)
