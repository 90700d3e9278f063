"""Answers to requests: the events of a chunk are sorted once, then every window answers all requests at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from panes.aggregates.component import Component
from panes.aggregates.operations import Array
from panes.engine.bind_program import TypeOf, bind_components
from panes.engine.columns import NEVER
from panes.engine.index_pairs import answers_over, lifted
from panes.engine.partials import Partials, Spans
from panes.engine.program import Reading
from panes.frames import Frame, Positions
from panes.frames.matching import last_rows, rows_before
from panes.queries.lookup_declarations import LookupPart, LookupWindow
from panes.queries.measures import Rows
from panes.queries.window_constructors import tumbling
from panes.queries.windows import TICK, Cumulate, RowWindow, Sliding, Window


@dataclass(frozen=True)
class BoundLookup:
    """Queries of a lookup over columns of known types.

    Parameters
    ----------
    components, readings
        What is made of single events, and what each query reads out of that.
    """

    part: LookupPart
    components: tuple[Component, ...]
    readings: tuple[tuple[Reading, ...], ...]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The SQL of what is needed of each event."""
        return tuple(dict.fromkeys(a for component in self.components for a in component.arguments))


def bind_lookup(part: LookupPart, type_of: TypeOf) -> BoundLookup:
    """Fix the types; events that fulfil none of the conditions never get here."""
    # How an event becomes a partial does not depend on windows.
    bare = [(i, replace(query, over=(tumbling("1 us"),))) for i, query in enumerate(part.queries)]
    components, readings = bind_components(bare, part.kept, type_of)
    return BoundLookup(part, components, tuple(readings[i][0] for i, _ in bare))


@dataclass(frozen=True, eq=False)
class Found:
    """The answers over one window: where results say that it starts and ends for each request, and the aggregates.

    Parameters
    ----------
    known
        For which requests there is a window at all.
    """

    start: Array
    end: Array
    known: Array
    columns: tuple[pa.Array, ...]


class Lookback:
    """The events of some keys, ready for any number of requests.

    Parameters
    ----------
    instants, key_starts
        When events happen, sorted within each key; the first event of each key, and the number of events.
    arguments
        The values of each argument, in the same order. Where windows hold a number of rows, it is also that of events
        of one instant.
    """

    def __init__(
        self, bound: BoundLookup, instants: Array, key_starts: Array, arguments: Mapping[str, pa.Array]
    ) -> None:
        self._bound = bound
        self._events = Positions.of_events(instants, key_starts)
        self._partials = {
            apart: _partials(bound, self._events, arguments, apart=apart)
            for apart in dict.fromkeys(isinstance(window, RowWindow) for _, window in bound.part.views)
        }

    def ask(self, key: Array, instant: Array) -> LookupRequests:
        """Requests, each with the ordinal of its key and its time; sorted by both, as some kernels need it.

        ``NEVER`` is the time of a request without one, which finds no event.
        """
        return LookupRequests(self._bound, self._events, self._partials, key, instant)


def _partials(
    bound: BoundLookup, events: Positions, arguments: Mapping[str, pa.Array], *, apart: bool
) -> dict[int, Partials | Spans]:
    """The components that windows need which part events of one instant, or which do not.

    The latter see events of one instant in the order of their values, as in a run: what other windows there are does
    not change their answers.
    """
    queries = {i for i, window in bound.part.views if isinstance(window, RowWindow) == apart}
    needed = sorted({c for i in queries for reading in bound.readings[i] for c in reading.components})
    together = None if apart else events
    return {
        c: lifted(bound.components[c], [arguments[a] for a in bound.components[c].arguments], len(events), together)
        for c in needed
    }


@dataclass(frozen=True, eq=False)
class Instances:
    """The instance of a window for each request.

    Parameters
    ----------
    start, end
        Its bounds as results show them.
    lo, hi
        Its events.
    levels
        Where levels of a nested window are looked at apart: the events of each without those below it, the finest
        first.
    known
        For which requests there is one; None for all that have a time.
    """

    start: Array
    end: Array
    lo: Array
    hi: Array
    levels: Sequence[tuple[Array, Array]] = ()
    known: Array | None = None

    def only(self, request: int) -> Instances:
        """Those of one request; without levels."""
        at = slice(request, request + 1)
        return Instances(self.start[at], self.end[at], self.lo[at], self.hi[at])


class LookupRequests:
    """Requests about some events; every window is answered for all of them at once."""

    def __init__(
        self,
        bound: BoundLookup,
        events: Positions,
        partials: Mapping[bool, Mapping[int, Partials | Spans]],
        key: Array,
        instant: Array,
    ) -> None:
        self._bound, self._events, self._partials = bound, events, partials
        self._key, self._instant = key, instant
        self._by_level = any(reading.bound.by_level for readings in bound.readings for reading in readings)
        self._before: dict[int, Array] = {}
        self._ended: dict[tuple[int, int, int], tuple[Array, Array]] = {}

    def only(self, request: int) -> LookupRequests:
        """One of the requests, alone."""
        at = slice(request, request + 1)
        return LookupRequests(self._bound, self._events, self._partials, self._key[at], self._instant[at])

    def answer(self, query: int, window: LookupWindow) -> Found:
        """The aggregates of a query over one of its windows."""
        found = self._instances(window)
        return self._found(found, self._columns(query, found, of_rows=isinstance(window, RowWindow)))

    def _found(self, found: Instances, columns: tuple[pa.Array, ...]) -> Found:
        known = self._instant != NEVER
        return Found(found.start, found.end, known if found.known is None else known & found.known, columns)

    def _columns(self, query: int, found: Instances, *, of_rows: bool) -> tuple[pa.Array, ...]:
        frame = Frame(self._key, found.start, found.lo, found.hi)
        levels = [Frame(self._key, found.start, lo, hi) for lo, hi in found.levels]
        return answers_over(self._bound.readings[query], self._partials[of_rows], frame, found.start, found.end, levels)

    # Where the events lie

    def _rows_before(self, instant: Array) -> Array:
        """The first row of each request's key that does not start before an instant."""
        return rows_before(self._events, self._key, instant)

    def _last_rows(self, upto: Array, count: int, skip: int) -> tuple[Array, Array]:
        """The last so many rows of each request's key before a row of it, the very last ones left out."""
        return last_rows(self._events, self._key, upto, count, skip)

    def _first_rows(self) -> Array:
        """The first row of each request's key."""
        first: Array = self._events.key_starts[self._key]
        return first

    def _starts(self, requests: Array, row: Array) -> Array:
        """When rows happen, one for each of some requests."""
        start: Array = self._events.start[row]
        return start

    # Which rows windows hold

    def _instances(self, window: LookupWindow) -> Instances:
        if isinstance(window, Sliding):
            return self._sliding(window)
        if isinstance(window, RowWindow):
            return self._rows(window)
        return self._cumulating(window) if isinstance(window, Cumulate) else self._on_the_clock(window)

    def _sliding(self, window: Sliding) -> Instances:
        """Up to each request, or up to a while before it."""
        holds_start, holds_end = window.bounds[0] == "[", window.bounds[1] == "]"
        end = self._instant - window.ago
        start = end - window.size
        lo = self._rows_before(start + (0 if holds_start else 1))
        return Instances(start, end, lo, np.maximum(lo, self._upto(int(holds_end) - window.ago)))

    def _rows(self, window: RowWindow) -> Instances:
        """The last rows at each request, or at the last tick of the clock before it."""
        assert isinstance(window.size, Rows)
        if isinstance(window.every, int):
            shift = TICK if window.bounds == "(]" else 0
            end, upto = self._newest(window.every, window.offset + shift, shift)
            end = end - shift
        else:
            end, upto = self._instant, self._upto(0 if window.before else 1)
        lo, hi = self._last_rows(upto, window.size.n, window.ago)
        if not window.partial:
            # As long as it has not been full, a run has no answer. Empty windows keep the order of the others.
            first = self._first_rows()
            full = upto - first >= window.size.n + window.ago
            lo, hi = np.where(full, lo, first), np.where(full, hi, first)
        # It starts with its first event; one without events where it ends.
        start, some = end.copy(), np.flatnonzero(hi > lo)
        start[some] = self._starts(some, lo[some])
        return Instances(start, end, lo, hi)

    def _on_the_clock(self, window: Window) -> Instances:
        """The newest instance that is complete."""
        geometry = window.geometry
        end, upto = self._newest(geometry.slide, geometry.offset + geometry.range, window.end_shift)
        start = window.begins(end - geometry.range)
        lo = self._rows_before(start)
        levels: list[tuple[Array, Array]] = []
        if self._by_level:
            edges = [window.begins(end - age) for age in (0, *window.finer, geometry.range)]
            levels = [(lo, hi) for hi, lo in pairwise(self._rows_before(edge) for edge in edges)]
        known = None if window.since is None else end > window.since
        shown = start - window.shift, end - window.end_shift
        return Instances(*shown, lo, np.maximum(lo, upto), levels, known)

    def _cumulating(self, window: Cumulate) -> Instances:
        """The one whose step is the newest that is complete: each step ends one of them."""
        shift = TICK if window.bounds == "(]" else 0
        begins = window.offset + shift
        end, upto = self._newest(window.step, begins, shift)
        start = begins + (end - begins - 1) // window.upto * window.upto
        lo = self._rows_before(start)
        return Instances(start - shift, end - shift, lo, np.maximum(lo, upto))

    def _newest(self, period: int, phase: int, shift: int) -> tuple[Array, Array]:
        """Where the newest instance ends whose answer is there, and how many rows there are before that.

        Instances end at ``phase + m * period``, a ``shift`` later than results say, and are answered when the delay has
        passed since then. One that holds its end is complete at that very instant: a request sees what happens at its
        own time.
        """
        phase %= period
        if (period, phase, shift) not in self._ended:
            over = self._instant - (self._bound.part.delay - shift)
            end = over - (over - phase) % period
            self._ended[period, phase, shift] = end, self._rows_before(end)
        return self._ended[period, phase, shift]

    def _upto(self, later: int) -> Array:
        """How many rows there are before instants so much later than the requests: the same for many windows."""
        if later not in self._before:
            self._before[later] = self._rows_before(self._instant + later)
        return self._before[later]
