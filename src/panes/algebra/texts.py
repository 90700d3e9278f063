"""Values of any ordered type as text and back, for sketches that keep text."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from panes.algebra.ordering import as_integers, from_integers, is_integer_like


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
