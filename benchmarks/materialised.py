"""Materialise all: keep the answer of every registered window, and look it up.

==========  =====================================================================
requires    any monoid, and windows that are known before
update      O(widths of all windows): each is folded anew for every key that rows come for
lookup      O(1)
memory      one state per row, and one per key and window
paper       *materialize all*, Arasu & Widom 2004, sections 1.2 and 6.1
==========  =====================================================================
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from panes.aggregates.operations import Array, Operations, State, take
from panes.errors import PlanError
from panes.kernels.kernel import gather, place
from panes.live.algorithm import Elements
from panes.live.rings import Rings, Runs

_FAR = 2**31


class Materialised(Elements):
    """The answers of some windows for every key, beside the rows.

    Parameters
    ----------
    windows
        Pairs ``(NL, NR)`` as in the paper: the last NL rows without the last NR.
    """

    name = "materialised"

    def __init__(
        self, operations: Operations, like: State, rings: Rings, windows: Sequence[tuple[int, int]] = ()
    ) -> None:
        super().__init__(operations, like, rings)
        ordered = sorted({(skipped, reach) for reach, skipped in windows if 0 <= skipped < reach < _FAR})
        self._skipped, self._reach = (np.array([w[i] for w in ordered], np.int64) for i in (0, 1))
        self._answers: State = self.operations.identities(self.like, 0)

    def append(self, rows: Runs, state: State) -> None:
        super().append(rows, state)
        windows = len(self._reach)
        if not windows:
            return
        self._answers = self._resized(self._answers, max(len(self.rings) * windows, len(self._answers[0])))
        key, end, first = (np.repeat(a, windows) for a in (rows.key, rows.hi, self.rings.first[rows.key]))
        reach, skipped = (np.tile(a, len(rows.key)) for a in (self._reach, self._skipped))
        lo, hi = np.maximum(end - reach, first), end - skipped
        held = np.flatnonzero(lo < hi)
        answers = self.operations.identities(self.like, len(key))
        if len(held):
            place(answers, held, super()._lookup(key[held], lo[held], hi[held]))
        place(self._answers, (rows.key[:, None] * windows + np.arange(windows)).ravel(), answers)

    def keep(self, chosen: Array) -> None:
        windows = len(self._reach)
        self._answers = take(self._answers, (chosen[:, None] * windows + np.arange(windows)).ravel())

    def _lookup(self, key: Array | int, lo: Array, hi: Array) -> State:
        end = self.rings.end[key]
        asked = (end - hi) * _FAR + (end - lo)
        known = self._skipped * _FAR + self._reach
        at = np.minimum(np.searchsorted(known, asked), max(len(known) - 1, 0))
        # A window that reaches to the first row ever is that of every wider one.
        wider = (lo == 0) & (known[at] > asked) & (self._skipped[at] == end - hi) if len(known) else False
        if not len(known) or not (wider | (known[at] == asked)).all():
            raise PlanError(
                "a window was not registered. Register it when the structure is made, or take another algorithm."
            )
        return gather(self._answers, key * len(known) + at)
