"""The requests of a lookup: whose windows they want, when these end, and which quantiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from panes.aggregates.aggregate import Aggregate, is_number
from panes.aggregates.component import numbers
from panes.aggregates.operations import Array
from panes.engine.columns import NEVER, instants_of, whole
from panes.engine.schema import check_key, check_times, field_of, position, time_position
from panes.errors import DeclarationError, SchemaError
from panes.live.part import Part
from panes.suggestions import nearest

Quantiles: TypeAlias = float | str | Mapping[str, float | str]
"""The quantiles of a lookup: a number, a column of the requests, or one of these for each output column."""

_SIDES = ("the events", "the requests")


@dataclass(frozen=True, eq=False)
class Requests:
    """Requests sorted by key and time.

    Parameters
    ----------
    key, instant, keys
        The number of each one's key, -1 where it is unknown, its time, and the columns of its key.
    order, back
        Where each one stands among the requests as given, and where each of those stands here.
    """

    key: Array
    instant: Array
    keys: list[pa.Array]
    order: Array
    back: pa.Array

    @classmethod
    def of(cls, part: Part, table: pa.Table, at: str | None, newest: int, *, timed: bool = True) -> Requests:
        """Read the requests in a table.

        Parameters
        ----------
        at
            The column of their time; by default it has the name of the events' time.
        newest
            The time of requests without a column of time.
        timed
            Whether they have a time at all.
        """
        declared, events, schema = part.declared, part.schema, table.schema
        assert events is not None
        places = [position(f"by={key!r}", key, _SIDES[1], schema) for key in declared.by]
        for key, place in zip(declared.by, places, strict=True):
            check_key(f"by={key!r}", _SIDES, (field_of(events, key).type, schema.field(place).type))
        name = declared.at if at is None else at
        if not timed or (at is None and name.lower() not in map(str.lower, schema.names)):
            instant = np.full(len(table), newest)
        else:
            instant = _times(part, f"at={name!r}", name, table)
        keys = [whole(table.column(place)) for place in places]
        number = part.find(keys, len(table))
        order = np.lexsort((instant, number))
        rows = pa.array(order)
        return cls(number[order], instant[order], [key.take(rows) for key in keys], order, pa.array(np.argsort(order)))


@dataclass(frozen=True, eq=False)
class Span:
    """A window ``[begin, end)`` of its own for each request."""

    begin: Array
    end: Array
    name: str = "request"


def spans_of(part: Part, over: Sequence[str], table: pa.Table, requests: Requests) -> tuple[Requests, Span]:
    """The window of each request between two of its columns; requests without one of its ends have no time."""
    names = {name.lower() for name in table.column_names}
    if (
        len(over) != 2
        or not all(isinstance(name, str) for name in over)
        or any(name[:1].isdigit() and name.lower() not in names for name in over)
    ):
        raise DeclarationError(
            f"over={over!r} is neither one window nor the names of two columns of the requests, as ('from', 'to'). "
            "Call lookup once for each of several windows, or declare them in the query."
        )
    edges = [_times(part, f"the column {name!r}", name, table)[requests.order] for name in over]
    missing = (edges[0] == NEVER) | (edges[1] == NEVER)
    begin, end = (np.where(missing, NEVER, edge) for edge in edges)
    return replace(requests, instant=np.where(missing, NEVER, 0)), Span(begin, end)


def _times(part: Part, what: str, name: str, table: pa.Table) -> Array:
    """A column of instants of the requests."""
    assert part.schema is not None
    where = what if what.startswith("at=") else f"over={name!r}"
    place = time_position(where, name, _SIDES[1], table.schema)
    types = field_of(part.schema, part.declared.at).type, table.schema.field(place).type
    check_times((f"at={part.declared.at!r}", what), _SIDES, types)
    return instants_of(whole(table.column(place)))


def quantiles_of(aggregates: Sequence[tuple[str, Aggregate]], q: Quantiles | None, table: pa.Table) -> dict[str, Array]:
    """The quantile that each request wants, of the output columns where it is not the declared one.

    Parameters
    ----------
    aggregates
        Those of the query.
    q
        A number, a column of the requests, or one of these for each output column.
    """
    if q is None:
        return {}
    known = [alias for alias, aggregate in aggregates if aggregate.by_rank]
    given: Mapping[str, Any] = q if isinstance(q, Mapping) else dict.fromkeys(known, q)
    if not given or set(given) - set(known):
        raise DeclarationError(
            f"q={q!r} is about quantiles, and the query has {', '.join(map(repr, known)) or 'none'}. Select "
            "pn.quantile('price', 0.5) to have one."
        )
    return {alias: _quantile(value, table) for alias, value in given.items()}


def _quantile(value: float | str, table: pa.Table) -> Array:
    if isinstance(value, str):
        if value.lower() not in map(str.lower, table.column_names):
            raise SchemaError(f"the requests have no column {value!r} ({nearest(value, table.column_names)}).")
        field = field_of(table.schema, value)
        if not is_number(field.type):
            raise SchemaError(f"q={value!r} is of type {field.type} in the requests, and must be a number.")
        part = numbers(whole(table.column(field.name)).cast(pa.float64()), np.nan)
    else:
        part = np.full(table.num_rows, value, np.float64)
    if not ((part >= 0) & (part <= 1)).all():
        raise DeclarationError(f"q={value!r}: a quantile is a number from 0 to 1, as 0.5 for the median.")
    return part
