"""Comparisons as in Spark: NaN equals NaN and is larger than every number, the zeros are equal."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from panes.expressions.coercion import NULL, is_float

_FUNCTIONS: Final = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def compare(symbol: str, left: pa.Array, right: pa.Array) -> pa.Array:
    """Compare two arrays of one type; null where either is null.

    Examples
    --------
    >>> nan = pa.array([float("nan")])
    >>> compare("=", nan, nan).to_pylist(), compare(">", nan, pa.array([1.0])).to_pylist()
    ([True], [True])
    """
    if left.type == NULL:
        return pa.nulls(len(left), pa.bool_())
    if not is_float(left.type):
        return _FUNCTIONS[symbol](left, right)
    if symbol in ("<>", "<=", ">="):
        return pc.invert(compare({"<>": "=", "<=": ">", ">=": "<"}[symbol], left, right))
    if symbol == ">":
        return compare("<", right, left)
    left_nan, right_nan = pc.is_nan(left), pc.is_nan(right)
    if symbol == "=":
        return pc.or_(pc.equal(left, right), pc.and_(left_nan, right_nan))
    return pc.or_(pc.less(left, right), pc.and_(pc.invert(left_nan), right_nan))


def same(left: pa.Array, right: pa.Array) -> pa.Array:
    """Compare by ``<=>``: null equals null, and the answer is never null."""
    both_null = pc.and_(left.is_null(), right.is_null())
    return pc.or_(pc.fill_null(compare("=", left, right), False), both_null)


def extreme(arrays: list[pa.Array], *, largest: bool) -> pa.Array:
    """The least or the greatest value of each row, without nulls; the first one of equals."""
    best, symbol = arrays[0], ">" if largest else "<"
    for array in arrays[1:]:
        better = pc.or_(pc.fill_null(compare(symbol, array, best), False), best.is_null())
        best = pc.if_else(better, array, best)
    return best
