"""Sliding windows of nine pairs of policies, as index pairs over rows sorted by key and arrival.

==========  =====================================================================================================
requires    rows in the order of arrival within each key; arrivals in µs where time counts
costs       O(1) for each moment by count, a search by delta and by time. Triggers by delta: a search for every window,
            or for every row where they are many (``chains``)
paper       Gedik 2014, sections 3.1.2 and 3.3, Table II
==========  =====================================================================================================

Triggers say at which moments a window is processed and how many rows have been inserted by then; evictions say which
of these rows are left, and whether the window has been full. Each looks only at the moments, so that three triggers
and three evictions make all nine pairs. The order of Table II is in the moments:

* a trigger by count comes after the insertion of its row, by delta before it and before its evictions;
* on the clock, what is due at an instant happens before rows that arrive at that instant, evictions first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from panes.errors import PlanError
from panes.frames.distances import Booleans, Distances, Values
from panes.frames.positions import FARTHEST, Integers, Positions, ranges
from panes.frames.row_windows import Begun, Processed, key_of_rows, opened_at

_MOST: Final = 1 << 27
"""Windows of one call: four columns of eight bytes each, and as much again while they are found."""


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """When windows are processed.

    Parameters
    ----------
    key, instant
        Of which key, and when.
    hi
        The row after the last one that has been inserted.
    seen
        The last row that has arrived. It may be at the door still: then it is not inserted, but the window knows that
        it is full.
    """

    key: Integers
    instant: Integers
    hi: Integers
    seen: Integers


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """The first row that is left at each moment, and whether the window has been full by then."""

    lo: Integers
    full: Booleans


def sliding(moments: Moments, kept: Kept, *, partial: bool = True) -> Processed:
    """What windows held when they were processed.

    Parameters
    ----------
    partial
        Whether windows count that had not been full by then.

    Examples
    --------
    >>> rows = Positions.of_events(np.array([1, 2, 3, 7, 9]), np.array([0, 5]))
    >>> moments = every_rows(rows, 2)
    >>> found = sliding(moments, keep_rows(rows, moments, 3), partial=False)
    >>> found.lo, found.hi, found.instant
    (array([1]), array([4]), array([7]))
    """
    found = Processed(moments.key, moments.instant, kept.lo, moments.hi)
    return found if partial else found.where(kept.full)


# Triggers


def every_rows(events: Positions, m: int, begun: Begun | None = None) -> Moments:
    """After every m-th row: evict, insert, trigger; by time: insert, trigger."""
    rows, first = np.diff(events.key_starts), events.key_starts[:-1]
    if begun is not None:
        # Rows that came since the last trigger count, wherever they are now.
        rows, first = rows - begun.held + begun.received, begun.first_new(events) - begun.received
    times = rows // m
    key = np.repeat(np.arange(events.keys, dtype=np.int64), times)
    number = np.arange(len(key)) - np.repeat(np.cumsum(times) - times, times)
    row = first[key] + (number + 1) * m - 1
    return Moments(key, events.start[row], row + 1, row)


def before_instants(events: Positions, moments: Moments) -> Moments:
    """The same moments, of which none knows the rows of its own instant.

    Where windows go on, all rows of an instant are new together: those that are held came before it.

    Examples
    --------
    >>> rows = Positions.of_events(np.array([1, 2, 2, 7]), np.array([0, 4]))
    >>> before_instants(rows, every_rows(rows, 1)).hi
    array([0, 1, 1, 3])
    """
    return replace(moments, hi=events.search(moments.key, moments.instant))


def every_delta(events: Positions, attribute: Values, by: Any, begun: Begun | None = None) -> Moments:
    """Before a row that is too far above the one that triggered last: trigger, evict, insert.

    The first row stands for the one that triggered before anything did (figure 2).
    """
    if begun is not None:
        return _after_reference(events, attribute, by, begun)
    row = Distances(attribute, events.key_starts, by).chain()
    key = events.keys_at(row)
    # All but the first rows of keys broke something.
    broke = row > events.key_starts[key]
    key, row = key[broke], row[broke]
    return Moments(key, events.start[row], row, row)


def _after_reference(events: Positions, attribute: Values, by: Any, begun: Begun) -> Moments:
    """The same, where the row that triggered last may be gone: its attribute stands before the new rows."""
    first = begun.first_new(events)
    new = np.diff(events.key_starts) - begun.held
    starts = np.append(0, np.cumsum(new + begun.known))
    values = np.empty(starts[-1], attribute.dtype)
    ahead = starts[:-1][begun.known]
    values[ahead] = begun.reference[begun.known]
    is_new = np.ones(len(values), np.bool_)
    is_new[ahead] = False
    values[is_new] = attribute[ranges(first, new)]
    row = Distances(values, starts, by).chain()
    key = np.searchsorted(starts, row, side="right") - 1
    broke = row > starts[key]
    key = key[broke]
    row = row[broke] - starts[key] - begun.known[key] + first[key]
    return Moments(key, events.start[row], row, row)


def every_period(
    events: Positions,
    period: int,
    end: int,
    *,
    lasting: int | None = None,
    grid: int | None = None,
    begun: Begun | None = None,
) -> Moments:
    """After every period, from the first one that ends after the first row of a key, until the clock stands still.

    Parameters
    ----------
    end
        Until when the clock runs.
    lasting
        How long rows stay in the window, where it may become empty: then no moments are made at which it is.
    grid
        An instant where a period begins; without it they begin with the first row of a key.
    """
    period = min(period, 2 * FARTHEST)
    key, opened, first, count = _periods(events, period, end, lasting, grid, begun)
    total = float(count.sum(dtype=float))
    if total > _MOST:
        raise PlanError(
            f"a trigger every {period} µs would process windows {total:,.0f} times. Take a longer period, or fewer "
            "events at once."
        )
    key = np.repeat(key, count)
    tick = np.arange(len(key)) - np.repeat(np.cumsum(count) - count - first, count)
    instant = np.repeat(opened, count) + tick * period
    hi = events.search(key, instant)
    return Moments(key, instant, hi, hi - 1)


def periods_within(
    events: Positions,
    period: int,
    end: int,
    *,
    lasting: int | None = None,
    grid: int | None = None,
    begun: Begun | None = None,
) -> float:
    """How many moments ``every_period`` would make; the clock may run for long, so that they are more than rows.

    Examples
    --------
    >>> periods_within(Positions.of_events(np.array([1, 2, 5]), np.array([0, 2, 3])), 2, end=2**40)
    1099511627772.0
    """
    *_, count = _periods(events, min(period, 2 * FARTHEST), end, lasting, grid, begun)
    return float(count.sum(dtype=float))


def _periods(
    events: Positions, period: int, end: int, lasting: int | None, grid: int | None, begun: Begun | None
) -> tuple[Integers, Integers, Integers, Integers]:
    """Keys, or keys of rows where these leave by time: when each was opened, its first period, and how many follow."""
    if lasting is None:
        # A row that is in stays in until another one comes.
        row = events.key_starts[:-1][events.occupied]
        key = events.occupied
    else:
        row, key = np.arange(len(events)), key_of_rows(events)
    began = begun or Begun.nothing(events.keys)
    opened = opened_at(events, began, grid)[key]
    first = (events.start[row] - opened) // period + 1
    first = np.where(began.known[key], np.maximum(first, (began.until - opened) // period + 1), first)
    last = (end - opened) // period
    if lasting is not None:
        last = np.minimum(last, (events.start[row] + min(lasting, 2 * FARTHEST) - opened) // period)
        # What the row before has made moments for is done.
        again = key[1:] == key[:-1]
        first[1:][again] = np.maximum(first[1:], last[:-1] + 1)[again]
    return key, opened, first, np.maximum(last - first + 1, 0)


# Evictions


def keep_rows(events: Positions, moments: Moments, n: int, begun: Begun | None = None) -> Kept:
    """The last n rows; full with the n-th."""
    first = events.key_starts[moments.key]
    return Kept(np.maximum(moments.hi - n, first), (moments.hi - first >= n) | _full(moments, begun))


def keep_delta(events: Positions, moments: Moments, attribute: Values, by: Any, begun: Begun | None = None) -> Kept:
    """The rows that the last one inserted has left; full when a row comes that is too far above the first of all."""
    apart = Distances(attribute, events.key_starts, by)
    return Kept(
        apart.first_within(moments.hi - 1, moments.key),
        # The first of all is held until then.
        apart.apart(moments.seen, events.key_starts[moments.key]) | _full(moments, begun),
    )


def keep_period(events: Positions, moments: Moments, period: int, begun: Begun | None = None) -> Kept:
    """The rows that are no older than a period; full when a period has passed since the first of all."""
    period = min(period, 2 * FARTHEST)
    lo = events.search(moments.key, np.maximum(moments.instant - period, -FARTHEST))
    opened = (begun or Begun.nothing(events.keys)).opened_at(events)[moments.key]
    return Kept(np.minimum(lo, moments.hi), moments.instant - opened >= period)


def _full(moments: Moments, begun: Begun | None) -> Booleans:
    return np.zeros(len(moments.key), np.bool_) if begun is None else begun.full[moments.key]
