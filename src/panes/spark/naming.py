"""Names and SQL that every strategy writes the same way."""

from __future__ import annotations

from pyspark.sql import types as t

from panes.timeline import Edges

VIEW, START, END = "__panes_view", "__panes_start", "__panes_end"
"""What columnar answers begin with: the number of the view, and the bounds of the instance."""


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
