"""The columns of a join: where each comes from, what it is called, and whether both sides fit; before any job."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from panes.declare.joins import Join
from panes.errors import SchemaError, nearest


@dataclass(frozen=True)
class Side:
    """The columns of one side by their positions.

    Parameters
    ----------
    keys, at
        Where the keys are, and the event time.
    others
        What is not a key: where it is, and what it is called in the result.
    """

    keys: tuple[int, ...]
    at: int
    others: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class JoinColumns:
    """The columns of both sides, and the schema of a match: keys, left columns, right columns."""

    left: Side
    right: Side
    match: pa.Schema
    instant: pa.DataType


def join_columns(join: Join, left: pa.Schema, right: pa.Schema) -> JoinColumns:
    """Find the columns of a join in both schemas; what is missing, of the wrong type or called alike is an error."""
    sides = (("left", left, join.at[0]), ("right", right, join.at[1]))
    keys = [tuple(_position(f"on={key!r}", key, name, schema) for key in join.on) for name, schema, _ in sides]
    times = [_time(f"at={at!r}", at, name, schema) for name, schema, at in sides]
    for key, i, j in zip(join.on, *keys, strict=True):
        _check_key(key, left.field(i).type, right.field(j).type)
    instant, other = left.field(times[0]).type, right.field(times[1]).type
    if _plain(instant) != _plain(other):
        raise SchemaError(
            f"at={join.at[0]!r} is {_shown(instant)} on the left side and at={join.at[1]!r} is {_shown(other)} on the "
            "right: a time in a zone and one without cannot be compared. Cast one of them."
        )
    rest = [[i for i in range(len(s)) if i not in own] for (_, s, _), own in zip(sides, keys, strict=True)]
    shared = {left.names[i].lower() for i in rest[0]} & {right.names[i].lower() for i in rest[1]}
    named = [
        tuple((i, f"{s.names[i]}{suffix}" if s.names[i].lower() in shared else s.names[i]) for i in positions)
        for (_, s, _), positions, suffix in zip(sides, rest, join.suffixes, strict=True)
    ]
    _check_names(join, [name for side in named for _, name in side])
    match = pa.schema(
        [
            *(pa.field(key, left.field(i).type) for key, i in zip(join.on, keys[0], strict=True)),
            *(pa.field(name, left.field(i).type) for i, name in named[0]),
            *(pa.field(name, right.field(i).type) for i, name in named[1]),
        ]
    )
    return JoinColumns(Side(keys[0], times[0], named[0]), Side(keys[1], times[1], named[1]), match, instant)


def _position(what: str, column: str, side: str, schema: pa.Schema) -> int:
    found = [i for i, name in enumerate(schema.names) if name.lower() == column.lower()]
    if not found:
        raise SchemaError(f"{what} is not a column of the {side} side ({nearest(column, schema.names)})")
    if len(found) > 1:
        raise SchemaError(f"the {side} side has {len(found)} columns called {column!r}; drop or rename all but one.")
    return found[0]


def _time(what: str, column: str, side: str, schema: pa.Schema) -> int:
    position = _position(what, column, side, schema)
    type_ = schema.field(position).type
    if not pa.types.is_timestamp(type_):
        raise SchemaError(
            f"{what} is of type {type_} on the {side} side, but event time has to be a timestamp. Convert it first, "
            f"for example with to_timestamp({column}) or timestamp_millis({column})."
        )
    return position


def _check_key(key: str, left: pa.DataType, right: pa.DataType) -> None:
    if _plain(left) != _plain(right):
        raise SchemaError(
            f"on={key!r} is {_shown(left)} on the left side and {_shown(right)} on the right, so equal keys would be a "
            "matter of conversion. Cast one of them to the type of the other."
        )
    if not _has_order(left):
        raise SchemaError(
            f"on={key!r} holds {left}, which has no order and so cannot be a key here. Join on a field of it, or on "
            "its text."
        )


def _has_order(type_: pa.DataType) -> bool:
    if pa.types.is_struct(type_):
        return all(_has_order(field.type) for field in type_)
    if pa.types.is_list(type_):
        return _has_order(type_.value_type)
    return not (pa.types.is_map(type_) or pa.types.is_interval(type_))


def _plain(type_: pa.DataType) -> str:
    """A type without what does not matter to equality: the zone in which times are shown, and what is never null."""
    if pa.types.is_timestamp(type_):
        return "timestamp" if type_.tz else "timestamp_ntz"
    if pa.types.is_struct(type_):
        return f"struct<{', '.join(f'{field.name}: {_plain(field.type)}' for field in type_)}>"
    if pa.types.is_list(type_):
        return f"list<{_plain(type_.value_type)}>"
    return str(type_)


def _shown(type_: pa.DataType) -> str:
    return _plain(type_).upper() if pa.types.is_timestamp(type_) else str(type_)


def _check_names(join: Join, names: Iterable[str]) -> None:
    """Refuse two output columns of one name."""
    seen = {key.lower() for key in join.on}
    labels = set(join.labels)
    for name in (*join.on, *names):
        if name.lower() in labels:
            raise SchemaError(
                f"the column {name!r} would hide one that every result of a join has ({', '.join(join.labels)}). "
                "Rename it."
            )
    for name in names:
        if name.lower() in seen:
            raise SchemaError(
                f"the result would have two columns called {name!r} (upper and lower case count as equal). Rename one, "
                "or give other suffixes=, as ('_left', '_right')."
            )
        seen.add(name.lower())
