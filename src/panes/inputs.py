"""What users give as data: Spark DataFrames, or Arrow data, which is converted to the types that Spark has.

Spark has one type of string, binary, list and timestamp; Arrow has several of each, and encodings. A column is
converted from the outside in: first its encoding is undone, then its values are converted, then theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.errors import PlanError, SchemaError


def is_spark(data: Any) -> bool:
    """Whether something is a Spark DataFrame."""
    # Asked by name, so that pyspark is imported only where a Spark DataFrame arrives.
    return any(
        base.__module__.startswith("pyspark.sql") and base.__name__ == "DataFrame" for base in type(data).__mro__
    )


def is_arrow(data: Any) -> bool:
    """Whether something has the Arrow C interface: pyarrow, pandas, polars, ..."""
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


_ARROW = "a pyarrow Table, or anything with the Arrow C interface, such as a pandas or polars DataFrame"


def check_one(doing: str, data: Any, which: str = "") -> None:
    """Refuse what is neither a Spark DataFrame nor Arrow data.

    Parameters
    ----------
    doing
        What would be done with it, as ``run on``.
    which
        What messages call it, where it is one of several.
    """
    if not is_spark(data) and not is_arrow(data):
        which = which and f" (the {which})"
        raise PlanError(f"cannot {doing} a {type(data).__name__}{which}: give a Spark DataFrame, {_ARROW}.")


def check_here(call: str, what: str, data: Any) -> None:
    """Refuse what this process cannot read.

    Parameters
    ----------
    call, what
        What is given the data, as ``live.update``, and what it calls them, as ``batch``.
    """
    if is_spark(data):
        write = f"{call}({what}.toArrow())"
        if data.isStreaming:
            write = f"stream.writeStream.foreachBatch(lambda {what}, number: {write})"
        raise PlanError(f"{call} reads tables in this process, and was given a Spark DataFrame. Write {write}.")
    if not is_arrow(data):
        raise PlanError(f"{call} cannot read a {type(data).__name__}: give {_ARROW}.")


def both_on_spark(doing: str, **sides: Any) -> bool:
    """Whether two inputs are Spark DataFrames; or neither is, and both can be read here. Anything else is an error.

    Parameters
    ----------
    doing
        What would be done with an input, as ``join``.
    sides
        The inputs by what messages call them.
    """
    for name, data in sides.items():
        check_one(doing, data, name)
    on_spark = {is_spark(data) for data in sides.values()}
    if len(on_spark) > 1:
        raise PlanError(
            "one side is a Spark DataFrame and the other is not. Give the other to spark.createDataFrame first, or "
            "bring the DataFrame here with toArrow()."
        )
    return on_spark == {True}


def zone_of(data: Any, at: str) -> str | None:
    """The time zone in which the times of a column are shown: of the column in Arrow, of the session in Spark.

    None where times have no zone, or nothing is known before the data are read; a missing column is reported elsewhere.

    Examples
    --------
    >>> zone_of(pa.table({"ts": pa.array([0], pa.timestamp("us", "Asia/Tokyo"))}), "TS")
    'Asia/Tokyo'
    """
    if is_spark(data):
        types = [field.dataType.typeName() for field in data.schema if field.name.lower() == at.lower()]
        if types != ["timestamp"]:
            return None
        zone: str | None = data.sparkSession.conf.get("spark.sql.session.timeZone")
        return zone
    schema = getattr(data, "schema", None)
    if not isinstance(schema, pa.Schema):
        names = [name for name in getattr(data, "columns", ()) if str(name).lower() == at.lower()]
        if len(names) != 1 or not hasattr(data, "__getitem__"):
            return None
        try:
            schema = pa.table(data[:0][names]).schema  # no row is converted
        except (pa.ArrowException, TypeError, ValueError):
            return None
    found = [field.type for field in schema if field.name.lower() == at.lower()]
    return found[0].tz if len(found) == 1 and pa.types.is_timestamp(found[0]) else None


def unread(data: Any) -> Any:
    """The same data; of a reader, which can be read only once, an empty table with its columns."""
    return data.schema.empty_table() if hasattr(data, "read_next_batch") else data


def reread(data: Any) -> Any:
    """The same data in a form that can be read more than once: a reader is read whole."""
    return data if isinstance(data, pa.Table) or hasattr(data, "columns") else pa.table(data)


_SIMPLER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}
_MOST_DIGITS = 38


def as_table(data: Any, used: Collection[str] | None = None) -> pa.Table:
    """Anything with the Arrow C interface (pyarrow, pandas, polars, ...) as a table of Spark's types.

    Parameters
    ----------
    used
        The lower-cased names of the columns that queries read; None for all. Of the others only the names remain, so
        that their types cannot matter and errors can still suggest them.

    Examples
    --------
    >>> as_table({"n": pa.array([1], pa.uint8()), "word": pa.array(["a"], pa.string_view())}, used={"n"}).schema
    n: int16
    word: null
    """
    table = _imported(data, used)
    lowered = [name.lower() for name in table.column_names]
    repeated = {name for name, count in Counter(lowered).items() if count > 1}
    if repeated if used is None else repeated & set(used):
        raise SchemaError("two columns of the data have the same name (upper and lower case count as equal).")
    columns: dict[str, Any] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        wanted = used is None or name.lower() in used
        columns[name] = _sparks(name, column) if wanted else pa.nulls(table.num_rows)
    # A table without columns would forget how many rows it has.
    return pa.table(columns) if columns else table.replace_schema_metadata(None)


def with_the_rest(data: Any, table: pa.Table) -> pa.Table:
    """A table from ``as_table`` with the columns that no query reads filled in; types Spark lacks stay null."""
    unread = [
        name for name, type_ in zip(table.column_names, table.schema.types, strict=True) if pa.types.is_null(type_)
    ]
    for name in unread:
        try:
            table = table.set_column(table.column_names.index(name), name, as_table(data, {name.lower()}).column(name))
        except (SchemaError, KeyError):
            continue
    return table


def _imported(data: Any, used: Collection[str] | None) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    try:
        return pa.table(data)
    except pa.ArrowException:
        # Some column has a type that Arrow does not know (128-bit integers of polars, mixed objects of pandas).
        names = getattr(data, "columns", None)
        if names is None or not hasattr(data, "__getitem__"):
            raise
    wanted = [name for name in names if used is None or str(name).lower() in used]
    for name in wanted:
        try:
            pa.table(data[[name]])
        except pa.ArrowException as error:
            raise _refused(str(name), getattr(data[name], "dtype", "unknown"), error) from error
    table = pa.table(data[wanted])
    for name in names:
        if name not in wanted:
            table = table.append_column(str(name), pa.nulls(table.num_rows))
    return table


def _sparks(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        if spark_type(column.type) == column.type:
            return column
        return pa.chunked_array([_converted(chunk) for chunk in column.chunks or [pa.nulls(0, column.type)]])
    except (pa.ArrowException, OverflowError) as error:
        raise _refused(name, column.type, error) from error


def _refused(name: str, type_: object, error: Exception) -> SchemaError:
    return SchemaError(
        f"column {name!r} is of type {type_}, which cannot be converted to a Spark type: {error}. "
        "Cast it to a plain type first (a number, a string, a timestamp in microseconds), or leave it out of queries."
    )


def spark_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that Spark gives a column of an Arrow type; raise ``pa.ArrowNotImplementedError`` if it has none.

    Examples
    --------
    >>> spark_type(pa.uint8()), spark_type(pa.large_list(pa.string_view()))
    (DataType(int16), ListType(list<item: string>))
    """
    if isinstance(kind, pa.BaseExtensionType):
        if not kind.extension_name.startswith("arrow."):
            raise pa.ArrowNotImplementedError(f"the extension type {kind.extension_name!r} is unknown here")
        return pa.bool_() if kind.extension_name == "arrow.bool8" else spark_type(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return spark_type(kind.value_type)
    if pa.types.is_union(kind):
        raise pa.ArrowNotImplementedError("Spark has no unions")
    if pa.types.is_struct(kind):
        return pa.struct([_retyped(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_retyped(kind.key_field), _retyped(kind.item_field), kind.keys_sorted)
    if pa.types.is_nested(kind):
        return pa.list_(_retyped(kind.value_field))
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_duration(kind):
        return pa.duration("us")
    if pa.types.is_decimal(kind):
        return pa.decimal128(min(kind.precision, _MOST_DIGITS), kind.scale)
    return pa.binary() if pa.types.is_fixed_size_binary(kind) else _SIMPLER.get(kind, kind)


def _retyped(field: pa.Field) -> pa.Field:
    return field.with_type(spark_type(field.type))


def _converted(array: pa.Array) -> pa.Array:
    kind, target = array.type, spark_type(array.type)
    if kind == target:
        return array
    if isinstance(kind, pa.BaseExtensionType):
        return array.storage.cast(target) if target == pa.bool_() else _converted(array.storage)
    if pa.types.is_dictionary(kind):
        return _converted(array.dictionary).take(array.indices)
    if pa.types.is_run_end_encoded(kind):
        return _repeated(array)
    if pa.types.is_nested(kind):
        return _nested(array)
    if (pa.types.is_timestamp(kind) or pa.types.is_duration(kind)) and kind.unit == "ns":
        return _microseconds(array, target)
    return array.cast(target)


def _repeated(array: pa.RunEndEncodedArray) -> pa.Array:
    # pc.run_end_decode knows no views.
    positions = np.arange(array.offset, array.offset + len(array))
    runs = np.searchsorted(array.run_ends.to_numpy(), positions, side="right")
    return _converted(array.values).take(pa.array(runs))


def _nested(array: pa.Array) -> pa.Array:
    type_ = array.type
    if pa.types.is_struct(type_):
        parts = [_converted(array.field(i)) for i in range(type_.num_fields)]
        fields = [pa.field(field.name, part.type) for field, part in zip(type_, parts, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=array.is_null())
    if pa.types.is_map(type_):
        offsets = array.offsets.to_numpy()
        entries = slice(int(offsets[0]), int(offsets[-1]))
        keys, items = _converted(array.keys[entries]), _converted(array.items[entries])
        return pa.MapArray.from_arrays(pa.array(offsets - offsets[0]), keys, items, mask=array.is_null())
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    # Raises where a list is too long for Spark's 32-bit offsets.
    return pa.ListArray.from_arrays(
        pa.array(offsets).cast(pa.int32()), _converted(array.flatten()), mask=array.is_null()
    )


def _microseconds(array: pa.Array, target: pa.DataType) -> pa.Array:
    # Floored, so that an instant before the epoch does not move to the next microsecond.
    floored = array.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False) // 1000
    return pa.array(floored, mask=array.is_null().to_numpy(zero_copy_only=False)).view(target)
