"""What evaluating an expression over a batch gives: an array, and the rows for which it has failed.

A failure is data until the end, because SQL forgives it where nobody looks: ``CASE WHEN x <> 0 THEN 1 / x END``
divides by zero on rows that the CASE never takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Failure:
    """Rows whose value cannot be computed, and why."""

    rows: Mask
    reason: str


@dataclass(frozen=True, slots=True)
class Values:
    """One value per row; a row under a failure has any value."""

    array: pa.Array
    failures: tuple[Failure, ...] = ()

    @property
    def valid(self) -> Mask:
        """The rows that are not null."""
        return truth(self.array.is_valid())

    def only(self, rows: Mask) -> tuple[Failure, ...]:
        """The failures that still matter when the other rows are not looked at."""
        kept = (Failure(failure.rows & rows, failure.reason) for failure in self.failures)
        return tuple(failure for failure in kept if failure.rows.any())


@dataclass(frozen=True, slots=True)
class Bound:
    """An expression bound to a schema: its type is known, and it can be run on any batch of that schema."""

    type: pa.DataType
    run: Callable[[pa.RecordBatch], Values]
    sql: str
    integer: int | None = None  # the value of an integer literal: Spark counts its digits in decimal arithmetic


def truth(array: pa.Array) -> Mask:
    """The rows where a boolean array is true, neither false nor null."""
    filled = pc.fill_null(array, False)
    mask: Mask = filled.to_numpy(zero_copy_only=False)
    return mask


def failing(rows: Mask | None, reason: str) -> tuple[Failure, ...]:
    """A failure of these rows, if there are any."""
    return (Failure(rows, reason),) if rows is not None and rows.any() else ()


def in_order(first: Values, *then: Values) -> tuple[Failure, ...]:
    """The failures of operands that are looked at one after the other, as long as none is null."""
    failures, rows = first.failures, first.valid
    for values in then:
        failures += values.only(rows)
        rows = rows & values.valid
    return failures


def all_of(operands: Sequence[Values]) -> tuple[Failure, ...]:
    """The failures of operands that are all looked at."""
    return tuple(failure for values in operands for failure in values.failures)


def zero(kind: pa.DataType) -> pa.Scalar:
    """The zero of a numeric type."""
    return pa.scalar(Decimal(0) if pa.types.is_decimal(kind) else 0, kind)


def numbers(array: pa.Array) -> npt.NDArray[Any]:
    """The values of a numeric array, zero where it is null."""
    filled: npt.NDArray[Any] = pc.fill_null(array, zero(array.type)).to_numpy(zero_copy_only=False)
    return filled


def from_numbers(values: npt.NDArray[Any], valid: Mask, kind: pa.DataType) -> pa.Array:
    """An array of these values, null where they are not valid."""
    return pa.array(values, kind, mask=~valid)
