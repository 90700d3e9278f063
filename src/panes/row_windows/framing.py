"""Turn a window of rows into index pairs ``(lo, hi)`` over sorted rows: the frame of a window of rows.

==========  =====================================================================================================
requires    rows sorted by key and arrival. Where keys are evicted (``pn.evict``), one key depends on all others:
            ``framing_by_operator`` finds the pairs then
costs       those of ``frames.row_tumbling`` and ``frames.row_sliding``; no row is touched on its own
paper       Gedik 2014, section 3, Tables I and II
==========  =====================================================================================================

The instances are those that the containers of ``panes.operators`` process when the same rows arrive on an event-time
clock that all keys share. A table is a stream with one batch: ``Framing`` finds the pairs of either, and
``Framing.progress_after`` says how the windows go on with the next rows. However a stream is cut into batches, the
instances are the same. (Windows in time have ``panes.frames.frame``.)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from panes.errors import OrderError
from panes.frames.distances import Booleans, Values, first_fall
from panes.frames.order import ARRIVAL
from panes.frames.positions import Integers
from panes.frames.row_frame import Arrivals, KeyProgress, RowFrame
from panes.frames.row_sliding import (
    Kept,
    TriggerMoments,
    before_instants,
    every_delta,
    every_period,
    every_rows,
    keep_delta,
    keep_period,
    keep_rows,
    periods_within,
    sliding,
)
from panes.frames.row_tumbling import (
    tumbling_by_count,
    tumbling_by_delta,
    tumbling_by_gap,
    tumbling_by_marks,
    tumbling_by_punctuation,
    tumbling_by_time,
)
from panes.operators.policies import Gap, SlidingPolicies, Time, TumblingPolicies, WindowPolicies, policy_text
from panes.queries.measures import Delta, Rows
from panes.row_windows.framing_by_operator import frame_by_operator
from panes.row_windows.window_input import WindowInput


def frame_rows(input: WindowInput, arrivals: Arrivals) -> tuple[RowFrame, Integers]:
    """Return the instances to answer, and the number of each one within its key."""
    if input.together:
        return frame_by_operator(input.window, arrivals)
    frame = Framing(input.window, arrivals).frame
    frame = frame if leaves_out(input.window) else frame.held()
    return frame, frame.numbers()


def leaves_out(window: WindowPolicies) -> bool:
    """Return whether a window leaves out the latest rows, so that it is answered even if it holds none."""
    return isinstance(window, SlidingPolicies) and (window.before or window.ago > 0)


class Framing:
    """A window over sorted rows, all keys at once.

    Parameters
    ----------
    progress
        How far the windows came with earlier rows; the column then begins with the rows that are still held. None for
        a table, or the first batch.

    Examples
    --------
    >>> from panes.frames import Positions
    >>> window = SlidingPolicies(Rows(3), Rows(2))
    >>> first = Framing(window, Arrivals(Positions.of_events(np.array([1, 2, 3]), np.array([0, 3])), end=4))
    >>> first.frame.lo, first.frame.hi
    (array([0]), array([2]))
    >>> rows = Positions.of_events(np.array([1, 2, 3, 8, 9]), np.array([0, 5]))
    >>> second = Framing(window, Arrivals(rows, end=10), first.progress_after())
    >>> second.frame.lo, second.frame.hi
    (array([1]), array([4]))
    """

    def __init__(self, window: WindowPolicies, arrivals: Arrivals, progress: KeyProgress | None = None) -> None:
        self._window, self._arrivals = window, arrivals
        self._progress = progress or KeyProgress.none(arrivals.events.keys)
        check_ascending(window, arrivals)
        self.frame: RowFrame
        """Every instance that was processed, empty ones included, by key."""
        if isinstance(window, TumblingPolicies):
            self.frame = _tumbling(window, arrivals, self._progress)
            return
        self._moments = _moments_of(window, arrivals, self._progress)
        kept = kept_at(window, arrivals, self._moments, self._progress)
        self.frame = sliding(self._moments, kept, partial=window.partial)
        if window.ago:
            # The newest rows are held, and left out of answers.
            self.frame = replace(self.frame, hi=np.maximum(self.frame.hi - window.ago, self.frame.lo))

    def progress_after(self) -> KeyProgress:
        """Return how far the windows are after these rows."""
        window, before, events = self._window, self._progress, self._arrivals.events
        starts, ends = events.key_starts[:-1], events.key_starts[1:]
        received, reference, full = before.received, before.reference, before.full
        if isinstance(window, SlidingPolicies):
            first, full = self._held_after(window)
            if isinstance(window.trigger, Rows):
                received = (received + ends - starts - before.held) % window.trigger.n
            elif isinstance(window.trigger, Delta):
                reference = self._reference_after(window.trigger)
        else:
            first = starts.copy()
            first[self.frame.key] = self.frame.hi  # the last instance of each key wins
        known = before.known | (ends > starts)
        return KeyProgress(known, ends - first, before.opened_at(events), received, reference, full, self._arrivals.end)

    def _held_after(self, window: SlidingPolicies) -> tuple[Integers, Booleans]:
        """The first row of each key that is still held, and whether its window has been full."""
        arrivals, ends = self._arrivals, self._arrivals.events.key_starts[1:]
        keys = arrivals.events.occupied
        # As a row that arrives then would find it: after what the clock does at that instant.
        last = TriggerMoments(keys, np.full(len(keys), arrivals.end), ends[keys], ends[keys] - 1, ARRIVAL)
        kept = kept_at(window, arrivals, last, self._progress)
        first, full = ends.copy(), self._progress.full.copy()
        first[keys], full[keys] = kept.lo, kept.full
        if isinstance(window.trigger, Delta):
            # The last row stays, whether it is in the window or not: the attribute must not fall below it.
            first[keys] = np.minimum(kept.lo, ends[keys] - 1)
        return first, full

    def _reference_after(self, trigger: Delta) -> Values:
        """The attribute of the row of each key that triggered last."""
        values, events, known = self._arrivals.attributes[trigger.column], self._arrivals.events, self._progress.known
        reference: Any = self._progress.reference.astype(values.dtype, copy=True)
        began = events.occupied[~known[events.occupied]]
        reference[began] = values[events.key_starts[began]]
        reference[self._moments.key] = values[self._moments.seen]  # the last moment of each key wins
        moved: Values = reference
        return moved


def check_ascending(window: WindowPolicies, arrivals: Arrivals) -> None:
    """Reject an attribute of a delta policy that decreases within a key."""
    for policy in window.deltas:
        values = arrivals.attributes[policy.column]
        row = first_fall(values, arrivals.events.key_starts)
        if row is not None:
            raise OrderError(
                f"{policy.column!r} fell from {values[row - 1]} to {values[row]} in the order of time, and "
                f"{policy_text(policy)} needs an attribute that never decreases within a key. Use the column that "
                "orders the rows as at=, or another attribute."
            )


def _tumbling(window: TumblingPolicies, arrivals: Arrivals, progress: KeyProgress) -> RowFrame:
    policy, events = window.evict, arrivals.events
    if isinstance(policy, Rows):
        return tumbling_by_count(events, policy.n)
    if isinstance(policy, Delta):
        return tumbling_by_delta(events, arrivals.attributes[policy.column], policy.by)
    if isinstance(policy, Time):
        reopened, grid = policy.origin == "row", _grid(policy)
        return tumbling_by_time(events, policy.period, arrivals.end, reopened=reopened, grid=grid, progress=progress)
    if isinstance(policy, Gap):
        return tumbling_by_gap(events, policy.gap, arrivals.end)
    if policy.scope == "key":
        assert arrivals.marks is not None
        return tumbling_by_marks(events, arrivals.marks)
    return tumbling_by_punctuation(events, arrivals.punctuations)


def _moments_of(window: SlidingPolicies, arrivals: Arrivals, progress: KeyProgress) -> TriggerMoments:
    """When a sliding window is processed."""
    policy, events = window.trigger, arrivals.events
    if isinstance(policy, Rows):
        moments = every_rows(events, policy.n, progress, window.order)
        return before_instants(events, moments) if window.before else moments
    if isinstance(policy, Delta):
        return every_delta(events, arrivals.attributes[policy.column], policy.by, progress, window.order)
    lasting, grid = _lasting(window), _grid(policy)
    return every_period(events, policy.period, arrivals.end, progress, lasting=lasting, grid=grid)


def moments_on_the_clock(window: WindowPolicies, arrivals: Arrivals, progress: KeyProgress) -> float:
    """Return how often the clock processes a sliding window: as long as it runs, however few rows there are."""
    if not isinstance(window, SlidingPolicies) or not isinstance(window.trigger, Time):
        return 0.0
    period, lasting, grid = window.trigger.period, _lasting(window), _grid(window.trigger)
    return periods_within(arrivals.events, period, arrivals.end, progress, lasting=lasting, grid=grid)


def _grid(policy: Time) -> int | None:
    return policy.phase if policy.origin == "epoch" else None


def _lasting(window: SlidingPolicies) -> int | None:
    return window.evict.period if isinstance(window.evict, Time) else None


def kept_at(
    window: SlidingPolicies, arrivals: Arrivals, moments: TriggerMoments, progress: KeyProgress | None = None
) -> Kept:
    """Return what a sliding window holds at some moments, including the rows that answers leave out."""
    policy, events = window.evict, arrivals.events
    progress = progress or KeyProgress.none(events.keys)
    if isinstance(policy, Rows):
        return keep_rows(events, moments, policy.n + window.ago, progress)
    if isinstance(policy, Delta):
        return keep_delta(events, moments, arrivals.attributes[policy.column], policy.by, progress)
    return keep_period(events, moments, policy.period, progress)
