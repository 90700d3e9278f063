"""Bring Arrow data into the types that Spark has, so that both runners see the same."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from panes.errors import SchemaError

_WIDER = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.float16(): pa.float32()}


def as_table(data: Any) -> pa.Table:
    """Anything with the Arrow C interface (pyarrow, pandas, polars, ...) as a table of Spark's types."""
    table = data if isinstance(data, pa.Table) else pa.table(data)
    table = table.replace_schema_metadata(None)
    columns, names = [], []
    for name, column in zip(table.column_names, table.columns, strict=True):
        columns.append(_sparks_type(name, column))
        names.append(name)
    lowered = [name.lower() for name in names]
    if len(set(lowered)) != len(lowered):
        raise SchemaError("two columns of the data have the same name (upper and lower case count as equal).")
    return pa.table(columns, names=names)


def _sparks_type(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    type_ = column.type
    if pa.types.is_dictionary(type_):
        return _sparks_type(name, column.cast(type_.value_type))
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return column.cast(pa.string())
    if pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_):
        return column.cast(pa.binary())
    if pa.types.is_timestamp(type_) and type_.unit != "us":
        return _microseconds(column)
    if pa.types.is_uint64(type_):
        return column.cast(pa.decimal128(20, 0))
    if type_ in _WIDER:
        return column.cast(_WIDER[type_])
    return column


def _microseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    target = pa.timestamp("us", column.type.tz)
    if column.type.unit != "ns":
        return column.cast(target)
    # Floored, so that an instant before the epoch does not move to the next microsecond.
    floored = pc.floor_temporal(column, unit="microsecond") if column.type.tz is None else column
    return floored.cast(target, safe=False)
