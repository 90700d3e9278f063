"""Declared windows that go on as rows come: index pairs over the rows that windows still hold and those that are new.

==========  =====================================================================================================
requires    what ``vectorised`` does; no partition eviction
costs       those of ``vectorised``, over the rows at hand
paper       Gedik 2014, section 3
==========  =====================================================================================================

However the rows of a stream are cut, the windows are those of all rows at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from panes.frames.distances import Values
from panes.frames.positions import Integers
from panes.frames.row_windows import Begun, Processed
from panes.frames.sliding import Moments
from panes.operators.policies import SlidingPolicies, WindowPolicies
from panes.queries.measures import Delta, Rows
from panes.row_windows.vectorised import Arrivals, check_order, kept_at, moments_of, processed, slid


@dataclass(frozen=True, eq=False)
class Continued:
    """What has happened by the end of some rows.

    Parameters
    ----------
    found
        The windows that were processed.
    first
        The first row of each key that its window still holds, or the end of the key.
    begun
        What has to be known with those rows when others come.
    """

    found: Processed
    first: Integers
    begun: Begun


def continued(window: WindowPolicies, arrivals: Arrivals, begun: Begun) -> Continued:
    """Let rows arrive and the clock run.

    Examples
    --------
    >>> from panes.frames import Positions
    >>> window = SlidingPolicies(Rows(3), Rows(2))
    >>> first = Positions.of_events(np.array([1, 2, 3]), np.array([0, 3]))
    >>> one = continued(window, Arrivals(first, end=4), Begun.nothing(1))
    >>> more = Positions.of_events(np.array([1, 2, 3, 8, 9]), np.array([0, 5]))
    >>> other = continued(window, Arrivals(more, end=10), one.begun)
    >>> other.found.lo, other.found.hi, other.first
    (array([1]), array([4]), array([2]))
    """
    events = arrivals.events
    ends = events.key_starts[1:]
    received, reference, full = begun.received, begun.reference, begun.full
    if isinstance(window, SlidingPolicies):
        check_order(window, arrivals)
        moments = moments_of(window, arrivals, begun)
        found = slid(window, arrivals, moments, begun)
        occupied = events.occupied
        last = Moments(occupied, np.full(len(occupied), arrivals.end), ends[occupied], ends[occupied] - 1)
        kept = kept_at(window, arrivals, last, begun)
        first, full = ends.copy(), full.copy()
        first[occupied], full[occupied] = kept.lo, kept.full
        if isinstance(window.trigger, Delta):
            # The last row stays, whether it is in the window or not: nothing may come below it.
            first[occupied] = np.minimum(kept.lo, ends[occupied] - 1)
        received = _received(window, arrivals, begun)
        reference = _reference(window, arrivals, moments, begun)
    else:
        found = processed(window, arrivals, begun=begun)
        first = events.key_starts[:-1].copy()
        first[found.key] = found.hi  # the last one of each key stays
    known = begun.known | (ends > events.key_starts[:-1])
    after = Begun(known, ends - first, begun.opened_at(events), received, reference, full, arrivals.end)
    return Continued(found, first, after)


def _received(window: SlidingPolicies, arrivals: Arrivals, begun: Begun) -> Integers:
    if not isinstance(window.trigger, Rows):
        return begun.received
    new = np.diff(arrivals.events.key_starts) - begun.held
    counted: Integers = (begun.received + new) % window.trigger.n
    return counted


def _reference(window: SlidingPolicies, arrivals: Arrivals, moments: Moments, begun: Begun) -> Values:
    if not isinstance(window.trigger, Delta):
        return begun.reference
    values, events = arrivals.attributes[window.trigger.column], arrivals.events
    reference: Any = begun.reference.astype(values.dtype, copy=True)
    began = events.occupied[~begun.known[events.occupied]]
    reference[began] = values[events.key_starts[began]]
    reference[moments.key] = values[moments.seen]  # the last one of each key stays
    moved: Values = reference
    return moved
