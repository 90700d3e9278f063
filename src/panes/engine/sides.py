"""Columns that two inputs have to agree on: keys and times, checked before any job."""

from __future__ import annotations

import pyarrow as pa

from panes.errors import SchemaError, nearest


def position(what: str, column: str, side: str, schema: pa.Schema) -> int:
    """Where a column stands, whatever the case of its name.

    Parameters
    ----------
    what, side
        How messages call what asks for the column, as ``by='card'``, and the input, as ``the requests``.
    """
    found = [i for i, name in enumerate(schema.names) if name.lower() == column.lower()]
    if not found:
        write = f" Write {what.split('=')[0]}= with the name that it has there." if what.startswith("at=") else ""
        raise SchemaError(f"{what} is not a column of {side} ({nearest(column, schema.names)}).{write}")
    if len(found) > 1:
        raise SchemaError(f"{side} has {len(found)} columns called {column!r}; drop or rename all but one.")
    return found[0]


def time_position(what: str, column: str, side: str, schema: pa.Schema) -> int:
    """Where a column of times stands."""
    found = position(what, column, side, schema)
    type_ = schema.field(found).type
    if not pa.types.is_timestamp(type_):
        raise SchemaError(
            f"{what} is of type {type_} in {side}, but event time has to be a timestamp. Convert it first, "
            f"for example with to_timestamp({column}) or timestamp_millis({column})."
        )
    return found


def check_key(what: str, sides: tuple[str, str], types: tuple[pa.DataType, pa.DataType]) -> None:
    """Refuse a key of two types, or of one that cannot be a key."""
    (one, other), (first, second) = sides, types
    if plain(first) != plain(second):
        raise SchemaError(
            f"{what} is {shown(first)} in {one} and {shown(second)} in {other}, so equal keys would be a matter of "
            "conversion. Cast one of them to the type of the other."
        )
    if not _has_order(first):
        raise SchemaError(
            f"{what} holds {first}, which has no order and so cannot be a key here. Take a field of it, or its text."
        )


def check_times(what: tuple[str, str], sides: tuple[str, str], types: tuple[pa.DataType, pa.DataType]) -> None:
    """Refuse times of which one has a zone and the other has none."""
    if plain(types[0]) != plain(types[1]):
        one, other = (f"{w} is {shown(type_)} in {side}" for w, side, type_ in zip(what, sides, types, strict=True))
        raise SchemaError(
            f"{one} and {other}: a time in a zone and one without cannot be compared. Cast the one without: "
            "F.col('ts').cast('timestamp') in Spark, which reads it in the time zone of the session, or "
            "pyarrow.compute.assume_timezone(table['ts'], 'UTC')."
        )


def plain(type_: pa.DataType) -> str:
    """A type without what does not matter to equality: the zone in which times are shown, and what is never null."""
    if pa.types.is_timestamp(type_):
        return "timestamp" if type_.tz else "timestamp_ntz"
    if pa.types.is_struct(type_):
        return f"struct<{', '.join(f'{field.name}: {plain(field.type)}' for field in type_)}>"
    if pa.types.is_list(type_):
        return f"list<{plain(type_.value_type)}>"
    return str(type_)


def shown(type_: pa.DataType) -> str:
    """A type as messages say it."""
    return plain(type_).upper() if pa.types.is_timestamp(type_) else str(type_)


def _has_order(type_: pa.DataType) -> bool:
    if pa.types.is_struct(type_):
        return all(_has_order(field.type) for field in type_)
    if pa.types.is_list(type_):
        return _has_order(type_.value_type)
    return not (pa.types.is_map(type_) or pa.types.is_interval(type_))
