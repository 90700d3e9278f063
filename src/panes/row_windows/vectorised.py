"""Declared windows as index pairs over sorted rows: all windows of all partitions at once.

==========  =====================================================================================================
requires    rows sorted by partition and arrival; no partition eviction, which depends on all partitions together
costs       those of ``frames.tumbling_policies`` and ``frames.sliding_policies``; no tuple is touched
paper       Gedik 2014, section 3, Tables I and II
==========  =====================================================================================================

The windows are those that the library processes when the same tuples arrive on an event-time clock: what is due at an
instant happens before tuples that arrive at that instant, and all partitions share the clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from panes.errors import OrderError
from panes.frames import Positions
from panes.frames.distances import Values, first_fall
from panes.frames.positions import Integers
from panes.frames.row_windows import Begun, Processed
from panes.frames.sliding import (
    Kept,
    Moments,
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
from panes.frames.tumbling import (
    tumbling_by_count,
    tumbling_by_delta,
    tumbling_by_gap,
    tumbling_by_marks,
    tumbling_by_punctuation,
    tumbling_by_time,
)
from panes.operators.policies import Attribute, Gap, SlidingPolicies, Time, TumblingPolicies, WindowPolicies
from panes.queries.measures import Delta, Rows


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Tuples in the order in which they arrived, partition after partition.

    Parameters
    ----------
    events
        When tuples arrived; by numbers where there is no clock.
    end
        Until when the clock runs.
    attributes
        The values of the attributes that delta policies go by.
    punctuations
        When window punctuations arrived: each after the tuples of its instant.
    marks
        The same where each of them ends the window of one key, by key.
    """

    events: Positions
    end: int
    attributes: Mapping[Attribute, Values] = field(default_factory=dict)
    punctuations: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    marks: Positions | None = None


def deltas_of(window: WindowPolicies) -> tuple[Delta, ...]:
    """The delta policies of a window."""
    policies = (window.evict, window.trigger) if isinstance(window, SlidingPolicies) else (window.evict,)
    return tuple(policy for policy in policies if isinstance(policy, Delta))


def check_order(window: WindowPolicies, arrivals: Arrivals) -> None:
    """Refuse an attribute of a delta policy that decreases within a partition."""
    for policy in deltas_of(window):
        values = arrivals.attributes[policy.column]
        row = first_fall(values, arrivals.events.key_starts)
        if row is not None:
            raise OrderError(
                f"{policy.column!r} fell from {values[row - 1]} to {values[row]} in the order of time, and {policy} "
                "goes by an attribute that never decreases within a partition. Take the column that orders the tuples "
                "for at=, or another attribute."
            )


def processed(window: WindowPolicies, arrivals: Arrivals, *, begun: Begun | None = None) -> Processed:
    """Every window that was processed, in the order of partitions.

    Parameters
    ----------
    begun
        What came before, where the first rows of partitions are only held.

    Examples
    --------
    >>> rows = Positions.of_events(np.array([1, 2, 3, 7, 9]), np.array([0, 5]))
    >>> window = SlidingPolicies(Time(5), Rows(2))
    >>> found = processed(window, Arrivals(rows, end=10))
    >>> found.lo, found.hi
    (array([0, 1]), array([2, 4]))
    """
    check_order(window, arrivals)
    if isinstance(window, TumblingPolicies):
        return _tumbling(window, arrivals, begun)
    return slid(window, arrivals, moments_of(window, arrivals, begun), begun)


def slid(window: SlidingPolicies, arrivals: Arrivals, moments: Moments, begun: Begun | None = None) -> Processed:
    """What a sliding window held at some moments."""
    found = sliding(moments, kept_at(window, arrivals, moments, begun), partial=window.partial)
    # The very last rows are held, and left out of answers.
    return replace(found, hi=np.maximum(found.hi - window.ago, found.lo)) if window.ago else found


def _tumbling(window: TumblingPolicies, arrivals: Arrivals, begun: Begun | None) -> Processed:
    policy, events = window.evict, arrivals.events
    if isinstance(policy, Rows):
        return tumbling_by_count(events, policy.n)
    if isinstance(policy, Delta):
        return tumbling_by_delta(events, arrivals.attributes[policy.column], policy.by)
    if isinstance(policy, Time):
        reopened, grid = policy.origin == "row", _grid(policy)
        return tumbling_by_time(events, policy.period, arrivals.end, reopened=reopened, grid=grid, begun=begun)
    if isinstance(policy, Gap):
        return tumbling_by_gap(events, policy.gap, arrivals.end)
    if policy.scope == "key":
        assert arrivals.marks is not None
        return tumbling_by_marks(events, arrivals.marks)
    return tumbling_by_punctuation(events, arrivals.punctuations)


def _grid(policy: Time) -> int | None:
    return policy.phase if policy.origin == "epoch" else None


def moments_of(window: SlidingPolicies, arrivals: Arrivals, begun: Begun | None = None) -> Moments:
    """When a sliding window is processed."""
    policy, events = window.trigger, arrivals.events
    if isinstance(policy, Rows):
        found = every_rows(events, policy.n, begun)
        return before_instants(events, found) if window.before else found
    if isinstance(policy, Delta):
        return every_delta(events, arrivals.attributes[policy.column], policy.by, begun)
    lasting, grid = _lasting(window), _grid(policy)
    return every_period(events, policy.period, arrivals.end, lasting=lasting, grid=grid, begun=begun)


def moments_on_the_clock(window: WindowPolicies, arrivals: Arrivals, begun: Begun) -> float:
    """How often a sliding window is processed on the clock: as long as that runs, however few the rows are."""
    if not isinstance(window, SlidingPolicies) or not isinstance(window.trigger, Time):
        return 0.0
    period, lasting, grid = window.trigger.period, _lasting(window), _grid(window.trigger)
    return periods_within(arrivals.events, period, arrivals.end, lasting=lasting, grid=grid, begun=begun)


def _lasting(window: SlidingPolicies) -> int | None:
    return window.evict.period if isinstance(window.evict, Time) else None


def kept_at(window: SlidingPolicies, arrivals: Arrivals, moments: Moments, begun: Begun | None = None) -> Kept:
    """What a sliding window holds at some moments, those rows included that answers leave out."""
    policy, events = window.evict, arrivals.events
    if isinstance(policy, Rows):
        return keep_rows(events, moments, policy.n + window.ago, begun)
    if isinstance(policy, Delta):
        return keep_delta(events, moments, arrivals.attributes[policy.column], policy.by, begun)
    return keep_period(events, moments, policy.period, begun)
