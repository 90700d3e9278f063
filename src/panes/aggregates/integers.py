"""Exact integer sums: 64-bit machine integers where no sum can overflow, Python integers where one could.

A prefix over a long column may be far larger than any answer taken from it, so whether 64 bits suffice is decided
for the whole column (largest magnitude times length), once, before a kernel runs. Decimals are integers too: their
unscaled values, 128 bits wide in Arrow.
"""

from __future__ import annotations

from decimal import Context, Decimal

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array, Operations, from_ufunc
from panes.errors import AnswerOverflowError

_SAFE = 2.0**62
_WIDE = Context(prec=80)

MACHINE: Operations = from_ufunc(np.add, 0, subtract=np.subtract)


def exact_sums(values: Array) -> Array:
    """The same integers in a type in which no sum of them overflows.

    Examples
    --------
    >>> exact_sums(np.array([1, 2])).dtype, exact_sums(np.array([2**62, 2**62])).dtype
    (dtype('int64'), dtype('O'))
    """
    if values.dtype == object or len(values) == 0:
        return values
    largest = max(-float(values.min()), float(values.max()))
    return values if largest * len(values) < _SAFE else values.astype(object)


def within_bigint(values: Array, what: str) -> Array:
    """Answers as int64, or an error that names what overflowed."""
    if values.dtype != object:
        return values
    if any(not -(2**63) <= value < 2**63 for value in values):
        raise AnswerOverflowError(
            f"{what} does not fit a BIGINT in some window: the exact integer answer is beyond 64 bits. "
            "Sum a DECIMAL or a DOUBLE instead, as sum(CAST(x AS DECIMAL(38, 0)))."
        )
    return values.astype(np.int64)


def unscaled(array: pa.Array) -> Array:
    """The unscaled integers of a decimal128 array, nulls as 0: int64 where they fit, else Python integers."""
    if len(array) == 0:
        return np.zeros(0, dtype=np.int64)
    words = np.frombuffer(array.buffers()[1], dtype=np.int64)
    words = words[2 * array.offset : 2 * (array.offset + len(array))]
    low, high = words[0::2].copy(), words[1::2].copy()
    if array.null_count:
        null = array.is_null().to_numpy(zero_copy_only=False)
        low[null], high[null] = 0, 0
    if bool(np.all(high == low >> 63)):
        return low
    wide: Array = high.astype(object) * 2**64 + low.astype(np.uint64).astype(object)
    return wide


def decimals(values: Array, nulls: Array | None, type_: pa.DataType, what: str) -> pa.Array:
    """Unscaled integers as a decimal128 array, or an error that names what overflowed."""
    limit = 10**type_.precision
    keep = values if nulls is None else values[~nulls]
    if len(keep) and not (-limit < keep.min() and keep.max() < limit):
        raise AnswerOverflowError(
            f"{what} does not fit {type_} in some window. Cast the argument to a DECIMAL of fewer digits "
            "after the point, or to DOUBLE."
        )
    if values.dtype == object:
        whole = [
            None if nulls is not None and nulls[i] else Decimal(int(v)).scaleb(-type_.scale, _WIDE)
            for i, v in enumerate(values)
        ]
        return pa.array(whole, type=type_)
    words = np.empty((len(values), 2), dtype=np.int64)
    words[:, 0], words[:, 1] = values, values >> 63
    bitmap = None if nulls is None else pa.array(~nulls).buffers()[1]
    return pa.Array.from_buffers(type_, len(values), [bitmap, pa.py_buffer(words)])


def divide_half_up(numerator: Array, denominator: Array) -> Array:
    """Integer division rounded half away from zero, as Spark rounds decimals."""
    top, bottom = numerator.astype(object), denominator.astype(object)
    doubled = 2 * abs(top) + bottom
    quotient = doubled // (2 * bottom)
    result: Array = np.where(top < 0, -quotient, quotient)
    return result
