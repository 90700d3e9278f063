"""Random event tables with the cases that are hard for windows.

Nulls, NaN and infinities, several events at one instant, events exactly on the edges of windows, long gaps, times
before the epoch, rows out of order, and keys of any type, null among them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from panes.errors import DeclarationError
from panes.timeline import SECOND, DurationLike, parse_duration

_EPOCH: Final = date(1970, 1, 1)
_WORDS: Final = ("", "a", "A", "ab", "b", "z", "ä", "€", "𝒳", " ", "it's", "null")
_FLOATS: Final = (float("nan"), float("inf"), float("-inf"), -0.0, 0.0)


def events(
    rows: int,
    *,
    keys: Mapping[str, pa.DataType] | None = None,
    values: Mapping[str, pa.DataType] | None = None,
    at: str = "ts",
    time: pa.DataType | None = None,
    start: int = 0,
    step: DurationLike = "1s",
    distinct: int = 4,
    nulls: float = 0.1,
    special: float = 0.0,
    null_times: float = 0.0,
    seed: int = 0,
) -> pa.Table:
    """Draw events.

    Parameters
    ----------
    rows
        How many.
    keys
        Key columns with their types; ``distinct`` values each. By default ``key``, a string.
    values
        Value columns with their types. By default ``value``, a double.
    at, time
        The column of event time and its type, by default a timestamp in UTC.
    start
        The middle of the events' time span, in µs since the epoch.
    step
        The mean time between events. Some times are multiples of it, so they are on edges of windows; some events
        share an instant, and some follow a gap.
    nulls, null_times
        The share of nulls in every key and value column, and among the times.
    special
        The share of NaN and infinities among floats.
    seed
        The same seed gives the same events.

    Examples
    --------
    >>> table = events(100, keys={"device": pa.int32()}, seed=1)
    >>> table.column_names, table.num_rows, table["ts"].null_count
    (['ts', 'device', 'value'], 100, 0)
    """
    rng = random.Random(seed)
    keys = {"key": pa.string()} if keys is None else keys
    values = {"value": pa.float64()} if values is None else values
    instants: list[int | None] = list(_instants(rng, rows, start, parse_duration(step)))
    columns = {
        at: pa.array(
            [None if rng.random() < null_times else t for t in instants],
            pa.int64(),
        ).cast(time or pa.timestamp("us", "UTC"))
    }
    for name, type_ in keys.items():
        pool = [draw(rng, type_, special=0.5) for _ in range(distinct)]
        columns[name] = pa.array([None if rng.random() < nulls else rng.choice(pool) for _ in range(rows)], type_)
    for name, type_ in values.items():
        column = [None if rng.random() < nulls else draw(rng, type_, special=special) for _ in range(rows)]
        columns[name] = pa.array(column, type_)
    return pa.table(columns)


def draw(rng: random.Random, type_: pa.DataType, *, special: float = 0.0) -> Any:
    """One value of a type; small ones are frequent, so that equal values occur."""
    if pa.types.is_struct(type_):
        return {field.name: _maybe(rng, field.type, special) for field in type_}
    if pa.types.is_list(type_):
        return [_maybe(rng, type_.value_type, special) for _ in range(rng.randrange(3))]
    if pa.types.is_boolean(type_):
        return rng.random() < 0.5
    if pa.types.is_integer(type_):
        largest = min(100, 2 ** (type_.bit_width - 1) - 1)
        return rng.randint(-largest, largest)
    if pa.types.is_floating(type_):
        # Multiples of 1/8 below 1000: sums of them are exact, so that only special values need care.
        return rng.choice(_FLOATS) if rng.random() < special else rng.randint(-8000, 8000) / 8
    if pa.types.is_decimal(type_):
        return Decimal(rng.randint(-99, 99)).scaleb(-min(type_.scale, 2)).quantize(Decimal(1).scaleb(-type_.scale))
    if pa.types.is_string(type_):
        return rng.choice(_WORDS)
    if pa.types.is_binary(type_):
        return rng.choice((b"", b"\x00", b"\x00\x00", b"a", b"\xff", b"\x7f\x80"))
    if pa.types.is_date(type_):
        return _EPOCH + timedelta(days=rng.randint(-40, 40))
    if pa.types.is_timestamp(type_):
        return rng.randint(-40, 40) * SECOND + rng.choice((0, 0, 1, -1))
    raise DeclarationError(f"there are no random values of type {type_}. Add the column to the table yourself.")


def _maybe(rng: random.Random, type_: pa.DataType, special: float) -> Any:
    return None if rng.random() < 0.2 else draw(rng, type_, special=special)


def _instants(rng: random.Random, rows: int, start: int, step: int) -> list[int]:
    found: list[int] = []
    now = start - rows * step // 2
    for _ in range(rows):
        chance = rng.random()
        if chance < 0.2 and found:
            pass  # the instant of the event before
        elif chance < 0.3:
            now += rng.randint(1, 20) * step
        elif chance < 0.5:
            now += -now % step or step
        else:
            now += rng.randint(0, 2 * step)
        found.append(now)
    rng.shuffle(found)
    return found
