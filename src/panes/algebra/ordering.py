"""Values of any ordered type as numbers in the same order, so that one kernel serves them all.

Integers, booleans, dates and timestamps are their own 64-bit integers. Strings, binaries and decimals become
their rank among the distinct values of the column. Floats stay floats: their order in Spark (NaN is largest) is
that of ``fmin`` and ``maximum``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.algebra.operations import Array


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
