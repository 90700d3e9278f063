"""Sorted events and requests cut into chunks that can be answered by themselves.

A chunk holds whole keys, or a stretch of one key's time preceded by the earlier events that its windows still reach.
So memory is bounded by what the widest window of one key holds, and not by the key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from panes.aggregates.operations import Array
from panes.planning.explanation import counted
from panes.queries.lookup_declarations import LookupPart
from panes.spark.binding import Input
from panes.spark.chunks import key_starts
from panes.spark.naming import quoted
from panes.spark.versions import whole_numbers
from panes.timeline import format_duration

SLICE = "__panes_slice"

_SAMPLE = 4_000
_LEAST = 0.05
"""A key with a smaller share of the events does not delay a job much."""

_WIDTH = 2
"""The length of a slice, in widths of the widest window: one event in two is copied."""


@dataclass(frozen=True)
class Slices:
    """How to cut the time of keys with very many events, so that several tasks share one key.

    Windows look back a known time, so a slice needs its own events and a copy of the last ones of the slice before.
    Other keys stay whole.

    Parameters
    ----------
    reach
        How far back windows look, in µs.
    heavy
        The hashes of the keys to cut; None for all.
    """

    reach: int
    heavy: tuple[int, ...] | None

    def __str__(self) -> str:
        cut = "" if self.heavy is None else f", of {counted(len(self.heavy), 'frequent key')}"
        return f"slices of {format_duration(_WIDTH * self.reach)}{cut}"

    def of_events(self, rows: DataFrame, keys: Sequence[str], instant: str) -> DataFrame:
        """Events in their slices, and copied into the next one where that one's windows reach them."""
        width = _WIDTH * self.reach
        own = f"({instant} - pmod({instant}, {width}L))"
        copied = f"IF(pmod({instant}, {width}L) >= {width - self.reach}L, array({own}, {own} + {width}L), array({own}))"
        return self._placed(rows, keys, f"explode({self._or_whole(keys, copied, 'array(0L)')})")

    def of_requests(self, rows: DataFrame, keys: Sequence[str], instant: str) -> DataFrame:
        """Each request in its slice."""
        width = _WIDTH * self.reach
        own = f"coalesce({instant} - pmod({instant}, {width}L), 0L)"
        return self._placed(rows, keys, self._or_whole(keys, own, "0L"))

    def _or_whole(self, keys: Sequence[str], cut: str, whole: str) -> str:
        if self.heavy is None:
            return cut
        return f"IF({_hash(keys)} IN ({', '.join(f'{number}L' for number in self.heavy)}), {cut}, {whole})"

    def _placed(self, rows: DataFrame, keys: Sequence[str], sql: str) -> DataFrame:
        names = [quoted(name) for name in rows.columns]
        return rows.selectExpr(*names[: len(keys)], f"{sql} AS {SLICE}", *names[len(keys) :])


def slices_for(part: LookupPart, source: Input) -> Slices | None:
    """How to cut the time of frequent keys, judged by the first events; None to leave all keys whole.

    Windows of rows may reach back any time, so their keys are never cut. Without keys, all events have the same one.
    """
    if part.rows or not part.reach:
        return None
    if not part.by:
        return Slices(part.reach, None)
    hashes = whole_numbers(source.events.selectExpr(f"{_hash(part.by)} AS hash").limit(_SAMPLE))
    partitions = int(source.events.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
    share = max(1 / partitions, _LEAST) * len(hashes)
    heavy = tuple(number for number, count in Counter(hashes.to_pylist()).items() if count > share)
    return Slices(part.reach, heavy) if heavy else None


def _hash(keys: Sequence[str]) -> str:
    return f"xxhash64({', '.join(map(quoted, keys))})"


@dataclass(frozen=True)
class LookupChunk:
    """Events and requests of the same keys, which can be answered by themselves.

    Parameters
    ----------
    events, key_starts
        Sorted by key and time; the first event of each key, and the number of events.
    requests, ordinals
        The requests, and which key each one has.
    """

    events: pa.RecordBatch
    key_starts: Array
    requests: pa.RecordBatch
    ordinals: Array


def lookup_chunks(
    batches: Iterable[pa.RecordBatch], keys: int, size: int, *, reach: int, rows: int
) -> Iterator[LookupChunk]:
    """Cut sorted rows into chunks of about ``size`` rows.

    Parameters
    ----------
    batches
        Sorted by their first ``keys`` columns and the next one, the instant (null for a request without a time); the
        one after that says whether a row is a request.
    reach, rows
        How far windows look back from a request, in µs and in events.
    """
    held: list[pa.RecordBatch] = []
    count, enough = 0, size
    for batch in batches:
        held.append(batch)
        count += len(batch)
        if count < enough:
            continue
        together = pa.concat_batches(held)
        starts = key_starts(together, keys)
        last = int(starts[-2])
        rest = [together.slice(last)]
        if last:
            yield _chunk(together.slice(0, last), starts[:-1], keys)
        else:
            # One key, and more of it may come: requests before the last instant have all their events.
            cut = _first_of_last_instant(together.column(keys))
            if cut:
                done = together.slice(0, cut)
                yield _chunk(done, np.array([0, cut]), keys)
                rest = [
                    *_still_reached(done, together.column(keys)[cut].as_py(), keys, reach, rows),
                    together.slice(cut),
                ]
        held, count = rest, sum(map(len, rest))
        # What a wide window reaches is not looked at again before as much has come.
        enough = max(size, 2 * count)
    if count:
        together = pa.concat_batches(held)
        yield _chunk(together, key_starts(together, keys), keys)


def _chunk(rows: pa.RecordBatch, starts: Array, keys: int) -> LookupChunk:
    asks = rows.column(keys + 1).to_numpy(zero_copy_only=False)
    before = np.concatenate([[0], np.cumsum(~asks)])
    ordinals = np.repeat(np.arange(len(starts) - 1), np.diff(starts))[asks]
    mask = pa.array(asks)
    return LookupChunk(rows.filter(pa.array(~asks)), before[starts], rows.filter(mask), ordinals)


def _first_of_last_instant(instants: pa.Array) -> int:
    """Where the rows of the last instant begin; nulls come first, and do not count."""
    values = instants.fill_null(-(2**63)).to_numpy(zero_copy_only=False)
    return int(np.searchsorted(values, values[-1]))


def _still_reached(done: pa.RecordBatch, now: int, keys: int, reach: int, rows: int) -> list[pa.RecordBatch]:
    """The events of a key that windows of later requests still reach."""
    events = done.filter(pa.array(~done.column(keys + 1).to_numpy(zero_copy_only=False)))
    instants = events.column(keys).to_numpy()
    first = int(np.searchsorted(instants, now - reach))
    if rows:
        # Events of one instant stay together: their values decide which of them are the last.
        counted = instants[max(len(instants) - rows, 0) :]
        first = min(first, int(np.searchsorted(instants, counted[0]))) if len(counted) else first
    return [events.slice(first)] if first < len(events) else []
