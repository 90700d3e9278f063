"""Events that come late, and what ``plan.run`` says of those that came in time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

import panes as pn
from panes.queries.windows import Window
from panes.testing import events
from panes.timeline import SECOND
from tests.spark.streams import START, VALUES, split

DELAY = 10 * SECOND
"""The delay of the watermark."""
PUNCTUAL = ("a", "z")
"""Keys whose events are never late."""


def late_events(rows: int, batches: int, seed: int) -> list[pa.Table]:
    """Micro-batches of events in the order in which they arrive; one in five comes later than its watermark allows."""
    rng = random.Random(seed)
    table = events(rows, keys={"k": pa.string()}, values=VALUES, start=START, distinct=1, null_times=0.02, seed=seed)
    keys = pa.array([rng.choice([*PUNCTUAL, "late", "b", None]) for _ in range(rows)])
    table = table.set_column(1, "k", keys).append_column("id", pa.array(range(rows), pa.int64()))
    arrival = [
        (START if instant is None else instant) + (3 if key in PUNCTUAL else _delay(rng)) * rng.random() * SECOND
        for instant, key in zip(table["ts"].cast(pa.int64()).to_pylist(), keys.to_pylist(), strict=True)
    ]
    table = table.take(sorted(range(rows), key=arrival.__getitem__))
    cuts = sorted(rng.sample(range(1, rows), batches - 1))
    return split(table, [after - before for before, after in pairwise([0, *cuts])])


def _delay(rng: random.Random) -> int:
    return rng.choice([0, 3, 3, 30, 90])


def last_events(batches: Sequence[pa.Table]) -> pa.Table:
    """A micro-batch an hour later, which completes all windows of those before."""
    batch = pa.concat_tables(batches).slice(0, 5)
    hour_later = max(filter(None, map(_latest, batches))) + 3600 * SECOND
    return batch.set_column(0, "ts", pa.array([hour_later] * len(batch), pa.int64()).cast(batch["ts"].type))


def _latest(batch: pa.Table) -> int | None:
    latest: int | None = pc.max(batch["ts"].cast(pa.int64())).as_py()
    return latest


def with_watermarks(batches: Sequence[pa.Table]) -> pa.Table:
    """All events with the watermark that decides whether they are late: that of the micro-batch before theirs."""
    passed, found, latest = [0, 0], [], 0
    for batch in batches:
        found.append(batch.append_column("passed", pa.array([passed[-2]] * len(batch), pa.int64())))
        # Spark's watermarks are whole milliseconds.
        latest = max(latest, _latest(batch) or 0)
        passed.append(max(0, latest // 1000 * 1000 - DELAY))
    return pa.concat_tables(found)


def answers_in_time(query: pn.Query, batches: Sequence[pa.Table]) -> pa.Table:
    """What ``plan.run`` answers over what came in time.

    For windows on the clock, an event counts in the instances that the watermark has not passed: a hopping window is so
    many tumbling ones, each over the events that were in time for it. Windows of rows drop what is late. Of sliding
    windows and sessions, only the keys without late events are compared.
    """
    table, found = with_watermarks(batches), []
    instant = table["ts"].cast(pa.int64())
    for window in query.over:
        if isinstance(window, Window):
            size, slide, first = window.geometry.range, window.geometry.slide, window.geometry.offset
            for offset in range(first, first + size, slide):
                start = pc.subtract(instant, _modulo(pc.subtract(instant, offset), size))
                mine = table.filter(pc.greater(pc.add(start, size), table["passed"]))
                part = pn.tumbling(f"{size}us", offset=f"{offset % size}us", name=window.name)
                found.append(_run(query, part, mine))
        else:
            found.append(_run(query, window, table.filter(pc.greater_equal(instant, table["passed"]))))
    return pa.concat_tables(found)


def _modulo(values: pa.ChunkedArray, by: int) -> pa.ChunkedArray:
    return pc.subtract(values, pc.multiply(pc.divide(values, by), by))


def _run(query: pn.Query, window: object, table: pa.Table) -> pa.Table:
    return pn.plan(replace(query, over=(window,))).run(table.drop_columns("passed"))
