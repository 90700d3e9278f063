"""Rings: where the rows of each key lie, in one arena of slots that all columns of a store share.

Every key has a ring of a power of two slots, aligned to its size; the row of ordinal i, counted from the first row that
the key ever had, lies in slot ``base + i mod size``. So a column is a flat array, whatever the number of keys, and a
ring that is full is not moved when its oldest rows expire. One slot of a ring always stays empty: what lies *between*
rows (a running interval) then has as many places as it needs.

A ring that is too small is replaced by one twice as large or more: amortised O(1) for each row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Final

import numpy as np

from panes.aggregates.operations import Array, State
from panes.errors import PlanError

_SMALLEST: Final = 4
"""Slots of the ring of a new key."""

_WASTE: Final = 8
"""The arena is compacted once it has this many slots per row; two are usual."""

_COMPACTED: Final = 1 << 12
"""Smaller arenas are never compacted."""


class RowRuns:
    """Rows ``[lo, hi)`` of some keys, a run of each, laid end to end.

    Examples
    --------
    >>> runs = RowRuns(
    ...     np.array([0, 1]), np.array([6, 0]), np.array([9, 2]), base=np.array([8, 0]), size=np.array([8, 4])
    ... )
    >>> runs.ordinal, runs.slot
    (array([6, 7, 8, 0, 1]), array([14, 15,  8,  0,  1]))
    """

    def __init__(self, key: Array, lo: Array, hi: Array, *, base: Array, size: Array) -> None:
        self.key, self.lo, self.hi, self._base, self._size = key, lo, hi, base, size

    @cached_property
    def width(self) -> Array:
        """Rows in each run."""
        return self.hi - self.lo

    @cached_property
    def begins(self) -> Array:
        """Where each run begins among all rows."""
        return np.cumsum(self.width) - self.width

    @cached_property
    def rows(self) -> int:
        """All rows together."""
        return int(self.width.sum())

    @cached_property
    def ordinal(self) -> Array:
        """The ordinal of each row."""
        return np.arange(self.rows) + self._spread(self.lo - self.begins)

    @cached_property
    def slot(self) -> Array:
        """The slot of each row."""
        return self.slots_of(self.ordinal)

    def slots_of(self, ordinal: Array) -> Array:
        """The slots of ordinals, one per row."""
        slots: Array = self._spread(self._base) + (ordinal & self._spread(self._size - 1))
        return slots

    def repeated(self, state: State) -> State:
        """A state of each run, for each of its rows."""
        return tuple(np.repeat(array, self.width) for array in state)

    def _spread(self, values: Array) -> Array:
        """A number of each run, for each of its rows; that of a single run stands for all."""
        return values if len(values) == 1 else np.repeat(values, self.width)


class SlotColumn(ABC):
    """A column that keeps something for every row, in the slots of rings."""

    def __init__(self, rings: Rings) -> None:
        self.rings = rings

    @abstractmethod
    def resize(self, slots: int) -> None:
        """Change the number of slots; what remains is unchanged."""

    @abstractmethod
    def append(self, rows: RowRuns, state: State) -> None:
        """Add the next rows of some keys. A run starting at ``rings.first`` replaces what the key held."""

    @abstractmethod
    def elements(self, rows: RowRuns) -> State:
        """The states of single rows that are held."""

    def move(self, rows: RowRuns, state: State) -> None:
        """Add what keys held already, after they have been given other rings."""
        self.append(rows, state)

    def expire(self, key: Array, first: Array) -> None:  # noqa: B027
        """Called when the rows of keys before these ordinals have expired."""

    def keep(self, chosen: Array) -> None:  # noqa: B027
        """Called when only these keys remain, renumbered in this order."""


class Slots(SlotColumn):
    """An integer for every row."""

    def __init__(self, rings: Rings) -> None:
        super().__init__(rings)
        self.values = np.zeros(0, np.int64)

    def resize(self, slots: int) -> None:  # noqa: D102
        if slots != len(self.values):
            kept = self.values[:slots]
            self.values = np.concatenate([kept, np.zeros(slots - len(kept), np.int64)])

    def append(self, rows: RowRuns, state: State) -> None:  # noqa: D102
        (self.values[rows.slot],) = state

    def elements(self, rows: RowRuns) -> State:  # noqa: D102
        return (self.values[rows.slot],)

    def at(self, key: Array, ordinal: Array) -> Array:
        """The values of single rows that are held."""
        return self.values[self.rings.slot(key, ordinal)]


class Rings:
    """The rows of many keys, and the columns that live there.

    Attributes
    ----------
    base, size
        Of each key, where its ring begins and how many slots it has.
    first, end
        Of each key, the ordinal of the oldest row that is held, and that of the next row to come.
    rows
        How many rows are held.
    """

    def __init__(self) -> None:
        self.base, self.size, self.first, self.end = (np.zeros(0, np.int64) for _ in range(4))
        self.rows = self.slots = self._used = 0
        self._free: dict[int, Array] = {}
        self.columns: list[SlotColumn] = []

    def __len__(self) -> int:
        return len(self.base)

    def add(self, column: SlotColumn, state: State | None = None) -> None:
        """Add a column; with the states of all rows that are held, key after key, if there are any."""
        self._fill(column, state)
        self.columns.append(column)

    def remove(self, column: SlotColumn) -> None:
        """Remove a column."""
        self.columns.remove(column)

    def replace(self, old: SlotColumn, new: SlotColumn, state: State) -> None:
        """Replace a column; with the states of all rows that are held, key after key."""
        self._fill(new, state)
        self.columns[self.columns.index(old)] = new

    def grow(self, keys: int) -> None:
        """Have at least this many keys; new ones are empty."""
        more = np.zeros(max(keys - len(self), 0), np.int64)
        if len(more):
            self.base, self.size, self.first, self.end = (
                np.concatenate([array, more]) for array in (self.base, self.size, self.first, self.end)
            )

    def append(self, key: Array, count: Array, states: Mapping[SlotColumn, State]) -> None:
        """Add the next rows of some distinct keys: how many of each, and their states in every column."""
        if not len(key):
            return
        self.grow(int(key.max()) + 1)
        needed = self.end[key] - self.first[key] + count + 1
        narrow = needed > self.size[key]
        if narrow.any():
            self._enlarge(key[narrow], needed[narrow])
        lo = self.end[key]
        self.end[key] = lo + count
        self.rows += int(count.sum())
        rows = self.runs(key, lo, lo + count)
        for column in self.columns:
            column.append(rows, states[column])
        if self._used > max(_WASTE * (self.rows + _SMALLEST * len(self)), _COMPACTED):
            self._compact()

    def expire(self, key: Array, first: Array) -> None:
        """Drop the rows of some keys before these ordinals; their slots are reused by later rows."""
        first = np.clip(first, self.first[key], self.end[key])
        self.rows -= int((first - self.first[key]).sum())
        self.first[key] = first
        for column in self.columns:
            column.expire(key, first)

    def clear(self, key: Array, following: Array) -> None:
        """Drop all rows of some keys; the next row of each has this ordinal."""
        self.rows -= int((self.end[key] - self.first[key]).sum())
        self.first[key] = self.end[key] = following

    def keep(self, chosen: Array) -> None:
        """Drop all other keys, and renumber these in their order."""
        dropped = np.ones(len(self), np.bool_)
        dropped[chosen] = False
        self._release(np.flatnonzero(dropped))
        self.base, self.size, self.first, self.end = (
            array[chosen] for array in (self.base, self.size, self.first, self.end)
        )
        self.rows = int((self.end - self.first).sum())
        for column in self.columns:
            column.keep(chosen)

    def slot(self, key: Array, ordinal: Array) -> Array:
        """Where rows lie."""
        slots: Array = self.base[key] + (ordinal & (self.size[key] - 1))
        return slots

    def runs(self, key: Array, lo: Array, hi: Array) -> RowRuns:
        """Rows of some keys."""
        return RowRuns(key, lo, hi, base=self.base[key], size=self.size[key])

    def occupied(self) -> Array:
        """The keys that have rows."""
        return np.flatnonzero(self.end > self.first)

    def held(self, key: Array | None = None) -> RowRuns:
        """All rows that are held, or those of some keys."""
        chosen = self.occupied() if key is None else key
        return self.runs(chosen, self.first[chosen], self.end[chosen])

    def check(self, key: Array, lo: Array, hi: Array) -> None:
        """Reject rows ``[lo, hi)`` that are not held."""
        if (lo < self.first[key]).any() or (hi > self.end[key]).any():
            raise PlanError(
                "a window reaches beyond the rows that are held: some have expired, or have not come yet. Keep more "
                "rows, or ask for a narrower window."
            )

    def _fill(self, column: SlotColumn, state: State | None) -> None:
        column.resize(self.slots)
        if state is not None:
            column.append(self.held(), state)

    def _enlarge(self, key: Array, needed: Array) -> None:
        """Move some keys to larger rings, with what they hold."""
        states = self._states(key)
        self._release(key)
        self._allocate(key, _sizes(needed))
        self._move(key, states)

    def _compact(self) -> None:
        """Move all keys to rings of the size that they need, in an arena that holds nothing else."""
        key = self.occupied()
        states = self._states(key)
        self._free, self._used, self.slots = {}, 0, 0
        self.base[:], self.size[:] = 0, 0
        for column in self.columns:
            column.resize(0)
        self._allocate(key, _sizes(self.end[key] - self.first[key] + 1))
        self._move(key, states)

    def _states(self, key: Array) -> list[State]:
        rows = self.held(key)
        return [column.elements(rows) for column in self.columns]

    def _move(self, key: Array, states: list[State]) -> None:
        rows = self.held(key)
        for column, state in zip(self.columns, states, strict=True):
            column.resize(self.slots)
            column.move(rows, state)

    def _release(self, key: Array) -> None:
        """Make the rings of some keys available to others."""
        base, size = self.base[key], self.size[key]
        for slots in np.unique(size[size > 0]).tolist():
            free = self._free.get(slots, np.zeros(0, np.int64))
            self._free[slots] = np.concatenate([free, base[size == slots]])
        self.size[key] = 0

    def _allocate(self, key: Array, size: Array) -> None:
        """Give each key a ring: one that was released, or a new one at the end of the arena. Large ones come first."""
        for slots in np.unique(size)[::-1].tolist():
            keys = key[size == slots]
            free = self._free.get(slots, np.zeros(0, np.int64))
            reused = min(len(free), len(keys))
            self._free[slots] = free[reused:]
            begin = -(-self._used // slots) * slots
            new = begin + np.arange(len(keys) - reused) * slots
            if len(new):
                self._used = int(new[-1]) + slots
            self.base[keys], self.size[keys] = np.concatenate([free[:reused], new]), slots
        if self._used > self.slots:
            self.slots = 1 << (self._used - 1).bit_length()


def _sizes(needed: Array) -> Array:
    """The powers of two at or above some numbers, none smaller than the smallest ring.

    Examples
    --------
    >>> _sizes(np.array([1, 4, 5, 1024]))
    array([   4,    4,    8, 1024])
    """
    # Far below 2**53, so that exponents as floats are exact.
    exponent = np.frexp(np.maximum(needed, _SMALLEST) - 1.0)[1]
    return np.left_shift(1, exponent.astype(np.int64))
