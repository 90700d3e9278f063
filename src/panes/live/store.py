"""What is kept of events: rings, the instants of rows, and a column for every component; keys are numbers here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from panes.aggregates.component import Component
from panes.aggregates.operations import Array, State, concatenate, take
from panes.frames.positions import count_while
from panes.live.column import CombinedColumn, LiveColumn, SortedValuesColumn
from panes.live.rings import Rings, SlotColumn, Slots
from panes.timeline import format_duration


class Instants(Slots):
    """The instant of each row, in µs since the epoch, so that a window of time is a window of rows.

    ==========  =====================================================================
    requires    rows of a key in the order of time; several may have one instant
    update      O(1)
    lookup      O(log rows), for all windows in step
    paper       time-based windows, Arasu & Widom 2004, section 2
    ==========  =====================================================================
    """

    def search(self, key: Array, instant: Array | int) -> Array:
        """Of each key, the ordinal of its first row that is held at or after an instant."""
        first, base, mask = self.rings.first[key], self.rings.base[key], self.rings.size[key] - 1
        # Keys without rows may have no ring.
        return first + count_while(
            self.rings.end[key] - first,
            lambda row: self.values.take(base + ((first + row) & mask), mode="clip") < instant,
        )


_LAZY: Final = 8
"""Rows leave whenever a part 1/8 of what is kept has expired: sooner would look at every key with every batch."""

_FEW_KEYS: Final = 1 << 10
"""Keys that are kept even where they have no rows any more."""

_NEVER: Final = -(2**62)


Untie: TypeAlias = Callable[[Array, Array, Array, Array], None]
"""Puts rows of one key and instant in order: their order (changed in place), sorted instants, where keys begin, ids."""


@dataclass(frozen=True, slots=True)
class Keep:
    """How much is held.

    Parameters
    ----------
    micros
        What is later than so many µs before the latest event of all.
    rows
        The last so many rows of each key; with ``micros``, the last so many before those.
    """

    micros: int | None = None
    rows: int | None = None

    def __str__(self) -> str:
        """As messages say it."""
        rows = None if self.rows is None else f"{self.rows:,} row{'' if self.rows == 1 else 's'} of each key"
        if self.micros is None:
            return f"the last {rows}"
        return format_duration(self.micros) + ("" if rows is None else f" and {rows} before")


class Store:
    """Rows of many keys in the order of time, and what windows of them come to.

    Parameters
    ----------
    untie
        Fixes the order of rows of one key and instant, where it matters; otherwise it is that of arrival.

    Attributes
    ----------
    ids
        Of each row, where it stands among all events.
    newest
        The latest instant that has come, None before the first row.
    left_out
        How many rows were older than what is kept when they came.
    """

    def __init__(
        self, components: Sequence[Component], keep: Keep, algorithm: str | None, untie: Untie | None = None
    ) -> None:
        self.keep, self.left_out, self._untie = keep, 0, untie
        self.newest: int | None = None
        self.rings = Rings()
        self.instants = Instants(self.rings)
        self.rings.add(self.instants)
        self.ids = Slots(self.rings)
        self.rings.add(self.ids)
        self.columns: tuple[LiveColumn, ...] = tuple(
            SortedValuesColumn(c, self.rings)
            if c.collect(pa.array([], c.storage)) is not None
            else CombinedColumn(c, self.rings, algorithm)
            for c in components
        )
        # Of each key, the latest instant of a row that has left. Windows that reach further back are not answered.
        self.evicted_until = np.zeros(0, np.int64)
        self._expired = _NEVER

    @property
    def horizon(self) -> int:
        """Everything later than this is held, where instants decide."""
        return _NEVER if self.newest is None or self.keep.micros is None else self.newest - self.keep.micros

    def is_latest(self, instant: int) -> bool:
        """Whether no event is later than an instant."""
        return self.newest is None or instant >= self.newest

    def grow(self, keys: int) -> None:
        """Have so many keys."""
        more = keys - len(self.evicted_until)
        if more > 0:
            self.rings.grow(keys)
            self.evicted_until = np.concatenate([self.evicted_until, np.full(more, _NEVER)])

    def append(
        self,
        key: Array,
        count: Array,
        instants: Array,
        ids: Array,
        stored: Sequence[pa.Array],
        indexed: Mapping[SlotColumn, State] | None = None,
    ) -> None:
        """Take in rows, key after key and each key's in the order of time.

        Parameters
        ----------
        key, count
            The keys, which all differ, and how many rows each has.
        instants, ids, stored, indexed
            Of each row, when it happened, where it stands among all events, and what is stored of every component and
            kept by every index.
        """
        self.grow(int(key.max(initial=-1)) + 1)
        if not len(instants):
            return
        states: dict[SlotColumn, State] = {self.instants: (instants,), self.ids: (ids,), **(indexed or {})}
        for column, values in zip(self.columns, stored, strict=True):
            states |= column.take_in(values)
        self.newest = int(instants.max()) if self.newest is None else max(self.newest, int(instants.max()))
        owner = np.repeat(key, count)
        known = np.zeros(len(owner), np.bool_)
        if self.keep.micros is not None:
            known |= instants > self.horizon
        if self.keep.rows is not None:
            # Of a key that is full, a row before one that has left is not among the last any more.
            known |= instants >= self.evicted_until[owner]
        self.left_out += int(len(known) - known.sum())
        owner, states = self._only(known, owner, states)
        owner, states = self._with_later_ones(owner, states)
        if self.keep.rows is not None and self.keep.micros is None:
            owner, states = self._only(self._among_the_last(owner, states, self.keep.rows), owner, states)
        elif self.horizon - self._expired >= (self.keep.micros or 0) // _LAZY:
            self._expire()
        changed, _, counts = _runs(owner)
        self.rings.append(changed, counts, states)
        for column in self.columns:
            column.updated(len(owner))

    def forget(self) -> Array | None:
        """Forget keys that have no row, once they are the most; those that stay, or None where all do."""
        some = self.rings.end > self.rings.first
        if self.keep.rows is not None or len(some) < _FEW_KEYS or some.sum() > len(some) // 2:
            return None
        chosen = np.flatnonzero(some)
        self.rings.keep(chosen)
        self.evicted_until = self.evicted_until[chosen]
        return chosen

    def _only(
        self, kept: Array, owner: Array, states: Mapping[SlotColumn, State]
    ) -> tuple[Array, dict[SlotColumn, State]]:
        if kept.all():
            return owner, dict(states)
        return owner[kept], {column: take(state, kept) for column, state in states.items()}

    def _with_later_ones(
        self, owner: Array, states: Mapping[SlotColumn, State]
    ) -> tuple[Array, dict[SlotColumn, State]]:
        """Where rows come after later ones of their key, that key's rows are all taken out, to be put back in order."""
        (instants,) = states[self.instants]
        key, first, _ = _runs(owner)
        held = np.flatnonzero(self.rings.end[key] > self.rings.first[key])
        last = self.instants.at(key[held], self.rings.end[key[held]] - 1)
        # Those of one instant have an order of their own, if there is one.
        oldest = instants[first[held]]
        behind = key[held][oldest < last if self._untie is None else oldest <= last]
        if not len(behind):
            return owner, dict(states)
        rows = self.rings.held(behind)
        both = {column: concatenate([column.elements(rows), state]) for column, state in states.items()}
        owners = np.concatenate([np.repeat(behind, rows.width), owner])
        # Stable, so that of rows at one instant those that came first stay first.
        order = np.lexsort((both[self.instants][0], owners))
        if self._untie is not None:
            starts = np.append(_runs(owners[order])[1], len(order))
            self._untie(order, both[self.instants][0][order], starts, both[self.ids][0])
        self.rings.clear(behind, self.rings.first[behind])
        return owners[order], {column: take(state, order) for column, state in both.items()}

    def _among_the_last(self, owner: Array, states: Mapping[SlotColumn, State], most: int) -> Array:
        """Which rows are among the last so many of their key; rows that are held make room for them."""
        key, first, count = _runs(owner)
        begin, end = self.rings.first[key], self.rings.end[key]
        leaving = np.maximum(end - begin + count - most, 0)
        skipped = np.maximum(leaving - (end - begin), 0)
        old = np.flatnonzero((leaving > 0) & (end > begin))
        gone = np.minimum(begin + leaving, end)
        self.evicted_until[key[old]] = self.instants.at(key[old], gone[old] - 1)
        some = np.flatnonzero(skipped)
        self.evicted_until[key[some]] = states[self.instants][0][first[some] + skipped[some] - 1]
        self.rings.expire(key[leaving > 0], gone[leaving > 0])
        self.rings.clear(key[some], end[some] + skipped[some])
        within = np.arange(len(owner)) - np.repeat(first, count)
        kept: Array = within >= np.repeat(skipped, count)
        return kept

    def _expire(self) -> None:
        """Let go what is older than the horizon, but for so many rows of each key."""
        self._expired = self.horizon
        key = np.flatnonzero(self.rings.end > self.rings.first)
        oldest = self.instants.at(key, self.rings.first[key])
        key = key[oldest <= self.horizon]
        if not len(key):
            return
        first = self.instants.search(key, self.horizon + 1) - (self.keep.rows or 0)
        key, first = (array[first > self.rings.first[key]] for array in (key, first))
        if self.keep.rows is not None:
            self.evicted_until[key] = self.instants.at(key, first - 1)
        self.rings.expire(key, first)


def _runs(owner: Array) -> tuple[Array, Array, Array]:
    """Of rows sorted by key: the keys, where the rows of each begin, and how many they are."""
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    return owner[first], first, np.diff(first, append=len(owner))
