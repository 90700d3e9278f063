"""Ways to answer any window of a live stream that the paper compares with, and that Panes has no use for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from panes.aggregates.operations import Array, Operations, State, take
from panes.errors import PlanError
from panes.kernels.dyadic import climb
from panes.kernels.kernel import gather, place
from panes.live.algorithm import Elements
from panes.live.dyadic import BaseIntervals
from panes.live.rings import Rings, RowRuns

_FAR = 2**31


class Materialised(Elements):
    """Materialise all: the answers of some windows for every key, beside the rows.

    ==========  =====================================================================
    requires    any monoid, and windows that are known before
    update      O(widths of all windows): each is folded anew for every key that rows come for
    lookup      O(1)
    memory      one state per row, and one per key and window
    paper       *materialize all*, Arasu & Widom 2004, sections 1.2 and 6.1
    ==========  =====================================================================

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

    def append(self, rows: RowRuns, state: State) -> None:
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

    def _lookup(self, key: Array, lo: Array, hi: Array) -> State:
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


class SearchTree(BaseIntervals):
    """By level, the states of the nodes over slots ``[i * 2**l, (i + 1) * 2**l)``.

    ==========  =====================================================================
    requires    any monoid
    update      O(log rows): all nodes above a new row, once per batch
    lookup      O(log rows)
    memory      two states per row
    paper       PSoup, as in Arasu & Widom 2004, section 3.1.3
    ==========  =====================================================================

    PSoup has an n-ary search tree by time of insertion. Rows come in the order of time, so the tree need not search:
    here it is binary, and its leaves are the slots of a ring. A window that wraps around is two ranges of leaves.
    """

    name = "tree"

    def append(self, rows: RowRuns, state: State) -> None:
        place(self._levels[0], rows.slot, state)
        nodes, highest = rows.slot, int(self.rings.size[rows.key].max(initial=1)).bit_length() - 1
        for level in range(1, highest + 1):
            nodes = np.unique(nodes >> 1)
            children = (gather(self._levels[level - 1], 2 * nodes + side) for side in (0, 1))
            place(self._levels[level], nodes, self.operations.combine(*children))

    def _lookup(self, key: Array, lo: Array, hi: Array) -> State:
        begin, end = self.rings.slot(key, lo), self.rings.slot(key, hi - 1) + 1
        wrapped = np.flatnonzero(begin >= end)
        base = self.rings.base[key[wrapped]]
        older = end.copy()
        older[wrapped] = base + self.rings.size[key[wrapped]]
        parts = self._climb(np.concatenate([begin, base]), np.concatenate([older, end[wrapped]]))
        answers, newer = take(parts, slice(len(lo))), take(parts, slice(len(lo), None))
        place(answers, wrapped, self.operations.combine(take(answers, wrapped), newer))
        return answers

    def _climb(self, begin: Array, end: Array) -> State:
        return climb(self.operations, self.like, begin, end, lambda level, _, node: gather(self._levels[level], node))
