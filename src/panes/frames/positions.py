"""The axis of a column: where each row of partials lies, key after key.

Equal panes, granules of mixed widths, single events and counted rows are all the same here: half-open
spans of integers, sorted within each key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from panes.errors import PlanError
from panes.timeline import Edges

# Ranges of rows spelt out.


def ranges(starts: Integers, counts: Integers) -> Integers:
    """The integers ``start, start + 1, ...``, count of them, one range after another.

    Examples
    --------
    >>> ranges(np.array([7, 0, 3]), np.array([2, 0, 3]))
    array([7, 8, 3, 4, 5])
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    spelt: Integers = np.repeat(starts - ends + counts, counts) + np.arange(total)
    return spelt


Integers: TypeAlias = npt.NDArray[np.int64]


def count_while(sizes: Integers, passes: Callable[[Integers], npt.NDArray[np.bool_]]) -> Integers:
    """How many rows of each group pass, where those that pass come first: a binary search in all groups at once.

    Parameters
    ----------
    passes
        From a row of each group, counted from 0, to whether it passes. An empty group is asked for any row.

    Examples
    --------
    >>> values, starts = np.array([1, 4, 9, 2, 3]), np.array([0, 3, 5])
    >>> count_while(np.array([3, 2, 0]), lambda row: values.take(starts + row, mode="clip") < 4)
    array([1, 2, 0])
    """
    counts = np.zeros(len(sizes), np.int64)
    for power in reversed(range(int(sizes.max(initial=0)).bit_length())):
        further = np.minimum(counts + (1 << power), sizes)
        # All rows up to the last one that passes do.
        np.copyto(counts, further, where=passes(further - 1))
    return counts


MOST_ANSWERS: Final = 1 << 27
"""Instances of one window in one call: four columns of eight bytes each, and as much again while they are found."""

# Instants stay below this, so that adding a range, a slide and an offset never leaves int64.
FARTHEST: Final = 2**60


def check_near(instants: Integers) -> Integers:
    """Refuse instants so far away that adding a window to them would overflow."""
    if len(instants) and not -FARTHEST <= int(instants.min()) <= int(instants.max()) <= FARTHEST:
        raise PlanError("an instant is more than 36,000 years away from the epoch. Leave such rows out.")
    return instants


class Axis:
    """Integers that never decrease within a key, of all keys on one axis: one search serves them all.

    Parameters
    ----------
    values
        One per row.
    key_starts
        The first row of each key, and the number of rows at the end.

    Examples
    --------
    >>> axis = Axis(np.array([1, 1, 7, 2]), key_starts=np.array([0, 3, 4]))
    >>> axis.search(np.array([0, 1]), np.array([5, 5]))
    array([2, 4])
    """

    def __init__(self, values: Integers, key_starts: Integers) -> None:
        self._values, self._key_starts = values, key_starts
        self.low, self.high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
        self.span = self.high - self.low + 1

    @cached_property
    def numbers(self) -> Integers | None:
        """One rising number per row over all keys, to which the span can be added.

        None where ``keys * span`` does not fit int64 (a million keys over centuries).
        """
        keys = len(self._key_starts) - 1
        if (keys + 1) * self.span >= 2**63:
            return None
        per_key = np.arange(keys, dtype=np.int64) * self.span - self.low
        return self._values + np.repeat(per_key, np.diff(self._key_starts))

    def search(self, key: Integers, value: Integers) -> Integers:
        """For each pair of key ordinal and value, the key's first row that is not below the value."""
        if self.numbers is None:
            return self._bisect(key, value)
        query = value - self.low
        np.clip(query, 0, self.span, out=query)
        query += key * self.span
        return np.searchsorted(self.numbers, query).astype(np.int64, copy=False)

    def _bisect(self, key: Integers, value: Integers) -> Integers:
        """Binary search within the rows of each key."""
        first = self._key_starts[key]
        sizes = self._key_starts[key + 1] - first
        return first + count_while(sizes, lambda row: self._values.take(first + row, mode="clip") < value)


@dataclass(frozen=True, eq=False)
class Positions:
    """Half-open spans ``[start, end)`` of the rows of a column, sorted by key and start.

    Rows with the same start (several events at one instant) have the same end; other rows of a key
    do not overlap.

    Parameters
    ----------
    start, end
        Per row, in µs or in ordinals.
    key_starts
        The first row of each key, and the number of rows at the end. A key may have no rows.

    Examples
    --------
    >>> positions = Positions.of_events(np.array([1, 1, 7, 2]), key_starts=np.array([0, 3, 4]))
    >>> positions.keys, len(positions)
    (2, 4)
    >>> positions.search(np.array([0, 1]), np.array([5, 5]))
    array([2, 4])
    """

    start: Integers
    end: Integers
    key_starts: Integers

    def __post_init__(self) -> None:
        for name in ("start", "end", "key_starts"):
            array = np.asarray(getattr(self, name))
            if array.dtype.kind not in "iu" and len(array):
                raise PlanError(f"{name} must be integers, not {array.dtype}: µs or ordinals.")
            object.__setattr__(self, name, array.astype(np.int64, copy=False))
        self._validate()

    def _validate(self) -> None:
        rows, starts, start, end = len(self.start), self.key_starts, self.start, self.end
        if len(end) != rows:
            raise PlanError(f"a row has a start and an end, but there are {rows} starts and {len(end)} ends.")
        if not len(starts) or starts[0] != 0 or starts[-1] != rows or (starts[1:] < starts[:-1]).any():
            raise PlanError(f"key_starts must rise from 0 to the number of rows, {rows}: first rows, then the total.")
        if not rows:
            return
        check_near(start)
        check_near(end)
        if (end <= start).any():
            raise PlanError("a span is empty or backwards: every row needs start < end, half-open.")
        follows = start[1:] >= end[:-1]
        follows[starts[(starts > 0) & (starts < rows)] - 1] = True
        if follows.all():
            return
        follows |= (start[1:] == start[:-1]) & (end[1:] == end[:-1])
        if not follows.all():
            row = int(np.argmin(follows)) + 1
            raise PlanError(
                f"row {row} starts before row {row - 1} of the same key ends. "
                "Sort the column by key and start, and combine rows whose spans overlap."
            )

    @classmethod
    def of_events(cls, instants: Integers, key_starts: Integers) -> Positions:
        """Single events, each the span ``[t, t + 1)``."""
        return cls(instants, instants + 1, key_starts)

    def __len__(self) -> int:
        return len(self.start)

    @property
    def keys(self) -> int:
        """How many keys there are, those without rows included."""
        return len(self.key_starts) - 1

    @cached_property
    def occupied(self) -> Integers:
        """The ordinals of the keys that have rows."""
        return np.flatnonzero(self.key_starts[1:] > self.key_starts[:-1]).astype(np.int64, copy=False)

    def keys_at(self, rows: Integers) -> Integers:
        """The ordinals of the keys of some rows."""
        return np.searchsorted(self.key_starts, rows, side="right") - 1

    @cached_property
    def widest(self) -> int:
        """The width of the widest row, 0 without rows."""
        return int((self.end - self.start).max(initial=0))

    @cached_property
    def panes(self) -> Edges | None:
        """The edges between equal panes, or None where rows are not equal panes of one progression."""
        if not len(self):
            return None
        edges = Edges(self.widest, int(self.start[0]))
        equal = (self.end - self.start == self.widest).all()
        return edges if equal and ((self.start - edges.offset) % edges.period == 0).all() else None

    @cached_property
    def axis(self) -> Axis:
        """Where rows start, for searches."""
        return Axis(self.start, self.key_starts)

    def search(self, key: Integers, instant: Integers) -> Integers:
        """For each pair of key ordinal and instant, the key's first row that starts at or after the instant."""
        return self.axis.search(key, instant)
