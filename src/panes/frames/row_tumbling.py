"""Tumbling windows by count, delta, time, gap and punctuation, as index pairs over rows sorted by key and arrival.

==========  =====================================================================================================
requires    rows in the order of arrival within each key; arrivals in µs where time counts
costs       count, gap, punctuation: O(rows). Delta, and time with ``reopened``: one search per window, or one per row
            where windows hold few rows (``distances``)
paper       Gedik 2014, sections 3.1.1 and 3.3, Table I (``order``)
==========  =====================================================================================================

A window that is not full when the rows end has not been processed and is not returned. It goes on if its rows come
first in the next column; only windows on a grid from a key's first row need ``KeyProgress`` for that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from panes.frames.distances import Distances, Values
from panes.frames.order import ORDER, PUNCTUATION, sees_its_instant
from panes.frames.positions import FARTHEST, Integers, Positions
from panes.frames.row_frame import KeyProgress, RowFrame, key_of_rows


def tumbling_by_count(events: Positions, n: int) -> RowFrame:
    """Frame windows of n rows.

    Examples
    --------
    >>> rows = Positions.of_events(np.array([1, 2, 3, 7, 9]), np.array([0, 5]))
    >>> frame = tumbling_by_count(rows, 2)
    >>> frame.lo, frame.hi, frame.instant
    (array([0, 2]), array([2, 4]), array([2, 7]))
    """
    windows = np.diff(events.key_starts) // n
    key = np.repeat(np.arange(events.keys, dtype=np.int64), windows)
    number = np.arange(len(key)) - np.repeat(np.cumsum(windows) - windows, windows)
    lo = events.key_starts[key] + number * n
    return _flushed_by_a_row("count", events, key, lo, lo + n)


def tumbling_by_delta(events: Positions, attribute: Values, by: Any) -> RowFrame:
    """Frame windows of rows at most ``by`` above the first: the row that is too far above it ends the window.

    Examples
    --------
    >>> rows = Positions.of_events(np.array([1, 2, 3, 7, 9]), np.array([0, 5]))
    >>> frame = tumbling_by_delta(rows, np.array([10, 11, 12, 13, 20]), by=2)
    >>> frame.lo, frame.hi, frame.instant
    (array([0, 3]), array([3, 4]), array([7, 9]))
    """
    lo = Distances(attribute, events.key_starts, by).chain()
    hi, key = np.append(lo[1:], len(events))[: len(lo)], events.keys_at(lo)
    broken = hi < events.key_starts[key + 1]
    return _flushed_by_a_row("delta", events, key[broken], lo[broken], hi[broken])


def _flushed_by_a_row(policy: str, events: Positions, key: Integers, lo: Integers, hi: Integers) -> RowFrame:
    """Windows that are flushed by their last row, or by the row after it."""
    return RowFrame(key, events.start[hi - ORDER[policy, None].holds_arriving], lo, hi)


def tumbling_by_time(
    events: Positions,
    period: int,
    end: int,
    *,
    reopened: bool = False,
    grid: int | None = None,
    progress: KeyProgress | None = None,
) -> RowFrame:
    """Frame windows that end a period after they were opened. Periods are half-open.

    Parameters
    ----------
    end
        How far the clock runs.
    reopened
        Whether a window is gone once it was processed, and the next row opens another. Otherwise periods follow back
        to back, whether rows come or not.
    grid
        An instant where a period begins; without it, periods begin with the first row of a key.

    Examples
    --------
    >>> rows = Positions.of_events(np.array([1, 2, 3, 7, 9]), np.array([0, 5]))
    >>> for how in ({"reopened": True}, {}, {"grid": 0}):
    ...     frame = tumbling_by_time(rows, 4, 11, **how)
    ...     print(frame.lo, frame.hi, frame.instant)
    [0 3] [3 5] [ 5 11]
    [0 3] [3 4] [5 9]
    [0 3] [3 4] [4 8]
    """
    period = min(period, 2 * FARTHEST)
    if reopened:
        # Whole µs: at least a period apart is further apart than one less.
        lo = Distances(events.start, events.key_starts, period - 1).chain()
        hi, key = np.append(lo[1:], len(events))[: len(lo)], events.keys_at(lo)
        instant = events.start[lo] + period
    else:
        key_of = key_of_rows(events)
        opened = (progress or KeyProgress.none(events.keys)).periods_from(events, grid)[key_of]
        number = (events.start - opened) // period
        lo, hi = _neighbours(key_of, number)
        instant, key = opened[lo] + (number[lo] + 1) * period, key_of[lo]
    return RowFrame(key, instant, lo, hi).where(instant <= end)


def tumbling_by_gap(events: Positions, gap: int, end: int) -> RowFrame:
    """Frame sessions: rows at most a gap apart. A session is processed when no row has come for longer than the gap.

    Examples
    --------
    >>> rows = Positions.of_events(np.array([1, 2, 4, 7, 9]), np.array([0, 5]))
    >>> frame = tumbling_by_gap(rows, 2, end=12)
    >>> frame.lo, frame.hi, frame.instant
    (array([0, 3]), array([3, 5]), array([ 7, 12]))
    """
    gap, key = min(gap, 2 * FARTHEST), key_of_rows(events)
    apart = np.append(False, np.diff(events.start) > gap)[: len(events)]
    lo, hi = _neighbours(key, np.cumsum(apart))
    instant = events.start[hi - 1] + gap + 1
    return RowFrame(key[lo], instant, lo, hi).where(instant <= end)


def tumbling_by_punctuation(events: Positions, punctuations: Integers) -> RowFrame:
    """Frame windows that end with punctuations for all keys.

    Examples
    --------
    >>> rows = Positions.of_events(np.array([1, 2, 3, 7, 9]), np.array([0, 5]))
    >>> frame = tumbling_by_punctuation(rows, np.array([3, 5, 8]))
    >>> frame.lo, frame.hi, frame.instant
    (array([0, 3]), array([3, 4]), array([3, 8]))
    """
    key = key_of_rows(events)
    number = np.searchsorted(punctuations, events.start, side="left" if sees_its_instant(PUNCTUATION) else "right")
    lo, hi = _neighbours(key, number)
    ended = number[lo] < len(punctuations)
    lo, hi = lo[ended], hi[ended]
    return RowFrame(key[lo], punctuations[number[lo]], lo, hi)


def tumbling_by_marks(events: Positions, marks: Positions) -> RowFrame:
    """Frame windows that end with punctuations of their own key.

    Examples
    --------
    >>> rows = Positions.of_events(np.array([1, 2, 3, 2, 9]), np.array([0, 3, 5]))
    >>> frame = tumbling_by_marks(rows, Positions.of_events(np.array([2, 5]), np.array([0, 1, 2])))
    >>> frame.key, frame.lo, frame.hi, frame.instant
    (array([0, 1]), array([0, 3]), array([2, 4]), array([2, 5]))
    """
    key = key_of_rows(events)
    number = marks.search(key, events.start if sees_its_instant(PUNCTUATION) else events.start + 1)
    lo, hi = _neighbours(key, number)
    ended = number[lo] < marks.key_starts[key[lo] + 1]
    lo, hi = lo[ended], hi[ended]
    return RowFrame(key[lo], marks.start[number[lo]], lo, hi)


def _neighbours(key: Integers, number: Integers) -> tuple[Integers, Integers]:
    """Neighbouring rows with the same key and number, as half-open pairs."""
    change = np.append(True, (key[1:] != key[:-1]) | (number[1:] != number[:-1]))[: len(key)]
    lo = np.flatnonzero(change)
    return lo, np.append(lo[1:], len(key))[: len(lo)]
