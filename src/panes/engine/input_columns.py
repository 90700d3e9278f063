"""The columns of lookups and joins: positions, names, and whether both sides fit; checked before any job."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from panes.engine.schema import check_key, check_times, field_of, position, time_position
from panes.errors import SchemaError
from panes.queries.join_declarations import JoinDeclaration
from panes.queries.lookup_declarations import LookupDeclaration, LookupPart

_SIDES = ("the events", "the requests")


@dataclass(frozen=True)
class RequestColumns:
    """The positions of the keys and of the time among the columns of the requests."""

    keys: tuple[int, ...]
    at: int


def request_columns(part: LookupPart, events: pa.Schema, requests: pa.Schema) -> RequestColumns:
    """Find the columns of a lookup in the requests; what is missing or of another type is an error.

    Parameters
    ----------
    events
        The schema of the events, which was checked before.
    """
    keys = tuple(position(f"by={key!r}", key, _SIDES[1], requests) for key in part.by)
    at = time_position(f"at={part.requested_at!r}", part.requested_at, _SIDES[1], requests)
    for key, place in zip(part.by, keys, strict=True):
        check_key(f"by={key!r}", _SIDES, (field_of(events, key).type, requests.field(place).type))
    times = field_of(events, part.at).type, requests.field(at).type
    check_times((f"at={part.at!r}", f"at={part.requested_at!r}"), _SIDES, times)
    return RequestColumns(keys, at)


def check_added(lookup: LookupDeclaration, requests: pa.Schema) -> None:
    """Refuse requests with two columns of one name, or one that the lookup adds."""
    _check_twins(requests)
    taken = {name.lower() for name in requests.names}
    for name in lookup.added:
        if name.lower() in taken:
            raise SchemaError(
                f"the requests have a column {name!r}, which is also what the lookup would add. Rename it, or the "
                "output column or window of the query."
            )


def _check_twins(requests: pa.Schema) -> None:
    lowered = [name.lower() for name in requests.names]
    twins = next((name for name in requests.names if lowered.count(name.lower()) > 1), None)
    if twins is not None:
        raise SchemaError(
            f"two columns of the requests are called {twins!r} (upper and lower case count as equal), and no answer "
            "could name one of them. Drop or rename one."
        )


@dataclass(frozen=True)
class SideColumns:
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

    left: SideColumns
    right: SideColumns
    match: pa.Schema
    instant: pa.DataType

    @property
    def result(self) -> pa.Schema:
        """The columns of a row per match and window."""
        return pa.schema([("window_name", pa.string()), *self.match, ("expires", self.instant)])


def join_columns(join: JoinDeclaration, left: pa.Schema, right: pa.Schema) -> JoinColumns:
    """Find the columns of a join in both schemas; what is missing, of the wrong type or called alike is an error."""
    names = ("the left side", "the right side")
    sides = tuple(zip(names, (left, right), join.at, strict=True))
    keys = [tuple(position(f"on={key!r}", key, name, schema) for key in join.on) for name, schema, _ in sides]
    times = [time_position(f"at={at!r}", at, name, schema) for name, schema, at in sides]
    for key, i, j in zip(join.on, *keys, strict=True):
        check_key(f"on={key!r}", names, (left.field(i).type, right.field(j).type))
    instants = left.field(times[0]).type, right.field(times[1]).type
    check_times((f"at={join.at[0]!r}", f"at={join.at[1]!r}"), names, instants)
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
    return JoinColumns(
        SideColumns(keys[0], times[0], named[0]), SideColumns(keys[1], times[1], named[1]), match, instants[0]
    )


def _check_names(join: JoinDeclaration, names: Iterable[str]) -> None:
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
