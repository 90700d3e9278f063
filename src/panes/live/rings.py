"""Rings: where the rows of each key lie, in one arena of slots that all columns of an index share.

Every key has a ring of a power of two slots, aligned to its size; the row of ordinal i, counted from the first row that
the key ever had, lies in slot ``base + i mod size``. So a column is a flat array, whatever the number of keys, and a
ring that is full is not moved when its oldest rows expire. One slot of a ring always stays empty: what lies *between*
rows (a running interval) then has as many places as it needs.

A ring that is too small is laid anew, twice as large: amortised O(1) for each row.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Final, Protocol

import numpy as np

from panes.aggregates.operations import Array, State
from panes.errors import PlanError

_SMALLEST: Final = 4
"""Slots of the ring of a key that has just come."""

_WASTE: Final = 8
"""The arena is laid anew once it has so many times as many slots as there are rows: twice as many are usual."""

_LITTLE: Final = 1 << 12
"""Slots that nobody would save."""


class Runs:
    """Rows ``[lo, hi)`` of some keys, a run of each, laid end to end.

    Examples
    --------
    >>> runs = Runs(np.array([0, 1]), np.array([6, 0]), np.array([9, 2]), base=np.array([8, 0]), size=np.array([8, 4]))
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


class Tenant(Protocol):
    """A column that lives in the slots of rings."""

    def resize(self, slots: int) -> None:
        """Have so many slots, the present ones unchanged."""

    def append(self, rows: Runs, state: State) -> None:
        """Take in the next rows of some keys. A run that begins with the first row held begins anew."""

    def move(self, rows: Runs, state: State) -> None:
        """Take in again what a key has held before, elsewhere."""

    def elements(self, rows: Runs) -> State:
        """The states of single rows that are held."""

    def expire(self, key: Array, first: Array) -> None:
        """Hear that keys hold no row before ordinals."""

    def keep(self, chosen: Array) -> None:
        """Hear that only these keys stay, and get new numbers."""


class Rings:
    """The rows of many keys, and the columns that live there.

    Attributes
    ----------
    base, size
        Of each key, where its ring begins and how many slots it has.
    first, end
        Of each key, the ordinal of the oldest row that is held, and that of the next row to come.
    """

    def __init__(self) -> None:
        self.base, self.size, self.first, self.end = (np.zeros(0, np.int64) for _ in range(4))
        self.slots = self._used = 0
        self._free: dict[int, Array] = {}
        self.tenants: list[Tenant] = []

    def __len__(self) -> int:
        return len(self.base)

    @property
    def rows(self) -> int:
        """How many rows are held."""
        return int((self.end - self.first).sum())

    def admit(self, tenant: Tenant, state: State | None = None) -> None:
        """Let a column in; with the states of all rows that are held, key after key, where there are any."""
        tenant.resize(self.slots)
        if state is not None:
            with _quiet():
                tenant.append(self.held(), state)
        self.tenants.append(tenant)

    def exchange(self, old: Tenant, new: Tenant, state: State) -> None:
        """Put a column in the place of another one; with the states of all rows that are held, key after key."""
        new.resize(self.slots)
        with _quiet():
            new.append(self.held(), state)
        self.tenants[self.tenants.index(old)] = new

    def know(self, keys: int) -> None:
        """Have so many keys, the new ones without rows."""
        more = np.zeros(max(keys - len(self), 0), np.int64)
        if len(more):
            self.base, self.size, self.first, self.end = (
                np.concatenate([array, more]) for array in (self.base, self.size, self.first, self.end)
            )

    def append(self, key: Array, count: Array, states: Mapping[Tenant, State]) -> None:
        """Take in the next rows: so many of each key, which all differ, and their states in every column."""
        if not len(key):
            return
        self.know(int(key.max()) + 1)
        needed = self.end[key] - self.first[key] + count + 1
        narrow = needed > self.size[key]
        if narrow.any():
            self._lay(key[narrow], needed[narrow])
        lo = self.end[key]
        self.end[key] = lo + count
        rows = self.runs(key, lo, lo + count)
        with _quiet():
            for tenant in self.tenants:
                tenant.append(rows, states[tenant])
        if self._used > max(_WASTE * (self.rows + _SMALLEST * len(self)), _LITTLE):
            held = self.end - self.first
            self._lay_all(np.where(held > 0, _sizes(held + 1), 0))

    def expire(self, key: Array, first: Array) -> None:
        """Hold no row of some keys before ordinals. Their room is given back when rows come again."""
        self.first[key] = np.clip(first, self.first[key], self.end[key])
        for tenant in self.tenants:
            tenant.expire(key, self.first[key])

    def restart(self, key: Array, first: Array) -> None:
        """Hold nothing of some keys; the next row has this ordinal."""
        self.first[key] = self.end[key] = first

    def keep(self, chosen: Array) -> None:
        """Forget all other keys; those that stay are numbered anew, in their order."""
        gone = np.ones(len(self), np.bool_)
        gone[chosen] = False
        self._release(np.flatnonzero(gone))
        self.base, self.size, self.first, self.end = (
            array[chosen] for array in (self.base, self.size, self.first, self.end)
        )
        for tenant in self.tenants:
            tenant.keep(chosen)

    def slot(self, key: Array | int, ordinal: Array) -> Array:
        """Where rows lie."""
        slots: Array = self.base[key] + (ordinal & (self.size[key] - 1))
        return slots

    def runs(self, key: Array, lo: Array, hi: Array) -> Runs:
        """Rows of some keys."""
        return Runs(key, lo, hi, base=self.base[key], size=self.size[key])

    def held(self, key: Array | None = None) -> Runs:
        """All rows that are held, or those of some keys."""
        chosen = np.flatnonzero(self.end > self.first) if key is None else key
        return self.runs(chosen, self.first[chosen], self.end[chosen])

    def check(self, key: Array | int, lo: Array, hi: Array) -> None:
        """Refuse rows ``[lo, hi)`` that are not held."""
        if (lo < self.first[key]).any() or (hi > self.end[key]).any():
            raise PlanError(
                "a window reaches beyond the rows that are held: some have expired, or have not come yet. Keep more "
                "rows, or ask for a narrower window."
            )

    def _lay(self, key: Array, needed: Array) -> None:
        """Give some keys larger rings, with what they hold."""
        old = self.held(key)
        kept = [tenant.elements(old) for tenant in self.tenants]
        self._release(key)
        self._allocate(key, _sizes(needed))
        self._put(key, kept)

    def _lay_all(self, sizes: Array) -> None:
        """Give all keys rings of these sizes in an arena that holds nothing else."""
        key = np.flatnonzero(sizes)
        old = self.held(key)
        kept = [tenant.elements(old) for tenant in self.tenants]
        self._free, self._used, self.slots = {}, 0, 0
        self.base[:], self.size[:] = 0, 0
        for tenant in self.tenants:
            tenant.resize(0)
        self._allocate(key, sizes[key])
        self._put(key, kept)

    def _put(self, key: Array, kept: list[State]) -> None:
        rows = self.held(key)
        with _quiet():
            for tenant, state in zip(self.tenants, kept, strict=True):
                tenant.resize(self.slots)
                tenant.move(rows, state)

    def _release(self, key: Array) -> None:
        """Let others have the rings of some keys."""
        base, size = self.base[key], self.size[key]
        for large in np.unique(size[size > 0]).tolist():
            free = self._free.get(large, np.zeros(0, np.int64))
            self._free[large] = np.concatenate([free, base[size == large]])
        self.size[key] = 0

    def _allocate(self, key: Array, size: Array) -> None:
        """A ring for each key: one that was released, or a new one at the end of the arena. Large ones come first."""
        for large in np.unique(size)[::-1].tolist():
            asking = key[size == large]
            free = self._free.get(large, np.zeros(0, np.int64))
            reused = min(len(free), len(asking))
            self._free[large] = free[reused:]
            begin = -(-self._used // large) * large
            new = begin + np.arange(len(asking) - reused) * large
            if len(new):
                self._used = int(new[-1]) + large
            self.base[asking], self.size[asking] = np.concatenate([free[:reused], new]), large
        if self._used > self.slots:
            self.slots = 1 << (self._used - 1).bit_length()


def _quiet() -> np.errstate:
    """Infinities that meet are NaN, and what has expired may be combined with what has not: no warnings for either."""
    return np.errstate(all="ignore")


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
