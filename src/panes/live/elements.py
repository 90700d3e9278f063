"""Elements: keep the rows themselves, and compute at lookup.

==========  =====================================================================
requires    any monoid
update      O(1)
lookup      O(width)
memory      one state per row
paper       *materialize none*, Arasu & Widom 2004, sections 1.2 and 6.1
==========  =====================================================================
"""

from __future__ import annotations

from typing import Final

import numpy as np

from panes.aggregates.operations import Array, State
from panes.kernels.kernel import gather, place
from panes.kernels.naive import Naive
from panes.live.algorithm import LiveAlgorithm
from panes.live.rings import Runs

_DEAR: Final = 8
"""How many times as long it takes to lay out a row as to copy a slot, which folding in place does with all of them."""


class Elements(LiveAlgorithm):
    """In each slot the state of a row."""

    name = "elements"

    _elements: State = ()

    def resize(self, slots: int) -> None:  # noqa: D102
        self._elements = self._resized(self._elements, slots)

    def append(self, rows: Runs, state: State) -> None:  # noqa: D102
        place(self._elements, rows.slot, state)

    def elements(self, rows: Runs) -> State:  # noqa: D102
        return gather(self._elements, rows.slot)

    def at(self, key: Array | int, ordinal: Array) -> State:
        """The states of single rows that are held."""
        return gather(self._elements, self.rings.slot(key, ordinal))

    def put(self, key: Array | int, ordinal: Array, state: State) -> None:
        """Write over the states of single rows that are held."""
        place(self._elements, self.rings.slot(key, ordinal), state)

    def _lookup(self, key: Array | int, lo: Array, hi: Array) -> State:
        return self._over_slots(key, lo, hi, self._folded)

    def _folded(self, begin: Array, end: Array) -> State:
        """Ranges of slots, folded where they lie; or laid end to end before, if they are few in a large arena."""
        width = end - begin
        total, stop = int(width.sum()), np.cumsum(width)
        if self.operations.ufunc is None or total * _DEAR > len(self._elements[0]):
            return Naive(self.operations, self._elements).answer(begin, end)
        slots = np.arange(total) + np.repeat(begin - (stop - width), width)
        return Naive(self.operations, gather(self._elements, slots)).answer(stop - width, stop)
