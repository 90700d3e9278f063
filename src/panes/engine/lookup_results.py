"""The results of a lookup: aggregates and derived columns per request, in the long or the wide layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

from panes.engine.columns import whole
from panes.engine.lookback import BoundLookup, LookupRequests
from panes.engine.schema import output_types
from panes.expressions.evaluate import evaluate
from panes.queries.lookup_declarations import LookupLayout, LookupWindow, features
from panes.queries.query import EXPIRES, Query
from panes.queries.windows import Cumulate, Window

Types: TypeAlias = Mapping[str, pa.DataType]
Answers: TypeAlias = dict[tuple[str, str], dict[str, pa.Array]]
"""The output columns by the names of query and window."""


def feature_types(bound: BoundLookup, events: pa.Schema) -> tuple[Types, ...]:
    """The types of the output columns of each query, over any window."""
    found = []
    for query, readings in zip(bound.part.queries, bound.readings, strict=True):
        types = output_types(query, {r.alias: r.bound.type for r in readings}, events)
        found.append({alias: types[alias] for alias in query.columns})
    return tuple(found)


def answers_of(
    bound: BoundLookup, requests: LookupRequests, keys: list[pa.Array], time: pa.DataType, types: Sequence[Types]
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
    requests: LookupRequests,
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
    table = pa.table(
        {
            # Spelt as this query does: others of the same keys may name them in another order.
            **{key: next(c for name, c in keys.items() if name.lower() == key.lower()) for key in query.by},
            **found,
            "window": pa.StructArray.from_arrays(edges, names=["start", "end"], mask=pa.array(missing)),
            "window_name": pa.repeat(window.name, len(missing)),
        }
    )
    if query.uses_expires:
        table = table.append_column(EXPIRES, pa.array(answers.end + _pace(window), mask=missing).view(time))
    for alias, value in query.derived:
        found[alias] = whole(evaluate(value, table))
        if alias.lower() == EXPIRES and query.uses_expires:
            table = table.drop_columns([EXPIRES])
        table = table.append_column(alias, found[alias])
    return found


def _pace(window: LookupWindow) -> int:
    """How long after an instance the next one of its size ends."""
    assert isinstance(window, (Window, Cumulate))
    return window.upto if isinstance(window, Cumulate) else window.geometry.slide


def spread(queries: Sequence[Query], layout: LookupLayout, requests: pa.Table, found: Answers) -> pa.Table:
    """The requests with what was found for them, in the wide or the long layout."""
    if layout == "wide":
        for query, window, alias, name in features(queries):
            requests = requests.append_column(name, found[query, window][alias])
        return requests
    types = {alias: column.type for columns in found.values() for alias, column in columns.items()}
    order = dict.fromkeys(column for query in queries for column in query.columns)
    own, tables = {query.name: i for i, query in enumerate(queries)}, []
    for (query, window), columns in sorted(found.items(), key=lambda view: own[view[0][0]]):
        table = requests.append_column("query", pa.repeat(query, len(requests)))
        table = table.append_column("window_name", pa.repeat(window, len(requests)))
        for alias in order:
            table = table.append_column(alias, columns.get(alias, pa.nulls(len(requests), types[alias])))
        tables.append(table)
    return pa.concat_tables(tables)
