"""Prefixes of blocks for many keys at once, each of which continues somewhere within a block."""

from __future__ import annotations

from typing import Final

import numpy as np

from panes.algebra.operations import Operations, State
from panes.kernels.pairs import gather, place
from panes.kernels.scan import prefixes
from panes.live.rings import Runs

_PADDED: Final = 4
"""Rows may become so many times as many by padding; beyond that, scanning them in steps takes less."""


def prefixes_of_blocks(operations: Operations, rows: Runs, state: State, shift: int) -> State:
    """For each row, the rows of its run and its block up to it; blocks are ``2**shift`` ordinals long.

    Examples
    --------
    >>> from panes.algebra.operations import from_ufunc
    >>> runs = Runs(np.array([0, 1]), np.array([3, 0]), np.array([6, 2]), base=np.array([8, 0]), size=np.array([8, 4]))
    >>> prefixes_of_blocks(from_ufunc(np.add, 0), runs, (np.array([1, 2, 3, 4, 5]),), shift=2)
    (array([1, 2, 5, 4, 9]),)
    """
    block = 1 << shift
    ahead = rows.lo & (block - 1)
    padded = -(-(ahead + rows.width) >> shift) << shift
    if int(padded.sum()) > _PADDED * rows.rows:
        return _in_steps(operations, rows, state, block)
    # Runs laid out so that their blocks lie where those of a column would.
    wide = operations.identities(state, int(padded.sum()))
    moved = np.cumsum(padded) - padded + ahead - rows.begins
    at = np.arange(rows.rows) + np.repeat(moved, rows.width)
    place(wide, at, state)
    return gather(prefixes(operations, wide, block), at)


def _in_steps(operations: Operations, rows: Runs, state: State, block: int) -> State:
    """Each row takes in the one before it, then the two before those, then four."""
    within = np.arange(rows.rows) - np.repeat(rows.begins, rows.width)
    passed = np.minimum(rows.ordinal & (block - 1), within)
    out, step = tuple(array.copy() for array in state), 1
    later = np.flatnonzero(passed >= step)
    while len(later):
        place(out, later, operations.combine(gather(out, later - step), gather(out, later)))
        step *= 2
        later = later[passed[later] >= step]
    return out
