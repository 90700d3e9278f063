"""Overlapping: two spans of a power of two that cover a pair together.

==========  =====================================================================
requires    idempotent: rows covered twice count once
build       O(n) for each power of two up to the widest pair, when first asked for
answer      O(1)
memory      n states for each power of two
paper       B-INT, Arasu & Widom 2004, section 3.1.1, with intervals at every row
==========  =====================================================================
"""

from __future__ import annotations

from panes.algebra.operations import Operations, State, take
from panes.kernels.kernel import Kernel, Work
from panes.kernels.pairs import Pairs, gather


class Overlapping(Kernel):
    """Two spans of a power of two, one from the left end of a pair and one from the right."""

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
        missing = max(0, pairs.widest.bit_length() - len(self._levels))
        return Work(build=missing * self.rows, steps=2 * len(pairs))

    def _level(self, power: int) -> State:
        while len(self._levels) <= power:
            below = self._levels[-1]
            half = 1 << (len(self._levels) - 1)
            level = self.operations.combine(take(below, slice(None, -half)), take(below, slice(half, None)))
            self._levels.append(level)
        return self._levels[power]

    def _answer(self, pairs: Pairs) -> State:
        return pairs.answer_by_magnitude(self._of_magnitude)

    def _of_magnitude(self, power: int, pairs: Pairs) -> State:
        level = self._level(power)
        left = gather(level, pairs.lo)
        return left if power == 0 else self.operations.combine(left, gather(level, pairs.hi - (1 << power)))
