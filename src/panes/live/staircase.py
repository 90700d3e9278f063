"""CI-MAX: which keys have a large value in a window up to now; CI-MIN is the same with the order reversed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from panes.aggregates.operations import Array, State
from panes.frames.positions import Integers
from panes.live.layers import Layers
from panes.live.ragged import Ragged
from panes.live.rings import RowRuns, Slots
from panes.live.store import Instants

_SPARE: Final = 1 << 12
"""Rows that may come before steps are built again, beside as many as are held."""

_INT64: Final = np.iinfo(np.int64)


class Staircase(Slots):
    """Values of rows as integers in their order; and of each key, those that no later one reaches.

    ==========  =====================================================================
    requires    values as 64-bit integers in their order
    update      O(log N) for a key that changes, and O(1) amortised for an event
    lookup      O(steps above the threshold, or steps since the window began, whichever
                are fewer); indexes what has changed since the last lookup
    memory      one number per row; the steps of each key, and six numbers more for each
    paper       CI-MAX and CI-MIN, Arasu & Widom 2004, table 1; their algorithm is in
                the full version only, and this one is our own
    ==========  =====================================================================

    The maximum over a window up to now is the maximum of the events that no later one reaches. They form a staircase:
    the later, the smaller. A key qualifies if one of its steps is above the threshold and not older than the window.
    """

    def __init__(self, instants: Instants) -> None:
        super().__init__(instants.rings)
        self._instants = instants
        self._clear()

    def append(self, rows: RowRuns, state: State) -> None:  # noqa: D102
        super().append(rows, state)
        self._appended += rows.rows
        if self._appended > 2 * self.rings.rows + _SPARE:
            self._build()
        elif rows.rows:
            self._add(rows, state[0])

    def move(self, rows: RowRuns, state: State) -> None:  # noqa: D102
        super().append(rows, state)

    def keep(self, chosen: Integers) -> None:  # noqa: D102
        self._build()

    def between(self, above: int | None, below: int | None, since: int) -> Integers:
        """The keys whose largest value since an instant is within two bounds; None is no bound."""
        if (above is not None and above >= _INT64.max) or (below is not None and below <= _INT64.min):
            return np.zeros(0, np.int64)
        above = None if above is None or above < _INT64.min else above
        keys = self._layers.candidates(lambda layer: layer.above(above, since))
        keys = keys[self._newest_above(above, keys) >= since]
        if below is None or below > _INT64.max:
            return keys
        return keys[self._newest_above(below - 1, keys) < since]

    def _clear(self) -> None:
        self._steps = Ragged(2)
        self._layers = Layers(self._layer, np.zeros(0, np.int64))
        self._appended = 0

    def _build(self) -> None:
        """Build all steps again from the rows that are held."""
        self._clear()
        rows = self.rings.held()
        self._appended = rows.rows
        if rows.rows:
            self._add(rows, self.values[rows.slot])

    def _add(self, rows: RowRuns, values: Integers) -> None:
        """Add rows to the staircases of their keys."""
        keys, steps = rows.key, self._steps
        steps.extend(len(self.rings))
        unreached, largest = _unreached(rows.width, values)
        lower = steps.count_above(keys, 1, largest)
        steps.truncate(keys, np.where(rows.lo == self.rings.first[keys], 0, lower))
        added = np.add.reduceat(unreached, rows.begins, dtype=np.int64)
        steps.append(keys, added, self._instants.values[rows.slot[unreached]], values[unreached])
        self._layers.note(keys)

    def _newest_above(self, value: int | None, keys: Integers) -> Integers:
        """The instant of the newest event of each key that is above a value; long ago without one."""
        sizes = self._steps.sizes[keys]
        last = (sizes if value is None else self._steps.count_above(keys, 1, value)) - 1
        instants = np.full(len(keys), _INT64.min)
        there = np.flatnonzero(last >= 0)
        instants[there] = self._steps.columns[0][self._steps.starts[keys[there]] + last[there]]
        return instants

    def _layer(self, keys: Integers) -> StaircaseLayer:
        steps = np.stack([np.repeat(keys, self._steps.sizes[keys]), *self._steps.elements(keys)])
        return StaircaseLayer(keys, steps[:, np.argsort(steps[1])], steps[:, np.argsort(steps[2])])


@dataclass(frozen=True, slots=True)
class StaircaseLayer:
    """A layer: the keys, instants and values of all steps of some keys, once by instant and once by value."""

    keys: Integers
    by_instant: Integers
    by_value: Integers

    def above(self, value: int | None, since: int) -> Integers:
        """The keys with a step above a value at an instant or later: the shorter list is looked through."""
        late = self.by_instant[:, np.searchsorted(self.by_instant[1], since) :]
        keys: Integers = late[0]
        if value is not None:
            large = self.by_value[:, np.searchsorted(self.by_value[2], value, side="right") :]
            few = large.shape[1] < late.shape[1]
            keys = large[0][large[1] >= since] if few else keys[late[2] > value]
        return keys


def _unreached(counts: Integers, values: Integers) -> tuple[Array, Integers]:
    """Which values of each group are greater than all later ones of it, and the largest of each group."""
    ranks = np.unique(values, return_inverse=True)[1].astype(np.int64, copy=False)
    # From the end, with later groups below earlier ones, so that one running maximum serves all groups.
    height = np.repeat(np.arange(len(counts))[::-1] * len(values), counts) + ranks + 1
    later = np.append(np.maximum.accumulate(height[:0:-1])[::-1], 0)
    return height > later, np.maximum.reduceat(values, np.cumsum(counts) - counts)
