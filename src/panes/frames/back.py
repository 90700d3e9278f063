"""Windows that look back from instants: which rows of events lie in ``(t - size, t]``, or are the last so many.

Nothing is rounded: the edges of a window are searched among the events themselves. O(log rows) per instant.
"""

from __future__ import annotations

import numpy as np

from panes.frames.positions import FARTHEST, Integers, Positions


def between(positions: Positions, key: Integers, begin: Integers, end: Integers) -> tuple[Integers, Integers]:
    """The rows of each key in ``[begin, end)``.

    Examples
    --------
    >>> events = Positions.of_events(np.array([10, 20, 20, 30]), np.array([0, 4]))
    >>> between(events, np.array([0, 0]), np.array([10, 11]), np.array([20, 31]))
    (array([0, 1]), array([1, 4]))
    """
    # Beyond all instants there is nothing, and arithmetic on nearer ones cannot leave int64.
    lo, hi = (positions.search(key, np.clip(edge, -FARTHEST, FARTHEST)) for edge in (begin, end))
    return lo, np.maximum(lo, hi)


def last_rows(positions: Positions, key: Integers, end: Integers, count: int, skip: int) -> tuple[Integers, Integers]:
    """The last so many rows of each key before an instant, the very last ones of them left out.

    Examples
    --------
    >>> events = Positions.of_events(np.array([10, 20, 20, 30]), np.array([0, 4]))
    >>> last_rows(events, np.array([0, 0]), np.array([21, 31]), count=2, skip=1)
    (array([0, 1]), array([2, 3]))
    """
    first = positions.key_starts[key]
    hi = np.maximum(positions.search(key, np.clip(end, -FARTHEST, FARTHEST)) - skip, first)
    return np.maximum(hi - count, first), hi
