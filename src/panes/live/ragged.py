"""Rows of different lengths that grow, in one flat buffer: one NumPy call reads or writes any number of them."""

from __future__ import annotations

from typing import Final

import numpy as np

from panes.frames.positions import Integers, count_while, ranges

_LEAST: Final = 4
"""The room of a new row, in elements."""


class Ragged:
    """Rows of integers in one or more columns; row r lies at ``starts[r]`` and is ``sizes[r]`` elements long.

    A row that outgrows its room moves to the end of the buffer with twice the room, which is O(1) amortised for each
    element. The gap that it leaves is closed when the buffer has to grow.
    """

    def __init__(self, columns: int) -> None:
        self.columns: list[Integers] = [np.zeros(_LEAST, np.int64) for _ in range(columns)]
        self.starts, self.sizes, self._room = (np.zeros(0, np.int64) for _ in range(3))
        self._end = 0

    def extend(self, rows: int) -> None:
        """Have at least this many rows; new ones are empty."""
        self.starts, self.sizes, self._room = (_padded(array, rows) for array in (self.starts, self.sizes, self._room))

    def truncate(self, rows: Integers, sizes: Integers) -> None:
        """Make some distinct rows shorter."""
        self.sizes[rows] = sizes

    def append(self, rows: Integers, counts: Integers, *values: Integers) -> None:
        """Add elements to some distinct rows: ``counts`` each, one row after another in ``values``."""
        before = self.sizes[rows]
        sizes = before + counts
        narrow = sizes > self._room[rows]
        if narrow.any():
            self._enlarge(rows[narrow], sizes[narrow])
        self.sizes[rows] = sizes
        places = ranges(self.starts[rows] + before, counts)
        for column, added in zip(self.columns, values, strict=True):
            column[places] = added

    def elements(self, rows: Integers) -> list[Integers]:
        """The elements of some rows in every column, one row after another."""
        places = ranges(self.starts[rows], self.sizes[rows])
        return [column[places] for column in self.columns]

    def count_above(self, rows: Integers, column: int, values: Integers | int) -> Integers:
        """How many elements at the front of each row are greater than a value; elements never increase in a row."""
        starts, elements = self.starts[rows], self.columns[column]
        return count_while(self.sizes[rows], lambda place: elements.take(starts + place, mode="clip") > values)

    def _enlarge(self, rows: Integers, sizes: Integers) -> None:
        """Move rows to where they have twice the room that they need."""
        room = np.maximum(2 * sizes, _LEAST)
        self._make_space(int(room.sum()))
        starts = self._end + np.cumsum(room) - room
        kept = self.sizes[rows]
        source, target = ranges(self.starts[rows], kept), ranges(starts, kept)
        for column in self.columns:
            column[target] = column[source]
        self.starts[rows], self._room[rows] = starts, room
        self._end += int(room.sum())

    def _make_space(self, needed: int) -> None:
        """Room for so many elements at the end, without the gaps that rows have left."""
        if self._end + needed <= len(self.columns[0]):
            return
        used = int(self._room.sum())
        kept = self.elements(np.arange(len(self.starts)))
        self.starts = np.cumsum(self._room) - self._room
        target = ranges(self.starts, self.sizes)
        self.columns = [np.zeros(2 * (used + needed), np.int64) for _ in self.columns]
        for column, elements in zip(self.columns, kept, strict=True):
            column[target] = elements
        self._end = used


def _padded(array: Integers, length: int) -> Integers:
    """The array, at least so long: padded with zeros to twice its length, so that it is seldom copied."""
    if length <= len(array):
        return array
    return np.concatenate([array, np.zeros(max(length, 2 * len(array)) - len(array), np.int64)])
