"""Queries that are answered from the same events: of the same keys, event time and condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from panes.aggregates.aggregate import Aggregate
from panes.aggregates.custom import Custom
from panes.aggregates.operations import Array, State, take
from panes.engine.bind_program import types_in
from panes.engine.columns import column_of, counting, whole
from panes.engine.keys import key_ordinals, one_zero
from panes.engine.lookback import BoundLookup, bind_lookup
from panes.engine.lookup_results import Types, feature_types
from panes.engine.schema import check_columns, check_same_types, field_of
from panes.engine.sorting import sort_tied_events, tie_columns
from panes.expressions.evaluate import evaluate, require_boolean
from panes.expressions.expression import expression
from panes.frames.positions import check_near
from panes.inputs import as_table, with_the_rest
from panes.live.column import CombinedColumn, LiveColumn
from panes.live.store import Keep, Store
from panes.live.threshold_index import ThresholdIndex
from panes.queries.lookup_declarations import LookupPart
from panes.state.key_dictionary import KeyDictionary

_LITTLE = 1 << 12
"""So few events are not worth compacting."""


def has_column(aggregate: Aggregate) -> bool:
    """Whether partials of an aggregate are shared between windows; others are made of the events when asked for."""
    whole_bags = aggregate.collects and not aggregate.by_rank
    return not (aggregate.levels or aggregate.in_order or whole_bags)


@dataclass(frozen=True, eq=False)
class Batch:
    """Events that were checked and are ready to be taken in.

    Parameters
    ----------
    table
        The events that count.
    instants, keys, arguments, stored, indexed
        Of each event, when it happened, its key, the values of each argument, and what is stored of every column and
        kept by every index.
    """

    table: pa.Table
    instants: Array
    keys: list[pa.Array]
    arguments: dict[str, pa.Array]
    stored: list[pa.Array]
    indexed: list[State]


class Part:
    """The events of some queries, and what their aggregates come to over any window.

    Parameters
    ----------
    declared
        Queries of one condition; with ``rows`` of it they have one order within an instant, too.
    algorithm
        The name of the algorithm for all columns; None leaves it to the adviser.

    Attributes
    ----------
    indexes
        By the names of query and output column.
    """

    def __init__(self, declared: LookupPart, keep: Keep, algorithm: str | None) -> None:
        self.declared, self.keep, self._algorithm = declared, keep, algorithm
        self.indexes: dict[tuple[str, str], ThresholdIndex] = {}
        self.schema: pa.Schema | None = None

    @property
    def rows(self) -> int:
        """How many events are held."""
        return 0 if self.schema is None else self.store.rings.rows

    @property
    def used(self) -> frozenset[str]:
        """The columns of the data that queries read."""
        return frozenset(name for query in self.declared.queries for name in query.used)

    # Taking in

    def read(self, data: Any) -> pa.Table:
        """A batch as a table of Spark's types, checked."""
        table = as_table(data, {name.lower() for name in self.used})
        check_columns(self.declared.queries, table.schema)
        if self.keep.rows is not None and not self.declared.ties:
            table = with_the_rest(data, table)
        self._bind(table.schema)
        return table

    def prepare(self, table: pa.Table) -> Batch:
        """Do all that may fail before anything changes."""
        part = self.declared
        table = counting(table, part.at, part.kept)
        instants = check_near(column_of(table, part.at).view(pa.int64()).to_numpy())
        arguments = {a: whole(evaluate(expression(a), table)) for a in self.bound.arguments}
        stored = [column.lifted([arguments[a] for a in column.component.arguments]) for column in self.columns.values()]
        keys = [one_zero(column_of(table, key)) for key in part.by]
        return Batch(table, instants, keys, arguments, stored, [index.read(table) for index in self.indexes.values()])

    def commit(self, batch: Batch, newest: int) -> None:
        """Take in events.

        Parameters
        ----------
        newest
            The latest instant of all events, those that do not count included.
        """
        self.store.newest = newest
        if not len(batch.instants):
            return
        key = self._numbers(batch.keys, len(batch.instants))
        order = np.lexsort((batch.instants, key))
        first = np.flatnonzero(np.diff(key[order], prepend=-1))
        instants, starts = batch.instants[order], np.append(first, len(order))
        if self._ordered is not None:
            sort_tied_events(order, instants, starts, self._ties(batch.table, batch.arguments))
        rows = pa.array(order)
        ids = self.log.append(batch.table.take(rows))
        stored = [column.take(rows) for column in batch.stored]
        columns = [index.column for index in self.indexes.values()]
        indexed = {column: take(state, order) for column, state in zip(columns, batch.indexed, strict=True)}
        self.store.append(key[order][first], np.diff(starts), instants, ids, stored, indexed)
        self._tidy()

    def restore(self, events: pa.Table, first: Array, count: Array, keys: pa.Table) -> None:
        """Hold events that were held before.

        Parameters
        ----------
        events
            Key after key, each key's in order.
        first, count
            Of each key, which of its rows is the first that is held, and how many are.
        """
        self._bind(events.schema)
        if self.dictionary is not None and len(keys):
            self.dictionary.ordinals(keys.combine_chunks().to_batches()[0].cast(self.dictionary.keys.schema))
        self.store.grow(len(first))
        every = np.arange(len(first))
        self.store.rings.clear(every, first)
        batch, some = self.prepare(events), np.flatnonzero(count)
        self.store.append(some, count[some], batch.instants, self.log.append(batch.table), batch.stored)

    def _numbers(self, keys: list[pa.Array], length: int) -> Array:
        """The number of each event's key; keys that are new get one."""
        if self.dictionary is None:
            return np.zeros(length, np.int64)
        ordinals = key_ordinals(keys, length)
        _, first, same = np.unique(ordinals, return_index=True, return_inverse=True)
        some = [column.take(pa.array(first)) for column in keys]
        found = self.dictionary.ordinals(pa.RecordBatch.from_arrays(some, schema=self.dictionary.keys.schema))
        numbers: Array = found[same]
        return numbers

    def _tidy(self) -> None:
        """Let go of keys and events that nothing asks for any more, once they are the most."""
        chosen = self.store.forget()
        if chosen is not None and self.dictionary is not None:
            self.dictionary.keep(chosen)
        if len(self.log) > 2 * self.rows + _LITTLE:
            held = self.store.rings.held()
            self.log.keep(self.store.ids.elements(held)[0])
            self.store.ids.append(held, (np.arange(held.rows),))
        for index in self.indexes.values():
            if index.outdated:
                self.store.rings.remove(index.column)
                self._fill(index)

    def _bind(self, schema: pa.Schema) -> None:
        """Fix the types with the first batch."""
        part = self.declared
        kept = [field_of(schema, name) for name in sorted(self.used)]
        names = tie_columns(schema, part.ties, (*part.by, part.at)) if self.keep.rows is not None else []
        kept += [field_of(schema, name) for name in names if field_of(schema, name) not in kept]
        own = pa.schema([field.with_nullable(True) for field in kept])
        if self.schema is not None:
            check_same_types(own, self.schema)
            return
        if part.kept is not None:
            require_boolean(part.kept, schema)
        bound = bind_lookup(part, types_in(schema))
        types = feature_types(bound, own)
        for index in self.indexes.values():
            index.check(schema)
        keys = pa.schema([pa.field(key, field_of(own, key).type) for key in part.by])
        shared = sorted(
            {
                c
                for query, readings in zip(part.queries, bound.readings, strict=True)
                for reading in readings
                if has_column(dict(query.aggregates)[reading.alias])
                for c in reading.components
            }
        )
        self._ordered = self._order(bound, names)
        self.store = Store(
            [bound.components[c] for c in shared],
            self.keep,
            self._algorithm,
            None if self._ordered is None else self._untie,
        )
        self.columns: dict[int, LiveColumn] = dict(zip(shared, self.store.columns, strict=True))
        self.dictionary = KeyDictionary(keys) if len(keys) else None
        self.log = EventLog(own)
        self.bound: BoundLookup = bound
        self.types: tuple[Types, ...] = types
        self.schema = own
        for index in self.indexes.values():
            self.store.rings.add(index.bind(self.store))

    # The order of events of one instant

    def _order(self, bound: BoundLookup, names: Sequence[str]) -> tuple[list[str], list[str]] | None:
        """The columns and the arguments that order events of one instant; None where nothing does."""
        if self.keep.rows is not None:
            return list(names), list(bound.arguments)
        own = next((c for c in bound.components if isinstance(c, Custom)), None)
        return None if own is None else ([], list(own.arguments))

    def in_place(self, component: int, *, of_rows: bool) -> bool:
        """Whether events of one instant are held in the order in which a component wants them.

        Windows that part them see them in one order; others see them in the order of the component's own values.
        """
        found = self.bound.components[component]
        if of_rows or not isinstance(found, Custom):
            return True
        return self._ordered == ([], list(found.arguments))

    def _ties(self, table: pa.Table, arguments: dict[str, pa.Array]) -> list[Any]:
        assert self._ordered is not None
        names, some = self._ordered
        return [*(table.column(field_of(table.schema, n).name) for n in names), *(arguments[a] for a in some)]

    def _untie(self, order: Array, instants: Array, key_starts: Array, ids: Array) -> None:
        if not (instants[1:] == instants[:-1]).any():
            return
        assert self._ordered is not None
        table = self.log.take(ids)
        arguments = {a: whole(evaluate(expression(a), table)) for a in self._ordered[1]}
        sort_tied_events(order, instants, key_starts, self._ties(table, arguments))

    # Keys

    def find(self, keys: list[pa.Array], length: int) -> Array:
        """The numbers of some keys, -1 where one is unknown."""
        if self.dictionary is None:
            return np.full(length, 0 if len(self.store.rings) else -1)
        schema = self.dictionary.keys.schema
        columns = [one_zero(column.cast(field.type)) for column, field in zip(keys, schema, strict=True)]
        found: Array = self.dictionary.find(pa.RecordBatch.from_arrays(columns, schema=schema))
        return found

    def keys(self, numbers: Array) -> list[pa.Array]:
        """The keys of some numbers, a column each."""
        if self.dictionary is None:
            return []
        return [column.take(pa.array(numbers)) for column in self.dictionary.keys.columns]

    def occupied(self) -> Array:
        """The numbers of the keys that have events."""
        return self.store.rings.occupied()

    def events(self, keys: Array) -> pa.Table:
        """The events of some keys that are held, key after key and each key's in order."""
        return self.log.take(self.store.ids.elements(self.store.rings.held(keys))[0])

    # Indexes

    def add_index(self, query: str, column: str, index: ThresholdIndex) -> None:
        """Index the events that are held, and all that come from now on."""
        if self.schema is not None:
            index.check(self.schema)
            self._fill(index)
        self.indexes[query, column] = index

    def _fill(self, index: ThresholdIndex) -> None:
        column = index.bind(self.store)
        self.store.rings.add(column, index.read(self.events(self.store.rings.occupied())))

    def explain(self) -> list[str]:
        """What each component is kept as, and why."""
        if self.schema is None:
            return ["  no event has come yet"]
        lines = []
        for number, component in enumerate(self.bound.components):
            column = self.columns.get(number)
            adviser = column.adviser if isinstance(column, CombinedColumn) else None
            if column is None:
                why = "made of the events of the keys that are asked for"
            else:
                why = f"{column.algorithm}, nothing to choose from" if adviser is None else adviser.explain()
            lines.append(f"  {component.name}: {why}")
        return lines


def part_over(part: LookupPart, query: int, windows: Sequence[Any]) -> LookupPart:
    """One query of a part, over other windows."""
    return replace(part, queries=(replace(part.queries[query], over=tuple(windows)),))


class EventLog:
    """Rows of one schema, numbered in the order in which they come.

    Examples
    --------
    >>> log = EventLog(pa.schema({"x": pa.int64()}))
    >>> log.append(pa.table({"x": [7, 8]})), log.append(pa.table({"x": [9]}))
    (array([0, 1]), array([2]))
    >>> log.take(np.array([2, 0]))["x"].to_pylist()
    [9, 7]
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._parts: list[pa.Table] = []
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def append(self, rows: pa.Table) -> Array:
        """Take in rows; their numbers."""
        first, self._rows = self._rows, self._rows + len(rows)
        rows = rows.select(self.schema.names).cast(self.schema)
        # Doubling, so that taking some rows does not walk through many parts.
        while self._parts and len(self._parts[-1]) <= 2 * len(rows):
            rows = pa.concat_tables([self._parts.pop(), rows]).combine_chunks()
        self._parts.append(rows)
        return np.arange(first, self._rows)

    def take(self, numbers: Array) -> pa.Table:
        """Some rows."""
        return pa.concat_tables([self.schema.empty_table(), *self._parts]).take(pa.array(numbers))

    def keep(self, numbers: Array) -> None:
        """Let go of all other rows; those that stay are numbered anew, in this order."""
        self._parts, self._rows = [self.take(numbers).combine_chunks()], len(numbers)
