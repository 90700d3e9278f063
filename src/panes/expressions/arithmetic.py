"""Integers that fail when they overflow, doubles that never do, and division that fails on zero."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from panes.expressions import decimals
from panes.expressions.coercion import is_decimal, is_float
from panes.expressions.outcome import Mask, from_numbers, numbers, truth, zero

_CHECKED: Final = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_WRAPPED: Final = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
_PYTHON: Final = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}


def compute(symbol: str, left: pa.Array, right: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Mask | None]:
    """Compute on two arrays of numbers of the same kind; also the rows that overflow. Divisors are not zero."""
    if is_decimal(kind):
        return decimals.arithmetic(symbol, left, right, kind)
    valid = truth(pc.and_(left.is_valid(), right.is_valid()))
    if symbol == "/":
        with np.errstate(all="ignore"):
            return from_numbers(numbers(left) / _divisor(right), valid, kind), None
    if symbol == "%":
        with np.errstate(all="ignore"):  # infinity % 2 is NaN; C and Java agree on the sign, that of the dividend
            return from_numbers(np.fmod(numbers(left), _divisor(right)), valid, kind), None
    if is_float(kind):
        return _WRAPPED[symbol](left, right), None
    try:
        return _CHECKED[symbol](left, right), None
    except pa.ArrowInvalid:
        return _WRAPPED[symbol](left, right), _overflowed(symbol, left, right)


def is_zero(array: pa.Array) -> Mask:
    """The rows that are a zero of any sign."""
    if is_decimal(array.type):
        return truth(pc.equal(array, zero(array.type)))
    found: Mask = truth(array.is_valid()) & (numbers(array) == 0)
    return found


def _divisor(array: pa.Array) -> npt.NDArray[Any]:
    values = numbers(array)
    return np.where(values == 0, values.dtype.type(1), values)  # failed or null already: no trap for the processor


def _overflowed(symbol: str, left: pa.Array, right: pa.Array) -> Mask:
    bounds, operation = np.iinfo(left.type.to_pandas_dtype()), _PYTHON[symbol]
    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    rows = (a is not None and b is not None and not bounds.min <= operation(a, b) <= bounds.max for a, b in pairs)
    return np.fromiter(rows, dtype=np.bool_, count=len(left))


def negated(array: pa.Array, rows: Mask | None = None) -> tuple[pa.Array, Mask | None]:
    """The values with the other sign, on all rows or on some; also the rows that overflow."""
    failed: Mask | None
    if pa.types.is_integer(array.type):
        failed = truth(array.is_valid()) & (numbers(array) == np.iinfo(array.type.to_pandas_dtype()).min)
        opposite = pc.negate(array)
    elif is_decimal(array.type):
        opposite, failed = decimals.negated(array)
    else:
        opposite, failed = pc.negate(array), None
    if rows is None:
        return opposite, failed
    return pc.if_else(pa.array(rows), opposite, array), None if failed is None else failed & rows


def absolute(array: pa.Array) -> tuple[pa.Array, Mask | None]:
    """The absolute values; also the rows that overflow."""
    if is_float(array.type):
        return pc.abs(array), None
    return negated(array, truth(pc.less(array, zero(array.type))))


def whole(array: pa.Array, *, up: bool) -> tuple[pa.Array, Mask | None]:
    """FLOOR or CEIL: decimals to decimals, everything else to BIGINT; also the rows that overflow."""
    if is_decimal(array.type):
        kind = decimals.round_type(array.type, 0)
        direction = "ROUND_CEILING" if up else "ROUND_FLOOR"
        return decimals.by_row(lambda value: value.to_integral_value(direction), (array,), kind)
    if not is_float(array.type):
        return array.cast(pa.int64()), None
    values = (np.ceil if up else np.floor)(numbers(array).astype(np.float64))
    failed = (values >= 2.0**63) | (values < -(2.0**63))
    integers = np.where(failed | np.isnan(values), 0, values).astype(np.int64)  # NaN becomes 0, as in Java
    return from_numbers(integers, truth(array.is_valid()), pa.int64()), failed
