"""Windows of rows over a table: sort the rows of a key set once, then answer every window from them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from panes.engine.bind_program import types_in
from panes.engine.columns import column_of, whole
from panes.engine.keys import one_zero
from panes.engine.results import together
from panes.expressions.evaluate import evaluate
from panes.expressions.expression import expression
from panes.frames.row_frame import Arrivals
from panes.inputs import as_table
from panes.planning.explanation import listed
from panes.planning.steps import Steps
from panes.queries.query import ARRIVAL
from panes.row_windows.arrival import SortedRows, sorted_rows
from panes.row_windows.bound_rows import BoundRows, bind_rows, instances_of, labelled, needed
from panes.row_windows.parts import RowsPart


def add_row_windows(steps: Steps, read: int, parts: Sequence[RowsPart], data: Any) -> int:
    """List what answers windows that share one sorted column, after every check.

    Parameters
    ----------
    read
        The step that has the events.
    data
        A pyarrow Table, or anything with the Arrow C interface.
    """
    table = as_table(data, {name.lower() for name in needed(parts)})
    at = parts[0].input.at
    if at is None:
        table = with_arrival(table)
    schema = table.schema
    bounds = [bind_rows(part, schema, types_in(schema)) for part in parts]

    def answer_all(rows: SortedRows) -> pa.Table:
        return together([found for bound in bounds for found in _answered(bound, rows)])

    order = "by time, all keys together" if parts[0].input.together else f"by {listed(parts[0].input.by)} and time"
    detail = f"events {order}" if at is not None else f"events by {listed(parts[0].input.by)}, in their order"
    inputs, columns = [part.input for part in parts], needed(parts)
    ordered = steps.add("sort", detail, lambda _: sorted_rows(inputs, table, data, columns), read)
    titles = [window.name for part in parts for window in part.windows]
    return steps.add("answer", "windows of rows, from one sorted column", answer_all, ordered, windows=titles)


def with_arrival(table: pa.Table) -> pa.Table:
    """A table with a time for rows that have none: they arrive in their order."""
    return table.append_column(ARRIVAL, pa.array(np.arange(len(table)), pa.timestamp("us")))


def _answered(bound: BoundRows, rows: SortedRows) -> list[pa.Table]:
    """Return the answers of the windows of one part."""
    part = bound.part
    # Of columns that are not read only the names remain.
    table, arrivals, keys = rows_of(part, rows, {name.lower() for name in part.used})
    groups = [one_zero(column_of(table, name)) for name in part.query.groups]
    arguments = {sql: whole(evaluate(expression(sql), table)) for sql in bound.arguments}
    return [
        labelled(bound, number, bound.answer(number, instances, arguments, groups))
        for number, instances in enumerate(instances_of(part, arrivals, table, keys))
    ]


def rows_of(part: RowsPart, rows: SortedRows, read: Collection[str]) -> tuple[pa.Table, Arrivals, list[pa.Array]]:
    """Return the rows of a part, when they arrive, and its key columns with a row per key.

    Parameters
    ----------
    read
        The columns that are read, in lower case; the others are null.
    """
    order, arrivals = rows.at(part.input)
    positions = pa.array(order)
    table = pa.table(
        {
            name: column.take(positions) if name.lower() in read else pa.nulls(len(order))
            for name, column in zip(rows.table.column_names, rows.table.columns, strict=True)
        }
    )
    first = pa.array(order[arrivals.events.key_starts[:-1]])
    return table, arrivals, [one_zero(column_of(rows.table, key).take(first)) for key in part.query.by]
