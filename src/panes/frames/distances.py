"""How far rows lie apart in an attribute that never decreases: the searches of attribute-delta policies.

Two values are apart if ``later - earlier > by``, computed as the type of the values computes it: rounded for floats,
exact for integers, wherever in their range they lie. Rounding is monotone, so that a search still finds one border.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from panes.frames.positions import FARTHEST, Axis, Integers, ranges

_A_FEW: Final = 64


def followed(following: Integers) -> Integers:
    """The rows that are met from row 0 on. The end of a key is the first row of the next: one chain serves all keys.

    Examples
    --------
    >>> followed(np.array([2, 5, 3, 5, 5]))
    array([0, 2, 3])
    """
    # Elements of a view are plain integers, made when they are asked for.
    steps, rows = np.ascontiguousarray(following).data, len(following)
    met: list[int] = []
    meet, row = met.append, 0
    while row < rows:
        meet(row)
        row = steps[row]
    return np.array(met, np.int64)


def stepped(values: Integers, key_starts: Integers, by: int, least: int = 0) -> Integers | None:
    """The first row of each key, and every row more than ``by`` above the one that was met before.

    Parameters
    ----------
    least
        Give up, after a few windows, where they hold fewer rows than this on average.

    Examples
    --------
    >>> stepped(np.array([1, 4, 6, 9, 2, 3]), np.array([0, 4, 6]), by=3)
    array([0, 2, 4])
    """
    view, starts = np.ascontiguousarray(values).data, key_starts.tolist()
    met: list[int] = []
    for row, end in pairwise(starts):
        width = 1
        while row < end:
            if len(met) >= _A_FEW and len(met) * least > row:
                return None
            met.append(row)
            highest, low = view[row] + by, row
            # A window is about as wide as the one before: look near there, and then twice as far.
            while (high := min(low + 2 * width, end)) < end and view[high] <= highest:
                low, width = high, 2 * width
            following = bisect_right(view, highest, low + 1, high)
            row, width = following, max(following - met[-1], 1)
    return np.array(met, np.int64)


def in_step(numbers: Integers, key_starts: Integers, by: int, fewest: int = 1) -> tuple[Integers, Integers, Integers]:
    """The rows that ``stepped`` meets, of all keys a window at a time: in no order, and where keys had come to.

    Parameters
    ----------
    numbers
        Values that rise from key to key as well, so that one search serves them all.
    fewest
        Stop where fewer keys than this have rows left.

    Returns
    -------
    met, row, end
        The rows that were met; of the keys that are left the row that is next, and the end of their rows.

    Examples
    --------
    >>> in_step(np.array([1, 4, 6, 9, 12, 13]), np.array([0, 4, 6]), by=3)
    (array([0, 4, 2]), array([], dtype=int64), array([], dtype=int64))
    >>> in_step(np.array([1, 4, 6, 9, 12, 13]), np.array([0, 4, 6]), by=3, fewest=2)
    (array([0, 4]), array([2]), array([4]))
    """
    met = [np.zeros(0, np.int64)]
    row, end = key_starts[:-1], key_starts[1:]
    while True:
        left = row < end
        if not left.all():
            row, end = row[left], end[left]
        if len(row) < max(fewest, 1):
            return np.concatenate(met), row, end
        met.append(row)
        row = np.minimum(np.searchsorted(numbers, numbers[row] + (by + 1)), end)


Values: TypeAlias = "npt.NDArray[np.int64] | npt.NDArray[np.float64]"
Booleans: TypeAlias = npt.NDArray[np.bool_]

_WIDEST = 2**64 - 1
_ROWS_PER_WINDOW = 12
"""Measured: where windows hold fewer rows, searching for the ends of all that could be is cheaper than one by one."""
_KEYS_AT_ONCE = 32
"""Measured: a step of so many keys costs less than as many windows one by one."""


class Distances:
    """An attribute of the rows of a column, and a threshold.

    ==========  =====================================================================
    requires    int64 or float64 values that never decrease within a key, without
                NaN; a threshold of 0 or more
    costs       O(log rows) for each search, all searches in step
    memory      one number per row
    paper       Gedik 2014, section 3.3.2: the delta invariant
    ==========  =====================================================================

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
        """The first row of each key, and every row that is too far above the one before it in this chain.

        ==========  =================================================================
        requires    values that never decrease within a key
        costs       few keys, few windows: a search per window, near its first row,
                    under 1 µs each; few keys, many windows: a search per row, all at
                    once, and 100 ns per window; many keys: the next windows of all
                    keys at once, 10 µs per window of the largest key and 100 ns per
                    window
        memory      one number per window
        paper       Gedik 2014, section 3.3.2: each window begins with the tuple that
                    broke the one before
        ==========  =================================================================

        Where a window begins depends on all windows before it, so not all rows can be searched at once; but keys do not
        depend on each other. Doubling the steps (log rows rounds over all rows) is faster only where windows hold one
        or two rows, and then hardly: with a million rows 0.04 s instead of 0.1 s.
        """
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
