"""Answers when asked for: events of a chunk sorted once, then every window back from every request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panes.algebra.component import Component
from panes.algebra.operations import Array
from panes.algebra.ordering import codes, is_ordered
from panes.declare.lookups import Back, Lookup
from panes.declare.measures import Rows
from panes.declare.windows import RowWindow
from panes.engine.bags import Spans
from panes.engine.level import Partials
from panes.engine.over_pairs import answers_over, lifted
from panes.engine.program import Reading, TypeOf, bind_components
from panes.frames import Frame, Positions
from panes.frames.back import last_rows, rows_before
from panes.frames.positions import FARTHEST

NEVER = -FARTHEST
"""Before all events."""


@dataclass(frozen=True)
class BoundLookup:
    """A lookup over columns of known types.

    Parameters
    ----------
    components, readings
        What is made of single events, and what is read out of that.
    """

    lookup: Lookup
    components: tuple[Component, ...]
    readings: tuple[Reading, ...]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The SQL of what is needed of each event."""
        return tuple(dict.fromkeys(a for component in self.components for a in component.arguments))


def bind_lookup(lookup: Lookup, type_of: TypeOf) -> BoundLookup:
    """Fix the types; events that do not fulfil the condition never get here."""
    components, readings = bind_components([(0, lookup.query)], lookup.query.where, type_of)
    return BoundLookup(lookup, components, readings[0][0])


@dataclass(frozen=True)
class Found:
    """The answers over one window: where it starts and ends for each request, and the aggregates."""

    start: Array
    end: Array
    columns: tuple[pa.Array, ...]


class Lookback:
    """The events of some keys, ready for any number of requests.

    Parameters
    ----------
    instants, key_starts
        When events happen, sorted within each key; the first event of each key, and the number of events.
    arguments
        The values of each argument, in the same order.
    """

    def __init__(
        self, bound: BoundLookup, instants: Array, key_starts: Array, arguments: Mapping[str, pa.Array]
    ) -> None:
        self._bound, self._lookup = bound, bound.lookup
        events = Positions.of_events(instants, key_starts)
        if self._lookup.rows:
            # Events of one instant are apart for a window that counts them: their values give the order.
            order = pa.array(_by_value(events, [arguments[a] for a in bound.arguments]))
            arguments = {a: array.take(order) for a, array in arguments.items()}
        self._events = events
        together = None if self._lookup.rows else events
        self._partials = [
            lifted(c, [arguments[a] for a in c.arguments], len(events), together) for c in bound.components
        ]

    def ask(self, key: Array, instant: Array) -> Asked:
        """Requests, each with the ordinal of its key and its time; sorted by both, as some kernels need it.

        ``NEVER`` is the time of a request without one, which finds no event.
        """
        return Asked(self._bound, self._events, self._partials, key, instant)


class Asked:
    """Requests about some events; every window is answered for all of them at once."""

    def __init__(
        self, bound: BoundLookup, events: Positions, partials: list[Partials | Spans], key: Array, instant: Array
    ) -> None:
        self._bound, self._events, self._partials = bound, events, partials
        self._key, self._instant = key, instant
        self._before: dict[int, Array] = {}

    def answer(self, window: Back) -> Found:
        """The aggregates over one window."""
        start, end, lo, hi = self._pairs(window)
        frame = Frame(self._key, start, lo, hi)
        return Found(start, end, answers_over(self._bound.readings, self._partials, frame, start, end))

    def _pairs(self, window: Back) -> tuple[Array, Array, Array, Array]:
        """Where each window starts and ends, and its events."""
        lookup, events = self._bound.lookup, self._events
        if isinstance(window, RowWindow):
            assert isinstance(window.size, Rows)
            end = self._instant
            lo, hi = last_rows(events, self._key, self._upto(lookup.holds_end), window.size.n, window.ago)
            # It starts with its first event; one without events where it ends.
            start, some = end.copy(), hi > lo
            start[some] = events.start[lo[some]]
            return start, end, lo, hi
        end = self._instant - window.ago
        start = end - window.size
        lo = rows_before(events, self._key, start + 1 - lookup.holds_start)
        return start, end, lo, np.maximum(lo, self._upto(lookup.holds_end - window.ago))

    def _upto(self, later: int) -> Array:
        """How many rows there are before instants so much later than the requests: the same for many windows."""
        if later not in self._before:
            self._before[later] = rows_before(self._events, self._key, self._instant + later)
        return self._before[later]


def _by_value(events: Positions, values: list[pa.Array]) -> Array:
    """Events in the order of time, those of one instant by their values; nulls first."""
    key = np.repeat(np.arange(events.keys), np.diff(events.key_starts))
    ties: list[Array] = []
    for array in reversed(values):
        if is_ordered(array.type):
            ties += [codes(array).values, array.is_valid().to_numpy(zero_copy_only=False)]
    return np.lexsort((*ties, events.start, key))
