"""An expression bound to a schema, and how it is computed on a batch.

A value that cannot be computed (``1 / 0``) is an error only on rows where SQL looks at it: not in a branch that CASE,
AND or COALESCE skips. So a batch is first computed whole, which is fast and is the answer if nothing fails. Otherwise
it is computed again, with each operand on just the rows that reach it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.expressions import arrow_functions as af
from panes.expressions.coercion import BOOLEAN, NULL, name_of


class Failure(Exception):
    """A value that cannot be computed; the message says why."""


@dataclass(frozen=True, slots=True)
class RowsOfBatch:
    """The rows of a batch on which an expression is computed.

    Parameters
    ----------
    indices
        Which rows, once every operand is computed just where it is needed; None computes all operands on all rows.
    """

    batch: pa.RecordBatch
    indices: pa.Array | None = None

    def __len__(self) -> int:
        return self.batch.num_rows if self.indices is None else len(self.indices)

    def column(self, index: int) -> pa.Array:
        """Return a column of the batch on these rows."""
        values = self.batch.column(index)
        return values if len(self) == len(values) else values.take(self.indices)

    def where(self, needed: pa.Array, operand: BoundExpression) -> pa.Array:
        """Compute an operand at least on the rows where ``needed`` is true; its other values do not matter."""
        if operand.constant is not None:
            return operand.run(self)
        rows, spread = self.narrowed(needed)
        return spread(operand.run(rows))

    def narrowed(self, needed: pa.Array) -> tuple[RowsOfBatch, Callable[[pa.Array], pa.Array]]:
        """Return the rows where ``needed`` is true, and how their values become values of all of these rows."""
        if self.indices is None:
            return self, _same
        mask = pc.fill_null(needed, False).to_numpy(zero_copy_only=False)
        if mask.all():
            return self, _same

        def spread(values: pa.Array) -> pa.Array:
            scattered = np.zeros(len(mask), np.int64)
            scattered[mask] = np.arange(len(values))
            return values.take(pa.array(scattered, mask=~mask))

        return RowsOfBatch(self.batch, self.indices.filter(pa.array(mask))), spread


def _same(values: pa.Array) -> pa.Array:
    return values


@dataclass(frozen=True, slots=True)
class BoundExpression:
    """An expression bound to a schema: its type is known, and it can be evaluated on any batch of that schema."""

    type: pa.DataType
    run: Callable[[RowsOfBatch], pa.Array]
    sql: str
    integer: int | None = None  # the value of an integer literal: Spark counts its digits in decimal arithmetic
    constant: pa.Scalar | None = None

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        """Compute the values of a batch, or raise a Failure."""
        try:
            return self.run(RowsOfBatch(batch))
        except Failure:
            return self.run(RowsOfBatch(batch, pa.array(np.arange(batch.num_rows))))


def apply(
    function: Callable[..., pa.Array],
    arguments: Sequence[BoundExpression],
    kind: pa.DataType,
    sql: str,
    reason: str = "",
) -> BoundExpression:
    """Bind a function that looks at all of its arguments; ``reason`` is for results that do not fit."""

    def run(rows: RowsOfBatch) -> pa.Array:
        arrays = [argument.run(rows) for argument in arguments]
        try:
            return function(*arrays)
        except pa.ArrowInvalid:
            raise Failure(reason or f"{sql!r} does not fit {name_of(kind)}") from None

    return BoundExpression(kind, run, sql)


def constant(value: pa.Scalar, sql: str, integer: int | None = None) -> BoundExpression:
    """Bind one value for all rows."""
    return BoundExpression(value.type, lambda rows: pa.repeat(value, len(rows)), sql, integer, value)


NULL_CONSTANT: Final = constant(pa.scalar(None, NULL), "NULL")


def converted(bound: BoundExpression, kind: pa.DataType, sql: str | None = None) -> BoundExpression:
    """Return the same values in another type."""
    if bound.type == kind:
        return bound
    text = sql or bound.sql
    if bound.constant is not None:
        with contextlib.suppress(pa.ArrowInvalid):  # a constant that does not fit fails on rows, if there are any
            return constant(af.cast(pa.array([bound.constant]), kind)[0], text)
    reason = f"a value of {bound.sql!r} does not fit {name_of(kind)}"
    return apply(lambda array: af.cast(array, kind), [bound], kind, text, reason)


def logic(conditions: Sequence[BoundExpression], *, both: bool) -> BoundExpression:
    """Bind AND or OR of conditions from left to right; the next one is looked at while the answer is open."""

    def run(rows: RowsOfBatch) -> pa.Array:
        result = conditions[0].run(rows)
        for condition in conditions[1:]:
            undecided = pc.fill_null(result if both else pc.invert(result), True)
            result = (pc.and_kleene if both else pc.or_kleene)(result, rows.where(undecided, condition))
        return result

    return BoundExpression(BOOLEAN, run, (" AND " if both else " OR ").join(bound.sql for bound in conditions))


def choose(tests: Sequence[BoundExpression], values: Sequence[BoundExpression], sql: str) -> BoundExpression:
    """Bind a CASE: the value of the first test that is true, or the last value."""

    def run(rows: RowsOfBatch) -> pa.Array:
        undecided = pa.repeat(pa.scalar(True), len(rows))
        taken, answers = [], []
        for test, value in zip(tests, values, strict=False):
            holds = pc.fill_null(rows.where(undecided, test), False)
            taken.append(pc.and_(undecided, holds))
            answers.append(rows.where(taken[-1], value))
            undecided = pc.and_not(undecided, holds)
        return pc.case_when(pc.make_struct(*taken), *answers, rows.where(undecided, values[-1]))

    return BoundExpression(values[-1].type, run, sql)


def coalesce(values: Sequence[BoundExpression], sql: str) -> BoundExpression:
    """Bind COALESCE: the first value that is not null."""

    def run(rows: RowsOfBatch) -> pa.Array:
        result = values[0].run(rows)
        for value in values[1:]:
            result = pc.coalesce(result, rows.where(result.is_null(), value))
        return result

    return BoundExpression(values[0].type, run, sql)
