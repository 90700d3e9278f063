"""Windows that look back from instants: which rows of events lie in ``(t - size, t]``, or are the last so many.

Nothing is rounded: the edges of a window are searched among the events themselves. O(log rows) per instant.
"""

from __future__ import annotations

import numpy as np

from panes.frames.positions import FARTHEST, Integers, Positions


def rows_before(positions: Positions, key: Integers, instant: Integers) -> Integers:
    """The first row of each key that does not start before an instant; between two of them lie the rows of a window.

    Examples
    --------
    >>> events = Positions.of_events(np.array([10, 20, 20, 30]), np.array([0, 4]))
    >>> rows_before(events, np.array([0, 0, 0]), np.array([10, 20, 31]))
    array([0, 1, 4])
    """
    # Beyond all instants there is nothing, and arithmetic on nearer ones cannot leave int64.
    return positions.search(key, np.clip(instant, -FARTHEST, FARTHEST))


def last_rows(positions: Positions, key: Integers, end: Integers, count: int, skip: int) -> tuple[Integers, Integers]:
    """The last so many rows of each key before a row of it, the very last ones left out.

    Examples
    --------
    >>> events = Positions.of_events(np.array([10, 20, 20, 30]), np.array([0, 4]))
    >>> last_rows(events, np.array([0, 0]), np.array([3, 4]), count=2, skip=1)
    (array([0, 1]), array([2, 3]))
    """
    first = positions.key_starts[key]
    hi = np.maximum(end - skip, first)
    return np.maximum(hi - count, first), hi
