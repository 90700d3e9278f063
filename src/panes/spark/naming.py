"""Names and SQL that every strategy writes the same way, and what depends on the time zone of the session."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql import types as t

from panes.expressions.expression import Expression
from panes.timeline import Edges

VIEW = "__panes_view"
"""What columnar answers begin with: the number of the view; then come the bounds of the instance."""


def quoted(column: str) -> str:
    """A column name as SQL takes it, whatever characters it has."""
    return "`" + column.replace("`", "``") + "`"


def key(number: int) -> str:
    """What the number-th key is called between the steps of a job, where user's names could collide."""
    return f"__panes_key{number}"


def stored(number: int) -> str:
    """What the number-th component is called between the steps of a job."""
    return f"__panes_component{number}"


def micros(column: str, type_: t.DataType) -> str:
    """SQL for an event time as µs since the epoch; local time counts as if it were UTC, as in Spark's windows."""
    if isinstance(type_, t.TimestampNTZType):
        # By its fields: a conversion to TIMESTAMP goes through the time zone of the session, which may skip hours.
        return (
            f"(date_diff(CAST({column} AS DATE), DATE'1970-01-01') * 86400000000L + hour({column}) * 3600000000L + "
            f"minute({column}) * 60000000L + CAST(extract(SECOND FROM {column}) * 1000000 AS BIGINT))"
        )
    return f"unix_micros({column})"


def instant(micros_sql: str, type_: t.DataType) -> str:
    """SQL for µs since the epoch as an event time of some type; what ``micros`` undoes."""
    if isinstance(type_, t.TimestampNTZType):
        return f"TIMESTAMP_NTZ'1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, ({micros_sql}) / 1000000BD)"
    return f"timestamp_micros({micros_sql})"


def text(value: str) -> str:
    """A string as SQL takes it."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def floor_to_edges(edges: tuple[Edges, ...], instant: str) -> str:
    """SQL for the last edge at or before an instant in µs."""
    floors = [f"({instant} - pmod({instant} - {e.offset}L, {e.period}L))" for e in edges]
    return floors[0] if len(floors) == 1 else f"greatest({', '.join(floors)})"


_TIME, _DAY = (re.compile(rf"\bAS {kind}\b|\b{kind} *'", re.IGNORECASE) for kind in ("TIMESTAMP", "DATE"))
_UTC = frozenset(("utc", "etc/utc", "gmt", "etc/gmt", "z", "+00:00", "+0", "+00"))


def is_utc(zone: str) -> bool:
    """Whether a session's time zone is UTC by one of its names.

    Examples
    --------
    >>> is_utc("Etc/UTC"), is_utc("Europe/Rome")
    (True, False)
    """
    return zone.lower() in _UTC


def tells_time(type_: pa.DataType) -> bool:
    """Whether values of a type are times or days, or hold some."""
    return any(pa.types.is_temporal(part) for part in _parts(type_))


def depends_on_zone(value: Expression, types: Mapping[str, pa.DataType]) -> bool:
    """Whether an expression may read a time in the session's zone: a literal, or a date beside a timestamp.

    Spark evaluates such an expression in the time zone of the session, and Python in UTC.

    Parameters
    ----------
    types
        The types of columns by their lower-cased names.

    Examples
    --------
    >>> from panes.expressions.expression import expression
    >>> types = {"ts": pa.timestamp("us", "UTC"), "n": pa.int64()}
    >>> later, many = expression("ts > TIMESTAMP '2026-01-01 00:00:00'"), expression("n > 1")
    >>> depends_on_zone(later, types), depends_on_zone(many, types)
    (True, False)
    """
    roots = [types[root.lower()] for root in value.roots if root.lower() in types]
    kinds = {_kind(part) for type_ in roots for part in _parts(type_) if pa.types.is_temporal(part)}
    kinds |= {_kind(pa.date32())} if _DAY.search(value.sql) else set()
    return len(kinds) > 1 or _TIME.search(value.sql) is not None


def _kind(type_: pa.DataType) -> str:
    return f"{pa.types.is_timestamp(type_) and type_.tz is not None}, {type_.id}"


def _parts(type_: pa.DataType) -> Iterator[pa.DataType]:
    """A type and all types within it."""
    yield type_
    for i in range(type_.num_fields):
        yield from _parts(type_.field(i).type)
