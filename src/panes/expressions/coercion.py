"""Which type two values have in common: Spark's rules with ANSI mode on, as Arrow types."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Final

import pyarrow as pa

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
_WIDEST: Final = 38
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
_UNSIGNED: Final = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
}


def name_of(kind: pa.DataType) -> str:
    """A type as Spark names it.

    Examples
    --------
    >>> name_of(pa.int64()), name_of(pa.decimal128(5, 2))
    ('BIGINT', 'DECIMAL(5, 2)')
    """
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return _NAMES.get(kind, str(kind).upper())


def column_type(kind: pa.DataType) -> pa.DataType:
    """The type that Spark gives a column of an Arrow type, for the many Arrow types that Spark has once."""
    if pa.types.is_dictionary(kind):
        return column_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return STRING
    if pa.types.is_timestamp(kind):
        return TIMESTAMP if kind.tz else LOCAL_TIMESTAMP
    if pa.types.is_date64(kind):
        return DATE
    if pa.types.is_decimal(kind) and kind.precision <= _WIDEST:
        return pa.decimal128(kind.precision, kind.scale)
    return _UNSIGNED.get(kind, kind)


def is_integer(kind: pa.DataType) -> bool:
    """Whether a type is one of Spark's four integers."""
    return kind in INTEGERS


def is_float(kind: pa.DataType) -> bool:
    """Whether a type is FLOAT or DOUBLE."""
    return kind in FLOATS


def is_decimal(kind: pa.DataType) -> bool:
    """Whether a type is a decimal."""
    return bool(pa.types.is_decimal128(kind))


def is_numeric(kind: pa.DataType) -> bool:
    """Whether a type can be added and multiplied."""
    return is_integer(kind) or is_float(kind) or is_decimal(kind)


def is_ordered(kind: pa.DataType) -> bool:
    """Whether two values of a type can be compared."""
    return is_numeric(kind) or kind in _TIMES or kind in (BOOLEAN, STRING, NULL)


def as_decimal(kind: pa.DataType, literal: int | None = None) -> pa.DataType:
    """The decimal that holds every value of an integer type, or just the digits of a literal."""
    if is_decimal(kind):
        return kind
    return pa.decimal128(_DIGITS[kind] if literal is None else len(str(abs(literal))), 0)


def common_type(kinds: Iterable[pa.DataType]) -> pa.DataType | None:
    """The type in which values of several types meet, or None.

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
    if whole + scale > _WIDEST:  # digits before the point are kept, those behind it give way
        scale = max(0, _WIDEST - whole)
    return pa.decimal128(min(whole + scale, _WIDEST), scale)
