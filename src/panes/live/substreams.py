"""Many growing rows in one flat buffer, so that one NumPy call reads or writes any number of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from panes.aggregates.operations import Array
from panes.errors import DeclarationError
from panes.frames.positions import ranges

# The levels of a collective index: which distance from the end of a substream each of them stands for.
#
# Distance 1 is the newest element of a substream, distance 2 the one before it. There are p levels of size 1, then p of
# size 2, p of size 4, and so on, one after another: the level at place c of exponent b covers the 2^b distances
# ``(2^b (p + c) - p, 2^b (p + c + 1) - p]``. With p = 1 these are the levels of Definition 4.1.
#
# Paper: Arasu and Widom, Resource Sharing in Continuous Sliding-Window Aggregates (2004), section 4.1.


Integers: TypeAlias = npt.NDArray[np.int64]

_MOST = 256


@dataclass(frozen=True, slots=True)
class Level:
    """One level: 2^exponent distances, at one of the p places of that size."""

    exponent: int
    place: int


@dataclass(frozen=True, slots=True)
class Levels:
    """p levels of every size.

    Examples
    --------
    >>> Levels(1).epsilon, Levels(2).epsilon, Levels(8).epsilon
    (0.75, 0.5, 0.2)
    >>> Levels.within(0.25)
    Levels(p=6)
    """

    p: int

    def __post_init__(self) -> None:
        if isinstance(self.p, bool) or not isinstance(self.p, int) or not 1 <= self.p <= _MOST:
            raise DeclarationError(f"p={self.p!r}: write how many levels of each size there are, from 1 to {_MOST}.")

    @classmethod
    def within(cls, epsilon: float) -> Levels:
        """The fewest levels whose error is at most ε."""
        if isinstance(epsilon, bool) or not isinstance(epsilon, (int, float)) or not 0 < epsilon < 1:
            raise DeclarationError(
                f"epsilon={epsilon!r}: write by which part of a threshold candidates may miss it, as 0.5."
            )
        p = next((p for p in range(1, _MOST + 1) if cls(p).epsilon <= epsilon), None)
        if p is None:
            raise DeclarationError(
                f"epsilon={epsilon!r} is too small: it would take more than {_MOST} levels of each size. Answers are "
                "exact whatever it is; write for example 0.25."
            )
        return cls(p)

    @property
    def epsilon(self) -> float:
        """By which part of a threshold a candidate may miss it: it has more than v (1 - ε) where v was asked for."""
        # Within a size the worst is place 0, asked for up to two levels on; 3 / (2p + 2) is the step to the next size.
        return max(2 / (self.p + 2), 3 / (2 * self.p + 2))

    def nearest(self, level: Level) -> int:
        """The smallest distance that a level covers."""
        return ((self.p + level.place) << level.exponent) - self.p + 1

    def farthest(self, level: Level) -> int:
        """The largest distance that a level covers."""
        return ((self.p + level.place + 1) << level.exponent) - self.p

    def for_at_least(self, elements: int) -> Level:
        """The last level that a substream reaches within its newest so many elements, of which there are 1 or more.

        More than v elements are at least v + 1. The paper asks level ⌊log2 v⌋ - 1 for them; with p = 1 this is the same
        level, or the next one where its last distance is v + 1 or v.

        Examples
        --------
        >>> Levels(1).for_at_least(12)
        Level(exponent=2, place=0)
        """
        # farthest <= elements, solved for the exponent and then for the place.
        exponent = ((elements + self.p) // (self.p + 1)).bit_length() - 1
        return Level(exponent, min(self.p - 1, ((elements + self.p) >> exponent) - self.p - 1))

    def for_at_most(self, elements: int) -> Level:
        """The first level that begins only after so many elements, of which there are 0 or more.

        Examples
        --------
        >>> Levels(1).for_at_most(11)
        Level(exponent=4, place=0)
        """
        # nearest > elements, that is 2^b (p + c) >= elements + p.
        exponent = 0
        while (2 * self.p - 1) << exponent < elements + self.p:
            exponent += 1
        return Level(exponent, max(0, -(-(elements + self.p) >> exponent) - self.p))


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


_LEAST = 4


def room_for(array: Array, length: int) -> Array:
    """The array, at least so long: filled up with zeros to twice its length, so that it seldom has to be copied."""
    if length <= len(array):
        return array
    return np.concatenate([array, np.zeros(max(length, 2 * len(array)) - len(array), array.dtype)])


class Rows:
    """Rows of one or more columns each, numbered from 0; a row is where ``starts`` says, ``sizes`` elements long.

    A row that outgrows its room moves to the end of the buffer with twice the room, which is O(1) amortised for each
    element. What it leaves behind goes when the buffer has to grow.

    Parameters
    ----------
    fills
        One per column: what room that nobody has written to holds. It gives the column its type.
    """

    def __init__(self, *fills: Any) -> None:
        self._fills = fills
        self.columns: list[Array] = [np.full(_LEAST, fill, _dtype(fill)) for fill in fills]
        self.starts, self.sizes, self._room = (np.zeros(0, np.int64) for _ in range(3))
        self._end = 0

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        return sum(array.nbytes for array in (*self.columns, self.starts, self.sizes, self._room))

    def extend(self, rows: int) -> None:
        """Have at least so many rows; new ones are empty."""
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
        """Add elements to some distinct rows: ``counts`` each, lying one row after another in ``values``."""
        before = self.sizes[rows]
        self.resize(rows, before + counts)
        where = ranges(self.starts[rows] + before, counts)
        for i, new in enumerate(values):
            if new.dtype == object and self.columns[i].dtype != object:
                self.columns[i] = self.columns[i].astype(object)
            self.columns[i][where] = new

    def places(self, rows: Integers) -> Integers:
        """Where in the columns the elements of some rows are, one row after another."""
        return ranges(self.starts[rows], self.sizes[rows])

    def count_below(self, rows: Integers, column: int, values: Array | int, *, falling: bool = False) -> Integers:
        """How many elements at the front of each row are less than a value; of falling rows, how many are greater.

        By bisection of all rows in step, from the longest steps down to 1; a row joins with the first step that is not
        longer than itself.
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
        """Room for so many elements at the end: what moved rows left behind is given back first."""
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


def _dtype(fill: Any) -> np.dtype[Any]:
    return np.dtype(np.float64 if isinstance(fill, float) else np.int64)
