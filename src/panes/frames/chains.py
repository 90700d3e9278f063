"""Windows that begin where the one before ended: following a chain of rows.

==========  =====================================================================================================
requires    values that never decrease within a key, or for every row the row where a window that begins with it ends
costs       stepped: a search for each window, near its first row: under a µs. Followed: a search for every row, all
            at once, and a step of a plain loop for each window, some 100 ns. In step: a search for each window, those
            of all keys at once: 10 µs for each window of the key that has most, and 100 ns for each window
paper       Gedik 2014, section 3.3.2: each window begins with the tuple that broke the one before, and a trigger
            counts from the tuple that triggered last
==========  =====================================================================================================

Where a window begins depends on all windows before it, so that this cannot be done for all rows at once. But keys
do not depend on each other: where they are many, the next window of each is searched for, all at once. Where keys and
windows are few it is cheapest to search for the end of each; where windows are many, for the ends of all that could
be. Doubling the steps (log rows rounds over all rows) is faster only where windows hold one or two rows, and then not
by much: with a million rows 0.04 s instead of 0.1 s.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import Final

import numpy as np

from panes.frames.positions import Integers

_A_FEW: Final = 64


def followed(following: Integers) -> Integers:
    """The rows that are met from row 0 on. The end of a key is the first row of the next: one chain serves all keys.

    Examples
    --------
    >>> followed(np.array([2, 5, 3, 5, 5]))
    array([0, 2, 3])
    """
    # Elements of a view are plain integers, made when they are asked for.
    steps, rows = np.ascontiguousarray(following).data, len(following)
    met: list[int] = []
    meet, row = met.append, 0
    while row < rows:
        meet(row)
        row = steps[row]
    return np.array(met, np.int64)


def stepped(values: Integers, key_starts: Integers, by: int, least: int = 0) -> Integers | None:
    """The first row of each key, and every row more than ``by`` above the one that was met before.

    Parameters
    ----------
    least
        Give up, after a few windows, where they hold fewer rows than this on average.

    Examples
    --------
    >>> stepped(np.array([1, 4, 6, 9, 2, 3]), np.array([0, 4, 6]), by=3)
    array([0, 2, 4])
    """
    view, starts = np.ascontiguousarray(values).data, key_starts.tolist()
    met: list[int] = []
    for row, end in pairwise(starts):
        width = 1
        while row < end:
            if len(met) >= _A_FEW and len(met) * least > row:
                return None
            met.append(row)
            highest, low = view[row] + by, row
            # A window is about as wide as the one before: look near there, and then twice as far.
            while (high := min(low + 2 * width, end)) < end and view[high] <= highest:
                low, width = high, 2 * width
            following = bisect_right(view, highest, low + 1, high)
            row, width = following, max(following - met[-1], 1)
    return np.array(met, np.int64)


def in_step(numbers: Integers, key_starts: Integers, by: int, fewest: int = 1) -> tuple[Integers, Integers, Integers]:
    """The rows that ``stepped`` meets, of all keys a window at a time: in no order, and where keys had come to.

    Parameters
    ----------
    numbers
        Values that rise from key to key as well, so that one search serves them all.
    fewest
        Stop where fewer keys than this have rows left.

    Returns
    -------
    met, row, end
        The rows that were met; of the keys that are left the row that is next, and the end of their rows.

    Examples
    --------
    >>> in_step(np.array([1, 4, 6, 9, 12, 13]), np.array([0, 4, 6]), by=3)
    (array([0, 4, 2]), array([], dtype=int64), array([], dtype=int64))
    >>> in_step(np.array([1, 4, 6, 9, 12, 13]), np.array([0, 4, 6]), by=3, fewest=2)
    (array([0, 4]), array([2]), array([4]))
    """
    met = [np.zeros(0, np.int64)]
    row, end = key_starts[:-1], key_starts[1:]
    while True:
        left = row < end
        if not left.all():
            row, end = row[left], end[left]
        if len(row) < max(fewest, 1):
            return np.concatenate(met), row, end
        met.append(row)
        row = np.minimum(np.searchsorted(numbers, numbers[row] + (by + 1)), end)
