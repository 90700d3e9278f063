"""Prefixes and suffixes of a column, whole or block by block: the building stone of running and landmark.

One ``accumulate`` where combine is a ufunc. Otherwise a scan by radix: short groups are scanned all at once,
one position after another; their totals are scanned the same way and carried into the groups that follow.
Two combines per element, whatever the block.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from panes.aggregates.operations import Array, Operations, State, take
from panes.kernels.kernel import place

# Positions scanned in step. Up to here strided passes over the column beat accumulate, which pays per block.
_GROUP: Final = 8


def prefixes(operations: Operations, state: State, block: int) -> State:
    """For each row, all rows of its block up to it; blocks are a power of two long and start at row 0.

    Examples
    --------
    >>> from panes.aggregates.operations import from_ufunc
    >>> prefixes(from_ufunc(np.add, 0), (np.array([1, 2, 3, 4, 5, 6]),), block=4)[0]
    array([ 1,  3,  6, 10,  5, 11])
    """
    rows = len(state[0])
    if operations.ufunc is not None and block > _GROUP:
        return (_accumulate(operations.ufunc, state[0], block, reverse=False),)
    step = min(block, _GROUP)
    out = tuple(array.copy() for array in state)
    for at in range(1, min(step, rows)):
        here = take(state, slice(at, None, step))
        before = take(out, slice(at - 1, None, step))
        place(out, slice(at, None, step), operations.combine(take(before, slice(len(here[0]))), here))
    if block > step and rows > step:
        totals = prefixes(operations, take(out, slice(step - 1, None, step)), block // step)
        carry = operations.identities(state, -(-rows // step))
        place(carry, slice(1, None), take(totals, slice(len(carry[0]) - 1)))
        # Nothing is carried into the first group of a block.
        place(carry, slice(None, None, block // step), operations.identities(state, 1))
        for at in range(step):
            here = take(out, slice(at, None, step))
            place(out, slice(at, None, step), operations.combine(take(carry, slice(len(here[0]))), here))
    return out


def suffixes(operations: Operations, state: State, block: int) -> State:
    """For each row, all rows of its block from it on; combined left to right, as prefixes are.

    Examples
    --------
    >>> from panes.aggregates.operations import from_ufunc
    >>> suffixes(from_ufunc(np.add, 0), (np.array([1, 2, 3, 4, 5, 6]),), block=4)[0]
    array([10,  9,  7,  4, 11,  6])
    """
    rows = len(state[0])
    if operations.ufunc is not None and block > _GROUP and _commutes(state):
        return (_accumulate(operations.ufunc, state[0], block, reverse=True),)
    step = min(block, _GROUP)
    out = tuple(array.copy() for array in state)
    for at in reversed(range(min(step, rows) - 1)):
        after = take(out, slice(at + 1, None, step))
        here = take(state, slice(at, None, step))
        short = slice(at, at + step * len(after[0]), step)
        place(out, short, operations.combine(take(here, slice(len(after[0]))), after))
    if block > step and rows > step:
        totals = suffixes(operations, take(out, slice(0, None, step)), block // step)
        carry = operations.identities(state, len(totals[0]))
        place(carry, slice(0, -1), take(totals, slice(1, None)))
        # Nothing is carried into the last group of a block.
        place(carry, slice(block // step - 1, None, block // step), operations.identities(state, 1))
        for at in range(step):
            here = take(out, slice(at, None, step))
            place(out, slice(at, None, step), operations.combine(here, take(carry, slice(len(here[0])))))
    return out


def _commutes(state: State) -> bool:
    """Whether a ufunc may run from right to left: on numbers the associative ones commute, on objects who knows."""
    return state[0].dtype.kind in "biuf"


def _accumulate(ufunc: np.ufunc, array: Array, block: int, *, reverse: bool) -> Array:
    rows, step = len(array), -1 if reverse else 1
    whole = rows - rows % block
    out = np.empty_like(array)
    for source, target in (
        (array[:whole].reshape(-1, block), out[:whole].reshape(-1, block)),
        (array[whole:].reshape(1, -1), out[whole:].reshape(1, -1)),
    ):
        if source.size:
            # The type is said aloud, since sums of small integers and of booleans would widen.
            ufunc.accumulate(source[:, ::step], axis=1, dtype=array.dtype, out=target[:, ::step])
    return out
