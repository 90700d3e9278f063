"""Spark's scalar functions on Arrow arrays: arithmetic, casts, rounding, comparison, strings.

Arrow computes whatever it computes with Spark's meaning; everything written by hand here says why Arrow would give
another answer. A value that does not fit raises ``pa.ArrowInvalid``, as Arrow's own checked kernels do.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.expressions.coercion import (
    BOOLEAN,
    DOUBLE,
    NULL,
    STRING,
    WIDEST,
    exact_decimal,
    is_decimal,
    is_float,
    is_integer,
    is_numeric,
    rounded_type,
    whole_type,
)

# Arithmetic ----------------------------------------------------------------------------------------------------

_CHECKED: Final = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_UNCHECKED: Final = {"+": pc.add, "-": pc.subtract, "*": pc.multiply, "/": pc.divide}
_WIDEST_ARROW: Final = 76
_HALF_UP: Final = "half_towards_infinity"

# Wide enough that only the roundings written below round.
_EXACT: Final = decimal.Context(prec=700, rounding=decimal.ROUND_HALF_UP, Emin=-10_000, Emax=10_000)
# Spark multiplies to one digit more than it keeps (SPARK-40129), and divides to one place more.
_PRODUCT: Final = decimal.Context(prec=WIDEST + 1, rounding=decimal.ROUND_HALF_UP)
_QUOTIENT: Final = Decimal(1).scaleb(-(WIDEST + 1))
# Spark negates in Scala's default context: the last digits of a value with more than 34 are rounded away.
_NEGATION: Final = decimal.Context(prec=34, rounding=decimal.ROUND_HALF_EVEN)
_BY_ROW: Final[dict[str, Callable[[Decimal, Decimal], Decimal]]] = {
    "+": _EXACT.add,
    "-": _EXACT.subtract,
    "*": _PRODUCT.multiply,
    "/": lambda a, b: _EXACT.divide(a, b).quantize(_QUOTIENT, context=_EXACT),
    "%": _EXACT.remainder,
}


def arithmetic(symbol: str, left: pa.Array, right: pa.Array, kind: pa.DataType) -> pa.Array:
    """Compute + - * / or % on two arrays of numbers; the divisor is nowhere zero where both are valid."""
    if is_decimal(kind):
        return _decimal_arithmetic(symbol, left, right, kind)
    if symbol == "%":
        # Only the newest Arrow has a remainder. C and Java agree on its sign, that of the dividend.
        with np.errstate(all="ignore"):  # infinity % 2 is NaN
            values = np.fmod(*(array.fill_null(1).to_numpy(zero_copy_only=False) for array in (left, right)))
        return pa.array(values, kind, mask=pc.or_(left.is_null(), right.is_null()).to_numpy(zero_copy_only=False))
    return (_UNCHECKED if is_float(kind) else _CHECKED)[symbol](left, right)


def _decimal_arithmetic(symbol: str, left: pa.Array, right: pa.Array, kind: pa.DataType) -> pa.Array:
    if symbol in "+-*":
        precision, _ = exact_decimal(symbol, left.type, right.type)
        if precision <= WIDEST:
            return _UNCHECKED[symbol](left, right)
        if symbol != "*" and precision <= _WIDEST_ARROW:
            wide = (array.cast(pa.decimal256(array.type.precision, array.type.scale)) for array in (left, right))
            return _fit(_UNCHECKED[symbol](*wide), kind)
    # Arrow truncates quotients, has no remainder of decimals, and refuses products of more than 76 digits.
    return _by_row(_BY_ROW[symbol], (left, right), kind)


def negate(array: pa.Array) -> pa.Array:
    """Return the values with the other sign."""
    if is_decimal(array.type) and array.type.precision > _NEGATION.prec:
        return _by_row(_NEGATION.minus, (array,), array.type)
    return (pc.negate_checked if is_integer(array.type) else pc.negate)(array)


def absolute(array: pa.Array) -> pa.Array:
    """Return the absolute values; of decimals, Spark negates the negative ones."""
    if is_decimal(array.type) and array.type.precision > _NEGATION.prec:
        return _by_row(lambda value: _NEGATION.minus(value) if value < 0 else value, (array,), array.type)
    return (pc.abs_checked if is_integer(array.type) else pc.abs)(array)


# Rounding ------------------------------------------------------------------------------------------------------


def floor(array: pa.Array) -> pa.Array:
    """Round down: decimals to decimals, everything else to BIGINT."""
    return _whole(pc.floor, array)


def ceiling(array: pa.Array) -> pa.Array:
    """Round up: decimals to decimals, everything else to BIGINT."""
    return _whole(pc.ceil, array)


def _whole(function: Callable[[pa.Array], pa.Array], array: pa.Array) -> pa.Array:
    kind = whole_type(array.type)
    if is_decimal(array.type):
        return function(_wide(array)).cast(kind)  # the ceiling of 9.99 has a digit more
    if not is_float(array.type):
        return array.cast(kind)
    whole = function(array.cast(DOUBLE))
    return pc.if_else(pc.is_nan(whole), 0.0, whole).cast(kind)  # NaN becomes 0, as in Java


def round_half_up(array: pa.Array, digits: int) -> pa.Array:
    """Round to a number of digits behind the point, or before it when negative."""
    kind = rounded_type(array.type, digits)
    if is_float(array.type):
        # Java rounds the decimal that it prints for a double, Arrow the binary number: 1.005 differs. A float is
        # widened to a double before.
        values = array.cast(DOUBLE).to_pylist()
        rounded = [v if v is None or not np.isfinite(v) else _rounded_double(v, digits) for v in values]
        return pa.array(rounded, DOUBLE).cast(kind)
    if is_integer(array.type) and digits >= 0:
        return array
    # Arrow rejects digits beyond those of the type, and a result with one digit more. Spark rounds the first to zero.
    most = (array.type.scale if is_decimal(array.type) else 0) - _WIDEST_ARROW + 1
    return pc.round(_wide(array), max(digits, most), _HALF_UP).cast(kind)


def _rounded_double(value: float, digits: int) -> float:
    exact = Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), context=_EXACT)
    return float(exact) + 0.0  # a decimal has no negative zero


def _wide(array: pa.Array) -> pa.Array:
    """Return integers or decimals as decimals with room for every digit."""
    return array.cast(pa.decimal256(_WIDEST_ARROW, array.type.scale if is_decimal(array.type) else 0))


def _fit(wide: pa.Array, kind: pa.DataType) -> pa.Array:
    """Round wide decimals half up to a decimal type."""
    return pc.round(wide, kind.scale, _HALF_UP).cast(kind)


def _by_row(function: Callable[..., Decimal | None], arrays: tuple[pa.Array, ...], kind: pa.DataType) -> pa.Array:
    """Apply a function to every row without nulls, and round half up to a decimal type."""
    unit = Decimal(1).scaleb(-kind.scale)
    results: list[Decimal | None] = []
    for values in zip(*(array.to_pylist() for array in arrays), strict=True):
        value = None if None in values else function(*values)
        results.append(None if value is None else value.quantize(unit, context=_EXACT))
    return pa.array(results, kind)


# Casts ---------------------------------------------------------------------------------------------------------


def castable(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether the subset has an explicit cast between two types."""
    if source in (target, NULL):
        return True
    if target == STRING:
        return is_integer(source) or bool(source == BOOLEAN)
    return all(is_numeric(kind) or kind == BOOLEAN for kind in (source, target))


def cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Convert an array by the rules of ANSI SQL: a value that does not fit is an error."""
    source = array.type
    if source == target:
        return array
    if source == NULL:
        return pa.nulls(len(array), target)
    if source == BOOLEAN and target != STRING:
        return cast(array.cast(pa.int8()), target)
    if target == BOOLEAN:
        return pc.not_equal(array, zero(source))
    if is_decimal(target):
        return _to_decimal(array, target)
    if is_decimal(source) and is_float(target):
        # Python rounds correctly, Arrow is off in the last bit of some decimals.
        return pa.array([None if value is None else float(value) for value in array.to_pylist()], DOUBLE).cast(target)
    if is_decimal(source) and is_integer(target):
        return pc.trunc(array).cast(target)
    if is_float(source) and is_integer(target):
        return _truncate(array, target)
    # To a float, the nearest value will do; one that is too large is infinite, as in Java.
    return array.cast(target, safe=not is_float(target))


def _to_decimal(array: pa.Array, target: pa.DataType) -> pa.Array:
    source = array.type
    if is_integer(source):
        return cast(array.cast(pa.decimal128(19, 0)), target)
    if is_decimal(source):
        gives_way = target.scale < source.scale or target.precision - target.scale < source.precision - source.scale
        return _fit(_wide(array), target) if gives_way else array.cast(target)
    # The shortest decimal that reads as the double, as Java prints it; NaN and infinities become null.
    return _by_row(lambda v: Decimal(repr(v)) if np.isfinite(v) else None, (array.cast(DOUBLE),), target)


def _truncate(array: pa.Array, target: pa.DataType) -> pa.Array:
    whole = pc.trunc(array.cast(DOUBLE))
    if target != pa.int64():
        return whole.cast(target)
    # The largest BIGINT as a double is 2^63: Spark lets that one value pass, as the largest BIGINT.
    largest = pc.equal(whole, 2.0**63)
    return pc.if_else(largest, pa.scalar(2**63 - 1, target), pc.if_else(largest, None, whole).cast(target))


def zero(kind: pa.DataType) -> pa.Scalar:
    """Return the zero of a numeric type."""
    return pa.scalar(0, kind)


# Comparison ----------------------------------------------------------------------------------------------------

_COMPARE: Final = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def compare(symbol: str, left: pa.Array, right: pa.Array) -> pa.Array:
    """Compare two arrays of one type; null where either is null.

    Spark's NaN equals itself and is larger than every number; Arrow's compares like IEEE 754's.

    Examples
    --------
    >>> nan = pa.array([float("nan")])
    >>> compare("=", nan, nan).to_pylist(), compare(">", nan, pa.array([1.0])).to_pylist()
    ([True], [True])
    """
    if left.type == NULL:
        return pa.nulls(len(left), pa.bool_())
    if not is_float(left.type):
        return _COMPARE[symbol](left, right)
    if symbol in ("<>", "<=", ">="):
        return pc.invert(compare({"<>": "=", "<=": ">", ">=": "<"}[symbol], left, right))
    if symbol == ">":
        return compare("<", right, left)
    left_nan, right_nan = pc.is_nan(left), pc.is_nan(right)
    if symbol == "=":
        return pc.or_(pc.equal(left, right), pc.and_(left_nan, right_nan))
    return pc.or_(pc.less(left, right), pc.and_(pc.invert(left_nan), right_nan))


def equal_or_both_null(left: pa.Array, right: pa.Array) -> pa.Array:
    """Compare by ``<=>``: null equals null, and the answer is never null."""
    return pc.or_(pc.fill_null(compare("=", left, right), False), pc.and_(left.is_null(), right.is_null()))


def extreme(arrays: Sequence[pa.Array], *, largest: bool) -> pa.Array:
    """Return the least or the greatest value of each row, ignoring nulls; the first of equal ones.

    Arrow's ``max_element_wise`` ignores NaN too, prefers one zero to the other, and does not take booleans.
    """
    best, symbol = arrays[0], ">" if largest else "<"
    for array in arrays[1:]:
        better = pc.or_(pc.fill_null(compare(symbol, array, best), False), best.is_null())
        best = pc.if_else(better, array, best)
    return best


def is_in(array: pa.Array, values: Sequence[pa.Scalar]) -> pa.Array:
    """Return whether each value is among others: unknown if it is not, and one of them is null.

    Arrow tells the two zeros apart.

    Examples
    --------
    >>> is_in(pa.array([1.0, 2.0, None]), [pa.scalar(1.0), pa.scalar(None, pa.float64())]).to_pylist()
    [True, None, None]
    """
    others = pa.array(values, array.type)
    if is_float(array.type):
        array, others = pc.add(array, zero(array.type)), pc.add(others, zero(array.type))
    found = pc.is_in(array, others.drop_null())
    unknown = pc.or_(array.is_null(), pc.and_(others.null_count > 0, pc.invert(found)))
    return pc.if_else(unknown, None, found)


def is_nan(array: pa.Array) -> pa.Array:
    """Return whether each value is NaN; never null, as in Spark."""
    if not is_float(array.type):
        return pa.repeat(pa.scalar(False), len(array))
    return pc.fill_null(pc.is_nan(array), False)


# Strings: Unicode code points, no collation, no locale ---------------------------------------------------------


def like(array: pa.Array, pattern: str) -> pa.Array:
    r"""Match whole strings: ``%`` is any text, ``_`` one character, a backslash makes either of them plain.

    Arrow's ``match_like`` misreads patterns that end in an escaped backslash.

    Examples
    --------
    >>> like(pa.array(["10%", "10x", "a\nb"]), r"10\%").to_pylist()
    [True, False, False]
    """
    parts, characters = [], iter(pattern)
    for character in characters:
        if character == "\\":
            parts.append(_escaped(next(characters)))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or _escaped(character))
    return pc.match_substring_regex(array, rf"(?s)\A{''.join(parts)}\z")


def _escaped(character: str) -> str:
    # RE2 takes every escape that re.escape writes but the one of a NUL.
    return r"\x00" if character == "\0" else re.escape(character)


def upper(array: pa.Array) -> pa.Array:
    """Return upper case with full Unicode mapping, ß to SS; Arrow maps ß to ẞ, character by character."""
    return _map_case(array, pc.ascii_upper, str.upper)


def lower(array: pa.Array) -> pa.Array:
    """Return lower case with full Unicode mapping, a final Σ to ς; Arrow maps it to σ."""
    return _map_case(array, pc.ascii_lower, str.lower)


def _map_case(array: pa.Array, ascii_kernel: Callable[[pa.Array], pa.Array], mapping: Callable[[str], str]) -> pa.Array:
    if pc.all(pc.string_is_ascii(array), min_count=0).as_py():
        return ascii_kernel(array)
    return pa.array([None if text is None else mapping(text) for text in array.to_pylist()], pa.string())


def trim(array: pa.Array) -> pa.Array:
    """Remove blanks from both ends, and only blanks: a tab stays, as in Spark."""
    return pc.utf8_trim(array, " ")


def concat(*arrays: pa.Array) -> pa.Array:
    """Join strings; null where one is null."""
    return pc.binary_join_element_wise(*arrays, "", null_handling="emit_null")
