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
class Rows:
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

    def where(self, needed: pa.Array, operand: Bound) -> pa.Array:
        """Compute an operand at least on the rows where ``needed`` is true; its other values do not matter."""
        if self.indices is None or operand.constant is not None:
            return operand.run(self)
        mask = pc.fill_null(needed, False).to_numpy(zero_copy_only=False)
        if mask.all():
            return operand.run(self)
        values = operand.run(Rows(self.batch, self.indices.filter(pa.array(mask))))
        scattered = np.zeros(len(mask), np.int64)
        scattered[mask] = np.arange(len(values))
        return values.take(pa.array(scattered, mask=~mask))


@dataclass(frozen=True, slots=True)
class Bound:
    """An expression bound to a schema: its type is known, and it can be evaluated on any batch of that schema."""

    type: pa.DataType
    run: Callable[[Rows], pa.Array]
    sql: str
    integer: int | None = None  # the value of an integer literal: Spark counts its digits in decimal arithmetic
    constant: pa.Scalar | None = None

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        """Compute the values of a batch, or raise a Failure."""
        try:
            return self.run(Rows(batch))
        except Failure:
            return self.run(Rows(batch, pa.array(np.arange(batch.num_rows))))


def apply(
    function: Callable[..., pa.Array], arguments: Sequence[Bound], kind: pa.DataType, sql: str, reason: str = ""
) -> Bound:
    """Bind a function that looks at all of its arguments; ``reason`` is for results that do not fit."""

    def run(rows: Rows) -> pa.Array:
        arrays = [argument.run(rows) for argument in arguments]
        try:
            return function(*arrays)
        except pa.ArrowInvalid:
            raise Failure(reason or f"{sql!r} does not fit {name_of(kind)}") from None

    return Bound(kind, run, sql)


def constant(value: pa.Scalar, sql: str, integer: int | None = None) -> Bound:
    """Bind one value for all rows."""
    return Bound(value.type, lambda rows: pa.repeat(value, len(rows)), sql, integer, value)


NULL_CONSTANT: Final = constant(pa.scalar(None, NULL), "NULL")


def converted(bound: Bound, kind: pa.DataType, sql: str | None = None) -> Bound:
    """Return the same values in another type."""
    if bound.type == kind:
        return bound
    text = sql or bound.sql
    if bound.constant is not None:
        with contextlib.suppress(pa.ArrowInvalid):  # a constant that does not fit fails on rows, if there are any
            return constant(af.cast(pa.array([bound.constant]), kind)[0], text)
    reason = f"a value of {bound.sql!r} does not fit {name_of(kind)}"
    return apply(lambda array: af.cast(array, kind), [bound], kind, text, reason)


def logic(conditions: Sequence[Bound], *, both: bool) -> Bound:
    """Bind AND or OR of conditions from left to right; the next one is looked at while the answer is open."""

    def run(rows: Rows) -> pa.Array:
        result = conditions[0].run(rows)
        for condition in conditions[1:]:
            undecided = pc.fill_null(result if both else pc.invert(result), True)
            result = (pc.and_kleene if both else pc.or_kleene)(result, rows.where(undecided, condition))
        return result

    return Bound(BOOLEAN, run, (" AND " if both else " OR ").join(bound.sql for bound in conditions))


def choose(tests: Sequence[Bound], values: Sequence[Bound], sql: str) -> Bound:
    """Bind a CASE: the value of the first test that is true, or the last value."""

    def run(rows: Rows) -> pa.Array:
        undecided = pa.repeat(pa.scalar(True), len(rows))
        taken, answers = [], []
        for test, value in zip(tests, values, strict=False):
            holds = pc.fill_null(rows.where(undecided, test), False)
            taken.append(pc.and_(undecided, holds))
            answers.append(rows.where(taken[-1], value))
            undecided = pc.and_not(undecided, holds)
        return pc.case_when(pc.make_struct(*taken), *answers, rows.where(undecided, values[-1]))

    return Bound(values[-1].type, run, sql)


def coalesce(values: Sequence[Bound], sql: str) -> Bound:
    """Bind COALESCE: the first value that is not null."""

    def run(rows: Rows) -> pa.Array:
        result = values[0].run(rows)
        for value in values[1:]:
            result = pc.coalesce(result, rows.where(result.is_null(), value))
        return result

    return Bound(values[0].type, run, sql)
