"""Landmark: an interval that ends at a landmark, and an interval that begins there.

The partition of widths in ``[2**p, 2**(p + 1))`` has a landmark at every ordinal that is a multiple of ``2**p``. It is
built of the rows that are held when such a width is first looked up, and maintained from then on.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from panes.aggregates.operations import Array, Operations, State
from panes.kernels.kernel import gather, place
from panes.kernels.landmark import landmarks_crossed
from panes.kernels.scan import prefixes, suffixes
from panes.live.algorithm import Elements
from panes.live.rings import Rings, RowRuns

_PADDED: Final = 4
"""Padding may add up to three times as many rows; beyond that, scanning in steps is faster."""


def prefixes_of_blocks(operations: Operations, rows: RowRuns, state: State, shift: int) -> State:
    """For each row, the rows of its run and its block up to it; blocks are ``2**shift`` ordinals long.

    Examples
    --------
    >>> from panes.aggregates.operations import from_ufunc
    >>> runs = RowRuns(
    ...     np.array([0, 1]), np.array([3, 0]), np.array([6, 2]), base=np.array([8, 0]), size=np.array([8, 4])
    ... )
    >>> prefixes_of_blocks(from_ufunc(np.add, 0), runs, (np.array([1, 2, 3, 4, 5]),), shift=2)
    (array([1, 2, 5, 4, 9]),)
    """
    block = 1 << shift
    ahead = rows.lo & (block - 1)
    padded = -(-(ahead + rows.width) >> shift) << shift
    if int(padded.sum()) > _PADDED * rows.rows:
        return _in_steps(operations, rows, state, block)
    # Runs laid out so that their blocks lie where those of a column would.
    wide = operations.identities(state, int(padded.sum()))
    moved = np.cumsum(padded) - padded + ahead - rows.begins
    at = np.arange(rows.rows) + np.repeat(moved, rows.width)
    place(wide, at, state)
    return gather(prefixes(operations, wide, block), at)


def _in_steps(operations: Operations, rows: RowRuns, state: State, block: int) -> State:
    """Each row takes in the one before it, then the two before those, then four."""
    within = np.arange(rows.rows) - np.repeat(rows.begins, rows.width)
    passed = np.minimum(rows.ordinal & (block - 1), within)
    out, step = tuple(array.copy() for array in state), 1
    later = np.flatnonzero(passed >= step)
    while len(later):
        place(out, later, operations.combine(gather(out, later - step), gather(out, later)))
        step *= 2
        later = later[passed[later] >= step]
    return out


class LandmarkIntervals(Elements):
    """Rows, and the landmark intervals of each partition.

    ==========  =====================================================================
    requires    any monoid
    update      O(γ) amortised, for γ partitions of the widths within a factor of two
    lookup      O(1): at most three intervals
    memory      one state per row, and two for each partition
    paper       L-INT, Arasu & Widom 2004, section 3.1.2, figure 5; its c is 2
    ==========  =====================================================================

    Windows are partitioned by exponent: their width is ``2**exponent`` rows or more, but less than twice as many. The
    first window of a partition builds its intervals.
    """

    name = "landmark"

    def __init__(self, operations: Operations, like: State, rings: Rings) -> None:
        super().__init__(operations, like, rings)
        # By exponent, for each row: the rows from the last landmark up to it, and those from it up to the next
        # landmark, once that has come.
        self._from_landmark: dict[int, State] = {}
        self._to_landmark: dict[int, State] = {}

    def resize(self, slots: int) -> None:  # noqa: D102
        super().resize(slots)
        for intervals in (self._from_landmark, self._to_landmark):
            for exponent, state in intervals.items():
                intervals[exponent] = self._resized(state, slots)

    def append(self, rows: RowRuns, state: State) -> None:  # noqa: D102
        super().append(rows, state)
        for exponent in self._from_landmark:
            self._extend(exponent, rows, state)

    def _lookup(self, key: Array, lo: Array, hi: Array) -> State:
        answers = self.operations.identities(self.like, len(lo))
        # A width is far below 2**53, so its exponent as a float is exact.
        exponents = np.frexp((hi - lo).astype(np.float64))[1] - 1
        for exponent in np.unique(exponents).tolist():
            windows = np.flatnonzero(exponents == exponent)
            keys = key[windows]
            if exponent:
                place(answers, windows, self._in_partition(exponent, keys, lo[windows], hi[windows]))
            else:
                place(answers, windows, self.at(keys, lo[windows]))
        return answers

    def _in_partition(self, exponent: int, key: Array, lo: Array, hi: Array) -> State:
        """Answers for windows of one partition."""
        if exponent not in self._from_landmark:
            for intervals in (self._from_landmark, self._to_landmark):
                intervals[exponent] = self._resized((), self.rings.slots)
            rows = self.rings.held()
            self._extend(exponent, rows, self.elements(rows))
        last = hi - 1
        crossed = landmarks_crossed(lo, hi, exponent)
        answers = self._at(self._to_landmark[exponent], key, lo)
        for landmarks, upto in ((2, (last >> exponent << exponent) - 1), (1, last)):
            windows = np.flatnonzero(crossed >= landmarks)
            keys = key[windows]
            further = self._at(self._from_landmark[exponent], keys, upto[windows])
            if len(windows) == len(lo):
                answers = self.operations.combine(answers, further)
            else:
                place(answers, windows, self.operations.combine(gather(answers, windows), further))
        return answers

    def _extend(self, exponent: int, rows: RowRuns, state: State) -> None:
        """Add rows to a partition: steps 5 and 6 of figure 5, then steps 2 to 4."""
        block = 1 << exponent
        from_landmark = prefixes_of_blocks(self.operations, rows, state, exponent)
        # Of a block that began before this batch, the earlier rows.
        continued = np.flatnonzero((rows.lo > self.rings.first[rows.key]) & (rows.lo & (block - 1) > 0))
        before = self.operations.identities(state, len(rows.key))
        earlier = self._at(self._from_landmark[exponent], rows.key[continued], rows.lo[continued] - 1)
        place(before, continued, earlier)
        same = np.flatnonzero(rows.ordinal >> exponent == np.repeat(rows.lo >> exponent, rows.width))
        joined = self.operations.combine(gather(rows.repeated(before), same), gather(from_landmark, same))
        place(from_landmark, same, joined)
        place(self._from_landmark[exponent], rows.slot, from_landmark)
        # The blocks that have just ended. Suffixes do not reach what has expired of them.
        blocks = self.rings.runs(rows.key, rows.lo >> exponent, rows.hi >> exponent)
        if not blocks.rows:
            return
        key = np.repeat(np.repeat(blocks.key, blocks.width), block)
        ordinal = ((blocks.ordinal << exponent)[:, None] + np.arange(block)).ravel()
        to_landmark = suffixes(self.operations, self.at(key, ordinal), block)
        held = np.flatnonzero(ordinal >= self.rings.first[key])
        place(self._to_landmark[exponent], self.rings.slot(key[held], ordinal[held]), gather(to_landmark, held))

    def _at(self, state: State, key: Array, ordinal: Array) -> State:
        return gather(state, self.rings.slot(key, ordinal))
