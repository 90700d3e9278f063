"""Expressions over Arrow tables: the same values, types and errors that Spark 4 gives with ANSI mode on."""

from __future__ import annotations

import pyarrow as pa

from panes.errors import ExpressionError
from panes.expressions.binding import bind
from panes.expressions.coercion import BOOLEAN, name_of
from panes.expressions.expression import Expression, ExpressionLike, expression
from panes.expressions.outcome import Values


def evaluate(what: ExpressionLike, table: pa.Table) -> pa.ChunkedArray:
    """Evaluate an expression on every row of a table.

    Examples
    --------
    >>> table = pa.table({"price": [2, 3, None], "quantity": [10, 0, 1]})
    >>> evaluate("price * quantity > 10", table).to_pylist()
    [True, False, None]
    >>> evaluate("price / quantity", table)
    Traceback (most recent call last):
    ...
    panes.errors.ExpressionError: 'price / quantity' fails on 1 of 3 rows: division by zero in 'price / quantity'. ...
    """
    found = expression(what)
    bound = bind(found, table.schema)
    arrays = [_checked(found, bound.run(batch), table.num_rows) for batch in table.to_batches()]
    return pa.chunked_array(arrays, bound.type)


def result_type(what: ExpressionLike, schema: pa.Schema) -> pa.DataType:
    """The type that an expression has over a schema; wrong types are errors here, before any row flows.

    Examples
    --------
    >>> result_type("a / 2", pa.schema({"a": pa.int32()}))
    DataType(double)
    """
    return bind(expression(what), schema).type


def require_boolean(what: ExpressionLike, schema: pa.Schema) -> Expression:
    """Refuse a condition that is not boolean.

    Examples
    --------
    >>> require_boolean("a + 1", pa.schema({"a": pa.int32()}))
    Traceback (most recent call last):
    ...
    panes.errors.ExpressionError: 'a + 1' is INT, and a condition has to be BOOLEAN: compare it, as 'a + 1 > 0'.
    """
    found = expression(what)
    kind = result_type(found, schema)
    if kind != BOOLEAN:
        raise ExpressionError(
            f"{found.sql!r} is {name_of(kind)}, and a condition has to be BOOLEAN: compare it, as '{found.sql} > 0'."
        )
    return found


def _checked(found: Expression, values: Values, rows: int) -> pa.Array:
    for failure in values.failures:
        count = int(failure.rows.sum())
        raise ExpressionError(
            f"{found.sql!r} fails on {count} of {rows} rows: {failure.reason}. "
            "Guard it with CASE or NULLIF, filter those rows, or CAST to a wider type."
        )
    return values.array
