"""Landmark: an interval that ends at a landmark, and an interval that begins there.

The partition of widths in ``[2**p, 2**(p + 1))`` has a landmark at every ordinal that is a multiple of ``2**p``. It is
built of the rows that are held when such a width is first looked up, and maintained from then on.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from panes.aggregates.operations import Array, Operations, State
from panes.kernels.kernel import gather, place
from panes.kernels.scan import prefixes, suffixes
from panes.live.algorithm import Elements
from panes.live.rings import Rings, Runs

# Prefixes of blocks for many keys at once, each of which continues somewhere within a block.


_PADDED: Final = 4
"""Rows may become so many times as many by padding; beyond that, scanning them in steps takes less."""


def prefixes_of_blocks(operations: Operations, rows: Runs, state: State, shift: int) -> State:
    """For each row, the rows of its run and its block up to it; blocks are ``2**shift`` ordinals long.

    Examples
    --------
    >>> from panes.aggregates.operations import from_ufunc
    >>> runs = Runs(np.array([0, 1]), np.array([3, 0]), np.array([6, 2]), base=np.array([8, 0]), size=np.array([8, 4]))
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


def _in_steps(operations: Operations, rows: Runs, state: State, block: int) -> State:
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
    lookup      O(1): at most two intervals
    memory      one state per row, and three for each partition
    paper       L-INT, Arasu & Widom 2004, section 3.1.2, figure 5; its c is 2
    ==========  =====================================================================
    """

    name = "landmark"

    def __init__(self, operations: Operations, like: State, rings: Rings) -> None:
        super().__init__(operations, like, rings)
        # By magnitude: the powers of two that windows have been as wide as, γ of them.
        self._partitions: dict[int, _Partition] = {}

    def append(self, rows: Runs, state: State) -> None:  # noqa: D102
        super().append(rows, state)
        for partition in self._partitions.values():
            partition.append(self, rows, state)

    def move(self, rows: Runs, state: State) -> None:  # noqa: D102
        # Partitions have rings of their own.
        super().append(rows, state)

    def expire(self, key: Array, first: Array) -> None:  # noqa: D102
        for partition in self._partitions.values():
            partition.rings.know(len(self.rings))
            partition.rings.expire(key, first)

    def keep(self, chosen: Array) -> None:  # noqa: D102
        for partition in self._partitions.values():
            partition.rings.know(int(chosen.max(initial=-1)) + 1)
            partition.rings.keep(chosen)

    def _lookup(self, key: Array | int, lo: Array, hi: Array) -> State:
        keys = np.broadcast_to(key, lo.shape)
        answers = self.operations.identities(self.like, len(lo))
        # A width is far below 2**53, so its exponent as a float is exact.
        magnitude = np.frexp((hi - lo).astype(np.float64))[1] - 1
        for power in np.unique(magnitude).tolist():
            some = np.flatnonzero(magnitude == power)
            pieces = self._partition(power).lookup if power else self._single
            place(answers, some, pieces(keys[some], lo[some], hi[some]))
        return answers

    def _single(self, key: Array, lo: Array, hi: Array) -> State:
        return self.at(key, lo)

    def _partition(self, magnitude: int) -> _Partition:
        if magnitude not in self._partitions:
            self._partitions[magnitude] = made = _Partition(self.operations, self.like, magnitude)
            rows = self.rings.held()
            made.append(self, rows, self.elements(rows))
        return self._partitions[magnitude]


class _Partition:
    """The landmark intervals for widths in ``[spacing, 2 * spacing)``.

    Of each row: ``near``, the rows from the last landmark up to it; ``far``, the same from the last landmark but one;
    ``ending``, the rows from it up to the next landmark, once that has come.
    """

    def __init__(self, operations: Operations, like: State, magnitude: int) -> None:
        self._operations, self._shift = operations, magnitude
        self.rings = Rings()
        self._near, self._far, self._ending = (Elements(operations, like, self.rings) for _ in range(3))
        for column in (self._near, self._far, self._ending):
            self.rings.admit(column)

    def append(self, owner: LandmarkIntervals, rows: Runs, state: State) -> None:
        """The next rows, which their owner holds already. Steps 5 and 6 of figure 5, then steps 2 to 4."""
        self.rings.know(len(owner.rings))
        anew = rows.lo == owner.rings.first[rows.key]
        self.rings.restart(rows.key[anew], rows.lo[anew])
        near = self._from_last_landmark(rows, state)
        far = self._operations.combine(self._blocks_before(rows, near), near)
        nothing = self._operations.identities(near, rows.rows)
        self.rings.append(rows.key, rows.width, {self._near: near, self._far: far, self._ending: nothing})
        self._end_blocks(owner, rows)

    def lookup(self, key: Array, lo: Array, hi: Array) -> State:
        crossed = ((hi - 1) >> self._shift) - (lo >> self._shift)
        later = self._near.at(key, hi - 1)
        # Two landmarks inside: the second interval begins at the first of them.
        two = np.flatnonzero(crossed == 2)
        place(later, two, self._far.at(key[two], hi[two] - 1))
        # A window that is one block has no second interval.
        whole = np.flatnonzero(crossed == 0)
        place(later, whole, self._operations.identities(later, len(whole)))
        return self._operations.combine(self._ending.at(key, lo), later)

    def _from_last_landmark(self, rows: Runs, state: State) -> State:
        near = prefixes_of_blocks(self._operations, rows, state, self._shift)
        continued = np.flatnonzero(rows.lo > self.rings.first[rows.key])
        before = self._operations.identities(state, len(rows.key))
        place(before, continued, self._near.at(rows.key[continued], rows.lo[continued] - 1))
        early = np.flatnonzero(self._landmark(rows) < np.repeat(rows.lo, rows.width))
        place(near, early, self._operations.combine(gather(rows.repeated(before), early), gather(near, early)))
        return near

    def _blocks_before(self, rows: Runs, near: State) -> State:
        """For each row the block before its own, as far as it is held: what was near at its end."""
        last = self._landmark(rows) - 1
        key, lo = np.repeat(rows.key, rows.width), np.repeat(rows.lo, rows.width)
        blocks = self._operations.identities(near, rows.rows)
        now = np.flatnonzero(last >= lo)
        place(blocks, now, gather(near, now - (rows.ordinal[now] - last[now])))
        before = np.flatnonzero((last < lo) & (last >= self.rings.first[key]))
        place(blocks, before, self._near.at(key[before], last[before]))
        return blocks

    def _end_blocks(self, owner: LandmarkIntervals, rows: Runs) -> None:
        """The intervals that end at landmarks which have just come."""
        first = self.rings.first[rows.key]
        blocks = self.rings.runs(
            rows.key, np.maximum(rows.lo, first) >> self._shift, np.maximum(rows.hi, first) >> self._shift
        )
        key = np.repeat(np.repeat(blocks.key, blocks.width), 1 << self._shift)
        ordinal = ((blocks.ordinal << self._shift)[:, None] + np.arange(1 << self._shift)).ravel()
        if not len(ordinal):
            return
        # What has expired lies before what is held: it does not matter to it.
        ending = suffixes(self._operations, owner.at(key, ordinal), 1 << self._shift)
        held = np.flatnonzero(ordinal >= self.rings.first[key])
        self._ending.put(key[held], ordinal[held], gather(ending, held))

    def _landmark(self, rows: Runs) -> Array:
        """The last landmark at or before each row."""
        landmarks: Array = rows.ordinal >> self._shift << self._shift
        return landmarks
