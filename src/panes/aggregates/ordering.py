"""Values of any ordered type as numbers in the same order, so that one kernel serves all; and as text, for sketches.

Integers, booleans, dates and timestamps are their own 64-bit integers. Strings, binaries and decimals become their rank
among the distinct values of the column. Floats stay floats: their order in Spark (NaN is largest) is that of ``fmin``
and ``maximum``.

Ranks mean something within one column only. Where columns come one after another, values have *lasting* codes instead:
strings, binaries and unscaled decimals as Python objects, and floats as integers in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import total_ordering
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.aggregates.integers import decimals, unscaled
from panes.aggregates.operations import Array


@dataclass(frozen=True, slots=True)
class Codes:
    """Numbers in the order of the values, and the way back."""

    values: Array
    restore: Callable[[Array, Array | None], pa.Array]


def is_ordered(type_: pa.DataType) -> bool:
    """Whether values of a type can be compared, and so have a minimum.

    Examples
    --------
    >>> is_ordered(pa.string()), is_ordered(pa.list_(pa.int64()))
    (True, False)
    """
    return bool(
        is_integer_like(type_)
        or pa.types.is_floating(type_)
        or pa.types.is_decimal(type_)
        or pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_binary(type_)
        or pa.types.is_large_binary(type_)
    )


def codes(array: pa.Array) -> Codes:
    """Encode an array without regard to its nulls (their code is arbitrary).

    Examples
    --------
    >>> encoded = codes(pa.array(["pear", "apple", "pear"]))
    >>> encoded.values
    array([1, 0, 1])
    >>> encoded.restore(np.array([0]), None).to_pylist()
    ['apple']
    """
    type_ = array.type
    if pa.types.is_floating(type_):
        return Codes(_filled(array), lambda values, nulls: pa.array(values, type=type_, mask=nulls))
    if is_integer_like(type_):
        integers = _filled(as_integers(array)).astype(np.int64, copy=False)
        return Codes(integers, lambda values, nulls: from_integers(values, nulls, type_))
    encoded = array.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    distinct = encoded.dictionary.take(pa.array(order))
    found = rank[_filled(encoded.indices)] if len(order) else np.zeros(len(array), dtype=np.int64)
    return Codes(found, lambda values, nulls: distinct.take(pa.array(values, mask=nulls)))


@total_ordering
class _Beyond:
    """An object that is greater than every other, or less."""

    def __init__(self, *, greater: bool) -> None:
        self._greater = greater

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __lt__(self, other: object) -> bool:
        return not self._greater and self is not other


GREATEST: Final = _Beyond(greater=True)
LEAST: Final = _Beyond(greater=False)

_SIGN: Final = np.int64(2**63 - 1)


def lasting_codes(array: pa.Array) -> Codes:
    """Encode an array so that codes can be compared with those of other arrays of its type; nulls have any code.

    Codes are 64-bit integers or Python objects. -0.0 becomes 0.0, and every NaN the same one.

    Examples
    --------
    >>> one, other = (lasting_codes(pa.array(values)) for values in ([0.5, float("nan")], [-1.5, 0.0]))
    >>> np.sort(np.concatenate([one.values, other.values])).tolist() == [*other.values, *one.values]
    True
    >>> one.restore(other.values, None).to_pylist()
    [-1.5, 0.0]
    """
    type_ = array.type
    if pa.types.is_floating(type_):
        return Codes(
            ordered_bits(_filled(array)), lambda values, nulls: pa.array(floats_of(values), mask=nulls).cast(type_)
        )
    if is_integer_like(type_):
        return codes(array)
    if pa.types.is_decimal(type_):
        return Codes(
            unscaled(array).astype(object),
            lambda values, nulls: decimals(_where_valid(values, nulls, 0), nulls, type_, "a value"),
        )
    none = empty_of(type_)
    values = np.empty(len(array), dtype=object)
    values[:] = array.fill_null(none).to_pylist()
    return Codes(values, lambda found, nulls: pa.array(_where_valid(found, nulls, none), type_, mask=nulls))


def empty_of(type_: pa.DataType) -> Any:
    """A lasting code that nulls may have: it can be compared with all others of the type."""
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return ""
    return b"" if pa.types.is_binary(type_) or pa.types.is_large_binary(type_) else 0


def _where_valid(values: Array, nulls: Array | None, otherwise: Any) -> Array:
    return values if nulls is None else np.where(nulls, otherwise, values)


def ordered_bits(values: Array) -> Array:
    """Floats as integers in Spark's order: both zeros are one, and NaN is the largest.

    Examples
    --------
    >>> found = ordered_bits(np.array([-np.inf, -1.5, -0.0, 0.0, 2.0, np.inf, np.nan]))
    >>> np.diff(found) > 0
    array([ True,  True, False,  True,  True,  True])
    >>> floats_of(found)
    array([-inf, -1.5,  0. ,  0. ,  2. ,  inf,  nan])
    """
    doubles = values.astype(np.float64) + 0.0
    doubles[np.isnan(doubles)] = np.nan
    bits = doubles.view(np.int64)
    ordered: Array = np.where(bits < 0, bits ^ _SIGN, bits)
    return ordered


def floats_of(codes_: Array) -> Array:
    """The way back from ``ordered_bits``."""
    bits = np.where(codes_ < 0, codes_ ^ _SIGN, codes_).astype(np.int64, copy=False)
    floats: Array = bits.view(np.float64)
    return floats


def is_integer_like(type_: pa.DataType) -> bool:
    """Whether values of a type are integers underneath."""
    return bool(
        pa.types.is_integer(type_)
        or pa.types.is_boolean(type_)
        or pa.types.is_date(type_)
        or pa.types.is_timestamp(type_)
    )


def as_integers(array: pa.Array) -> pa.Array:
    """Values of such a type as their integers; booleans as they are."""
    if pa.types.is_date32(array.type):
        return array.view(pa.int32())
    if pa.types.is_timestamp(array.type) or pa.types.is_date64(array.type):
        return array.view(pa.int64())
    return array


def from_integers(values: Array, nulls: Array | None, type_: pa.DataType) -> pa.Array:
    """The way back from integers."""
    if nulls is not None:
        # Where nothing was found the code is an identity, which need not fit the type.
        values = np.where(nulls, 0, values)
    if pa.types.is_boolean(type_):
        return pa.array(values.astype(bool), mask=nulls)
    if pa.types.is_date32(type_):
        return pa.array(values.astype(np.int32), type=pa.int32(), mask=nulls).view(type_)
    if pa.types.is_timestamp(type_) or pa.types.is_date64(type_):
        return pa.array(values, type=pa.int64(), mask=nulls).view(type_)
    return pa.array(values.astype(type_.to_pandas_dtype()), type=type_, mask=nulls)


def _filled(array: pa.Array) -> Array:
    if array.null_count:
        array = array.fill_null(False if pa.types.is_boolean(array.type) else 0)
    values: Array = array.to_numpy(zero_copy_only=False)
    return values


def to_texts(values: pa.Array) -> pa.Array:
    """Values that are equal in Spark have the same text: -0.0 is 0.0, NaN is NaN. None of them is null.

    Examples
    --------
    >>> to_texts(pa.array([-0.0, 2.5])).to_pylist()
    ['0', '2.5']
    >>> to_texts(pa.array([True, False])).to_pylist()
    ['1', '0']
    """
    type_ = values.type
    if is_integer_like(type_):
        whole = as_integers(values)
        return (whole.cast(pa.int8()) if pa.types.is_boolean(type_) else whole).cast(pa.string())
    if pa.types.is_floating(type_):
        return pc.add(values.cast(pa.float64()), 0.0).cast(pa.string())
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        # Not every binary is text in UTF-8, but each is in Latin-1.
        return pa.array([value.decode("latin-1") for value in values.to_pylist()], pa.string())
    return values.cast(pa.string())


def from_texts(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    """The way back.

    Examples
    --------
    >>> from_texts(pa.array(["1", "0"]), pa.bool_()).to_pylist()
    [True, False]
    """
    if is_integer_like(type_):
        whole = texts.cast(pa.uint64() if type_ == pa.uint64() else pa.int64())
        return from_integers(whole.to_numpy(), None, type_)
    if pa.types.is_floating(type_):
        return texts.cast(pa.float64()).cast(type_)
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return pa.array([text.encode("latin-1") for text in texts.to_pylist()], type_)
    return texts.cast(type_)
