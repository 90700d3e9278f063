"""Casts with Spark's ANSI rules: what does not fit is a failure, never a wrapped value."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.expressions import decimals
from panes.expressions.coercion import BOOLEAN, NULL, STRING, is_decimal, is_float, is_integer, is_numeric
from panes.expressions.outcome import Mask, from_numbers, numbers, truth, zero


def castable(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether the subset has an explicit cast between two types."""
    if source in (target, NULL):
        return True
    if target == STRING:
        return is_integer(source) or bool(source == BOOLEAN)
    return all(is_numeric(kind) or kind == BOOLEAN for kind in (source, target))


def cast(array: pa.Array, target: pa.DataType) -> tuple[pa.Array, Mask | None]:
    """Convert an array; also the rows whose value does not fit the type, if there are any."""
    source = array.type
    if source == target:
        return array, None
    if source == NULL:
        return pa.nulls(len(array), target), None
    if source == BOOLEAN and target != STRING:
        return cast(array.cast(pa.int8()), target)
    if target == BOOLEAN:
        return pc.not_equal(array, zero(source)), None
    if is_decimal(target):
        return _to_decimal(array, target)
    if is_decimal(source):
        return _from_decimal(array, target)
    if is_float(source) and is_integer(target):
        return _truncated(array, target)
    if is_integer(source) and is_integer(target):
        return _narrowed(array, target)
    if is_float(target):
        with np.errstate(over="ignore"):  # a double too large for a float is infinite, as in Java
            return from_numbers(numbers(array).astype(target.to_pandas_dtype()), truth(array.is_valid()), target), None
    return array.cast(target), None


def _to_decimal(array: pa.Array, target: pa.DataType) -> tuple[pa.Array, Mask | None]:
    if is_decimal(array.type):
        return decimals.rescale(array, target)
    if is_integer(array.type):
        exact = array.cast(pa.int64()).cast(pa.decimal128(19, 0))
        return decimals.rescale(exact, target)
    # The shortest decimal that reads as the double, as Java prints it; NaN and infinities become null.
    return decimals.by_row(lambda value: _shortest(value), (array.cast(pa.float64()),), target)


def _shortest(value: float) -> Decimal | None:
    return Decimal(repr(value)) if np.isfinite(value) else None


def _from_decimal(array: pa.Array, target: pa.DataType) -> tuple[pa.Array, Mask | None]:
    values = array.to_pylist()
    if is_float(target):
        doubles = pa.array([None if value is None else float(value) for value in values], pa.float64())
        return cast(doubles, target)
    whole = [None if value is None else int(value) for value in values]
    bounds = np.iinfo(target.to_pandas_dtype())
    fits = [value is None or bounds.min <= value <= bounds.max for value in whole]
    kept = [value if fit else 0 for value, fit in zip(whole, fits, strict=True)]
    return pa.array(kept, target), ~np.array(fits, dtype=np.bool_)


def _narrowed(array: pa.Array, target: pa.DataType) -> tuple[pa.Array, Mask | None]:
    bounds = np.iinfo(target.to_pandas_dtype())
    values, valid = numbers(array), truth(array.is_valid())
    failed = (values < bounds.min) | (values > bounds.max)
    return from_numbers(values.astype(target.to_pandas_dtype()), valid, target), failed


def _truncated(array: pa.Array, target: pa.DataType) -> tuple[pa.Array, Mask | None]:
    bounds = np.iinfo(target.to_pandas_dtype())
    values, valid = numbers(array).astype(np.float64), truth(array.is_valid())
    # The largest BIGINT as a double is 2^63: Spark lets that one value pass, as the largest BIGINT.
    failed = np.isnan(values) | (np.floor(values) > float(bounds.max)) | (np.ceil(values) < float(bounds.min))
    largest = np.trunc(values) >= float(bounds.max)
    whole = np.where(failed | largest, 0, values).astype(np.int64)
    whole[largest & ~failed] = bounds.max
    return from_numbers(whole.astype(target.to_pandas_dtype()), valid, target), failed
