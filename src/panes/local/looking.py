"""The in-process lookup: a table of events and one of requests in, the requests with their answers out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from panes.algebra.operations import Array
from panes.declare.expressions import expression
from panes.declare.lookups import Back, Lookup
from panes.engine.keys import key_ordinals
from panes.engine.lookup import NEVER, Asked, BoundLookup, Lookback, bind_lookup
from panes.engine.request_columns import request_columns
from panes.engine.schema import check_columns, field_of
from panes.frames.positions import check_near
from panes.local.columns import column_of, counting, whole
from panes.local.evaluate import evaluate, require_boolean, result_type
from panes.local.intake import as_table
from panes.local.schema import output_types


def lookup(declared: Lookup, events: Any, requests: Any) -> pa.Table:
    """Answer every request.

    Parameters
    ----------
    events, requests
        pyarrow Tables, or anything with the Arrow C interface.
    """
    query = declared.query
    table = as_table(events, {name.lower() for name in query.used})
    asked = as_table(requests)
    check_columns([query], table.schema)
    if query.where is not None:
        require_boolean(query.where, table.schema)
    bound = bind_lookup(declared, lambda sql: result_type(expression(sql), table.schema))
    types = feature_types(bound, table.schema)
    columns = request_columns(declared, table.schema, asked.schema)
    table = counting(table, query.at, query.where)
    instants, instant = (instants_of(column_of(t, at)) for t, at in ((table, query.at), (asked, declared.asked_at)))
    keys = [column_of(table, key) for key in query.by]
    asked_keys = [whole(asked.column(i)) for i in columns.keys]
    # One numbering for both sides: a request's key may have no event.
    together = [pa.concat_arrays([a, b.cast(a.type)]) for a, b in zip(keys, asked_keys, strict=True)]
    ordinals = key_ordinals(together, len(table) + len(asked))
    own, others = ordinals[: len(table)], ordinals[len(table) :]
    order, turn = np.lexsort((instants, own)), np.lexsort((instant, others))
    starts = np.searchsorted(own[order], np.arange(int(ordinals.max(initial=-1)) + 2))
    arguments = {a: whole(evaluate(expression(a), table)).take(pa.array(order)) for a in bound.arguments}
    lookback = Lookback(bound, instants[order], starts, arguments)
    sorted_keys = [array.take(pa.array(turn)) for array in asked_keys]
    time, back = field_of(table.schema, query.at).type, pa.array(np.argsort(turn))
    parts = {}
    in_turn = lookback.ask(others[turn], instant[turn])
    for window in declared.windows:
        found = answers_of(bound, in_turn, window, instant[turn], sorted_keys, time, types)
        parts[window.name] = {alias: column.take(back) for alias, column in found.items()}
    return spread(declared, asked, parts)


def feature_types(bound: BoundLookup, events: pa.Schema) -> dict[str, pa.DataType]:
    """The types of the output columns over any window."""
    return output_types(bound.lookup.query, {r.alias: r.bound.type for r in bound.readings}, events)


def answers_of(
    bound: BoundLookup,
    requests: Asked,
    window: Back,
    instant: Array,
    keys: list[pa.Array],
    time: pa.DataType,
    types: Mapping[str, pa.DataType],
) -> dict[str, pa.Array]:
    """The output columns over one window, for every request.

    Parameters
    ----------
    instant, keys, time
        The times and keys of the requests, which derived columns may name, and the type of event time.
    types
        What ``feature_types`` says.
    """
    query = bound.lookup.query
    answers = requests.answer(window)
    found = {r.alias: column for r, column in zip(bound.readings, answers.columns, strict=True)}
    if query.derived:
        edges = [pa.array(edge, mask=instant == NEVER).view(time) for edge in (answers.start, answers.end)]
        labels = {
            "window": pa.StructArray.from_arrays(edges, names=["start", "end"]),
            "window_name": pa.repeat(window.name, len(instant)),
        }
        piece = pa.table({**dict(zip(query.by, keys, strict=True)), **found, **labels})
        for alias, value in query.derived:
            found[alias] = whole(evaluate(value, piece))
            piece = piece.append_column(alias, found[alias])
    return {alias: found[alias].cast(types[alias]) for alias in query.columns}


def spread(lookup: Lookup, requests: pa.Table, parts: Mapping[str, Mapping[str, pa.Array]]) -> pa.Table:
    """The requests with what was found for them, in the layout that was asked for."""
    if lookup.layout == "wide":
        for window, alias, name in lookup.features:
            requests = requests.append_column(name, parts[window][alias])
        return requests
    pieces = []
    for window, found in parts.items():
        piece = requests.append_column("window_name", pa.repeat(window, len(requests)))
        for alias, column in found.items():
            piece = piece.append_column(alias, column)
        pieces.append(piece)
    return pa.concat_tables(pieces)


def instants_of(column: pa.Array) -> Array:
    """Times in µs, before all others where there is none."""
    integers = column.view(pa.int64())
    # Filling copies, even where there is nothing to fill.
    instants: Array = (integers.fill_null(NEVER) if column.null_count else integers).to_numpy(zero_copy_only=False)
    return check_near(instants)
