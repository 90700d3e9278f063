"""Selection: which value stands at a place of several sorted stretches taken together?

The greedy search of B-INT-QNT (Arasu & Widom 2004, section 3.3), for many questions in step. A pivot is taken from the
widest stretch, where the answer would be if all stretches were alike; every second time from its middle, which leaves
at most half of it whatever the values are. Stretches are cut down to the values below or above the pivot.
"""

from __future__ import annotations

import numpy as np

from panes.algebra.operations import Array


def select(values: Array, owner: Array, begin: Array, end: Array, rank: Array) -> Array:
    """The value at a place of each question's stretches taken together, counted from 0.

    Parameters
    ----------
    values
        Where the stretches lie.
    owner
        Of each stretch the question that it belongs to, in order. Every question has one.
    begin, end
        Of each stretch, half-open; its values are sorted.
    rank
        Of each question; its stretches hold more values.

    Examples
    --------
    >>> values = np.array([1, 5, 9, 2, 3, 7, 8])
    >>> select(values, np.array([0, 0, 1]), np.array([0, 3, 3]), np.array([3, 7, 7]), np.array([4, 0]))
    array([7, 2])
    """
    answers = np.empty(len(rank), values.dtype)
    asked, in_the_middle = np.arange(len(rank)), False
    while len(asked):
        width = end - begin
        firsts = np.flatnonzero(np.diff(owner, prepend=-1))
        widest = np.maximum.reduceat(width * len(width) + np.arange(len(width)), firsts) % len(width)
        alike = rank * width[widest] // np.add.reduceat(width, firsts)
        pivot = values[begin[widest] + (width[widest] >> 1 if in_the_middle else alike)]
        below = _search(values, begin, end, pivot[owner], including=False)
        less = np.add.reduceat(below - begin, firsts)
        lower = rank < less
        upto = below.copy()
        others = np.flatnonzero(~lower[owner])
        upto[others] = _search(values, below[others], end[others], pivot[owner[others]], including=True)
        at_most = np.add.reduceat(upto - begin, firsts)
        found = ~lower & (rank < at_most)
        answers[asked[found]] = pivot[found]
        begin, end = np.where(lower[owner], begin, upto), np.where(lower[owner], below, end)
        rank, asked = np.where(lower, rank, rank - at_most)[~found], asked[~found]
        left = ~found[owner] & (begin < end)
        owner, begin, end = (np.cumsum(~found) - 1)[owner[left]], begin[left], end[left]
        in_the_middle = not in_the_middle
    return answers


def _search(values: Array, begin: Array, end: Array, pivot: Array, *, including: bool) -> Array:
    """In each stretch, the place behind the values below a pivot, or at or below it."""
    place = begin.copy()
    for power in reversed(range(int((end - begin).max(initial=0)).bit_length())):
        further = place + (1 << power)
        probe = values.take(np.minimum(further, end) - 1)
        passed = (probe <= pivot if including else probe < pivot).astype(np.bool_, copy=False)
        np.copyto(place, further, where=passed & (further <= end))
    return place
