"""Which window each request means: a span of time, or rows counted from the last one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from panes.algebra.operations import Array
from panes.engine.schema import field_of
from panes.engine.sides import check_times
from panes.errors import DeclarationError, DurationError, PlanError, SchemaError, nearest
from panes.frames.positions import check_near
from panes.live.store import Store
from panes.timeline import DurationLike, format_duration, format_instant, parse_duration

FROM: Final = "from"
TO: Final = "to"


@dataclass(frozen=True)
class Asked:
    """What a lookup asks of every request. Made by :func:`asked`, which checks it."""

    at: str | None = None
    over: int | None = None
    ago: int = 0
    last: int | None = None
    skip: int = 0


@dataclass(frozen=True)
class Windows:
    """The rows of each request, and the bounds that aggregates are told.

    Parameters
    ----------
    key
        The number of each request's key; any where there is none, and then no rows.
    lo, hi
        Ordinals, half-open.
    start, end
        In µs.
    """

    key: Array
    lo: Array
    hi: Array
    start: Array
    end: Array


def asked(at: str | None, over: DurationLike | None, ago: DurationLike | None, last: int | None, skip: int) -> Asked:
    """What the arguments of a lookup mean.

    Examples
    --------
    >>> asked("ts", "15 min", None, None, 0)
    Asked(at='ts', over=900000000, ago=0, last=None, skip=0)
    >>> asked(None, "15 min", None, 100, 0)
    Traceback (most recent call last):
    ...
    panes.errors.DeclarationError: over= is a window of time and last= one of rows. Give one of them, or neither ...
    """
    if over is not None and last is not None:
        raise DeclarationError(
            "over= is a window of time and last= one of rows. Give one of them, or neither where the requests have "
            "columns 'from' and 'to'."
        )
    if last is not None:
        for name, value, least in (("last", last, 1), ("skip", skip, 0)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise DeclarationError(f"{name}={value!r}: write a whole number of rows from {least} on.")
        if at is not None or ago is not None:
            raise DeclarationError("at= and ago= belong to windows of time. With last=, write skip= for older rows.")
        return Asked(last=last, skip=skip)
    if skip:
        raise DeclarationError("skip= counts rows, and belongs to last=. With over=, write ago='5 min'.")
    if over is None:
        if at is not None or ago is not None:
            raise DeclarationError("at= and ago= say where a window over= lies. Give over='15 min' as well.")
        return Asked()
    micros, shift = parse_duration(over), 0 if ago is None else parse_duration(ago)
    if micros <= 0 or shift < 0:
        raise DurationError(
            f"over={over!r}, ago={ago!r}: a window is longer than nothing, and does not end in the future. Write for "
            "example over='15 min', ago='1 hour'."
        )
    return Asked(at=at, over=micros, ago=shift)


def windows_of(asked_: Asked, store: Store, requests: pa.Table, key: Array, time: pa.Field) -> Windows:
    """The rows of every request; those that are not held any more are an error.

    Parameters
    ----------
    key
        The number of each request's key, -1 where it is unknown.
    time
        The column of event time.
    """
    known = key >= 0
    key = np.where(known, key, 0)
    if asked_.last is not None:
        return _of_rows(asked_.last, asked_.skip, store, key, known)
    begin, end, shift, given = _span(asked_, store, requests, time)
    known = known & given & (begin < end)
    lo, hi = np.zeros(len(key), np.int64), np.zeros(len(key), np.int64)
    some = np.flatnonzero(known)
    _check_horizon(store, key[some], begin[some])
    lo[some], hi[some] = store.between(key[some], begin[some], end[some])
    return Windows(key, lo, hi, begin - shift, end - shift)


def _span(asked_: Asked, store: Store, requests: pa.Table, time: pa.Field) -> tuple[Array, Array, int, Array]:
    """Instants ``[begin, end)``, how far before them the bounds lie that are shown, and where there are any."""
    if asked_.over is None:
        (begin, some), (end, others) = (_instants(requests, name, time) for name in (FROM, TO))
        given = some & others
        return np.where(given, begin, 0), np.where(given, end, 0), 0, given
    if asked_.at is None:
        now = np.full(requests.num_rows, 0 if store.newest is None else store.newest)
        given = np.full(requests.num_rows, store.newest is not None)
    else:
        now, given = _instants(requests, asked_.at, time)
    # A window (t - over, t] of whole µs.
    end = now - asked_.ago + 1
    return end - asked_.over, end, 1, given


def _instants(requests: pa.Table, name: str, time: pa.Field) -> tuple[Array, Array]:
    """A column of instants in µs, and which are not null."""
    if name.lower() not in (column.lower() for column in requests.column_names):
        raise SchemaError(
            f"the requests have no column {name!r} ({nearest(name, requests.column_names)}). Give windows by columns "
            f"{FROM!r} and {TO!r}, or by over= and at=, or by last=."
        )
    field = field_of(requests.schema, name)
    if not pa.types.is_timestamp(field.type):
        raise SchemaError(f"the column {field.name!r} of the requests is {field.type}, and has to be a timestamp.")
    columns = f"at={time.name!r}", f"the column {field.name!r}"
    check_times(columns, ("the events", "the requests"), (time.type, field.type))
    column = requests.column(field.name).combine_chunks()
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return check_near(column.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)), valid


def _check_horizon(store: Store, key: Array, begin: Array) -> None:
    """Refuse windows that begin before what is held, whatever they hold."""
    if not len(key):
        return
    if store.keep.micros is not None:
        earliest = int(begin.min())
        if earliest <= store.horizon:
            raise PlanError(
                f"a window begins at {format_instant(earliest)}, but the index keeps "
                f"{format_duration(store.keep.micros)} and has seen {format_instant(store.newest or 0)}: what is not "
                f"later than {format_instant(store.horizon)} is gone. Ask for less, or make an index with a "
                "longer keep=."
            )
    elif (gone := begin <= store.forgotten[key]).any():
        raise PlanError(
            f"{int(gone.sum())} of {len(gone)} windows begin before the last {store.keep.rows:,} rows of their key, "
            "which are all that the index keeps. Ask for less, or make an index with a larger keep=."
        )


def _of_rows(last: int, skip: int, store: Store, key: Array, known: Array) -> Windows:
    if store.keep.rows is None:
        raise PlanError(
            "last= counts rows of a key, and this index keeps a span of time, so that it does not know how many "
            "rows it has let go. Make one with keep=1000, or give over=."
        )
    if last + skip > store.keep.rows:
        raise PlanError(
            f"last={last}, skip={skip} reaches back {last + skip:,} rows, and the index keeps {store.keep.rows:,} of "
            "each key. Ask for fewer, or make an index with a larger keep=."
        )
    some = np.flatnonzero(known)
    lo, hi, start, end = (np.zeros(len(key), np.int64) for _ in range(4))
    held = store.rings.end[key[some]]
    hi[some] = np.maximum(held - skip, store.rings.first[key[some]])
    lo[some] = np.maximum(held - skip - last, store.rings.first[key[some]])
    holding = np.flatnonzero(lo < hi)
    start[holding] = store.instants.at(key[holding], lo[holding])[0]
    end[holding] = store.instants.at(key[holding], hi[holding] - 1)[0]
    return Windows(key, lo, hi, start, end)
