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

from panes.algebra.operations import Array, State, concatenate
from panes.kernels.naive import Naive
from panes.kernels.pairs import gather, place
from panes.live.algorithm import LiveAlgorithm
from panes.live.rings import Runs

_CHUNK: Final = 1 << 20
"""Rows that are laid out at once."""


class Elements(LiveAlgorithm):
    """In each slot the state of a row."""

    name = "elements"

    _elements: State = ()

    def resize(self, slots: int) -> None:  # noqa: D102
        self._elements = self._resized(self._elements, slots)

    @property
    def states(self) -> int:  # noqa: D102
        return len(self._elements[0])

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
        keys = np.broadcast_to(key, lo.shape)
        width = hi - lo
        stop = np.cumsum(width)
        answers, begin = [], 0
        while begin < len(lo):
            limit = int(stop[begin] - width[begin]) + _CHUNK
            end = max(int(np.searchsorted(stop, limit, side="right")), begin + 1)
            answers.append(self._folded(self.rings.runs(keys[begin:end], lo[begin:end], hi[begin:end])))
            begin = end
        return answers[0] if len(answers) == 1 else concatenate(answers)

    def _folded(self, windows: Runs) -> State:
        """Rows of windows laid end to end, and each window folded."""
        return Naive(self.operations, self.elements(windows)).answer(windows.begins, windows.begins + windows.width)
