"""Which rows of two sides are near in time: a range of sorted rows per row, found by search, then spelt out.

After *Subsuming Multiple Sliding Windows* (Patroumpas and Sellis, 2011), section 4: every row is probed once against
the widest window. A match at level k, the narrowest window that holds it, is one of every wider window too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from panes.frames.positions import FARTHEST, Integers, Positions, check_near, ranges

# Windows that look back from instants: which rows of events lie in ``(t - size, t]``, or are the last so many.
#
# Nothing is rounded: the edges of a window are searched among the events themselves. O(log rows) per instant.


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


_AT_ONCE = 1 << 20


def near(
    left: tuple[Integers, Integers], right: tuple[Integers, Integers], width: int, *, at_once: int = _AT_ONCE
) -> Iterator[tuple[Integers, Integers]]:
    """Pairs of rows with equal keys that are less than a width apart: their rows on the left and on the right.

    Pairs come in the order of the left rows, and by time on the right; about ``at_once`` pairs at a time.

    Parameters
    ----------
    left, right
        Per row, the ordinal of its key (the same numbers on both sides) and its instant; in any order.

    Examples
    --------
    >>> left = np.array([0, 1]), np.array([10, 10])
    >>> right = np.array([0, 0, 1, 0]), np.array([14, 15, 9, 6])
    >>> [(a.tolist(), b.tolist()) for a, b in near(left, right, width=5)]
    [([0, 0, 1], [3, 0, 2])]
    """
    (keys, instants), (right_keys, right_instants) = left, right
    check_near(instants)
    order = np.lexsort((right_instants, right_keys))
    count = int(max(keys.max(initial=-1), right_keys.max(initial=-1))) + 1
    starts = np.searchsorted(right_keys[order], np.arange(count + 1))
    positions = Positions.of_events(right_instants[order], starts)
    first = positions.search(keys, instants - width + 1)
    lengths = positions.search(keys, instants + width) - first
    ends = np.cumsum(lengths)
    begin = 0
    while begin < len(keys):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + at_once, side="right")))
        some = lengths[begin:end]
        rows = np.repeat(np.arange(begin, end), some)
        yield rows, order[ranges(first[begin:end], some)]
        begin = end


def levels(distances: Integers, sizes: Sequence[int]) -> Integers:
    """The number of the narrowest window that holds each pair, by how far apart its rows are.

    Examples
    --------
    >>> levels(np.array([0, 4, 5, 11]), [5, 10, 20])
    array([0, 0, 1, 2])
    """
    return np.searchsorted(np.asarray(sizes, dtype=np.int64), distances, side="right").astype(np.int64, copy=False)
