"""Columns of tables: in one piece, by name, and the rows that count."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from panes.aggregates.operations import Array
from panes.aggregates.ordering import is_ordered
from panes.engine.lookback import NEVER
from panes.engine.schema import field_of
from panes.errors import SchemaError, nearest
from panes.expressions.evaluate import evaluate
from panes.expressions.expression import Expression
from panes.frames.positions import check_near

# One rule for the order of rows within an instant, so that every verb has the same row last.


def tie_columns(
    schema: pa.Schema, ties: Collection[str], excluded: Iterable[str] = (), read: Iterable[str] = ()
) -> list[str]:
    """The columns whose values order rows of one instant.

    Those that ``ties`` names; without it all columns of the data, by the names of these, so that neither the order of
    columns nor what a query uses has a say. Columns without an order are passed over. Rows that ``ties`` leaves equal
    are in the order of what is read of them, so that every verb has the same order.

    Parameters
    ----------
    excluded
        Columns that all rows in question share: keys and time.
    read
        The columns that windows by rows read.

    Examples
    --------
    >>> schema = pa.schema([("ts", pa.timestamp("us")), ("price", pa.int64()), ("Id", pa.string())])
    >>> tie_columns(schema, (), ["ts"]), tie_columns(schema, ["price"])
    (['Id', 'price'], ['price'])
    """
    shared = {name.lower() for name in excluded}
    if not ties:
        named = sorted((field for field in schema if field.name.lower() not in shared), key=lambda f: f.name.lower())
        return [field.name for field in named if is_ordered(field.type)]
    found = []
    for name in ties:
        if name.lower() not in {known.lower() for known in schema.names}:
            raise SchemaError(f"ties={name!r} is not a column of the data ({nearest(name, schema.names)})")
        field = field_of(schema, name)
        if not is_ordered(field.type):
            raise SchemaError(f"ties={name!r} is of type {field.type}, which has no order. Take another column.")
        found.append(field.name)
    names = {name.lower() for name in read}
    return list(dict.fromkeys([*found, *(name for name in tie_columns(schema, (), shared) if name.lower() in names)]))


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
