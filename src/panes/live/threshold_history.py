"""R-INT over substreams: running values of each, so that any window of any of them is a difference.

==========  =====================================================================
requires    elements in the order of time within each substream
update      O(1) amortised for an element
lookup      O(log n) for a substream; floats, and maxima of windows that have ended, O(elements in the window)
memory      two numbers for each element, with room to grow
paper       R-INT, Arasu & Widom 2004, section 3.2, time-based
==========  =====================================================================
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from panes.aggregates.operations import Array
from panes.frames.positions import ranges
from panes.live.substreams import Integers, Rows, room_for

_SAFE = 2.0**62


@dataclass(frozen=True, slots=True)
class Grouped:
    """Elements of some distinct substreams, by time, one substream after another.

    Parameters
    ----------
    keys, counts
        The substreams, and how many elements each has here.
    values
        None where elements are only counted.
    """

    keys: Integers
    counts: Integers
    times: Integers
    values: Array | None

    @classmethod
    def of(cls, keys: Integers, times: Integers, values: Array | None) -> Grouped:
        """Group elements that lie in any order; of equal times the earlier one stays first."""
        # Mostly they come by time already, and one sort is enough.
        by_time = bool(np.all(times[1:] >= times[:-1]))
        order = np.argsort(keys, kind="stable") if by_time else np.lexsort((times, keys))
        keys = keys[order]
        firsts = np.flatnonzero(np.diff(keys, prepend=-1))
        counts = np.diff(np.append(firsts, len(keys)))
        return cls(keys[firsts], counts, times[order], None if values is None else values[order])

    @property
    def first_times(self) -> Integers:
        """The earliest time of each substream."""
        times: Integers = self.times[np.cumsum(self.counts) - self.counts]
        return times

    def with_(self, other: Grouped) -> Grouped:
        """All elements of both; of equal times those of the other first."""
        values = None if self.values is None or other.values is None else np.concatenate([other.values, self.values])
        keys = [np.repeat(each.keys, each.counts) for each in (other, self)]
        return Grouped.of(np.concatenate(keys), np.concatenate([other.times, self.times]), values)


class History:
    """The elements of each substream.

    Parameters
    ----------
    running
        Whether values are integers to be added up; they are kept as running sums then.
    folded
        Otherwise: what combines values, or None where there are none.

    Attributes
    ----------
    elements
        How many elements there are.
    longest
        No substream has ever had more elements.

    Examples
    --------
    >>> history = History(running=True)
    >>> history.extend(1)
    >>> history.append(Grouped(np.array([0]), np.array([3]), np.array([10, 20, 30]), np.array([5, 6, 7])))
    >>> history.bounds(np.array([0]), 11, None)
    (array([1]), array([3]))
    >>> history.sums(np.array([0]), np.array([1]), np.array([3]))
    array([13])
    """

    def __init__(self, *, running: bool, folded: np.ufunc | None = None, real: bool = False) -> None:
        self._running, self._folded = running, folded
        self._rows = Rows(0, 0.0 if real else 0) if running or folded is not None else Rows(0)
        self._totals: Array = np.zeros(0, np.int64)
        self._largest = 0.0
        self.elements = self.longest = 0

    def extend(self, keys: int) -> None:
        """Have at least so many substreams, numbered from 0."""
        self._rows.extend(keys)
        self._totals = room_for(self._totals, keys)

    def newest(self, keys: Integers) -> Integers:
        """When the last element of each of some substreams came, which all have one."""
        found: Integers = self._rows.columns[0][self._rows.starts[keys] + self._rows.sizes[keys] - 1]
        return found

    def sizes(self, keys: Integers) -> Integers:
        """How many elements each of some substreams has."""
        return self._rows.sizes[keys]

    def append(self, new: Grouped) -> None:
        """Add elements, none of them earlier than one that its substream has."""
        self.longest = max(self.longest, int((self._rows.sizes[new.keys] + new.counts).max()))
        self.elements += len(new.times)
        if new.values is None:
            self._rows.append(new.keys, new.counts, new.times)
        elif self._running:
            self._rows.append(new.keys, new.counts, new.times, self._sums_before(new, new.values))
        else:
            self._rows.append(new.keys, new.counts, new.times, new.values)

    def forget(self, keys: Integers) -> None:
        """Empty some substreams."""
        self.elements -= int(self._rows.sizes[keys].sum())
        self._rows.resize(keys, np.zeros(len(keys), np.int64))
        self._totals[keys] = 0

    def elements_of(self, keys: Integers) -> Grouped:
        """All elements of some distinct substreams."""
        keys = np.sort(keys)
        keys = keys[self._rows.sizes[keys] > 0]
        places, counts = self._rows.places(keys), self._rows.sizes[keys]
        values = self._rows.columns[1][places] if len(self._rows.columns) > 1 else None
        if self._running and values is not None:
            # Back from sums before each element: the next one's less its own.
            following = np.append(values[1:], 0)
            following[np.cumsum(counts) - 1] = self._totals[keys]
            values = following - values
        return Grouped(keys, counts, self._rows.columns[0][places], values)

    def bounds(self, keys: Integers, first: int, last: int | None) -> tuple[Integers, Integers]:
        """Which elements of some substreams came within ``[first, last]``: half-open index pairs. None is for ever."""
        lo = self._rows.count_below(keys, 0, first)
        return lo, self._rows.sizes[keys] if last is None else self._rows.count_below(keys, 0, last + 1)

    def sums(self, keys: Integers, lo: Integers, hi: Integers) -> Array:
        """The sums of integers between bounds: the running one up to hi, less that up to lo."""
        return self._before(keys, hi) - self._before(keys, lo)

    def folds(self, keys: Integers, lo: Integers, hi: Integers) -> Array:
        """The values between bounds combined, one by one; every pair holds an element."""
        assert self._folded is not None
        counts = hi - lo
        values = self._rows.columns[1][ranges(self._rows.starts[keys] + lo, counts)]
        found: Array = self._folded.reduceat(values, np.cumsum(counts) - counts) if len(keys) else values
        return found

    def _before(self, keys: Integers, index: Integers) -> Array:
        """The sum of the elements before an index."""
        found = self._totals[keys]
        inner = np.flatnonzero(index < self._rows.sizes[keys])
        found[inner] = self._rows.columns[1][self._rows.starts[keys[inner]] + index[inner]]
        return found

    def _sums_before(self, new: Grouped, values: Array) -> Array:
        """Running sums up to each new element, without it, in a type in which none of them overflows."""
        self._largest = max(self._largest, abs(float(values.max())), abs(float(values.min())))
        if self._totals.dtype != object and self._largest * max(self.longest, len(values)) >= _SAFE:
            self._totals = self._totals.astype(object)
        values = values.astype(self._totals.dtype, copy=False)
        running = np.cumsum(values)
        before = running - values
        starts = np.cumsum(new.counts) - new.counts
        old = self._totals[new.keys]
        sums: Array = before + np.repeat(old - before[starts], new.counts)
        ends = starts + new.counts - 1
        self._totals[new.keys] = sums[ends] + values[ends]
        return sums
