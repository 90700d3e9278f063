"""Sliding windows of all nine pairs of policies, as index pairs over rows sorted by key and arrival.

==========  =====================================================================================================
requires    rows in the order of arrival within each key; arrivals in µs where time counts
costs       O(1) for each moment by count, a search by delta and by time. Triggers by delta: a search for every window,
            or for every row where windows hold few rows (``distances``)
paper       Gedik 2014, sections 3.1.2 and 3.3, Table II (``order``)
==========  =====================================================================================================

A trigger policy gives the moments at which a window is processed; the order of its steps says which rows have been
inserted by then. An eviction policy gives the rows that are left, and whether the window has been full. Each looks only
at the moments, so that three triggers and three evictions make all nine pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from panes.errors import PlanError
from panes.frames.distances import Booleans, Distances, Values
from panes.frames.order import ARRIVAL, CLOCK, EVICT, FULL, Order, clock_has_done, sees_its_instant
from panes.frames.positions import FARTHEST, MOST_ANSWERS, Integers, Positions, ranges
from panes.frames.row_frame import KeyProgress, RowFrame, key_of_rows
from panes.timeline import format_duration


@dataclass(frozen=True, slots=True, eq=False)
class TriggerMoments:
    """When windows are processed.

    Parameters
    ----------
    key, instant
        The ordinal of the key, and when.
    hi
        The row after the last one that has been inserted. In every order of steps, a row that is in has evicted the
        rows that leave because of it.
    seen
        The last row that has arrived. If it is not inserted yet, the window already knows whether it is full.
    cause
        What processes the windows: the arrival of rows, or the clock.
    """

    key: Integers
    instant: Integers
    hi: Integers
    seen: Integers
    cause: str

    @classmethod
    def at_rows(cls, events: Positions, key: Integers, row: Integers, order: Order) -> TriggerMoments:
        """Return the moments at the arrival of some rows."""
        return cls(key, events.start[row], row + order.holds_arriving, row, ARRIVAL)

    @classmethod
    def at_instants(cls, events: Positions, key: Integers, instant: Integers) -> TriggerMoments:
        """Return the moments at instants of the clock."""
        hi = events.search(key, instant + 1 if sees_its_instant(CLOCK) else instant)
        return cls(key, instant, hi, hi - 1, CLOCK)


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """The first row that is left at each moment, and whether the window has been full by then."""

    lo: Integers
    full: Booleans


def sliding(moments: TriggerMoments, kept: Kept, *, partial: bool = True) -> RowFrame:
    """Return what windows held when they were processed.

    Parameters
    ----------
    partial
        Whether windows that had not been full by then count.

    Examples
    --------
    >>> from panes.frames.order import ORDER
    >>> rows, progress = Positions.of_events(np.array([1, 2, 3, 7, 9]), np.array([0, 5])), KeyProgress.none(1)
    >>> moments = every_rows(rows, 2, progress, ORDER["count", "count"])
    >>> frame = sliding(moments, keep_rows(rows, moments, 3, progress), partial=False)
    >>> frame.lo, frame.hi, frame.instant
    (array([1]), array([4]), array([7]))
    """
    frame = RowFrame(moments.key, moments.instant, kept.lo, moments.hi)
    return frame if partial else frame.where(kept.full)


# Triggers


def every_rows(events: Positions, m: int, progress: KeyProgress, order: Order) -> TriggerMoments:
    """Trigger with every m-th row."""
    # Rows that came since the last trigger count, even if they are gone.
    times = (np.diff(events.key_starts) - progress.held + progress.received) // m
    first = progress.first_new(events) - progress.received
    key = np.repeat(np.arange(events.keys, dtype=np.int64), times)
    number = np.arange(len(key)) - np.repeat(np.cumsum(times) - times, times)
    return TriggerMoments.at_rows(events, key, first[key] + (number + 1) * m - 1, order)


def before_instants(events: Positions, moments: TriggerMoments) -> TriggerMoments:
    """Return the same moments without the rows of their own instants.

    Where windows go on, all rows of an instant are new together: those that are held came before it.

    Examples
    --------
    >>> from panes.frames.order import ORDER
    >>> rows = Positions.of_events(np.array([1, 2, 2, 7]), np.array([0, 4]))
    >>> before_instants(rows, every_rows(rows, 1, KeyProgress.none(1), ORDER["count", "count"])).hi
    array([0, 1, 1, 3])
    """
    return replace(moments, hi=events.search(moments.key, moments.instant))


def every_delta(events: Positions, attribute: Values, by: Any, progress: KeyProgress, order: Order) -> TriggerMoments:
    """Trigger with every row that is too far above the one that triggered last.

    The first row of a key stands for the one that triggered last (figure 2).
    """
    if progress.known.any():
        key, row = _beyond_reference(events, attribute, by, progress)
    else:
        row = Distances(attribute, events.key_starts, by).chain()
        key = events.keys_at(row)
        # The chain has the first rows of keys too.
        broke = row > events.key_starts[key]
        key, row = key[broke], row[broke]
    return TriggerMoments.at_rows(events, key, row, order)


def _beyond_reference(
    events: Positions, attribute: Values, by: Any, progress: KeyProgress
) -> tuple[Integers, Integers]:
    """The keys and rows that trigger where the row that triggered last may be gone: its value precedes the new rows."""
    first = progress.first_new(events)
    new = np.diff(events.key_starts) - progress.held
    starts = np.append(0, np.cumsum(new + progress.known))
    values = np.empty(starts[-1], attribute.dtype)
    ahead = starts[:-1][progress.known]
    values[ahead] = progress.reference[progress.known]
    is_new = np.ones(len(values), np.bool_)
    is_new[ahead] = False
    values[is_new] = attribute[ranges(first, new)]
    row = Distances(values, starts, by).chain()
    key = np.searchsorted(starts, row, side="right") - 1
    broke = row > starts[key]
    key = key[broke]
    return key, row[broke] - starts[key] - progress.known[key] + first[key]


def every_period(
    events: Positions,
    period: int,
    end: int,
    progress: KeyProgress,
    *,
    lasting: int | None = None,
    grid: int | None = None,
) -> TriggerMoments:
    """Trigger after every period, from the first one that ends after a key's first row, as long as the clock runs.

    Parameters
    ----------
    end
        How far the clock runs.
    lasting
        How long rows stay in the window, where it may become empty: then no moments are made at which it is.
    grid
        An instant where a period begins; without it, periods begin with the first row of a key.
    """
    period = min(period, 2 * FARTHEST)
    key, opened, first, count = _periods(events, period, end, progress, lasting, grid)
    total = float(count.sum(dtype=float))
    if total > MOST_ANSWERS:
        raise PlanError(
            f"a window that is answered every {format_duration(period)} would be answered {total:,.0f} times, and at "
            f"most {MOST_ANSWERS:,} answers are given at once. Take a longer every=, pn.sliding(...) for an answer per "
            "row, or fewer events at once."
        )
    key = np.repeat(key, count)
    tick = np.arange(len(key)) - np.repeat(np.cumsum(count) - count - first, count)
    return TriggerMoments.at_instants(events, key, np.repeat(opened, count) + tick * period)


def periods_within(
    events: Positions,
    period: int,
    end: int,
    progress: KeyProgress,
    *,
    lasting: int | None = None,
    grid: int | None = None,
) -> float:
    """Return how many moments ``every_period`` would make: on a clock that runs for long, more than there are rows.

    Examples
    --------
    >>> periods_within(Positions.of_events(np.array([1, 2, 5]), np.array([0, 2, 3])), 2, 2**40, KeyProgress.none(2))
    1099511627772.0
    """
    *_, count = _periods(events, min(period, 2 * FARTHEST), end, progress, lasting, grid)
    return float(count.sum(dtype=float))


def _periods(
    events: Positions, period: int, end: int, progress: KeyProgress, lasting: int | None, grid: int | None
) -> tuple[Integers, Integers, Integers, Integers]:
    """Per key, or per row where rows leave by time: its key, where periods begin, the first one, and their number."""
    if lasting is None:
        # A row stays in the window until another one comes.
        row = events.key_starts[:-1][events.occupied]
        key = events.occupied
    else:
        row, key = np.arange(len(events)), key_of_rows(events)
    opened = progress.periods_from(events, grid)[key]
    first = (events.start[row] - opened) // period + 1
    first = np.where(progress.known[key], np.maximum(first, (progress.until - opened) // period + 1), first)
    last = (end - opened) // period
    if lasting is not None:
        last = np.minimum(last, (events.start[row] + _stay(lasting, CLOCK) - opened) // period)
        # The row before has made moments for some of these periods.
        again = key[1:] == key[:-1]
        first[1:][again] = np.maximum(first[1:], last[:-1] + 1)[again]
    return key, opened, first, np.maximum(last - first + 1, 0)


# Evictions


def keep_rows(events: Positions, moments: TriggerMoments, n: int, progress: KeyProgress) -> Kept:
    """Keep the last n rows; the window is full with the n-th."""
    first = events.key_starts[moments.key]
    return Kept(np.maximum(moments.hi - n, first), (moments.hi - first >= n) | progress.full[moments.key])


def keep_delta(events: Positions, moments: TriggerMoments, attribute: Values, by: Any, progress: KeyProgress) -> Kept:
    """Keep the rows that the last inserted one left; the window is full when a row is too far above the first."""
    apart = Distances(attribute, events.key_starts, by)
    return Kept(
        apart.first_within(moments.hi - 1, moments.key),
        # The first row of all is held until then.
        apart.apart(moments.seen, events.key_starts[moments.key]) | progress.full[moments.key],
    )


def keep_period(events: Positions, moments: TriggerMoments, period: int, progress: KeyProgress) -> Kept:
    """Keep the rows that are no older than a period; the window is full a period after the first row of all.

    A row is due to leave when it is older than a period. Whether it has left by a moment at that very instant, and
    whether a window that is due to be full is full by then, follows from the order of steps.
    """
    oldest = np.maximum(moments.instant - _stay(period, moments.cause), -FARTHEST)
    lo = events.search(moments.key, oldest)
    age = moments.instant - progress.opened_at(events)[moments.key]
    full = min(period, 2 * FARTHEST) + (not clock_has_done(FULL, moments.cause))
    return Kept(np.minimum(lo, moments.hi), age >= full)


def _stay(period: int, cause: str) -> int:
    """Return how long after its arrival a row is still held, where it leaves once it is older than a period."""
    return min(period, 2 * FARTHEST) + (not clock_has_done(EVICT, cause))
