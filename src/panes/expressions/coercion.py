"""Types: Spark's, as Arrow types, and the type in which operands meet, by the rules of ANSI mode."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import reduce
from typing import Final

import pyarrow as pa

from panes.inputs import spark_type

BOOLEAN: Final = pa.bool_()
STRING: Final = pa.string()
DOUBLE: Final = pa.float64()
DATE: Final = pa.date32()
TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
LOCAL_TIMESTAMP: Final = pa.timestamp("us")
NULL: Final = pa.null()
INTEGERS: Final = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
FLOATS: Final = (pa.float32(), DOUBLE)
_TIMES: Final = (DATE, LOCAL_TIMESTAMP, TIMESTAMP)
WIDEST: Final = 38
"""The most digits of a decimal."""
_SMALLEST_SCALE: Final = 6
_DIGITS: Final = dict(zip(INTEGERS, (3, 5, 10, 20), strict=True))
_NAMES: Final[dict[pa.DataType, str]] = {
    **dict(zip(INTEGERS, ("TINYINT", "SMALLINT", "INT", "BIGINT"), strict=True)),
    pa.float32(): "FLOAT",
    DOUBLE: "DOUBLE",
    BOOLEAN: "BOOLEAN",
    STRING: "STRING",
    DATE: "DATE",
    TIMESTAMP: "TIMESTAMP",
    LOCAL_TIMESTAMP: "TIMESTAMP_NTZ",
    NULL: "VOID",
}
_DECIMAL: Final = re.compile(r"DECIMAL(?:\((\d+)(?:, (\d+))?\))?", re.ASCII)


def name_of(kind: pa.DataType) -> str:
    """Return the name that Spark gives a type.

    Examples
    --------
    >>> name_of(pa.int64()), name_of(pa.decimal128(5, 2))
    ('BIGINT', 'DECIMAL(5, 2)')
    """
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return _NAMES.get(kind, str(kind).upper())


def type_named(name: str) -> pa.DataType | None:
    """Return the type that Spark gives a name, or None if there is none.

    Examples
    --------
    >>> type_named("BIGINT"), type_named("DECIMAL(5, 2)"), type_named("DECIMAL(39, 2)")
    (DataType(int64), Decimal128Type(decimal128(5, 2)), None)
    """
    decimal = _DECIMAL.fullmatch(name)
    if decimal is None:
        return next((kind for kind, other in _NAMES.items() if other == name.removesuffix("_LTZ")), None)
    precision, scale = int(decimal[1] or 10), int(decimal[2] or 0)
    return pa.decimal128(precision, scale) if max(1, scale) <= precision <= WIDEST else None


def column_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that a column of an Arrow type has in expressions: a timestamp's zone is only how it is shown."""
    kind = spark_type(kind)
    return TIMESTAMP if pa.types.is_timestamp(kind) and kind.tz else kind


def is_integer(kind: pa.DataType) -> bool:
    """Return whether a type is one of Spark's four integers."""
    return kind in INTEGERS


def is_float(kind: pa.DataType) -> bool:
    """Return whether a type is FLOAT or DOUBLE."""
    return kind in FLOATS


def is_decimal(kind: pa.DataType) -> bool:
    """Return whether a type is a decimal."""
    return bool(pa.types.is_decimal128(kind))


def is_numeric(kind: pa.DataType) -> bool:
    """Return whether a type is a number."""
    return is_integer(kind) or is_float(kind) or is_decimal(kind)


def is_ordered(kind: pa.DataType) -> bool:
    """Return whether two values of a type can be compared."""
    return is_numeric(kind) or kind in _TIMES or kind in (BOOLEAN, STRING, NULL)


def as_decimal(kind: pa.DataType, literal: int | None = None) -> pa.DataType:
    """Return the decimal type that holds every value of an integer type, or just the digits of a literal."""
    if is_decimal(kind):
        return kind
    return pa.decimal128(_DIGITS[kind] if literal is None else len(str(abs(literal))), 0)


def common_type(kinds: Iterable[pa.DataType]) -> pa.DataType | None:
    """Return the type in which values of several types meet, or None.

    Examples
    --------
    >>> name_of(common_type([pa.int32(), pa.decimal128(5, 2)]))
    'DECIMAL(12, 2)'
    >>> name_of(common_type([pa.int32(), pa.float32()]))
    'DOUBLE'
    """
    return reduce(lambda left, right: None if left is None else _pair(left, right), kinds)


def _pair(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if left == right or right == NULL:
        return left
    if left == NULL:
        return right
    if is_numeric(left) and is_numeric(right):
        if is_float(left) or is_float(right):
            return DOUBLE
        if is_integer(left) and is_integer(right):
            return INTEGERS[max(INTEGERS.index(left), INTEGERS.index(right))]
        return _wider_decimal(as_decimal(left), as_decimal(right))
    if left in _TIMES and right in _TIMES:
        return _TIMES[max(_TIMES.index(left), _TIMES.index(right))]
    return None


def _wider_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    whole = max(left.precision - left.scale, right.precision - right.scale)
    scale = max(left.scale, right.scale)
    if whole + scale > WIDEST:  # digits before the point are kept, those behind it give way
        scale = max(0, WIDEST - whole)
    return pa.decimal128(min(whole + scale, WIDEST), scale)


def decimal_result(symbol: str, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the type of an operation on two decimals.

    Examples
    --------
    >>> decimal_result("/", pa.decimal128(2, 1), pa.decimal128(1, 0))
    Decimal128Type(decimal128(7, 6))
    """
    precision, scale = exact_decimal(symbol, left, right)
    if precision <= WIDEST:
        return pa.decimal128(precision, scale)
    return pa.decimal128(WIDEST, max(WIDEST - (precision - scale), min(scale, _SMALLEST_SCALE)))


def exact_decimal(symbol: str, left: pa.DataType, right: pa.DataType) -> tuple[int, int]:
    """Return the precision and scale of an operation on two decimals, were there no bound to the precision."""
    scale = max(left.scale, right.scale)
    whole_left, whole_right = left.precision - left.scale, right.precision - right.scale
    if symbol in "+-":
        return max(whole_left, whole_right) + scale + 1, scale
    if symbol == "*":
        return left.precision + right.precision + 1, left.scale + right.scale
    if symbol == "/":
        scale = max(_SMALLEST_SCALE, left.scale + right.precision + 1)
        return whole_left + right.scale + scale, scale
    return min(whole_left, whole_right) + scale, scale


def whole_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of FLOOR and CEIL."""
    return rounded_type(kind, 0) if is_decimal(kind) else pa.int64()


def rounded_type(kind: pa.DataType, digits: int) -> pa.DataType:
    """Return the type of ROUND."""
    if not is_decimal(kind):
        return kind
    whole = kind.precision - kind.scale + 1
    if digits < 0:
        return pa.decimal128(min(max(whole, 1 - digits), WIDEST), 0)
    scale = min(kind.scale, digits)
    return pa.decimal128(min(whole + scale, WIDEST), scale)
