"""Running: a window is the difference of two running intervals.

Running intervals of 64-bit integers may wrap around, and their differences are exact all the same as long as the answer
itself fits. Floats are no group: a difference of running sums could cancel.
"""

from __future__ import annotations

import numpy as np

from panes.aggregates.operations import Array, Operations, State
from panes.kernels.kernel import gather, place
from panes.kernels.scan import prefixes
from panes.live.algorithm import LiveAlgorithm
from panes.live.rings import RowRuns


class RunningIntervals(LiveAlgorithm):
    """In the slot of each ordinal, all rows before it since the key began; also for the ordinal after the last row.

    ==========  =====================================================================
    requires    a group: subtract takes a part away exactly
    update      O(1)
    lookup      O(1)
    memory      one state per row
    paper       R-INT, Arasu & Widom 2004, section 3.2, figure 6
    ==========  =====================================================================
    """

    name = "running"
    needs = "a group (an exact subtract)"

    _running: State = ()

    @classmethod
    def can(cls, operations: Operations) -> bool:  # noqa: D102
        return operations.group

    def resize(self, slots: int) -> None:  # noqa: D102
        self._running = self._resized(self._running, slots)

    def append(self, rows: RowRuns, state: State) -> None:  # noqa: D102
        first = np.flatnonzero(self._is_first(rows))
        if len(first):
            start = self.rings.slot(rows.key[first], rows.lo[first])
            place(self._running, start, self.operations.identities(self.like, len(first)))
        before = rows.repeated(gather(self._running, self.rings.slot(rows.key, rows.lo)))
        within = self._within(rows, state)
        place(self._running, rows.slots_of(rows.ordinal + 1), self.operations.combine(before, within))

    def _within(self, rows: RowRuns, state: State) -> State:
        """The running intervals of each run by itself: those of all rows, without what lies before the run."""
        whole = prefixes(self.operations, state, 1 << rows.rows.bit_length())
        if len(rows.key) <= 1:
            return whole
        assert self.operations.subtract is not None
        before = self.operations.identities(self.like, len(rows.key))
        later = np.flatnonzero(rows.begins > 0)
        place(before, later, gather(whole, rows.begins[later] - 1))
        return self.operations.subtract(whole, rows.repeated(before))

    def _lookup(self, key: Array, lo: Array, hi: Array) -> State:
        return self._between(self.rings.slot(key, lo), self.rings.slot(key, hi))

    def elements(self, rows: RowRuns) -> State:  # noqa: D102
        return self._between(rows.slot, rows.slots_of(rows.ordinal + 1))

    def _between(self, lo: Array, hi: Array) -> State:
        assert self.operations.subtract is not None
        return self.operations.subtract(gather(self._running, hi), gather(self._running, lo))
