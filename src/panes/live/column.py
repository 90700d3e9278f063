"""Columns of an index: the partials of one component for every row, in rings, behind one of the algorithms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from panes.aggregates.bags import SortedBags
from panes.aggregates.component import Component, Decoded, validity
from panes.aggregates.integers import MACHINE
from panes.aggregates.operations import Array, State
from panes.aggregates.ordering import GREATEST, Codes, lasting_codes
from panes.errors import PlanError
from panes.live.adviser import Adviser, rates_of
from panes.live.algorithm import Elements, LiveAlgorithm
from panes.live.dyadic import BaseIntervals
from panes.live.landmark import LandmarkIntervals
from panes.live.quantiles import SortedIntervals
from panes.live.rings import Rings, SlotColumn
from panes.live.running import RunningIntervals
from panes.suggestions import nearest, shown

ALGORITHMS: Final[dict[str, type[LiveAlgorithm]]] = {
    kind.name: kind for kind in (RunningIntervals, LandmarkIntervals, BaseIntervals, Elements)
}
"""What an index may be asked to use."""

_ADVISED: Final = ("running", "landmark", "dyadic", "elements")
"""What the adviser chooses from."""

_BEGIN: Final = ("running", "dyadic")
"""What an index begins with, the first that is legal."""

_SAFE: Final = 2.0**62


def algorithm_named(name: str) -> str:
    """Refuse a name that no algorithm has."""
    if not isinstance(name, str):
        raise PlanError(f"algorithm={shown(name)}: write one of {', '.join(ALGORITHMS)}, or leave it to the adviser.")
    if name not in ALGORITHMS:
        raise PlanError(f"there is no live algorithm {name!r}; {nearest(name, ALGORITHMS)}")
    return name


class LiveColumn(ABC):
    """The rows of one component, and which of them have a value."""

    def __init__(self, component: Component, rings: Rings) -> None:
        self.component, self.rings = component, rings
        self._present: RunningIntervals | None = None

    @property
    @abstractmethod
    def algorithm(self) -> str:
        """The name of the algorithm that answers."""

    @abstractmethod
    def lifted(self, values: Sequence[pa.Array]) -> pa.Array:
        """What is stored of single rows, out of the component's arguments."""

    @abstractmethod
    def take_in(self, stored: pa.Array) -> dict[SlotColumn, State]:
        """The states of new rows, for every column in the rings that belongs to this one."""

    @abstractmethod
    def answers(self, key: Array, lo: Array, hi: Array) -> pa.Array | SortedBags:
        """What aggregates are read out of, for rows ``[lo, hi)`` of each key."""

    def state(self, key: Array, lo: Array, hi: Array) -> State:
        """The combined states, where aggregates are read out of those."""
        raise NotImplementedError(f"{self.component.name} has no states")

    def updated(self, rows: int) -> None:  # noqa: B027
        """Hear that rows have come, once all columns have them."""

    def present(self, key: Array, lo: Array, hi: Array) -> Array:
        """How many rows have a value."""
        if self._present is None:
            return hi - lo
        counts: Array = self._present.lookup(key, lo, hi)[0]
        return counts

    def _count_present(self, valid: Array | None, rows: int) -> dict[SlotColumn, State]:
        """Which of the new rows have a value; nothing is counted until the first has none."""
        if self._present is None and valid is None:
            return {}
        if self._present is None:
            self._present = RunningIntervals(MACHINE, (np.zeros(0, np.int64),), self.rings)
            self.rings.add(self._present, (np.ones(self.rings.rows, np.int64),))
        return {self._present: (np.ones(rows, np.int64) if valid is None else valid.astype(np.int64),)}


class CombinedColumn(LiveColumn):
    """A component whose partials are combined.

    Parameters
    ----------
    algorithm
        The name of the algorithm to use; None leaves it to the adviser.
    """

    def __init__(self, component: Component, rings: Rings, algorithm: str | None) -> None:
        super().__init__(component, rings)
        empty = component.decode_lasting(pa.array([], component.storage))
        legal = tuple(name for name in _ADVISED if ALGORITHMS[name].can(empty.operations))
        name = algorithm or next(name for name in _BEGIN if name in legal)
        self._restore, self._largest = empty.restore, 0.0
        self._states = ALGORITHMS[name](empty.operations, empty.state, rings)
        self.adviser = Adviser(rates_of(empty.operations, empty.state), legal, name) if algorithm is None else None
        rings.add(self._states)

    @property
    def algorithm(self) -> str:  # noqa: D102
        return self._states.name

    def lifted(self, values: Sequence[pa.Array]) -> pa.Array:  # noqa: D102
        return self.component.lift(*values)

    def take_in(self, stored: pa.Array) -> dict[SlotColumn, State]:  # noqa: D102
        decoded = self.component.decode_lasting(stored)
        state = self._exact(decoded)
        return {self._states: state, **self._count_present(decoded.valid, len(stored))}

    def state(self, key: Array, lo: Array, hi: Array) -> State:  # noqa: D102
        found = self._states.lookup(key, lo, hi)
        if self.adviser is not None:
            self.adviser.looked_up(hi - lo)
            self._follow(self.adviser)
        return found

    def answers(self, key: Array, lo: Array, hi: Array) -> pa.Array:  # noqa: D102
        present = self.present(key, lo, hi) > 0
        return self._restore(self.state(key, lo, hi), None if present.all() else ~present)

    def updated(self, rows: int) -> None:  # noqa: D102
        if self.adviser is not None:
            self.adviser.updated(rows)
            self._follow(self.adviser)

    def _follow(self, adviser: Adviser) -> None:
        wanted = adviser.advise(self.rings.rows)
        if wanted != self.algorithm:
            self._exchange(ALGORITHMS[wanted](self._states.operations, self._states.like, self.rings))

    def _exchange(self, new: LiveAlgorithm) -> None:
        held = self._states.elements(self.rings.held())
        own = tuple(array.astype(like.dtype, copy=False) for array, like in zip(held, new.like, strict=True))
        self.rings.replace(self._states, new, own)
        self._states = new

    def _exact(self, decoded: Decoded) -> State:
        """States of new rows in the types of the column, which become Python integers before a sum could overflow."""
        known, state = self._states, decoded.state
        if decoded.operations is MACHINE and state[0].dtype != object and len(state[0]):
            self._largest = max(self._largest, -float(state[0].min()), float(state[0].max()))
            widest = int((self.rings.end - self.rings.first).max(initial=0)) + len(state[0])
            if self._largest * widest >= _SAFE:
                state = (state[0].astype(object),)
        if state[0].dtype == object and known.like[0].dtype != object:
            objects = tuple(array.astype(object) for array in known.like)
            self._exchange(type(known)(known.operations, objects, self.rings))
            if self.adviser is not None:
                self.adviser.rates = rates_of(known.operations, objects)
        return tuple(array.astype(like.dtype, copy=False) for array, like in zip(state, self._states.like, strict=True))


class SortedValuesColumn(LiveColumn):
    """A component of values that are asked for by their place; stored are the values themselves."""

    def __init__(self, component: Component, rings: Rings) -> None:
        super().__init__(component, rings)
        empty = lasting_codes(pa.array([], component.types[0]))
        self._restore, self._dtype = empty.restore, empty.values.dtype
        self._null = GREATEST if self._dtype.kind == "O" else np.iinfo(np.int64).max
        self._codes = SortedIntervals((empty.values,), rings)
        rings.add(self._codes)

    @property
    def algorithm(self) -> str:  # noqa: D102
        return self._codes.name

    def lifted(self, values: Sequence[pa.Array]) -> pa.Array:  # noqa: D102
        return values[0]

    def take_in(self, stored: pa.Array) -> dict[SlotColumn, State]:  # noqa: D102
        coded: Codes = lasting_codes(stored)
        codes, valid = coded.values, validity(stored)
        if valid is not None:
            # Nulls are the last of all, behind every place that is asked for.
            codes = np.where(valid, codes, np.array(self._null, self._dtype))
        return {self._codes: (codes,), **self._count_present(valid, len(stored))}

    def answers(self, key: Array, lo: Array, hi: Array) -> SortedBags:  # noqa: D102
        return _Places(self, key, lo, hi)

    def at(self, key: Array, lo: Array, hi: Array, rank: Array) -> pa.Array:
        """The value at a place of each window's sorted values, counted from 0; null where there is none."""
        some = self.present(key, lo, hi) > 0
        codes = np.zeros(len(key), self._dtype)
        codes[some] = self._codes.at(key[some], lo[some], hi[some], rank[some])
        return self._restore(codes, ~some)


class _Places(SortedBags):
    """Windows of a sorted column as bags."""

    def __init__(self, column: SortedValuesColumn, key: Array, lo: Array, hi: Array) -> None:
        self._column, self._windows = column, (key, lo, hi)

    def sizes(self) -> Array:
        return self._column.present(*self._windows)

    def at(self, *ranks: Array) -> tuple[pa.Array, ...]:
        return tuple(self._column.at(*self._windows, rank) for rank in ranks)
