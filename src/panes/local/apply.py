"""A function over windows, in process: it is called for every window with a slice of the sorted rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from panes.applying.function_calls import AppliedRows, bind_function, label_calls
from panes.applying.tuple_by_tuple import answered
from panes.applying.user_functions import WindowedFunction
from panes.applying.user_operators import WindowedOperator
from panes.engine.columns import column_of, whole
from panes.inputs import as_table
from panes.local.rows import SortedRows, instances_of, sorted_rows, taken
from panes.queries.query import ARRIVAL
from panes.row_windows.arrival import arrive, check_tuples
from panes.row_windows.parts import RowsPart, key_sets


def applied(declared: WindowedFunction, data: Any) -> pa.Table:
    """What a function returns for the windows of a table.

    Parameters
    ----------
    data
        A pyarrow Table, or anything with the Arrow C interface.
    """
    table = as_table(data)
    if declared.order:
        declared = replace(declared, schema=table.schema)
    if not declared.query.timed:
        table = table.append_column(ARRIVAL, pa.array(np.arange(len(table)), pa.timestamp("us")))
    bounds = {part: bind_function(declared, part, table.schema) for part in declared.parts(table.schema)}
    found = dict[RowsPart, list[pa.Table]]()
    for parts in key_sets(list(bounds)):
        rows = sorted_rows(parts, table, data)
        found |= {part: _applied(bounds[part], rows) for part in parts}
    return pa.concat_tables([piece for part in bounds for piece in found[part]], promote_options="permissive")


def _applied(bound: AppliedRows, rows: SortedRows) -> list[pa.Table]:
    """The windows of one part."""
    part, order = bound.part, rows.order
    mine = rows.arriving[part]
    if not mine[order].all():
        order = order[mine[order]]
    table = taken(rows.table, order, {name.lower() for name in rows.table.column_names})
    arguments = {sql: whole(table.column(name)) for sql, name in zip(bound.arguments, bound.columns, strict=True)}
    deltas = pa.table([column_of(table, name) for name in part.deltas], names=list(part.deltas))
    return [
        label_calls(bound, number, bound.answer(number, arrivals, *windows, keys, (), arguments))
        for number, (arrivals, windows, keys) in enumerate(instances_of(part, rows, order, deltas))
    ]


def operated(declared: WindowedOperator, data: Any) -> pa.Table:
    """What an operator submits when the rows of a table arrive.

    Parameters
    ----------
    data
        A pyarrow Table, or anything with the Arrow C interface.
    """
    table = as_table(data)
    check_tuples(declared.stream, table.schema, declared.order)
    if declared.order:
        declared = replace(declared, schema=table.schema)
    arrived = arrive(declared.stream, table)
    return answered(declared, arrived.table, arrived.arrivals)
