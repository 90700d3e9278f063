"""Sorted events and requests cut into pieces that can be answered by themselves.

A piece is a number of whole keys, or a stretch of one key's time. In front of a stretch stand the earlier events that
its windows still reach, so that memory is bounded by what the widest window of one key holds, not by the key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from panes.aggregates.operations import Array
from panes.engine.keys import one_zero
from panes.planning.explanation import counted
from panes.queries.lookup_declarations import LookupPart
from panes.spark.binding import Input
from panes.spark.naming import quoted
from panes.timeline import format_duration

# Sorted Arrow batches cut into chunks of whole keys, so that memory is bounded by the largest key.


_COMPARED = 1 << 20
"""Rows that are compared at once: a key may have many more."""


def whole_keys(batches: Iterable[pa.RecordBatch], keys: int, rows: int) -> Iterator[tuple[pa.RecordBatch, Array]]:
    """Chunks of at least so many rows that never split a key, with the first row of each key and the length.

    Parameters
    ----------
    batches
        Sorted by their first ``keys`` columns.
    """
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        # Cut only when more rows come: the last key of all is not worth a chunk of its own.
        if size >= rows:
            together = _together(held)
            starts = key_starts(together, keys)
            last = int(starts[-2])
            # Wait for twice as much before looking again for the end of a key larger than a chunk.
            held, size = [together.slice(last)], together.num_rows - last
            rows = max(rows, 2 * size) if last == 0 else rows
            if last:
                yield together.slice(0, last), starts[:-1]
        held.append(batch)
        size += batch.num_rows
    if size:
        together = _together(held)
        held = []  # Else all rows would be there twice while they are answered.
        yield together, key_starts(together, keys)


def key_starts(batch: pa.RecordBatch, keys: int) -> Array:
    """The first row of each key in a sorted batch, and its length."""
    found = [np.zeros(1, np.int64)]
    for first in range(1, batch.num_rows, _COMPARED):
        rows = np.arange(first, min(first + _COMPARED, batch.num_rows))
        change = np.zeros(len(rows), dtype=bool)
        for column in batch.columns[:keys]:
            change |= differ(column.slice(first - 1, len(rows) + 1), rows - first + 1, rows - first)
        found.append(rows[change])
    return np.concatenate([*found, [batch.num_rows]]).astype(np.int64)


def keys_of(chunk: pa.RecordBatch, count: int, starts: Array) -> list[pa.Array]:
    """The key columns of a chunk, a row per key; both zeros are one key, which is shown as Spark's group-by does."""
    return [one_zero(column.take(pa.array(starts[:-1]))) for column in chunk.columns[:count]]


def arguments_of(chunk: pa.RecordBatch, keys: int, names: Sequence[str]) -> dict[str, pa.Array]:
    """The arguments of aggregates in a chunk of events."""
    return dict(zip(names, chunk.columns[keys + 1 :], strict=True))


def differ(array: pa.Array, left: Array, right: Array) -> Array:
    """Whether the values at two lists of rows are different keys: nulls and NaN equal themselves.

    Examples
    --------
    >>> values = pa.array([[1, 2], [1, 2], [1, 3], None, None])
    >>> differ(values, np.array([1, 2, 3, 4]), np.array([0, 1, 2, 3]))
    array([False,  True,  True, False])
    """
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    result: Array = valid[left] != valid[right]
    both = valid[left] & valid[right]
    if pa.types.is_null(array.type):
        return result
    if pa.types.is_struct(array.type):
        for child in array.flatten():
            result |= both & differ(child, left, right)
        return result
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        result |= both & _lists_differ(array, left, right)
        return result
    a, b = array.take(pa.array(left)), array.take(pa.array(right))
    unequal = pc.fill_null(pc.not_equal(a, b), False)
    if pa.types.is_floating(array.type):
        unequal = pc.and_(unequal, pc.invert(pc.and_(pc.is_nan(a).fill_null(False), pc.is_nan(b).fill_null(False))))
    result |= both & unequal.to_numpy(zero_copy_only=False)
    return result


def _lists_differ(array: pa.Array, left: Array, right: Array) -> Array:
    offsets = array.offsets.to_numpy()
    length = np.diff(offsets)
    result: Array = length[left] != length[right]
    same = np.flatnonzero(~result & (length[left] > 0))
    counts = length[left[same]]
    owner = np.repeat(same, counts)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    item_left = offsets[left[owner]] + within
    item_right = offsets[right[owner]] + within
    items = differ(array.values, item_left, item_right)
    result[owner[items]] = True
    return result


def _together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.concat_batches(batches)


# Keys with very many events, cut into slices of time so that several tasks share one.
#
# A window reaches back a known time, so a slice needs its own events and, of the slice before, those that are no
# further back than that: they are copied. Other keys stay whole.


SLICE = "__panes_slice"

_SAMPLE = 4_000
_LEAST = 0.05
"""A key with a smaller share of the events does not hold up the other tasks for long."""

_WIDTH = 2
"""How many times as long as the widest window a slice is: one event in so many is copied."""


@dataclass(frozen=True)
class Slices:
    """How to cut.

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
    """Whether to cut, judged by the first events; without keys, all events are of one.

    Windows that count events reach back any time, so that nothing can be cut.
    """
    if part.rows or not part.reach:
        return None
    if not part.by:
        return Slices(part.reach, None)
    hashes = source.events.selectExpr(f"{_hash(part.by)} AS hash").limit(_SAMPLE).toArrow().column(0)
    partitions = int(source.events.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
    share = max(1 / partitions, _LEAST) * len(hashes)
    heavy = tuple(number for number, count in Counter(hashes.to_pylist()).items() if count > share)
    return Slices(part.reach, heavy) if heavy else None


def _hash(keys: Sequence[str]) -> str:
    return f"xxhash64({', '.join(map(quoted, keys))})"


@dataclass(frozen=True)
class Piece:
    """Events and requests of the same keys.

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


def pieces(batches: Iterable[pa.RecordBatch], keys: int, size: int, *, reach: int, rows: int) -> Iterator[Piece]:
    """Pieces of about so many rows.

    Parameters
    ----------
    batches
        Sorted by their first ``keys`` columns and the next one, the instant (null for a request without a time); the
        one after that says whether a row is a request.
    reach, rows
        How many µs before a request, and how many events before it, windows ask for.
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
            yield _piece(together.slice(0, last), starts[:-1], keys)
        else:
            # One key, and more of it may come: requests before the last instant have all their events.
            cut = _first_of_last_instant(together.column(keys))
            if cut:
                done = together.slice(0, cut)
                yield _piece(done, np.array([0, cut]), keys)
                rest = [
                    *_still_reached(done, together.column(keys)[cut].as_py(), keys, reach, rows),
                    together.slice(cut),
                ]
        held, count = rest, sum(map(len, rest))
        # What a wide window reaches is not looked at again before as much has come.
        enough = max(size, 2 * count)
    if count:
        together = pa.concat_batches(held)
        yield _piece(together, key_starts(together, keys), keys)


def _piece(rows: pa.RecordBatch, starts: Array, keys: int) -> Piece:
    asks = rows.column(keys + 1).to_numpy(zero_copy_only=False)
    before = np.concatenate([[0], np.cumsum(~asks)])
    ordinals = np.repeat(np.arange(len(starts) - 1), np.diff(starts))[asks]
    mask = pa.array(asks)
    return Piece(rows.filter(pa.array(~asks)), before[starts], rows.filter(mask), ordinals)


def _first_of_last_instant(instants: pa.Array) -> int:
    """Where the rows of the last instant begin; nulls come first, and are no instant."""
    values = instants.fill_null(-(2**63)).to_numpy(zero_copy_only=False)
    return int(np.searchsorted(values, values[-1]))


def _still_reached(done: pa.RecordBatch, now: int, keys: int, reach: int, rows: int) -> list[pa.RecordBatch]:
    """The events of a key that windows of requests from now on ask for."""
    events = done.filter(pa.array(~done.column(keys + 1).to_numpy(zero_copy_only=False)))
    instants = events.column(keys).to_numpy()
    first = int(np.searchsorted(instants, now - reach))
    if rows:
        # Events of one instant stay together: their values decide which of them are the last.
        counted = instants[max(len(instants) - rows, 0) :]
        first = min(first, int(np.searchsorted(instants, counted[0]))) if len(counted) else first
    return [events.slice(first)] if first < len(events) else []
