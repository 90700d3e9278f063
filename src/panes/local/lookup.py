"""The in-process lookup: a table of events and one of requests in, the requests with their answers out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.aggregates.ordering import is_ordered
from panes.engine.columns import column_of, counting, instants_of, tie_columns, whole
from panes.engine.input_columns import RequestColumns, check_added, request_columns
from panes.engine.keys import key_ordinals
from panes.engine.lookback import Asked, BoundLookup, Lookback, bind_lookup
from panes.engine.schema import check_columns, field_of, one_type_each, output_types
from panes.expressions.evaluate import evaluate, require_boolean, result_type
from panes.expressions.expression import expression
from panes.inputs import as_table, with_the_rest
from panes.planning.explanation import listed
from panes.planning.steps import Steps
from panes.queries.lookup_declarations import LookupDeclaration, LookupLayout, LookupPart, LookupWindow, features
from panes.queries.query import EXPIRES, Query
from panes.queries.windows import Cumulate, Window
from panes.row_windows.arrival import sort_ties

Types: TypeAlias = Mapping[str, pa.DataType]
Answers: TypeAlias = dict[tuple[str, str], dict[str, pa.Array]]
"""The output columns by the names of query and window."""


def lookup_steps(declared: LookupDeclaration, events: Any, requests: Any) -> Steps:
    """What is to be done to answer every request, after every check.

    Parameters
    ----------
    events, requests
        pyarrow Tables, or anything with the Arrow C interface.
    """
    if isinstance(events, pa.RecordBatchReader):
        events = events.read_all()  # it can be read once, and every part reads it
    asked = as_table(requests)
    check_added(declared, asked.schema)
    parts = [_Part.of(part, events, asked) for part in declared.parts]
    if declared.layout == "long":
        one_type_each((alias, type_) for part in parts for types in part.types for alias, type_ in types.items())
    steps = Steps("plan.lookup in tables")
    read = steps.add("read", "events", lambda: None)
    asking = steps.add("read", "requests", lambda: asked)
    answers = [part.add(steps, read, asking) for part in parts]

    def put_together(requests: pa.Table, *found: Answers) -> pa.Table:
        return spread(declared.queries, declared.layout, requests, {k: v for some in found for k, v in some.items()})

    detail = "the answers beside the requests" if declared.layout == "wide" else "a row per request, query and window"
    steps.add("union", detail, put_together, asking, *answers)
    return steps


@dataclass(frozen=True, eq=False)
class _Part:
    """Queries that share their sorted events, checked against the data.

    Parameters
    ----------
    table
        Those columns of the events that queries read.
    ties
        The columns that also order events of one instant; None where that does not matter.
    types
        The output columns of each query.
    """

    bound: BoundLookup
    table: pa.Table
    ties: tuple[str, ...] | None
    asked: pa.Table
    columns: RequestColumns
    types: tuple[Types, ...]

    @classmethod
    def of(cls, part: LookupPart, events: Any, asked: pa.Table) -> _Part:
        used = part.read.union(*(query.used for query in part.queries))
        table = as_table(events, {name.lower() for name in used})
        schema = table.schema
        check_columns(part.queries, schema)
        for query in part.queries:
            if query.where is not None:
                require_boolean(query.where, schema)
        bound = bind_lookup(part, lambda sql: result_type(expression(sql), schema))
        types = feature_types(bound, schema)
        columns = request_columns(part, schema, asked.schema)
        if not part.rows:
            return cls(bound, table, None, asked, columns, types)
        # Without ties=, columns that no query reads order events, too.
        table = table if part.ties else with_the_rest(events, table)
        names = tie_columns(table.schema, part.ties, (*part.by, part.at), part.read)
        return cls(bound, table, tuple(names), asked, columns, types)

    def add(self, steps: Steps, read: int, asking: int) -> int:
        """List what is to be done for the answers to these queries.

        Parameters
        ----------
        read, asking
            The steps that have the events and the requests.
        """
        part = self.bound.part
        detail = f"events and requests by {listed(part.by)} and time"
        ordered = steps.add("sort", detail, lambda *_: self._sorted(), read, asking)
        titles = [window.name for _, window in part.views]
        detail = "a search among the events of the key for every window"
        return steps.add("answer", detail, self._answers, ordered, windows=titles)

    def _sorted(self) -> _Sorted:
        part, asked = self.bound.part, self.asked
        table = counting(self.table, part.at, part.kept)
        instants, instant = instants_of(column_of(table, part.at)), instants_of(whole(asked.column(self.columns.at)))
        keys = [column_of(table, key) for key in part.by]
        asked_keys = [whole(asked.column(i)) for i in self.columns.keys]
        # One numbering for both sides: a request's key may have no event.
        together = [pa.concat_arrays([a, b.cast(a.type)]) for a, b in zip(keys, asked_keys, strict=True)]
        ordinals = key_ordinals(together, len(table) + len(asked))
        own, others = ordinals[: len(table)], ordinals[len(table) :]
        order, turn = np.lexsort((instants, own)), np.lexsort((instant, others))
        starts = np.searchsorted(own[order], np.arange(int(ordinals.max(initial=-1)) + 2))
        arguments = {a: whole(evaluate(expression(a), table)) for a in self.bound.arguments}
        if self.ties is not None:
            order_ties(order, instants[order], starts, table.select(self.ties).columns)
        rows = pa.array(order)
        sorted_arguments = {a: array.take(rows) for a, array in arguments.items()}
        sorted_keys = [array.take(pa.array(turn)) for array in asked_keys]
        lookback = Lookback(self.bound, instants[order], starts, sorted_arguments)
        return _Sorted(lookback, turn, others[turn], instant[turn], sorted_keys)

    def _answers(self, rows: _Sorted) -> Answers:
        """What is found for each request, in the order of these."""
        time, back = field_of(self.table.schema, self.bound.part.at).type, pa.array(np.argsort(rows.turn))
        found = answers_of(self.bound, rows.lookback.ask(rows.ordinals, rows.instants), rows.keys, time, self.types)
        return {view: {alias: c.take(back) for alias, c in columns.items()} for view, columns in found.items()}


@dataclass(frozen=True, eq=False)
class _Sorted:
    """Events and requests by key and time.

    Parameters
    ----------
    turn
        Where each of the sorted requests stands in the table.
    ordinals, instants, keys
        Of the sorted requests.
    """

    lookback: Lookback
    turn: Array
    ordinals: Array
    instants: Array
    keys: list[pa.Array]


def order_ties(order: Array, instants: Array, key_starts: Array, columns: Sequence[Any]) -> None:
    """Put events of one key and instant in the order of some columns, of those that have one.

    Parameters
    ----------
    order
        Where each of the sorted events stands in the columns; changed in place.
    instants, key_starts
        Of the sorted events.
    """
    same = instants[1:] == instants[:-1]
    edges = key_starts[(key_starts > 0) & (key_starts < len(instants))]
    same[edges - 1] = False
    ordered = [column for column in columns if is_ordered(column.type)]
    sort_ties(order, same, [c if isinstance(c, pa.ChunkedArray) else pa.chunked_array([c]) for c in ordered])


def feature_types(bound: BoundLookup, events: pa.Schema) -> tuple[Types, ...]:
    """The types of the output columns of each query, over any window."""
    found = []
    for query, readings in zip(bound.part.queries, bound.readings, strict=True):
        types = output_types(query, {r.alias: r.bound.type for r in readings}, events)
        found.append({alias: types[alias] for alias in query.columns})
    return tuple(found)


def answers_of(
    bound: BoundLookup, requests: Asked, keys: list[pa.Array], time: pa.DataType, types: Sequence[Types]
) -> Answers:
    """The output columns of all queries over all of their windows, for every request.

    Parameters
    ----------
    keys, time
        The keys of the requests, which derived columns may name, and the type of event time.
    types
        What ``feature_types`` says.
    """
    part = bound.part
    found: Answers = {}
    for number, window in part.views:
        query = part.queries[number]
        columns = _answers_over(bound, requests, number, window, dict(zip(part.by, keys, strict=True)), time)
        found[query.name, window.name] = {alias: columns[alias].cast(types[number][alias]) for alias in query.columns}
    return found


def _answers_over(
    bound: BoundLookup,
    requests: Asked,
    number: int,
    window: LookupWindow,
    keys: Mapping[str, pa.Array],
    time: pa.DataType,
) -> dict[str, pa.Array]:
    """The aggregates of a query over one window, and what is derived from them."""
    query, answers = bound.part.queries[number], requests.answer(number, window)
    found = {r.alias: column for r, column in zip(bound.readings[number], answers.columns, strict=True)}
    if not query.derived:
        return found
    missing = ~answers.known
    edges = [pa.array(edge, mask=missing).view(time) for edge in (answers.start, answers.end)]
    piece = pa.table(
        {
            # Spelt as this query does: others of the same keys may name them in another order.
            **{key: next(c for name, c in keys.items() if name.lower() == key.lower()) for key in query.by},
            **found,
            "window": pa.StructArray.from_arrays(edges, names=["start", "end"], mask=pa.array(missing)),
            "window_name": pa.repeat(window.name, len(missing)),
        }
    )
    if query.uses_expires:
        piece = piece.append_column(EXPIRES, pa.array(answers.end + _pace(window), mask=missing).view(time))
    for alias, value in query.derived:
        found[alias] = whole(evaluate(value, piece))
        if alias.lower() == EXPIRES and query.uses_expires:
            piece = piece.drop_columns([EXPIRES])
        piece = piece.append_column(alias, found[alias])
    return found


def _pace(window: LookupWindow) -> int:
    """How long after an instance the next one of its size ends."""
    assert isinstance(window, (Window, Cumulate))
    return window.upto if isinstance(window, Cumulate) else window.geometry.slide


def spread(queries: Sequence[Query], layout: LookupLayout, requests: pa.Table, found: Answers) -> pa.Table:
    """The requests with what was found for them, in the layout that was asked for."""
    if layout == "wide":
        for query, window, alias, name in features(queries):
            requests = requests.append_column(name, found[query, window][alias])
        return requests
    types = {alias: column.type for columns in found.values() for alias, column in columns.items()}
    order = dict.fromkeys(column for query in queries for column in query.columns)
    own, pieces = {query.name: i for i, query in enumerate(queries)}, []
    for (query, window), columns in sorted(found.items(), key=lambda view: own[view[0][0]]):
        piece = requests.append_column("query", pa.repeat(query, len(requests)))
        piece = piece.append_column("window_name", pa.repeat(window, len(requests)))
        for alias in order:
            piece = piece.append_column(alias, columns.get(alias, pa.nulls(len(requests), types[alias])))
        pieces.append(piece)
    return pa.concat_tables(pieces)
