"""Tree: a search tree over the ring, every node of which knows the rows below it.

==========  =====================================================================
requires    any monoid
update      O(log rows): all nodes above a new row, once per batch
lookup      O(log rows)
memory      two states per row
paper       PSoup, as told by Arasu & Widom 2004, section 3.1.3; a baseline
==========  =====================================================================

PSoup takes an n-ary search tree by time of insertion. Rows come in the order of time, so the tree need not search: here
it is binary, and its leaves are the slots of a ring. A window that wraps around is two ranges of leaves.
"""

from __future__ import annotations

import numpy as np

from panes.algebra.operations import Array, State
from panes.kernels.dyadic import climb
from panes.kernels.pairs import gather, place
from panes.live.levels import Levelled
from panes.live.rings import Runs


class SearchTree(Levelled):
    """By level, the states of the nodes over slots ``[i * 2**l, (i + 1) * 2**l)``."""

    name = "tree"

    def append(self, rows: Runs, state: State) -> None:  # noqa: D102
        place(self._levels[0], rows.slot, state)
        nodes, highest = rows.slot, int(self.rings.size[rows.key].max(initial=1)).bit_length() - 1
        for level in range(1, highest + 1):
            nodes = np.unique(nodes >> 1)
            children = (gather(self._levels[level - 1], 2 * nodes + side) for side in (0, 1))
            place(self._levels[level], nodes, self.operations.combine(*children))

    def _lookup(self, key: Array | int, lo: Array, hi: Array) -> State:
        def over(begin: Array, end: Array) -> State:
            return climb(
                self.operations, self.like, begin, end, lambda level, _, node: gather(self._levels[level], node)
            )

        return self._over_slots(key, lo, hi, over)
