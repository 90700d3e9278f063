"""Rows of different lengths that grow, in one flat buffer: one NumPy call reads or writes any number of them."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from panes.aggregates.operations import Array
from panes.frames.positions import ranges

Integers: TypeAlias = npt.NDArray[np.int64]

_LEAST: Final = 4
"""The room of a row that has just come, in elements."""


class Ragged:
    """Rows of elements in one or more columns; row r lies at ``starts[r]`` and is ``sizes[r]`` elements long.

    A row that outgrows its room moves to the end of the buffer with twice the room, which is O(1) amortised for each
    element. The gap that it leaves is closed when the buffer has to grow.

    Parameters
    ----------
    fills
        One per column: the value of unused room. It gives the column its type.
    """

    def __init__(self, *fills: Any) -> None:
        self._fills = fills
        self.columns: list[Array] = [np.full(_LEAST, fill, _dtype(fill)) for fill in fills]
        self.starts, self.sizes, self._room = (np.zeros(0, np.int64) for _ in range(3))
        self._end = 0

    def extend(self, rows: int) -> None:
        """Have room for so many rows; new ones are empty."""
        self.starts, self.sizes, self._room = (room_for(array, rows) for array in (self.starts, self.sizes, self._room))

    def resize(self, rows: Integers, sizes: Integers, *, spare: bool = True) -> None:
        """Make some distinct rows longer or shorter; with ``spare``, rows that move get twice the room they need."""
        small = np.flatnonzero(sizes > self._room[rows])
        if len(small):
            moving, needed = rows[small], sizes[small]
            room = np.maximum(2 * needed, _LEAST) if spare else needed
            self._make_space(int(room.sum()))
            kept = self.sizes[moving]
            starts = self._end + np.cumsum(room) - room
            source, target = ranges(self.starts[moving], kept), ranges(starts, kept)
            for column in self.columns:
                column[target] = column[source]
            self.starts[moving], self._room[moving] = starts, room
            self._end += int(room.sum())
        self.sizes[rows] = sizes

    def append(self, rows: Integers, counts: Integers, *values: Array) -> None:
        """Add elements to some distinct rows: ``counts`` each, one row after another in ``values``."""
        before = self.sizes[rows]
        self.resize(rows, before + counts)
        where = ranges(self.starts[rows] + before, counts)
        for i, new in enumerate(values):
            if new.dtype == object and self.columns[i].dtype != object:
                self.columns[i] = self.columns[i].astype(object)
            self.columns[i][where] = new

    def places(self, rows: Integers) -> Integers:
        """The places in the columns of the elements of some rows, one row after another."""
        return ranges(self.starts[rows], self.sizes[rows])

    def count_below(self, rows: Integers, column: int, values: Array | int, *, falling: bool = False) -> Integers:
        """How many elements at the front of each row are less than a value; of falling rows, how many are greater.

        Bisects all rows in step, from the longest steps down to 1; a row joins with the first step that is not longer
        than itself.
        """
        sizes = self.sizes[rows]
        bits = bit_lengths(sizes).astype(np.uint8)
        order = np.argsort(255 - bits, kind="stable")
        first = self.starts[rows[order]]
        before, last = first - 1, first + sizes[order] - 1
        wanted = values[order] if isinstance(values, np.ndarray) else values
        joined = np.cumsum(np.bincount(bits, minlength=1)[::-1])[::-1]
        for step in reversed(range(len(joined) - 1)):
            some = slice(0, joined[step + 1])
            probe = before[some] + (1 << step)
            here = self.columns[column][np.minimum(probe, last[some])]
            sought = wanted[some] if isinstance(wanted, np.ndarray) else wanted
            np.copyto(before[some], probe, where=here > sought if falling else here < sought)
        found = np.empty(len(rows), np.int64)
        # Beyond its last element a row was probed only where all of it is before.
        found[order] = np.minimum(before, last) - first + 1
        return found

    def _make_space(self, needed: int) -> None:
        """Room for so many elements at the end, without the gaps that rows have left."""
        if self._end + needed <= len(self.columns[0]):
            return
        used = int(self._room.sum())
        length = max(2 * (used + needed), _LEAST)
        source = ranges(self.starts, self.sizes)
        self.starts = np.cumsum(self._room) - self._room
        target = ranges(self.starts, self.sizes)
        for i, (old, fill) in enumerate(zip(self.columns, self._fills, strict=True)):
            new: npt.NDArray[Any] = np.full(length, fill, old.dtype)
            new[target] = old[source]
            self.columns[i] = new
        self._end = used


def room_for(array: Array, length: int) -> Array:
    """The array, at least so long: padded with zeros to twice its length, so that it is seldom copied."""
    if length <= len(array):
        return array
    return np.concatenate([array, np.zeros(max(length, 2 * len(array)) - len(array), array.dtype)])


def bit_lengths(values: Integers) -> Integers:
    """``int.bit_length`` of integers from 0 on; in halves, since a double has only 53 bits.

    Examples
    --------
    >>> bit_lengths(np.array([0, 1, 4, 2**62 - 1]))
    array([ 0,  1,  3, 62])
    """
    high = values >> 32
    lengths: Integers = np.where(high > 0, np.frexp(high)[1] + 32, np.frexp(values & 0xFFFFFFFF)[1]).astype(np.int64)
    return lengths


def _dtype(fill: Any) -> np.dtype[Any]:
    return np.dtype(np.float64 if isinstance(fill, float) else np.int64)
