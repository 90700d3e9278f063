"""How far rows lie apart in an attribute that never decreases: the searches of attribute-delta policies.

==========  =====================================================================================================
requires    int64 or float64 values that never decrease within a key, without NaN; a threshold of 0 or more
costs       O(log rows) for each search, all searches in step
paper       Gedik 2014, section 3.3.2: the delta invariant
==========  =====================================================================================================

Two values are apart if ``later - earlier > by``, computed as the type of the values computes it: rounded for floats,
exact for integers, wherever in their range they lie. Rounding is monotone, so that a search still finds one border.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from panes.frames.chains import followed, in_step, stepped
from panes.frames.positions import FARTHEST, Axis, Integers
from panes.frames.ranges import ranges

Values: TypeAlias = "npt.NDArray[np.int64] | npt.NDArray[np.float64]"
Booleans: TypeAlias = npt.NDArray[np.bool_]

_WIDEST = 2**64 - 1
_ROWS_PER_WINDOW = 12
"""Measured: where windows hold fewer rows, searching for the ends of all that could be is cheaper than one by one."""
_KEYS_AT_ONCE = 32
"""Measured: a step of so many keys costs less than as many windows one by one."""


class Distances:
    """An attribute of the rows of a column, and a threshold.

    Examples
    --------
    >>> apart = Distances(np.array([1, 4, 6, 6, 9]), np.array([0, 5]), by=3)
    >>> rows, key = np.arange(5), np.zeros(5, np.int64)
    >>> apart.first_within(rows, key), apart.first_beyond(rows, key)
    (array([0, 0, 1, 1, 2]), array([2, 4, 5, 5, 5]))
    """

    def __init__(self, values: Values, key_starts: Integers, by: Any) -> None:
        self._values, self._key_starts = values, key_starts
        self._integer = values.dtype.kind == "i"
        self._by: Any = _whole(by) if self._integer else _rounded(by)
        self._axis: Axis | None = None
        if self._integer:
            axis = Axis(values.astype(np.int64, copy=False), key_starts)
            if axis.low > -FARTHEST and axis.high < FARTHEST:
                # One search over all keys: several times as fast as bisecting.
                self._axis = axis
                self._by = min(self._by, 2 * FARTHEST)

    def first_within(self, rows: Integers, key: Integers) -> Integers:
        """For each row the first row of its key that is not too far below it: what eviction leaves in a window."""
        if self._axis is not None:
            return self._axis.search(key, self._values[rows] - self._by)
        return _bisect(self._key_starts[key], rows, lambda middle: self.apart(rows, middle))

    def first_beyond(self, rows: Integers, key: Integers) -> Integers:
        """For each row the first row of its key that is too far above it; the end of the key where there is none."""
        if self._axis is not None:
            return self._axis.search(key, self._values[rows] + (self._by + 1))
        return _bisect(rows, self._key_starts[key + 1], lambda middle: ~self.apart(middle, rows))

    def chain(self) -> Integers:
        """The first row of each key, and every row that is too far above the one that was met before."""
        if self._axis is not None and self._axis.numbers is not None and len(self._key_starts) > _KEYS_AT_ONCE:
            return self._chain_of_many(self._axis.numbers, min(self._by, self._axis.span))
        if self._integer:
            met = stepped(self._values, self._key_starts, self._by, _ROWS_PER_WINDOW)  # type: ignore[arg-type]
            if met is not None:
                return met
        key = np.repeat(np.arange(len(self._key_starts) - 1), np.diff(self._key_starts))
        return followed(self.first_beyond(np.arange(len(key)), key))

    def _chain_of_many(self, numbers: Integers, by: int) -> Integers:
        """The same for all keys in step, and for the few that have more windows than others after that."""
        met, row, end = in_step(numbers, self._key_starts, by, _KEYS_AT_ONCE)
        rest = ranges(row, end - row)
        starts = np.append(0, np.cumsum(end - row))
        later = rest[Distances(self._values[rest], starts, self._by).chain()]
        return np.sort(np.append(met, later))

    def apart(self, later: Integers, earlier: Integers) -> Booleans:
        """Whether rows are too far above others of the same key."""
        high, low = self._values[later], self._values[earlier]
        if self._integer:
            # Values of both ends of int64 differ by more than it holds; modulo 2^64 nothing is lost.
            return high.view(np.uint64) - low.view(np.uint64) > np.uint64(self._by)
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(high - low > self._by)


def first_fall(values: Values, key_starts: Integers) -> int | None:
    """The first row with a smaller value than the row before it in the same key.

    Examples
    --------
    >>> first_fall(np.array([1, 2, 0, 5, 4]), key_starts=np.array([0, 2, 5]))
    4
    """
    falls = values[1:] < values[:-1]
    borders = key_starts[(key_starts > 0) & (key_starts < len(values))]
    falls[borders - 1] = False
    found = np.flatnonzero(falls)
    return int(found[0]) + 1 if len(found) else None


def _bisect(lo: Integers, hi: Integers, before: Callable[[Integers], Booleans]) -> Integers:
    """The first row of each range ``[lo, hi)`` that is not before what is searched; hi where all are."""
    lo, hi = lo.copy(), hi.copy()
    while (searching := lo < hi).any():
        # Of ranges that are done any row does: it is not looked at.
        middle = np.where(searching, (lo + hi) >> 1, 0)
        below = before(middle)
        lo, hi = np.where(searching & below, middle + 1, lo), np.where(searching & ~below, middle, hi)
    return lo


def _whole(by: Any) -> int:
    """Whole numbers are further apart than a threshold if they are further apart than its whole part."""
    return int(min(math.floor(by), _WIDEST))


def _rounded(by: Any) -> float:
    """The largest double that is no larger than a threshold: doubles compare with both in the same way."""
    try:
        nearest = float(by)
    except OverflowError:
        return sys.float_info.max  # infinity is beyond every threshold
    return math.nextafter(nearest, -math.inf) if Fraction(nearest) > Fraction(by) else nearest
