"""Continuous reporting: the state of a nested window at any horizon and any time, composed from its granules.

Paper: Patroumpas and Sellis, Multi-granular Time-based Sliding Windows over Data Streams (2010), section III-C.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.engine.answer import Answers, lift_panes
from panes.engine.bind_program import bind_store, types_in
from panes.engine.partials import combine_stored, partials_of
from panes.engine.program import Program
from panes.engine.results import table_of_view
from panes.engine.schema import answer_schema, check_columns, check_same_types, field_of
from panes.engine.sorting import SortedEvents, sorted_events
from panes.errors import DeclarationError, PlanError
from panes.frames import Frame
from panes.inputs import as_table
from panes.planning.plan_queries import plan_queries
from panes.planning.statistics import Statistics
from panes.queries.query import Query
from panes.queries.windows import Nested, Window
from panes.state.key_dictionary import KeyDictionary
from panes.timeline import DurationLike, Edges, Geometry, InstantLike, format_duration, parse_duration, parse_instant

_EVERYTHING = "everything"


class Granules:
    """The events of a query as granules that grow coarser with age.

    It answers at any time, for any horizon up to the widest range: from whole granules, so that the horizon of an
    answer is the shortest one that covers what was asked for. Recent horizons are exact to the narrowest slide, older
    ones to wider slides.

    Parameters
    ----------
    query
        What is asked for; its windows do not matter.
    keep
        Up to which age granules of each slide are kept.

    Attributes
    ----------
    left_out
        How many events came too late for every level, or lie before ``since``.

    Examples
    --------
    >>> import datetime as dt, pyarrow as pa, panes as pn
    >>> load = pn.query("load", at="ts", select={"n": pn.count(), "top": pn.max("x")}, over=pn.sliding("1 hour"))
    >>> live = pn.plan(load).live(keep=pn.nested(ranges=["5 min", "1 hour"], slides=["1 min", "10 min"]))
    >>> minutes = range(60)
    >>> live.update(pa.table({"ts": [dt.datetime(2026, 1, 1, 9, m) for m in minutes], "x": list(minutes)}))
    >>> live.find(over="3 min", at="2026-01-01 10:00").select(["n", "top"]).to_pylist()
    [{'n': 3, 'top': 59}]
    >>> live.find(over="17 min")["window"].to_pylist()
    [{'start': datetime.datetime(2026, 1, 1, 9, 40), 'end': datetime.datetime(2026, 1, 1, 10, 0)}]
    """

    def __init__(self, query: Query, keep: Nested) -> None:
        if not query.timed:
            raise DeclarationError(f"query {query.name!r} has no at=, and granules are spans of time. Write at='ts'.")
        for what, given in (("groups", query.groups), ("evict", query.evict)):
            if given:
                raise DeclarationError(f"query {query.name!r} has {what}=, which is for windows of rows. Leave it out.")
        if query.uses_expires:
            raise DeclarationError(f"query {query.name!r} asks when answers expire, but at any time they just have.")
        for _, aggregate in query.aggregates:
            if aggregate.levels or aggregate.in_order:
                what = "compares whole levels" if aggregate.levels else "fills gaps in the order of time"
                raise DeclarationError(
                    f"query {query.name!r}: {aggregate} {what}, which a horizon cannot. Leave it to plan.run."
                )
        query = replace(query, over=(keep,))
        self.left_out = 0
        self._query, self._window = query, keep
        self._shift = self._window.windows[0].shift
        self._store = plan_queries([query], Statistics.given(None, None), "columnar", factor_windows=False).stores[0]
        self._origin = self._now = _origin(self._window)
        # By the start of each granule, a row for each of its keys: what is stored of its events.
        self._held: dict[int, pa.RecordBatch] = {}
        self._bound: tuple[pa.Schema, Program, KeyDictionary] | None = None

    def prepare(self, batch: Any) -> SortedEvents:
        """Do what may fail before anything changes: events sorted by key and time."""
        table = as_table(batch, {name.lower() for name in self._query.used})
        check_columns([self._query], table.schema)
        return sorted_events(self._store, self._bind(table.schema)[1], table)

    def commit(self, events: SortedEvents) -> None:
        """Take in events."""
        if not len(events.instants):
            return
        assert self._bound is not None
        _, program, dictionary = self._bound
        panes, partials = lift_panes(program, events.instants, events.key_starts, events.arguments)
        stored = [partial.stored() for partial in partials]
        keys = events.keys.combine_chunks().to_batches()[0] if self._store.keys else _everything()
        # By time now, and by key within each pane.
        order = np.argsort(panes.start, kind="stable")
        key = pa.array(dictionary.ordinals(keys)[panes.key])
        rows = pa.RecordBatch.from_arrays([key, *stored], schema=self._none.schema).take(pa.array(order))
        start, counts = panes.start[order], (panes.hi - panes.lo)[order]
        late = start < max(self._origin, self._begin(-1))
        self.left_out += int(counts[late].sum())
        self._add_panes(start[~late], rows.filter(pa.array(~late)))
        self._advance(int(events.instants.max()) + 1)

    @property
    def rows(self) -> int:
        """How many rows of partials are held, one for each key of a granule."""
        return sum(map(len, self._held.values()))

    @property
    def facts(self) -> dict[str, Any]:
        """What a saved file says of it, beside tables."""
        return {"begun": self._bound is not None, "now": self._now, "left_out": self.left_out}

    def saved(self) -> list[pa.Table]:
        """The types of events, the keys, and the rows of all granules."""
        if self._bound is None:
            return []
        types, _, dictionary = self._bound
        rows = pa.Table.from_batches(self._held.values(), self._none.schema)
        starts = np.repeat(np.array(list(self._held), np.int64), [len(rows) for rows in self._held.values()])
        keys = pa.Table.from_batches([dictionary.keys])
        return [types.empty_table(), keys, rows.append_column("start", pa.array(starts))]

    def restore(self, facts: dict[str, Any], tables: Iterator[pa.Table]) -> None:
        """Hold what was saved."""
        if facts["begun"]:
            types, keys, rows = (next(tables).combine_chunks() for _ in range(3))
            _, _, dictionary = self._bind(types.schema)
            dictionary.ordinals(keys.to_batches()[0].cast(dictionary.keys.schema))
            self._advance(facts["now"])
            for batch in rows.select(self._none.schema.names).cast(self._none.schema).to_batches():
                self._add_panes(rows["start"].to_numpy(), batch)
        self.left_out = facts["left_out"]

    def explain(self) -> str:
        """What is kept."""
        pairs = zip(self._window.ranges, self._window.slides, strict=True)
        levels = [f"of {format_duration(slide)} up to {format_duration(range_)}" for range_, slide in pairs]
        return f"granules {', '.join(levels)} ago; {self.rows:,} rows of partials held"

    def state(self, horizon: DurationLike, *, at: InstantLike | None = None) -> pa.Table:
        """The answers over a horizon that ends now, a row for every key with events in it.

        Parameters
        ----------
        horizon
            How far to look back, up to the widest range. ``window_name`` says it, and ``window`` what it was rounded
            up to.
        at
            When it is now; by default right after the latest event. Time does not go back.
        """
        if self._bound is None:
            raise PlanError("there is no state yet: no event has come. Call update(batch) first.")
        back, widest = parse_duration(horizon), self._window.ranges[-1]
        if not 0 < back <= widest:
            raise PlanError(
                f"over={horizon!r} is not within what is kept: the widest level of keep= looks back "
                f"{format_duration(widest)}. Ask for some of that, or keep more."
            )
        if at is not None:
            now = parse_instant(at) + self._shift
            if now < self._now:
                raise PlanError(f"at={at!r} has passed: later events have come, and what they replaced is gone.")
            self._advance(now)
        schema, program, dictionary = self._bound
        end = self._now
        level = next(level for level in range(len(self._window.ranges)) if self._begin(level) <= end - back)
        first = self._floor(level, end - back)
        rows = self._combined([rows for start, rows in self._held.items() if start >= first])
        key, stored = rows.column(0).to_numpy(), rows.columns[1:]
        first = max(first, self._origin)
        # A geometry has instances of one length; this one's only instance is the answer. Before any time has passed
        # since the initiation there is none.
        length = max(end - first, 1)
        window = Window(Geometry(length, length), format_duration(back))
        view = replace(program.views[0], window=replace(window, bounds=self._window.bounds))
        bounds = {name: np.full(len(rows), edge - self._shift) for name, edge in (("start", first), ("end", end))}
        columns = tuple(
            r.bound.lower(
                *(partials_of(program.components[c], stored[c]).answers() for c in r.components),
                **(bounds if r.bound.by_window else {}),
            )
            for r in view.readings
        )
        answers = Answers(0, key, np.full(len(rows), first), columns)
        keys = pa.Table.from_batches([dictionary.keys])
        whole = answer_schema([self._query], [program], schema)
        return table_of_view((self._query,), replace(program, views=(view,)), answers, keys, whole)

    def _bind(self, schema: pa.Schema) -> tuple[pa.Schema, Program, KeyDictionary]:
        used = pa.schema([field_of(schema, name) for name in sorted(self._query.used)])
        if self._bound is None:
            edges = tuple(Edges(slide, self._origin) for slide in dict.fromkeys(self._window.slides))
            program = replace(bind_store(self._store, types_in(schema)), edges=edges)
            keys = [pa.field(name, field_of(schema, name).type) for name in self._store.keys]
            names = pa.schema(keys) if keys else _everything().schema
            self._bound = used, program, KeyDictionary(names)
            stored = [pa.field(f"={component.name}", component.storage) for component in program.components]
            self._none = pa.RecordBatch.from_pylist([], pa.schema([pa.field("key", pa.int64()), *stored]))
        check_same_types(used, self._bound[0])
        return self._bound

    # Where granules begin

    def _begin(self, level: int) -> int:
        """Where a level begins: its range before the instant when it last slid."""
        return self._now - (self._now - self._origin) % self._window.slides[level] - self._window.ranges[level]

    def _floor(self, level: int, instant: int) -> int:
        """When a level or a wider one last slid before an instant."""
        return max(instant - (instant - self._origin) % slide for slide in self._window.slides[level:])

    def _granule(self, instant: int) -> int:
        """Where the granule around an instant begins: it is one of the narrowest level that looks at it."""
        widest = len(self._window.slides) - 1
        looked = (level for level in range(widest) if instant >= self._floor(level, self._begin(level)))
        return self._floor(next(looked, widest), instant)

    def _add_panes(self, start: Array, rows: pa.RecordBatch) -> None:
        """Add rows of panes, sorted by where these begin."""
        begins = np.flatnonzero(np.diff(start, prepend=-(2**62)))
        for first, end in zip(begins.tolist(), [*begins[1:].tolist(), len(start)], strict=False):
            self._add(int(start[first]), rows.slice(first, end - first))

    def _add(self, instant: int, rows: pa.RecordBatch) -> None:
        """Add rows to the granule around an instant."""
        start = self._granule(instant)
        self._held[start] = self._combined([self._held[start], rows]) if start in self._held else rows

    def _advance(self, now: int) -> None:
        """Let time pass: granules that are old enough join wider ones, or go."""
        slid = self._floor(0, now) > self._floor(0, self._now)
        self._now = max(self._now, now)
        if not slid:
            return
        for start in sorted(self._held):
            if start < self._begin(-1):
                del self._held[start]
            elif self._granule(start) != start:
                self._add(start, self._held.pop(start))

    def _combined(self, granules: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """Granules as one: a row for each key."""
        assert self._bound is not None
        _, program, dictionary = self._bound
        rows = pa.concat_batches([self._none, *granules])
        key = rows.column(0).to_numpy()
        # Small numbers are sorted digit by digit.
        order = np.argsort(key.astype(np.min_scalar_type(len(dictionary))), kind="stable")
        key = key[order]
        lo = np.flatnonzero(np.diff(key, prepend=-1))
        frame = Frame(key[lo], np.zeros_like(lo), lo, np.append(lo[1:], len(key)))
        stored = [column.take(pa.array(order)) for column in rows.columns[1:]]
        stored = combine_stored(program.components, stored, frame)
        return pa.RecordBatch.from_arrays([pa.array(frame.key), *stored], schema=self._none.schema)


def _everything() -> pa.RecordBatch:
    return pa.record_batch({_EVERYTHING: pa.array([0], pa.int32())})


def _origin(window: Nested) -> int:
    """The initiation time; without one, long before any event, where all levels slide together."""
    shift = window.windows[0].shift
    if window.since is not None:
        return window.since + shift
    period = math.lcm(*window.slides)
    return window.offset + shift - -(-(2**60) // period) * period
