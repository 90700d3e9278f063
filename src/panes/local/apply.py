"""``pn.apply`` and ``pn.sort`` on a table in this process."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from panes.applying.function_calls import AppliedRows, bind_function, label_calls
from panes.applying.tuple_by_tuple import answered
from panes.applying.user_functions import WindowedFunction
from panes.applying.user_operators import WindowedOperator
from panes.engine.columns import whole
from panes.inputs import as_table, reread
from panes.local.rows import rows_of, with_arrival
from panes.row_windows.arrival import SortedRows, arrive, sorted_rows
from panes.row_windows.bound_rows import instances_of, needed
from panes.row_windows.parts import RowsPart, key_sets
from panes.row_windows.window_input import check_tuples


def apply_to_table(declared: WindowedFunction | WindowedOperator, data: Any) -> pa.Table:
    """What a function returns for the windows of a table, or an operator submits when its rows arrive.

    Parameters
    ----------
    data
        A pyarrow Table, or anything with the Arrow C interface.
    """
    data = reread(data)
    table = as_table(data)
    if isinstance(declared, WindowedOperator):
        check_tuples(declared.input, table.schema, declared.order)
    if declared.order:
        declared = replace(declared, schema=table.schema)
    if isinstance(declared, WindowedOperator):
        return answered(declared, *arrive(declared.input, table))
    return _call(declared, table, data)


def _call(declared: WindowedFunction, table: pa.Table, data: Any) -> pa.Table:
    """Call a function for every window, with a slice of the sorted rows."""
    if not declared.query.timed:
        table = with_arrival(table)
    bounds = {part: bind_function(declared, part, table.schema) for part in declared.parts(table.schema)}
    returned = dict[RowsPart, list[pa.Table]]()
    for parts in key_sets(list(bounds)):
        rows = sorted_rows([part.input for part in parts], table, data, needed(parts))
        returned |= {part: _call_part(bounds[part], rows) for part in parts}
    return pa.concat_tables([table for part in bounds for table in returned[part]], promote_options="permissive")


def _call_part(bound: AppliedRows, rows: SortedRows) -> list[pa.Table]:
    """Return what the function returns for the windows of one part."""
    everything = {name.lower() for name in rows.table.column_names}
    table, arrivals, keys = rows_of(bound.part, rows, everything)
    arguments = {sql: whole(table.column(name)) for sql, name in zip(bound.arguments, bound.columns, strict=True)}
    return [
        label_calls(bound, number, bound.answer(number, instances, arguments))
        for number, instances in enumerate(instances_of(bound.part, arrivals, table, keys))
    ]
