"""What depends on the time zone of the session: Spark reads times in it, and Python in UTC."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pyarrow as pa

from panes.declare.expressions import Expression

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
    """Whether an expression may read a time in the session's zone: one that is written out, or a day beside a time.

    Parameters
    ----------
    types
        The types of columns by their lower-cased names.

    Examples
    --------
    >>> from panes.declare.expressions import expression
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
