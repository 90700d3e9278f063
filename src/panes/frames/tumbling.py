"""Tumbling windows of the four policies, as index pairs over rows sorted by key and arrival.

==========  =====================================================================================================
requires    rows in the order of arrival within each key; arrivals in µs where time counts
costs       count, gap, punctuation: O(rows). Delta, and time with partitions: a search for every window, or for every
            row where windows hold few (``chains``)
paper       Gedik 2014, sections 3.1.1 and 3.3, Table I
==========  =====================================================================================================

A window that is not full when rows end was not processed, so it is not here. Where its rows come first in the next
column, it goes on; only a window that is never closed has to be told when it was opened.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from panes.frames.distances import Distances, Values
from panes.frames.positions import FARTHEST, Integers, Positions
from panes.frames.row_windows import Begun, Processed, key_of_rows, opened_at


def tumbling_by_count(events: Positions, n: int) -> Processed:
    """A window is full with its n-th row, which belongs to it: insert, then evict.

    Examples
    --------
    >>> rows = Positions.of_events(np.array([1, 2, 3, 7, 9]), np.array([0, 5]))
    >>> found = tumbling_by_count(rows, 2)
    >>> found.lo, found.hi, found.instant
    (array([0, 2]), array([2, 4]), array([2, 7]))
    """
    windows = np.diff(events.key_starts) // n
    key = np.repeat(np.arange(events.keys, dtype=np.int64), windows)
    number = np.arange(len(key)) - np.repeat(np.cumsum(windows) - windows, windows)
    lo = events.key_starts[key] + number * n
    return Processed(key, events.start[lo + n - 1], lo, lo + n)


def tumbling_by_delta(events: Positions, attribute: Values, by: Any) -> Processed:
    """A window is processed when a row comes that is too far above its first one: evict, then insert.

    Examples
    --------
    >>> rows = Positions.of_events(np.array([1, 2, 3, 7, 9]), np.array([0, 5]))
    >>> found = tumbling_by_delta(rows, np.array([10, 11, 12, 13, 20]), by=2)
    >>> found.lo, found.hi, found.instant
    (array([0, 3]), array([3, 4]), array([7, 9]))
    """
    lo = Distances(attribute, events.key_starts, by).chain()
    hi, key = np.append(lo[1:], len(events))[: len(lo)], events.keys_at(lo)
    broken = hi < events.key_starts[key + 1]
    key, lo, hi = key[broken], lo[broken], hi[broken]
    return Processed(key, events.start[hi], lo, hi)


def tumbling_by_time(
    events: Positions,
    period: int,
    end: int,
    *,
    reopened: bool = False,
    grid: int | None = None,
    begun: Begun | None = None,
) -> Processed:
    """A window is processed a period after it was opened, before rows that arrive at that instant.

    Parameters
    ----------
    end
        Until when the clock runs.
    reopened
        Whether a window is gone once it was processed, and the next row opens another; otherwise one period follows on
        the other, whether rows come or not.
    grid
        An instant where a period begins; without it they begin with the first row of a key.

    Examples
    --------
    >>> rows = Positions.of_events(np.array([1, 2, 3, 7, 9]), np.array([0, 5]))
    >>> for how in ({"reopened": True}, {}, {"grid": 0}):
    ...     found = tumbling_by_time(rows, 4, 11, **how)
    ...     print(found.lo, found.hi, found.instant)
    [0 3] [3 5] [ 5 11]
    [0 3] [3 4] [5 9]
    [0 3] [3 4] [4 8]
    """
    period = min(period, 2 * FARTHEST)
    if reopened:
        # Whole µs: at least a period apart is further apart than one less.
        lo = Distances(events.start, events.key_starts, period - 1).chain()
        hi, owner = np.append(lo[1:], len(events))[: len(lo)], events.keys_at(lo)
        instant = events.start[lo] + period
    else:
        key = key_of_rows(events)
        opened = opened_at(events, begun, grid)[key]
        number = (events.start - opened) // period
        lo, hi = _runs(key, number)
        instant, owner = opened[lo] + (number[lo] + 1) * period, key[lo]
    return Processed(owner, instant, lo, hi).where(instant <= end)


def tumbling_by_gap(events: Positions, gap: int, end: int) -> Processed:
    """A session is processed when no row has come for longer than a gap; rows exactly a gap apart are of one session.

    Examples
    --------
    >>> rows = Positions.of_events(np.array([1, 2, 4, 7, 9]), np.array([0, 5]))
    >>> found = tumbling_by_gap(rows, 2, end=12)
    >>> found.lo, found.hi, found.instant
    (array([0, 3]), array([3, 5]), array([ 7, 12]))
    """
    gap, key = min(gap, 2 * FARTHEST), key_of_rows(events)
    apart = np.append(False, np.diff(events.start) > gap)[: len(events)]
    lo, hi = _runs(key, np.cumsum(apart))
    instant = events.start[hi - 1] + gap + 1
    return Processed(key[lo], instant, lo, hi).where(instant <= end)


def tumbling_by_punctuation(events: Positions, punctuations: Integers) -> Processed:
    """A window is processed when a punctuation comes, after rows that arrive at that instant, for all keys.

    Examples
    --------
    >>> rows = Positions.of_events(np.array([1, 2, 3, 7, 9]), np.array([0, 5]))
    >>> found = tumbling_by_punctuation(rows, np.array([3, 5, 8]))
    >>> found.lo, found.hi, found.instant
    (array([0, 3]), array([3, 4]), array([3, 8]))
    """
    key = key_of_rows(events)
    number = np.searchsorted(punctuations, events.start, side="left")
    lo, hi = _runs(key, number)
    ended = number[lo] < len(punctuations)
    lo, hi = lo[ended], hi[ended]
    return Processed(key[lo], punctuations[number[lo]], lo, hi)


def tumbling_by_marks(events: Positions, marks: Positions) -> Processed:
    """The same, where a punctuation ends the window of its own key only.

    Examples
    --------
    >>> rows = Positions.of_events(np.array([1, 2, 3, 2, 9]), np.array([0, 3, 5]))
    >>> found = tumbling_by_marks(rows, Positions.of_events(np.array([2, 5]), np.array([0, 1, 2])))
    >>> found.key, found.lo, found.hi, found.instant
    (array([0, 1]), array([0, 3]), array([2, 4]), array([2, 5]))
    """
    key = key_of_rows(events)
    number = marks.search(key, events.start)
    lo, hi = _runs(key, number)
    ended = number[lo] < marks.key_starts[key[lo] + 1]
    lo, hi = lo[ended], hi[ended]
    return Processed(key[lo], marks.start[number[lo]], lo, hi)


def _runs(key: Integers, number: Integers) -> tuple[Integers, Integers]:
    """Neighbours with the same key and number."""
    change = np.append(True, (key[1:] != key[:-1]) | (number[1:] != number[:-1]))[: len(key)]
    lo = np.flatnonzero(change)
    return lo, np.append(lo[1:], len(key))[: len(lo)]
