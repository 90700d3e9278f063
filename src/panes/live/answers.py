"""What requests ask of events that are held: the rows of every window, and the aggregates over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from panes.aggregates.aggregates import is_number
from panes.aggregates.collecting import QuantileOf
from panes.aggregates.component import numbers
from panes.aggregates.operations import Array
from panes.engine.columns import NEVER, instants_of, whole
from panes.engine.lookback import Asked, BoundLookup, Found, Instances, Lookback
from panes.engine.program import Reading
from panes.engine.schema import field_of
from panes.errors import DeclarationError, PlanError, SchemaError, nearest
from panes.expressions.evaluate import evaluate
from panes.expressions.expression import expression
from panes.frames.positions import FARTHEST, Positions
from panes.live.part import Part, has_column
from panes.queries.lookup_declarations import LookupWindow
from panes.queries.windows import RowWindow
from panes.timeline import Geometry, format_instant

_GONE = -(2**62)


@dataclass(frozen=True, eq=False)
class Span:
    """A window of each request's own, ``[begin, end)``."""

    begin: Array
    end: Array
    name: str = "request"


class AskedLive(Asked):
    """Requests about the events of a part, answered by its columns.

    Parameters
    ----------
    bound
        What is asked for: the queries of the part, or one of them over another window.
    key, instant
        Of each request, sorted by both: the number of its key, -1 where it is unknown, and its time.
    parts
        Which quantile each request asks for, of the output columns where it is not the declared one.
    """

    def __init__(
        self,
        part: Part,
        bound: BoundLookup,
        key: Array,
        instant: Array,
        parts: Mapping[str, Array] | None = None,
    ) -> None:
        super().__init__(bound, Positions.of_events(_NONE, np.zeros(1, np.int64)), {}, key, instant)
        self._part, self._store, self._parts = part, part.store, parts or {}
        self._some = np.flatnonzero((key >= 0) & (instant != NEVER))
        self._own: Array = key[self._some]
        self._apart: dict[bool, Asked] = {}
        # Where the rows of each request's key begin among those of all keys that are asked for.
        self._moved, self._begins = np.zeros(len(key), np.int64), np.zeros(len(key), np.int64)
        self.held = np.zeros(len(key), np.bool_)
        self._unsorted = False

    def answer(self, query: int, window: LookupWindow | Span) -> Found:  # noqa: D102
        self._unsorted = isinstance(window, Span)
        found = self._over_span(window) if isinstance(window, Span) else self._instances(window)
        self.held = found.hi > found.lo
        by_rows = isinstance(window, RowWindow)
        aggregates = dict(self._bound.part.queries[query].aggregates)
        self._check_fit(window, found, [aggregates[r.alias] for r in self._bound.readings[query]])
        readings = self._bound.readings[query]
        shared = [self._is_shared(query, reading, by_rows) for reading in readings]
        apart = iter(() if all(shared) else self._made_of_events(query, found, by_rows=by_rows))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            columns = tuple(
                self._read(reading, found, aggregates[reading.alias]) if here else next(apart)
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
                "a window of rows counts back from the last one, and a span of time is kept here, so that nobody knows "
                "how many rows have left. Write plan.live(keep=pn.rows(1000)), or ask for a window in time."
            )
        if count + skip > most:
            raise PlanError(
                f"the last {count:,} rows{f', without {skip:,},' if skip else ''} reach back {count + skip:,} rows, "
                f"and {most:,} of each key are kept. Ask for fewer, or write plan.live(keep=pn.rows({count + skip}))."
            )
        some, own = self._some, self._own
        gone = (self._store.forgotten[own] > _GONE) & (upto[some] - skip - count < rings.first[own])
        self._refuse_rows(int(gone.sum()))
        hi = np.maximum(upto - skip, first)
        return np.maximum(hi - count, first), hi

    def _first_rows(self) -> Array:
        first = np.zeros(len(self._key), np.int64)
        first[self._some] = self._store.rings.first[self._own]
        return first

    def _starts(self, requests: Array, row: Array) -> Array:
        found: Array = self._store.instants.at(self._key[requests], row)[0]
        return found

    def _over_span(self, window: Span) -> Instances:
        """Windows that are empty or backwards ask for nothing, wherever they lie."""
        some = window.begin < window.end
        newest = FARTHEST
        lo, hi = (self._rows_before(np.where(some, edge, newest)) for edge in (window.begin, window.end))
        return Instances(window.begin, window.end, lo, np.maximum(lo, hi))

    # What is held

    def _check_held(self, instant: Array, edge: Array) -> None:
        """Refuse windows that begin before what is held, whatever they hold."""
        store = self._store
        if store.keep.rows is None:
            # A key that is unknown may be one that has been forgotten.
            asked = instant[self._instant != NEVER]
            earliest = int(asked.min(initial=FARTHEST))
            if earliest <= store.horizon:
                raise PlanError(
                    f"a window begins at {format_instant(earliest)}, but {store.keep} are kept and the latest event is "
                    f"of {format_instant(store.newest or 0)}: what is not later than {format_instant(store.horizon)} "
                    "is gone. Ask for less, or give plan.live() a longer keep=."
                )
            return
        gone = edge <= store.forgotten[self._own]
        if store.keep.micros is not None:
            gone &= edge <= store.horizon
        self._refuse_rows(int(gone.sum()))

    def _refuse_rows(self, gone: int) -> None:
        if gone:
            raise PlanError(
                f"{gone} of {len(self._key)} windows begin before the rows of their key that are kept "
                f"({self._store.keep}). Ask for less, or give plan.live() a larger keep=."
            )

    # What it comes to

    def _is_shared(self, query: int, reading: Reading, by_rows: bool) -> bool:
        columns = self._part.columns
        # Two aggregates may be made of the same values, and one of them needs all of these at once.
        aggregate = dict(self._bound.part.queries[query].aggregates)[reading.alias]
        return has_column(aggregate) and all(
            c in columns and self._part.in_place(c, by_rows=by_rows) for c in reading.components
        )

    def _read(self, reading: Reading, found: Instances, aggregate: object) -> pa.Array:
        bound, key = reading.bound, np.maximum(self._key, 0)
        columns = [self._part.columns[c] for c in reading.components]
        rows = key, found.lo, found.hi
        if (asked := self._parts.get(reading.alias)) is not None:
            assert isinstance(aggregate, QuantileOf)
            return aggregate.read(columns[0].answers(*rows), asked)
        if bound.answer is not None:
            return bound.answer(*(column.state(*rows) for column in columns))
        answers = [column.answers(*rows) for column in columns]
        return bound.lower(*answers, start=found.start, end=found.end) if bound.by_window else bound.lower(*answers)

    def _made_of_events(self, query: int, found: Instances, *, by_rows: bool) -> tuple[pa.Array, ...]:
        """Aggregates whose partials are not kept, out of the events of the keys that are asked for."""
        if by_rows not in self._apart:
            self._apart[by_rows] = self._out_of_events(by_rows)
        nothing = np.ones(len(self._key), np.bool_)
        nothing[self._some] = False

        def moved(rows: Array) -> Array:
            return np.where(nothing, self._begins, rows + self._moved)

        levels = [(moved(lo), moved(hi)) for lo, hi in found.levels]
        there = replace(found, lo=moved(found.lo), hi=moved(found.hi), levels=levels)
        asked = self._apart[by_rows]
        if not self._unsorted or not len(self._key):
            return asked._columns(query, there, by_rows=by_rows)
        # Kernels go from the left to the right, and these windows lie anywhere: one at a time.
        parts = [asked.only(i)._columns(query, there.only(i), by_rows=by_rows) for i in range(len(self._key))]
        return tuple(pa.concat_arrays(columns) for columns in zip(*parts, strict=True))

    def _out_of_events(self, by_rows: bool) -> Asked:
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
            tuple(reading for reading in some if not self._is_shared(query, reading, by_rows))
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


def quantiles_of(query: Sequence[tuple[str, object]], q: Any, requests: pa.Table) -> dict[str, Array]:
    """Which quantile each request asks for, of the output columns for which it is not the declared one.

    Parameters
    ----------
    query
        The aggregates of the query.
    q
        A number, a column of the requests, or one of these for each output column.
    """
    if q is None:
        return {}
    known = [alias for alias, aggregate in query if isinstance(aggregate, QuantileOf)]
    given = q if isinstance(q, Mapping) else dict.fromkeys(known, q)
    if not given or set(given) - set(known):
        raise DeclarationError(
            f"q={q!r} is about quantiles, and there are {', '.join(map(repr, known)) or 'none'}. Select "
            "pn.quantile('price', 0.5) to have one."
        )
    return {alias: _quantile(value, requests) for alias, value in given.items()}


def _quantile(value: float | str, requests: pa.Table) -> Array:
    if isinstance(value, str):
        if value.lower() not in map(str.lower, requests.column_names):
            raise SchemaError(f"the requests have no column {value!r} ({nearest(value, requests.column_names)}).")
        field = field_of(requests.schema, value)
        if not is_number(field.type):
            raise SchemaError(f"q={value!r} is of type {field.type} in the requests, and has to be a number.")
        part = numbers(whole(requests.column(field.name)).cast(pa.float64()), np.nan)
    else:
        part = np.full(requests.num_rows, value, np.float64)
    if not ((part >= 0) & (part <= 1)).all():
        raise DeclarationError(f"q={value!r}: a quantile is a number from 0 to 1, as 0.5 for the median.")
    return part


_NONE = np.zeros(0, np.int64)
