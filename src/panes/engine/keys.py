"""Rows grouped by key, for keys of any type: ordinals for equal keys, nulls and NaN equal to themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.aggregates.operations import Array

START, END = "__panes_start", "__panes_end"
"""The columns of bounds until results are labelled: a key may have a plain name."""

INSTANT = "__panes_instant"
"""The column with the time of rows in µs, where it travels beside their keys."""


# The one NaN of keys: equal to itself as in Spark, in memory and after it was stored.


class NotANumber(float):
    """NaN of which there is one, also after it was stored: a dictionary finds what is identical, if not equal."""

    def __reduce__(self) -> str:
        return "NAN"


NAN = NotANumber("nan")


def key_ordinals(columns: Sequence[pa.Array], length: int) -> Array:
    """One number per row; equal for rows with equal keys. Null is a key of its own, as in Spark.

    Examples
    --------
    >>> key_ordinals([pa.array(["a", None, "a", None]), pa.array([1, 1, 1, 1])], 4)
    array([0, 1, 0, 1])
    """
    ordinals = np.zeros(length, dtype=np.int64)
    for column in columns:
        codes, distinct = _codes(column)
        ordinals = ordinals * (distinct + 1) + codes
        # Made dense again after every column, so that many columns do not overflow.
        ordinals = np.unique(ordinals, return_inverse=True)[1].astype(np.int64, copy=False)
    return ordinals


def one_zero(column: pa.Array) -> pa.Array:
    """A key column as Spark shows it: 0.0 and -0.0 are one key, called 0.0. Zeros inside nested keys stay."""
    return pc.add(column, pa.scalar(0.0, column.type)) if pa.types.is_floating(column.type) else column


def _codes(column: pa.Array) -> tuple[Array, int]:
    if pa.types.is_struct(column.type):
        parts = [column.field(i) for i in range(column.type.num_fields)]
        return _nested(column, [*parts, column.is_valid()])
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        seen: dict[str, int] = {}
        codes = np.array(
            [seen.setdefault(repr(plain_value(value)), len(seen)) for value in column.to_pylist()], dtype=np.int64
        )
        return codes, len(seen)
    if pa.types.is_floating(column.type):
        # Spark takes 0.0 and -0.0 for one key, and every NaN for one key.
        values = column.fill_null(0).to_numpy(zero_copy_only=False) + 0.0
        _, codes = np.unique(values, return_inverse=True)
        codes = np.where(column.is_null().to_numpy(zero_copy_only=False), -1, codes) + 1
        return codes.astype(np.int64), int(codes.max(initial=0)) + 1
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(encoded.dictionary)


def plain_value(value: Any) -> Any:
    """A nested value with one zero, as Spark compares keys."""
    if isinstance(value, float):
        return value + 0.0
    if isinstance(value, list):
        return [plain_value(part) for part in value]
    if isinstance(value, dict):
        return {name: plain_value(part) for name, part in value.items()}
    return value


def _nested(column: pa.Array, parts: list[pa.Array]) -> tuple[Array, int]:
    ordinals = key_ordinals(parts, len(column))
    # Fields under a null struct are arbitrary: all null structs are one key.
    ordinals = np.where(column.is_valid().to_numpy(zero_copy_only=False), ordinals + 1, 0)
    return ordinals, int(ordinals.max(initial=0)) + 1
