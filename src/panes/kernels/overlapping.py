"""Overlapping: two spans of a power of two that cover a pair together.

==========  =====================================================================
requires    idempotent: rows covered twice count once
build       O(n) for each power of two up to the widest pair, when first asked for
answer      O(1)
memory      n states for each power of two; beyond a limit, built anew each time
paper       B-INT, Arasu & Widom 2004, section 3.1.1, with intervals at every row
==========  =====================================================================
"""

from __future__ import annotations

from typing import Final

from panes.algebra.operations import Operations, State, take
from panes.kernels.kernel import Kernel, Work
from panes.kernels.pairs import Pairs, gather

_KEPT: Final = 1 << 25
"""Numbers that are kept between calls; the levels of a larger column are built anew for each, one after another."""


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
