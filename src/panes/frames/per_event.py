"""Frames per event: the rows that lie less than a while before a row, for every row.

Rows are one instant wide. The window of a row at t is ``(t - ago - size, t - ago]``, which is ``[start, start + size)``
with ``start = t - ago - size + 1``. One search per row finds where it begins; it ends with the row itself, or by
another search where it ended a while ago: O(rows · log rows), whatever the size.
"""

from __future__ import annotations

from panes.frames.pairs import Frame
from panes.frames.positions import Integers, Positions


def frame_per_event(positions: Positions, rows: Integers, key: Integers, size: int, ago: int = 0) -> Frame:
    """The windows of some rows of a column, in the order of the rows.

    Parameters
    ----------
    rows, key
        Rising, each one instant wide; and the ordinals of their keys.

    Examples
    --------
    >>> import numpy as np
    >>> events = Positions.of_events(np.array([3, 4, 21, 30]), np.array([0, 4]))
    >>> found = frame_per_event(events, rows=np.array([0, 1, 3]), key=np.zeros(3, np.int64), size=10)
    >>> found.start, found.lo, found.hi
    (array([-6, -5, 21]), array([0, 0, 2]), array([1, 2, 4]))
    """
    start = positions.start[rows] + (1 - ago - size)
    lo = positions.search(key, start)
    return Frame(key, start, lo, positions.search(key, start + size) if ago else rows + 1)
