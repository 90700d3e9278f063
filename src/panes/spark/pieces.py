"""Sorted events and requests cut into pieces that can be answered by themselves.

A piece is a number of whole keys, or a stretch of one key's time. In front of a stretch stand the earlier events that
its windows still reach, so that memory is bounded by what the widest window of one key holds, not by the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panes.algebra.operations import Array
from panes.spark.chunks import key_starts


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
