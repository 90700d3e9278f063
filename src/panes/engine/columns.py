"""Columns of tables: in one piece, by name, and the rows that count."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from panes.aggregates.operations import Array
from panes.engine.schema import field_of
from panes.expressions.evaluate import evaluate
from panes.expressions.expression import Expression
from panes.frames.positions import FARTHEST, check_near

NEVER = -FARTHEST
"""Before all events."""


def whole(array: Any) -> pa.Array:
    """An array in one piece."""
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def column_of(table: pa.Table, name: str) -> pa.Array:
    """A column in one piece, whatever the case of its name."""
    return whole(table.column(field_of(table.schema, name).name))


def counting(table: pa.Table, at: str, where: Expression | None) -> pa.Table:
    """The events that count: those with a time, and of them those that fulfil the condition."""
    # One after the other: a condition need not make sense for an event without a time.
    if column_of(table, at).null_count:
        table = table.filter(column_of(table, at).is_valid())
    if where is None:
        return table
    return table.filter(pc.fill_null(whole(evaluate(where, table)), False))


def instants_of(column: pa.Array) -> Array:
    """Times in µs, before all others where there is none."""
    integers = column.view(pa.int64())
    # Filling copies, even where there is nothing to fill.
    instants: Array = (integers.fill_null(NEVER) if column.null_count else integers).to_numpy(zero_copy_only=False)
    return check_near(instants)
