"""Exact decimals as Spark computes them: the precision and scale of a result, rounding half up, overflow.

Where the exact result always fits, Arrow computes it; elsewhere Python's ``decimal`` does, row by row.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.expressions.outcome import Mask

WIDEST: Final = 38
_SMALLEST_SCALE: Final = 6
# Wide enough that only the roundings written below round.
_EXACT: Final = decimal.Context(prec=400, rounding=decimal.ROUND_HALF_UP, Emin=-10_000, Emax=10_000)
# Spark multiplies to one digit more than it keeps (SPARK-40129), and divides to one place more.
_PRODUCT: Final = decimal.Context(prec=WIDEST + 1, rounding=decimal.ROUND_HALF_UP)
_QUOTIENT: Final = Decimal(1).scaleb(-(WIDEST + 1))

# Spark negates in Scala's default context: of a value with more digits, the last ones are rounded away.
_NEGATION: Final = decimal.Context(prec=34, rounding=decimal.ROUND_HALF_EVEN)

_Operation = Callable[[Decimal, Decimal], Decimal]


def arithmetic_type(symbol: str, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type of an operation on two decimals.

    Examples
    --------
    >>> arithmetic_type("/", pa.decimal128(2, 1), pa.decimal128(1, 0))
    Decimal128Type(decimal128(7, 6))
    """
    scale = max(left.scale, right.scale)
    whole_left, whole_right = left.precision - left.scale, right.precision - right.scale
    if symbol in "+-":
        return _bounded(max(whole_left, whole_right) + scale + 1, scale)
    if symbol == "*":
        return _bounded(left.precision + right.precision + 1, left.scale + right.scale)
    if symbol == "/":
        scale = max(_SMALLEST_SCALE, left.scale + right.precision + 1)
        return _bounded(whole_left + right.scale + scale, scale)
    return _bounded(min(whole_left, whole_right) + scale, scale)


def _bounded(precision: int, scale: int) -> pa.DataType:
    if precision <= WIDEST:
        return pa.decimal128(precision, scale)
    kept = max(WIDEST - (precision - scale), min(scale, _SMALLEST_SCALE))
    return pa.decimal128(WIDEST, kept)


def arithmetic(symbol: str, left: pa.Array, right: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Mask | None]:
    """Compute on two arrays of decimals; rows that overflow are told apart. Divisors must not be zero."""
    if symbol in "+-*":
        function = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}[symbol]
        try:
            computed = function(left, right)
            if computed.type == kind:
                return computed, None
        except pa.ArrowInvalid:
            pass  # the exact type would be wider than Arrow's widest decimal
    operation = _OPERATIONS[symbol]
    return by_row(lambda a, b: operation(a, b), (left, right), kind)


def by_row(
    function: Callable[..., Decimal | None], arrays: tuple[pa.Array, ...], kind: pa.DataType
) -> tuple[pa.Array, Mask]:
    """Apply a function to the rows that have no null, round half up to a decimal type, tell overflows apart."""
    columns = [array.to_pylist() for array in arrays]
    results: list[Decimal | None] = []
    failed = np.zeros(len(arrays[0]), dtype=np.bool_)
    for row, values in enumerate(zip(*columns, strict=True)):
        value = None if None in values else function(*values)
        value = None if value is None else rounded(value, kind)
        failed[row] = value is not None and not value.is_finite()
        results.append(None if failed[row] else value)
    return pa.array(results, kind), failed


def rounded(value: Decimal, kind: pa.DataType) -> Decimal:
    """A value at the scale of a type, or NaN when it does not fit."""
    scaled = value.quantize(Decimal(1).scaleb(-kind.scale), context=_EXACT)
    return scaled if scaled.adjusted() < kind.precision - kind.scale or not scaled else Decimal("NaN")


def rescale(array: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Mask | None]:
    """Cast a decimal array to another decimal type."""
    if kind.scale >= array.type.scale and kind.precision - kind.scale >= array.type.precision - array.type.scale:
        return array.cast(kind), None
    return by_row(lambda value: value, (array,), kind)


def negated(array: pa.Array) -> tuple[pa.Array, Mask | None]:
    """The values with the other sign."""
    if array.type.precision <= _NEGATION.prec:
        return pc.negate(array), None
    return by_row(_NEGATION.minus, (array,), array.type)


def round_type(kind: pa.DataType, digits: int) -> pa.DataType:
    """The type of ROUND, and with 0 digits of FLOOR and CEIL, of a decimal."""
    whole = kind.precision - kind.scale + 1
    if digits < 0:
        return pa.decimal128(min(max(whole, 1 - digits), WIDEST), 0)
    scale = min(kind.scale, digits)
    return pa.decimal128(min(whole + scale, WIDEST), scale)


def half_up(value: Decimal, digits: int) -> Decimal:
    """Round to a number of digits behind the point, or before it when negative."""
    return value.quantize(Decimal(1).scaleb(-digits), context=_EXACT)


_OPERATIONS: Final[dict[str, _Operation]] = {
    "+": _EXACT.add,
    "-": _EXACT.subtract,
    "*": _PRODUCT.multiply,
    "/": lambda a, b: _EXACT.divide(a, b).quantize(_QUOTIENT, context=_EXACT),
    "%": _EXACT.remainder,
}
