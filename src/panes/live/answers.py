"""The answers of a lookup from the events that are held: the rows of every window, and the aggregates over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from panes.aggregates.aggregate import Aggregate
from panes.aggregates.operations import Array
from panes.engine.columns import NEVER, instants_of, whole
from panes.engine.lookback import BoundLookup, Found, Instances, Lookback, LookupRequests
from panes.engine.program import Reading
from panes.engine.schema import field_of
from panes.errors import PlanError
from panes.expressions.evaluate import evaluate
from panes.expressions.expression import expression
from panes.frames.positions import FARTHEST, Positions
from panes.live.part import Part, has_column
from panes.live.requests import Span
from panes.queries.lookup_declarations import LookupWindow
from panes.queries.windows import RowWindow
from panes.timeline import Geometry, format_instant

_GONE = -(2**62)


class LiveLookup(LookupRequests):
    """A lookup that the columns of a part answer.

    Parameters
    ----------
    bound
        The queries of the part, or one of them over another window.
    key, instant
        Of each request, sorted by both: the number of its key, -1 where it is unknown, and its time.
    quantiles
        The quantile that each request wants, of the output columns where it is not the declared one.
    span
        A window of its own for each request, instead of those of the queries.

    Attributes
    ----------
    held
        Whether the window that was answered last holds an event, for each request.
    """

    def __init__(
        self,
        part: Part,
        bound: BoundLookup,
        key: Array,
        instant: Array,
        quantiles: Mapping[str, Array] | None = None,
        span: Span | None = None,
    ) -> None:
        super().__init__(bound, Positions.of_events(_NONE, np.zeros(1, np.int64)), {}, key, instant)
        self._part, self._store = part, part.store
        self._quantiles, self._span = quantiles or {}, span
        self._some = np.flatnonzero((key >= 0) & (instant != NEVER))
        self._own: Array = key[self._some]
        self._from_events: dict[bool, LookupRequests] = {}
        # Where the rows of each request's key begin among those of all requested keys.
        self._moved, self._begins = np.zeros(len(key), np.int64), np.zeros(len(key), np.int64)
        self.held = np.zeros(len(key), np.bool_)

    def answer(self, query: int, window: LookupWindow) -> Found:  # noqa: D102
        found = self._instances(window) if self._span is None else self._over_span(self._span)
        self.held = found.hi > found.lo
        of_rows = isinstance(window, RowWindow)
        aggregates = dict(self._bound.part.queries[query].aggregates)
        self._check_fit(self._span or window, found, [aggregates[r.alias] for r in self._bound.readings[query]])
        readings = self._bound.readings[query]
        shared = [self._is_shared(query, reading, of_rows) for reading in readings]
        others = iter(() if all(shared) else self._columns_from_events(query, found, of_rows=of_rows))
        columns = tuple(
            self._read(reading, found, aggregates[reading.alias]) if here else next(others)
            for reading, here in zip(readings, shared, strict=True)
        )
        return self._found(found, columns)

    # Where the events lie

    def _rows_before(self, instant: Array) -> Array:
        edge, store = instant[self._some], self._store
        self._check_held(instant, edge)
        rows = np.zeros(len(self._key), np.int64)
        rows[self._some] = store.instants.search(self._own, np.clip(edge, -FARTHEST, FARTHEST))
        return rows

    def _last_rows(self, upto: Array, count: int, skip: int) -> tuple[Array, Array]:
        first, rings = self._first_rows(), self._store.rings
        most = self._store.keep.rows
        if most is None:
            raise PlanError(
                "a window of rows counts back from the last one, but a span of time is kept, so that the number of "
                "rows that have expired is unknown. Write plan.live(keep=pn.rows(1000)), or give a window in time."
            )
        if count + skip > most:
            raise PlanError(
                f"the last {count:,} rows{f', without {skip:,},' if skip else ''} reach back {count + skip:,} rows, "
                f"and {most:,} of each key are kept. Look up fewer, or write plan.live(keep=pn.rows({count + skip}))."
            )
        some, own = self._some, self._own
        gone = (self._store.evicted_until[own] > _GONE) & (upto[some] - skip - count < rings.first[own])
        self._refuse_rows(int(gone.sum()))
        hi = np.maximum(upto - skip, first)
        return np.maximum(hi - count, first), hi

    def _first_rows(self) -> Array:
        first = np.zeros(len(self._key), np.int64)
        first[self._some] = self._store.rings.first[self._own]
        return first

    def _starts(self, requests: Array, row: Array) -> Array:
        found: Array = self._store.instants.at(self._key[requests], row)
        return found

    def _over_span(self, window: Span) -> Instances:
        """Windows that are empty or backwards hold nothing, wherever they lie."""
        some = window.begin < window.end
        newest = FARTHEST
        lo, hi = (self._rows_before(np.where(some, edge, newest)) for edge in (window.begin, window.end))
        return Instances(window.begin, window.end, lo, np.maximum(lo, hi))

    # What is held

    def _check_held(self, instant: Array, edge: Array) -> None:
        """Refuse windows that begin before what is held, whatever they hold."""
        store = self._store
        if store.keep.rows is None:
            # A key that is unknown may be one that has been dropped.
            earliest = int(instant[self._instant != NEVER].min(initial=FARTHEST))
            if earliest <= store.horizon:
                raise PlanError(
                    f"a window begins at {format_instant(earliest)}, but {store.keep} are kept and the latest event is "
                    f"of {format_instant(store.newest or 0)}: what is not later than {format_instant(store.horizon)} "
                    "has expired. Give a narrower window, or a longer keep= to plan.live()."
                )
            return
        gone = edge <= store.evicted_until[self._own]
        if store.keep.micros is not None:
            gone &= edge <= store.horizon
        self._refuse_rows(int(gone.sum()))

    def _refuse_rows(self, gone: int) -> None:
        if gone:
            raise PlanError(
                f"{gone} of {len(self._key)} windows begin before the rows of their key that are kept "
                f"({self._store.keep}). Give a narrower window, or a larger keep= to plan.live()."
            )

    # The aggregates

    def _is_shared(self, query: int, reading: Reading, of_rows: bool) -> bool:
        columns = self._part.columns
        # Two aggregates may share a component, and one of them need all of its values at once.
        aggregate = dict(self._bound.part.queries[query].aggregates)[reading.alias]
        return has_column(aggregate) and all(
            c in columns and self._part.in_place(c, of_rows=of_rows) for c in reading.components
        )

    def _read(self, reading: Reading, found: Instances, aggregate: Aggregate) -> pa.Array:
        bound, key = reading.bound, np.maximum(self._key, 0)
        columns = [self._part.columns[c] for c in reading.components]
        rows = key, found.lo, found.hi
        if (quantile := self._quantiles.get(reading.alias)) is not None:
            return aggregate.read(columns[0].answers(*rows), quantile)
        if bound.answer is not None:
            return bound.answer(*(column.state(*rows) for column in columns))
        answers = [column.answers(*rows) for column in columns]
        return bound.lower(*answers, start=found.start, end=found.end) if bound.by_window else bound.lower(*answers)

    def _columns_from_events(self, query: int, found: Instances, *, of_rows: bool) -> tuple[pa.Array, ...]:
        """Aggregates without shared partials, computed from the events of the requested keys."""
        if of_rows not in self._from_events:
            self._from_events[of_rows] = self._lookup_in_events(of_rows)
        nothing = np.ones(len(self._key), np.bool_)
        nothing[self._some] = False

        def moved(rows: Array) -> Array:
            return np.where(nothing, self._begins, rows + self._moved)

        levels = [(moved(lo), moved(hi)) for lo, hi in found.levels]
        there = replace(found, lo=moved(found.lo), hi=moved(found.hi), levels=levels)
        events = self._from_events[of_rows]
        if self._span is None or not len(self._key):
            return events._columns(query, there, of_rows=of_rows)
        # Kernels go from the left to the right, and these windows lie anywhere: one at a time.
        parts = [events.only(i)._columns(query, there.only(i), of_rows=of_rows) for i in range(len(self._key))]
        return tuple(pa.concat_arrays(columns) for columns in zip(*parts, strict=True))

    def _lookup_in_events(self, of_rows: bool) -> LookupRequests:
        keys, rings = np.unique(self._key[self._key >= 0]), self._store.rings
        held = rings.end[keys] - rings.first[keys]
        # The first key has no events, for requests that find none.
        starts = np.cumsum(np.concatenate([[0, 0], held]))
        local = np.searchsorted(keys, self._key, side="right")
        self._begins = starts[local]
        self._moved[self._some] = self._begins[self._some] - rings.first[self._own]
        table = self._part.events(keys)
        instants = instants_of(whole(table.column(field_of(table.schema, self._bound.part.at).name)))
        readings = tuple(
            tuple(reading for reading in some if not self._is_shared(query, reading, of_rows))
            for query, some in enumerate(self._bound.readings)
        )
        bound = replace(self._bound, readings=readings)
        needed = {c for some in readings for reading in some for c in reading.components}
        named = dict.fromkeys(a for c in needed for a in bound.components[c].arguments)
        arguments = {a: whole(evaluate(expression(a), table)) for a in named}
        return Lookback(bound, instants, starts, arguments).ask(local, self._instant)

    def _check_fit(self, window: LookupWindow | Span, found: Instances, aggregates: Sequence[object]) -> None:
        if isinstance(window, (Span, RowWindow)):
            widest = max(int((found.end - found.start)[found.hi > found.lo].max(initial=1)), 1)
            shapes = [Geometry(widest, 1)]
        else:
            shapes = [each.geometry for each in window.windows]
        for aggregate in aggregates:
            for shape in shapes:
                if (why := aggregate.misfit(shape)) is not None:  # type: ignore[attr-defined]
                    raise PlanError(why)


_NONE = np.zeros(0, np.int64)
