"""Functions of one or more values that look at all of their arguments: numbers in, strings in, nulls through."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from panes.errors import ExpressionError
from panes.expressions import arithmetic, decimals, strings
from panes.expressions.casts import cast
from panes.expressions.coercion import (
    BOOLEAN,
    DOUBLE,
    NULL,
    STRING,
    is_decimal,
    is_float,
    is_integer,
    is_numeric,
    name_of,
)
from panes.expressions.outcome import Bound, Mask, Values, all_of, failing, from_numbers, numbers
from panes.expressions.writing import write

Refuse: TypeAlias = Callable[[str], ExpressionError]
_Computed: TypeAlias = "tuple[pa.Array, Mask | None]"

_NUMERIC: Final = (exp.Neg, exp.Abs, exp.Floor, exp.Ceil, exp.Round, exp.IsNan)
_TEXTUAL: Final = (exp.Upper, exp.Lower, exp.Length, exp.Trim, exp.Concat, exp.DPipe)
NAMES: Final = (*_NUMERIC[1:], *_TEXTUAL)


def bind(node: exp.Expression, bounds: list[Bound], refuse: Refuse) -> Bound:
    """Bind a function to its arguments, or refuse their types."""
    numeric = isinstance(node, _NUMERIC)
    for bound in bounds:
        if bound.type != NULL and not (is_numeric(bound.type) if numeric else bound.type == STRING):
            wanted = "a number" if numeric else "a STRING"
            raise refuse(f"{bound.sql!r} is {name_of(bound.type)}, and {wanted} is needed here")
    if not numeric:
        return _textual(node, bounds)
    argument = bounds[0].type if bounds[0].type != NULL else DOUBLE
    if isinstance(node, exp.Round):
        digits = bounds[1].integer or 0 if len(bounds) > 1 else 0
        kind = decimals.round_type(argument, digits) if is_decimal(argument) else argument
        return _computed(node, bounds[0], argument, kind, lambda array: _rounded(array, digits, kind))
    if isinstance(node, (exp.Floor, exp.Ceil)):
        kind = decimals.round_type(argument, 0) if is_decimal(argument) else pa.int64()
        up = isinstance(node, exp.Ceil)
        return _computed(node, bounds[0], argument, kind, lambda array: arithmetic.whole(array, up=up))
    if isinstance(node, exp.IsNan):
        return _computed(node, bounds[0], argument, BOOLEAN, _is_nan)
    function = arithmetic.absolute if isinstance(node, exp.Abs) else arithmetic.negated
    return _computed(node, bounds[0], argument, argument, function)


def _computed(
    node: exp.Expression,
    bound: Bound,
    argument: pa.DataType,
    kind: pa.DataType,
    function: Callable[[pa.Array], _Computed],
) -> Bound:
    text = write(node)

    def run(batch: pa.RecordBatch) -> Values:
        values = bound.run(batch)
        array, failed = function(cast(values.array, argument)[0])
        return Values(array, values.failures + failing(failed, f"{text!r} does not fit {name_of(kind)}"))

    return Bound(kind, run, text)


def _textual(node: exp.Expression, bounds: list[Bound]) -> Bound:
    kind = pa.int32() if isinstance(node, exp.Length) else STRING

    def run(batch: pa.RecordBatch) -> Values:
        values = [bound.run(batch) for bound in bounds]
        arrays = [cast(one.array, STRING)[0] for one in values]
        return Values(_text(node, arrays), all_of(values))

    return Bound(kind, run, write(node))


def _text(node: exp.Expression, arrays: list[pa.Array]) -> pa.Array:
    if isinstance(node, (exp.Concat, exp.DPipe)):
        return pc.binary_join_element_wise(*arrays, "", null_handling="emit_null")
    if isinstance(node, exp.Upper):
        return strings.upper(arrays[0])
    if isinstance(node, exp.Lower):
        return strings.lower(arrays[0])
    if isinstance(node, exp.Length):
        return pc.utf8_length(arrays[0])
    return pc.utf8_trim(arrays[0], " ")  # blanks only: a tab stays, as in Spark


def _is_nan(array: pa.Array) -> _Computed:
    if not is_float(array.type):
        return pa.repeat(pa.scalar(False), len(array)), None
    return pc.fill_null(pc.is_nan(array), False), None  # never null, as in Spark


def _rounded(array: pa.Array, digits: int, kind: pa.DataType) -> _Computed:
    if is_decimal(array.type):
        return decimals.by_row(lambda value: decimals.half_up(value, digits), (array,), kind)
    if is_integer(array.type):
        if digits >= 0:
            return array, None
        exact, _ = cast(array, pa.decimal128(20, 0))
        rounded, _ = decimals.by_row(lambda value: decimals.half_up(value, digits), (exact,), pa.decimal128(38, 0))
        return cast(rounded, kind)
    # Java rounds the decimal that it prints for a double; a float is widened to a double before.
    values = numbers(array).astype(np.float64)
    halves = (float(decimals.half_up(Decimal(repr(v)), digits)) if np.isfinite(v) else v for v in values.tolist())
    rounded_values = np.fromiter(halves, dtype=np.float64, count=len(values)) + 0.0  # a decimal has no negative zero
    return cast(from_numbers(rounded_values, np.asarray(array.is_valid()), DOUBLE), kind)
