"""Landmark: an interval that ends at a landmark, and an interval that begins there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from panes.aggregates.operations import Operations, State, concatenate, take
from panes.kernels.kernel import Integers, Kernel, Pairs, Work, gather
from panes.kernels.naive import Naive
from panes.kernels.scan import prefixes, suffixes

# A partition takes three scans of the column; folding takes a little less for each element.
_WORTH: Final = 4

_KEPT: Final = 1 << 25
"""Numbers that all partitions together may have; where one more exceeds it, the others are dropped."""


def landmarks_crossed(lo: Integers, hi: Integers, exponent: int) -> Integers:
    """Return how many landmarks each interval ``[lo, hi)`` crosses; widths are in ``[2**exponent, 2**(exponent + 1))``.

    Landmarks are multiples of ``2**exponent``, and every interval has the rows up to the next one. It crosses none
    where these are all its rows, a whole block; one where it ends in the block that begins there; and two where a
    whole block lies between them.

    Examples
    --------
    >>> landmarks_crossed(np.array([8, 9, 7]), np.array([12, 13, 13]), exponent=2)
    array([0, 1, 2])
    """
    crossed: Integers = ((hi - 1) >> exponent) - (lo >> exponent)
    return crossed


@dataclass(frozen=True, slots=True)
class _Partition:
    """The landmark intervals for widths in ``[spacing, 2 * spacing)``; landmarks are multiples of the spacing.

    ``ending[i]`` is row i up to the next landmark. ``beginning`` holds, for each row, the rows from the last
    landmark up to it, then the same from the last landmark but one, then the identity.
    """

    spacing: int
    ending: State
    beginning: State

    @classmethod
    def build(cls, operations: Operations, state: State, spacing: int) -> _Partition:
        near = prefixes(operations, state, spacing)
        blocks = take(near, slice(spacing - 1, None, spacing))
        later = take(near, slice(spacing, None))
        rows = len(later[0])
        before = tuple(np.repeat(array, spacing)[:rows] for array in blocks)
        far = operations.combine(before, later)
        nothing = operations.identities(state, 1)
        return cls(spacing, suffixes(operations, state, spacing), concatenate([near, far, nothing]))

    def answer(self, operations: Operations, lo: Integers, hi: Integers) -> State:
        crossed = landmarks_crossed(lo, hi, self.spacing.bit_length() - 1)
        index = hi - 1
        # From the first of two landmarks: stored behind the nearer ones.
        index[crossed == 2] += len(self.ending[0]) - self.spacing
        index[crossed == 0] = len(self.beginning[0]) - 1
        return operations.combine(gather(self.ending, lo), gather(self.beginning, index))


class Landmark(Kernel):
    """At most two landmark intervals for each pair, in partitions by width.

    ==========  =====================================================================
    requires    any monoid
    build       O(n) for each partition of the widths within a factor of two
    answer      O(1): at most two intervals
    memory      3 n states for each partition; beyond a limit, others are dropped
    paper       L-INT, Arasu & Widom 2004, section 3.1.2, theorem 3.3; its c is 2
    ==========  =====================================================================
    """

    name = "landmark"

    def __init__(self, operations: Operations, state: State) -> None:
        super().__init__(operations, state)
        self._partitions: dict[int, _Partition] = {}
        self._naive = Naive(operations, state)
        self._size = 3 * self.rows * len(state)

    def fits(self) -> bool:  # noqa: D102
        return self._size <= _KEPT

    def work(self, pairs: Pairs) -> Work:  # noqa: D102
        folded = [p for p in pairs.magnitudes if self._fold(p, pairs)]
        missing = [p for p in pairs.magnitudes if p not in self._partitions and p not in folded]
        folds = sum(pairs.counts_by_magnitude[p] for p in folded)
        return Work(
            build=3 * self.rows * len(missing),
            steps=2 * (len(pairs) - folds),
            folds=folds,
            folded=sum(pairs.widths_by_magnitude[p] for p in folded),
        )

    def part(self, pairs: Pairs) -> int:  # noqa: D102
        return pairs.widest.bit_length()

    def _fold(self, magnitude: int, pairs: Pairs) -> bool:
        """Whether a partition is not worth its build: its pairs together are hardly wider than the column.

        The few narrow pairs at the ends of each key would otherwise build a partition for every power of two.
        """
        if magnitude in self._partitions:
            return False
        return magnitude == 0 or pairs.widths_by_magnitude[magnitude] <= _WORTH * self.rows

    def _answer(self, pairs: Pairs) -> State:
        folded = {magnitude for magnitude in pairs.magnitudes if self._fold(magnitude, pairs)}

        def answer(magnitude: int, some: Pairs) -> State:
            if magnitude in folded:
                return self._naive.answer_pairs(some)
            return self._partition(magnitude).answer(self.operations, some.lo, some.hi)

        return pairs.answer_by_magnitude(answer)

    def _partition(self, magnitude: int) -> _Partition:
        if magnitude not in self._partitions:
            if self._size * (len(self._partitions) + 1) > _KEPT:
                self._partitions.clear()
            self._partitions[magnitude] = _Partition.build(self.operations, self.state, 1 << magnitude)
        return self._partitions[magnitude]
