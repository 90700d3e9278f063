"""Windows of queries that go by the events themselves, in process."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from panes.declare.expressions import expression
from panes.engine.schema import ResultSchema, check_columns, field_of, result_schema
from panes.local.arriving import ENDLESS, arrive
from panes.local.columns import whole
from panes.local.evaluate import evaluate, require_boolean, result_type
from panes.local.intake import as_table
from panes.local.run import finished
from panes.local.schema import output_types
from panes.local.windowed_aggregates import BoundAggregates, answer, bind_aggregates, windows_of
from panes.operators.over_queries import RowsQuery


def run_rows(asked: RowsQuery, data: Any) -> pa.Table:
    """Answer a query over all its windows that go by events.

    Parameters
    ----------
    data
        A pyarrow Table, or anything with the Arrow C interface.
    """
    query = asked.query
    table = as_table(data, {name.lower() for name in query.used})
    check_columns([query], table.schema)
    if query.where is not None:
        require_boolean(query.where, table.schema)
    events = table.schema
    bound = [bind_aggregates(each, events, lambda sql: result_type(expression(sql), events)) for each in asked.windows]
    schema = schema_of(asked, bound[0], events)
    # All windows of a query have the same rows in the same order.
    arrived = arrive(asked.windows[0].stream, table, query.used, bound[0].read)
    # Nothing comes after a table, so that every session in it has ended.
    table, arrivals = arrived.table, replace(arrived.arrivals, end=ENDLESS)
    arguments = {sql: whole(evaluate(expression(sql), table)) for sql in bound[0].arguments}
    pieces = [schema.long.empty_table()]
    for each, name, after in zip(bound, asked.names, asked.after, strict=True):
        found = answer(each, arrivals, *windows_of(each.declared, arrivals), arrived.keys, [], arguments)
        pieces.append(finished(query, labelled(found, name, after), schema))
    return pa.concat_tables(pieces)


def schema_of(asked: RowsQuery, bound: BoundAggregates, events: pa.Schema) -> ResultSchema:
    """The columns of answers; a derived column or ``having`` that cannot be evaluated is an error."""
    query = asked.query
    types = output_types(query, {reading.alias: reading.bound.type for reading in bound.readings}, events)
    keys = {name: field_of(events, name).type for name in query.by}
    return result_schema([query], keys, [types], [field_of(events, query.at).type])


def labelled(found: pa.Table, name: str, after: int) -> pa.Table:
    """Answers with the bounds of their windows, as queries have them."""
    window = whole(found.column("window"))
    start, end = window.field("start"), window.field("end")
    if after:
        end = pa.array(end.view(pa.int64()).to_numpy() + after).view(end.type)
    bounds = pa.StructArray.from_arrays([start, end], names=["start", "end"])
    found = found.set_column(found.column_names.index("window"), "window", bounds)
    return found.append_column("window_name", pa.repeat(name, len(found)))
