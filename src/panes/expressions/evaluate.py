"""Evaluate expressions on Arrow tables: the same values, types and errors that Spark 4 gives in ANSI mode."""

from __future__ import annotations

import pyarrow as pa

from panes.errors import ExpressionError
from panes.expressions.binder import bind, position
from panes.expressions.bound import BoundExpression, Failure
from panes.expressions.coercion import BOOLEAN, name_of
from panes.expressions.expression import Expression, ExpressionLike, expression


def evaluate(value: ExpressionLike, table: pa.Table) -> pa.ChunkedArray:
    """Evaluate an expression on every row of a table.

    Examples
    --------
    >>> table = pa.table({"price": [2, 3, None], "quantity": [10, 0, 1]})
    >>> evaluate("price * quantity > 10", table).to_pylist()
    [True, False, None]
    >>> evaluate("price / quantity", table)
    Traceback (most recent call last):
    ...
    panes.errors.ExpressionError: 'price / quantity' fails on row 1 (price = 3, quantity = 0): division by zero in ...
    """
    parsed = expression(value)
    bound = bind(parsed, table.schema)
    arrays, before = [], 0
    for batch in table.to_batches():
        try:
            arrays.append(bound.evaluate(batch))
        except Failure:
            raise _error(parsed, bound, batch, before) from None
        before += batch.num_rows
    return pa.chunked_array(arrays, bound.type)


def result_type(value: ExpressionLike, schema: pa.Schema) -> pa.DataType:
    """Return the type of an expression over a schema; raise if types do not fit, before any row is read.

    Examples
    --------
    >>> result_type("a / 2", pa.schema({"a": pa.int32()}))
    DataType(double)
    """
    return bind(expression(value), schema).type


def require_boolean(value: ExpressionLike, schema: pa.Schema) -> Expression:
    """Return a condition as an Expression; raise if it is not boolean.

    Examples
    --------
    >>> require_boolean("a + 1", pa.schema({"a": pa.int32()}))
    Traceback (most recent call last):
    ...
    panes.errors.ExpressionError: 'a + 1' is INT, and a condition must be BOOLEAN: compare it, as 'a + 1 > 0'.
    """
    condition = expression(value)
    kind = result_type(condition, schema)
    if kind != BOOLEAN:
        sql = condition.sql
        raise ExpressionError(
            f"{sql!r} is {name_of(kind)}, and a condition must be BOOLEAN: compare it, as '{sql} > 0'."
        )
    return condition


def _error(parsed: Expression, bound: BoundExpression, batch: pa.RecordBatch, before: int) -> ExpressionError:
    """Return the error for a batch on which an expression fails: it shows the first row that does."""
    low, high = 0, batch.num_rows
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _failure(bound, batch.slice(low, middle - low)) is None else (low, middle)
    row = batch.slice(low, 1)
    values = ", ".join(f"{name} = {row.column(position(name, row.schema.names))[0].as_py()!r}" for name in parsed.roots)
    return ExpressionError(
        f"{parsed.sql!r} fails on row {before + low}{f' ({values})' if values else ''}: {_failure(bound, row)}. "
        "Guard it with CASE or NULLIF, filter those rows, or CAST to a wider type."
    )


def _failure(bound: BoundExpression, batch: pa.RecordBatch) -> Failure | None:
    try:
        bound.evaluate(batch)
    except Failure as failure:
        return failure
    return None
