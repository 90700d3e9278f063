"""The index: aggregates over any window of a live stream, in this process.

Paper: Arasu and Widom, Resource Sharing in Continuous Sliding-Window Aggregates (VLDB 2004).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import RLock
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from panes.algebra.aggregates import Aggregate, is_number
from panes.algebra.collecting import QuantileOf
from panes.algebra.component import numbers
from panes.algebra.operations import Array
from panes.declare.expressions import Expression
from panes.declare.query import query
from panes.declare.windows import tumbling
from panes.engine.cabinet import InMemory
from panes.engine.dictionary import Dictionary
from panes.engine.keys import one_zero
from panes.engine.program import Program, Reading
from panes.engine.schema import check_columns, check_same_types, field_of
from panes.errors import DeclarationError, PlanError, SchemaError, StateError, nearest
from panes.frames.positions import check_near
from panes.frames.ranges import ranges
from panes.live.column import Column, CombinedColumn, algorithm_named
from panes.live.saving import Saved, read, write
from panes.live.store import Keep, Store
from panes.live.windows import Windows, asked, windows_of
from panes.local.intake import as_table
from panes.local.run import program_of, sorted_events
from panes.planning.blueprint import draw_up
from panes.planning.statistics import Statistics
from panes.timeline import DurationLike, Geometry, parse_duration

Quantiles: TypeAlias = float | str | Mapping[str, float | str]
"""Which quantile a lookup asks for: a number, a column of the requests, or one of these for each output column."""


class Index:
    """Aggregates over any window of what a stream has brought lately, kept in this process while batches come.

    A plan has windows; an index has none. Every request brings its own: any span of time or number of rows, ending now
    or a while ago. What is shared between them are partial answers, kept by the algorithms of Arasu and Widom.

    Parameters
    ----------
    select
        Output columns: an aggregate each. All that combine partials are possible, and ``pn.quantile``.
    by
        The key columns; none for one key.
    at
        The column of event time.
    keep
        How much is held: a duration, up to the latest event of all keys; or so many rows of each key.
    where
        Which events count.
    algorithm
        ``running``, ``landmark``, ``dyadic``, ``tree`` or ``elements`` for all aggregates (an error where one of them
        lacks the law that it needs); by default an adviser chooses for each, by what is asked, and changes its mind.

    Attributes
    ----------
    null_times, left_out
        How many events had no time, and how many were older than what is kept when they came.

    Examples
    --------
    >>> import datetime as dt, pyarrow as pa, panes as pn
    >>> index = pn.Index({"n": pn.count(), "top": pn.max("x")}, by="host", at="ts", keep="1 hour")
    >>> minutes = [dt.datetime(2026, 1, 1, 9, m) for m in range(60)]
    >>> index.update(pa.table({"ts": minutes, "host": ["a", "b"] * 30, "x": list(range(60))}))
    >>> index.lookup(pa.table({"host": ["a", "b", "c"]}), over="10 min").to_pylist()
    [{'host': 'a', 'n': 5, 'top': 58}, {'host': 'b', 'n': 5, 'top': 59}, {'host': 'c', 'n': 0, 'top': None}]
    >>> index.lookup(pa.table({"host": ["a"]}), over="1 hour", ago="30 min")
    Traceback (most recent call last):
    ...
    panes.errors.PlanError: a window begins at 2026-01-01 08:29:00.000001, but the index keeps 1h and has seen ...
    """

    def __init__(
        self,
        select: Mapping[str, Aggregate],
        *,
        by: str | Iterable[str] = (),
        at: str,
        keep: DurationLike | int,
        where: str | Expression | None = None,
        algorithm: str | None = None,
    ) -> None:
        _check_select(select)
        self._keep = _keep(keep)
        self._asked = None if algorithm is None else algorithm_named(algorithm)
        # A query, so that the same is said about the same mistakes. Its window means nothing, and suits all aggregates.
        self._query = query("index", at=at, by=by, select=select, over=tumbling("1 us"), where=where)
        self._store_plan = draw_up(
            [self._query], Statistics.given(None, None), "columnar", factor_windows=False
        ).stores[0]
        self._schema: pa.Schema | None = None
        # A stream feeds it in a thread of its own, while others ask.
        self._lock = RLock()
        self._broken = False
        self.null_times = 0

    def update(self, batch: Any) -> None:
        """Take in events: a pyarrow Table or RecordBatch, or anything with the Arrow C interface.

        Events of a key may come in any order, within a batch and over batches, as long as they are not older than what
        is kept; those behind later ones make their key's rows be laid out anew. Events at one instant count in the
        order in which they come.
        """
        table = as_table(batch, {name.lower() for name in self._query.used})
        check_columns([self._query], table.schema)
        with self._lock, np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            self._check_whole()
            self._bind(table.schema)
            events = sorted_events(self._store_plan, self._program, table)
            untimed = table.column(field_of(table.schema, self._query.at).name).null_count
            if not len(events.instants):
                self.null_times += untimed
                return
            # What may fail comes before anything changes.
            instants = check_near(events.instants)
            stored = [
                column.lifted([events.arguments[sql] for sql in column.component.arguments])
                for column in self._store.columns
            ]
            self.null_times += untimed
            key, count = self._ordinals(events.keys), np.diff(events.key_starts)
            if (key[1:] < key[:-1]).any():
                # Events are by the value of their key; the store has them by its number.
                order = np.argsort(key)
                rows = ranges(events.key_starts[:-1][order], count[order])
                key, count, instants = key[order], count[order], instants[rows]
                stored = [values.take(pa.array(rows)) for values in stored]
            with self._whole_or_not_at_all():
                self._store.append(key, count, instants, stored)
            chosen = self._store.forget()
            if chosen is not None and self._dictionary is not None:
                self._dictionary.keep(chosen)

    def lookup(
        self,
        requests: Any,
        *,
        over: DurationLike | None = None,
        ago: DurationLike | None = None,
        at: str | None = None,
        last: int | None = None,
        skip: int = 0,
        q: Quantiles | None = None,
    ) -> pa.Table:
        """The aggregates of one window for each request: the requests' columns, then the answers, in their order.

        Where a key is unknown, or a window holds nothing, counts are 0 and all else is null. So it is where an instant
        is null. A window that reaches further back than what is held is an error, never a wrong number.

        Parameters
        ----------
        requests
            A table with the key columns. Without ``over`` and ``last`` it also has instants ``from`` and ``to``, the
            window ``[from, to)``.
        over, ago
            The window ``(t - ago - over, t - ago]``, of time.
        at
            The column of the requests that is t; by default the latest event of all.
        last, skip
            So many rows of the key, without the newest ``skip`` ones. Needs an index that keeps rows.
        q
            Which quantile, instead of the one that was declared: a number, or a column of the requests, or a mapping
            from output columns to these.
        """
        windows = asked(at, over, ago, last, skip)
        if self._schema is None:
            raise PlanError("the index has no types yet: no event has come. Call update(batch) first.")
        table = as_table(requests)
        clash = [name for name, _ in self._query.aggregates if name.lower() in map(str.lower, table.column_names)]
        if clash:
            raise SchemaError(f"the requests have a column {clash[0]!r}, which the answers have too. Rename one.")
        parts = self._parts(q, table)
        with self._lock, np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            self._check_whole()
            time = field_of(self._schema, self._query.at)
            found = windows_of(windows, self._store, table, self._keys_of(table), time)
            for reading in self._program.views[0].readings:
                answer = self._read(reading, found, parts.get(reading.alias))
                table = table.append_column(reading.alias, answer)
        return table

    @property
    def algorithm(self) -> dict[str, str]:
        """The algorithm that each component has at present."""
        return {} if self._schema is None else {c.component.name: c.algorithm for c in self._store.columns}

    @property
    def advice(self) -> str:
        """What the adviser has counted for each component, and why it has the algorithm that it has."""
        lines = []
        for column in () if self._schema is None else self._store.columns:
            adviser = column.adviser if isinstance(column, CombinedColumn) else None
            why = f"{column.algorithm}, nothing to choose from" if adviser is None else adviser.explain()
            lines.append(f"{column.component.name}: {why}")
        return "\n".join(lines)

    @property
    def rows(self) -> int:
        """How many events are held."""
        return 0 if self._schema is None else self._store.rings.rows

    @property
    def left_out(self) -> int:
        """How many events were older than what is kept when they came."""
        return 0 if self._schema is None else self._store.left_out

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, as data: Arrow streams with a format version."""
        if self._schema is None:
            raise PlanError("there is nothing to save: no event has come yet.")
        with self._lock:
            self._check_whole()
            keys = None if self._dictionary is None else self._dictionary.keys
            saved = Saved.of(self._query, self._keep, self._asked, self.null_times, self._schema, keys, self._store)
        write(path, saved)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, select: Mapping[str, Aggregate] | None = None) -> Index:
        """An index that was saved.

        Parameters
        ----------
        select
            The same aggregates again: needed where one of them is your own, since functions are not saved.
        """
        saved = read(path)
        index = cls(saved.select(select), **saved.options)
        index.null_times = saved.declared["null_times"]
        index._bind(saved.schema)
        if index._dictionary is not None and saved.keys.num_rows:
            index._ordinals(saved.keys)
        saved.fill(index._store)
        return index

    def _bind(self, schema: pa.Schema) -> None:
        """Fix the types with the first batch."""
        used = pa.schema([field_of(schema, name).with_nullable(True) for name in sorted(self._query.used)])
        if self._schema is not None:
            check_same_types(used, self._schema)
            return
        self._program: Program = program_of(self._store_plan, used)
        keys = pa.schema([pa.field(name, field_of(used, name).type) for name in self._store_plan.keys])
        self._dictionary = Dictionary(keys, InMemory()) if len(keys) else None
        self._store = Store(self._program.components, self._keep, self._asked)
        self._schema = used

    @contextmanager
    def _whole_or_not_at_all(self) -> Iterator[None]:
        """What breaks off an update, be it an error in a function of the user's, leaves columns that do not agree."""
        self._broken = True
        yield
        self._broken = False

    def _check_whole(self) -> None:
        if self._broken:
            raise StateError(
                "an update broke off halfway, so that the index would answer wrongly. Load the one that was saved "
                "last, or make a new one."
            )

    def _ordinals(self, keys: pa.Table) -> Array:
        if self._dictionary is None:
            return np.zeros(1, np.int64)
        found: Array = self._dictionary.ordinals(keys.combine_chunks().to_batches()[0])
        return found

    def _keys_of(self, requests: pa.Table) -> Array:
        """The numbers of the requests' keys, -1 where one is unknown."""
        if self._dictionary is None:
            return np.full(requests.num_rows, 0 if len(self._store.rings) else -1)
        columns = []
        for field in self._dictionary.keys.schema:
            if field.name.lower() not in (name.lower() for name in requests.column_names):
                raise SchemaError(
                    f"the requests have no column {field.name!r}, a key of the index "
                    f"({nearest(field.name, requests.column_names)})."
                )
            column = requests.column(field_of(requests.schema, field.name).name).combine_chunks()
            try:
                columns.append(one_zero(column.cast(field.type)))
            except pa.ArrowException as error:
                raise SchemaError(
                    f"the key {field.name!r} of the requests is {column.type}, and that of the events {field.type}: "
                    f"{error}. Cast it first."
                ) from error
        batch = pa.RecordBatch.from_arrays(columns, schema=self._dictionary.keys.schema)
        found: Array = self._dictionary.find(batch)
        return found

    def _read(self, reading: Reading, found: Windows, part: Array | None) -> pa.Array:
        bound = reading.bound
        columns: list[Column] = [self._store.columns[c] for c in reading.components]
        windows = found.key, found.lo, found.hi
        if part is not None:
            aggregate = dict(self._query.aggregates)[reading.alias]
            assert isinstance(aggregate, QuantileOf)
            return aggregate.read(columns[0].answers(*windows), part)
        if bound.answer is not None:
            return bound.answer(*(column.state(*windows) for column in columns))
        answers = [column.answers(*windows) for column in columns]
        if not bound.by_window:
            return bound.lower(*answers)
        self._check_width(reading.alias, found)
        return bound.lower(*answers, start=found.start, end=found.end)

    def _check_width(self, alias: str, found: Windows) -> None:
        widest = int((found.end - found.start).max(initial=0))
        misfit = dict(self._query.aggregates)[alias].misfit(Geometry(max(widest, 1), max(widest, 1)))
        if misfit is not None:
            raise PlanError(misfit)

    def _parts(self, q: Quantiles | None, requests: pa.Table) -> dict[str, Array]:
        """Which quantile is asked for by each request, of the output columns for which it is not the declared one."""
        if q is None:
            return {}
        known = [alias for alias, aggregate in self._query.aggregates if isinstance(aggregate, QuantileOf)]
        given = q if isinstance(q, Mapping) else dict.fromkeys(known, q)
        if not given or set(given) - set(known):
            raise DeclarationError(
                f"q={q!r} is about quantiles, and the index has {', '.join(map(repr, known)) or 'none'}. Select "
                "pn.quantile('price', 0.5) to have one."
            )
        return {alias: _part(value, requests) for alias, value in given.items()}


def _part(value: float | str, requests: pa.Table) -> Array:
    if isinstance(value, str):
        if value.lower() not in map(str.lower, requests.column_names):
            raise SchemaError(f"the requests have no column {value!r} ({nearest(value, requests.column_names)}).")
        field = field_of(requests.schema, value)
        if not is_number(field.type):
            raise SchemaError(f"q={value!r} is of type {field.type} in the requests, and has to be a number.")
        part = numbers(requests.column(field.name).combine_chunks().cast(pa.float64()), np.nan)
    else:
        part = np.full(requests.num_rows, value, np.float64)
    if not ((part >= 0) & (part <= 1)).all():
        raise DeclarationError(f"q={value!r}: a quantile is a number from 0 to 1, as 0.5 for the median.")
    return part


def _keep(keep: DurationLike | int) -> Keep:
    if isinstance(keep, bool) or (isinstance(keep, int) and keep < 1):
        raise DeclarationError(f"keep={keep!r}: write how long, as '1 hour', or how many rows of each key, as 1000.")
    if isinstance(keep, int):
        return Keep(rows=keep)
    micros = parse_duration(keep)
    if micros <= 0:
        raise DeclarationError(f"keep={keep!r} is no time at all. Write for example '1 hour'.")
    return Keep(micros=micros)


def _check_select(select: Mapping[str, Aggregate]) -> None:
    if not isinstance(select, Mapping) or not select:
        raise DeclarationError(f"select={select!r} names no columns. Write pn.Index({{'n': pn.count()}}, ...).")
    for alias, aggregate in select.items():
        if not isinstance(aggregate, Aggregate):
            raise DeclarationError(
                f"an index answers aggregates, and {alias!r} = {aggregate!r} is none. Write for example "
                "pn.sum('amount'), and compute with the answers afterwards."
            )
        if aggregate.levels or aggregate.in_order or (aggregate.collects and not isinstance(aggregate, QuantileOf)):
            why = (
                "looks at levels of a nested window"
                if aggregate.levels
                else "needs windows that begin and end with its ticks"
                if aggregate.in_order
                else "has partials that grow with the number of different values (pn.approx_count_distinct has not)"
            )
            raise DeclarationError(
                f"{alias!r}: {aggregate} {why}, so that an index cannot have it. Leave it to a plan."
            )
