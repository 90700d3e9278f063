"""Ranges of rows spelt out."""

from __future__ import annotations

import numpy as np

from panes.frames.positions import Integers


def ranges(starts: Integers, counts: Integers) -> Integers:
    """The integers ``start, start + 1, ...``, count of them, one range after another.

    Examples
    --------
    >>> ranges(np.array([7, 0, 3]), np.array([2, 0, 3]))
    array([7, 8, 3, 4, 5])
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    spelt: Integers = np.repeat(starts - ends + counts, counts) + np.arange(total)
    return spelt
