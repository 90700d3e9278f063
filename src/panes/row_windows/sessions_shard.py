"""Sessions of one part while rows come, from micro-batch to micro-batch: all gaps share the rows.

A session is open until the watermark has reached its end, a gap after its last row. A row may join it, or join two of
them, for as long as its own session would be open; then it is late, as with Spark's ``session_window``. With several
gaps a row may be late for a short one and in time for a long one. The state holds the rows of open sessions, and at
most as many of others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.engine.sorting import sort_rows
from panes.frames import Positions
from panes.frames.positions import ranges
from panes.frames.row_frame import Arrivals
from panes.frames.tumbling import tumbling_by_gap
from panes.operators.policies import Gap
from panes.row_windows.key_set import KeySet, PartRows
from panes.row_windows.windows_shard import answers_of, keys_of, keys_schema, waiting_rows, waiting_schema
from panes.state.blob_store import BlobStore
from panes.state.held_rows import INSTANT
from panes.state.job import ShardMetrics
from panes.state.key_dictionary import BatchLog, KeyDictionary

_KEY, _SEEN = "key", "seen"
_DONE = pa.schema([("gap", pa.int64()), (_KEY, pa.int64()), (INSTANT, pa.int64())])
_EARLIEST = -(2**62)
_FEW = 1024


class SessionShard:
    """The sessions of some keys, as the last micro-batch left them.

    Parameters
    ----------
    part, chosen
        Which part of the key set it is, and which of its windows these are.
    state
        What ``state`` was.
    """

    def __init__(
        self, keys: KeySet, part: int, chosen: tuple[int, ...], blob_store: BlobStore, state: dict[str, Any]
    ) -> None:
        self._bound, self._shape, self._own = keys.bounds[part], keys.shape, keys.own[part]
        self._chosen, self._gaps = chosen, list[int]()
        for number in chosen:
            policy = self._bound.part.streams[number].window.evict
            assert isinstance(policy, Gap)
            self._gaps.append(policy.gap)
        self.reach = min(self._gaps), max(self._gaps)
        """A row that came so many µs behind the watermark is too late for some session, and for all."""
        self.metrics = ShardMetrics()
        self.watermark: int = state.get("watermark", 0)
        self._keys = KeyDictionary(keys_schema(self._shape), blob_store, state.get("keys", ()))
        self._travelling = waiting_schema(keys, part)
        own = [field for field in self._travelling if field.name not in keys_schema(self._shape).names]
        # How far the watermark was when a row came, which says for which gaps it was in time.
        held = pa.schema([(_KEY, pa.int64()), (_SEEN, pa.int64()), *own])
        self._rows = BatchLog(held, blob_store, state.get("rows", ()))
        # Up to when sessions of a key have ended whose rows are still among the others.
        self._done = BatchLog(_DONE, blob_store, state.get("done", ()))

    @property
    def state(self) -> dict[str, Any]:
        """For a manifest."""
        listed = {"keys": self._keys.listed, "rows": self._rows.listed, "done": self._done.listed}
        return {"watermark": self.watermark, **listed}

    def steps(
        self, rows: Sequence[PartRows], punctuations: Array, watermark: int
    ) -> Iterator[list[tuple[int, pa.Table]]]:
        """Take in the rows of a micro-batch, and give the sessions that the watermark ends."""
        for mine in rows:
            for some in waiting_rows(mine, self._travelling):
                instants = some.column(INSTANT).to_numpy()
                some = some.filter(pa.array(instants + self.reach[1] > self.watermark))
                owner = self._keys.ordinals(keys_of(some, self._shape))
                seen = pa.array(np.full(len(some), self.watermark), pa.int64())
                columns = [pa.array(owner), seen, *(some.column(name) for name in self._rows.schema.names[2:])]
                self._rows.append(pa.RecordBatch.from_arrays(columns, schema=self._rows.schema))
        self.watermark = max(watermark, self.watermark)
        tables = self._ended()
        self.metrics.keys, self.metrics.bytes = len(self._keys), self._rows.bytes
        yield [(number, table) for number, table in zip(self._chosen, tables, strict=True)]

    def _ended(self) -> list[pa.Table]:
        """The sessions of every gap that have ended, and which rows are still needed."""
        held = self._rows.all()
        ties = [pa.chunked_array([held.column(f"tie{i}")]) for i in range(len(self._shape.ties))]
        held = held.take(pa.array(sort_rows(held.column(_KEY).to_numpy(), held.column(INSTANT).to_numpy(), ties)))
        owner, instants = held.column(_KEY).to_numpy(), held.column(INSTANT).to_numpy()
        seen = held.column(_SEEN).to_numpy()
        needed, tables, done = np.zeros(len(held), np.bool_), list[pa.Table](), list[pa.RecordBatch]()
        for number, gap in enumerate(self._gaps):
            until = self._known(number)
            mine = np.flatnonzero((instants > until[owner]) & (instants + gap > seen))
            starts = np.searchsorted(owner[mine], np.arange(len(self._keys) + 1))
            events = Positions.of_events(instants[mine], starts)
            found = tumbling_by_gap(events, gap, self.watermark + 1)
            rows = held if len(mine) == len(held) else held.take(pa.array(mine))
            keys = self._keys.keys.columns if self._shape.keys else []
            numbers, arrivals = found.numbers(), Arrivals(events, self.watermark)
            tables.append(
                answers_of(self._bound, self._own, self._chosen[number], rows, arrivals, found, numbers, keys)
            )
            still = np.ones(len(mine), np.bool_)
            still[ranges(found.lo, found.hi - found.lo)] = False
            needed[mine[still]] = True
            last = events.start[found.hi - 1]
            ended = [pa.array(column, pa.int64()) for column in (np.full(len(found), number), found.key, last)]
            done.append(pa.RecordBatch.from_arrays(ended, schema=_DONE))
        self.metrics.granules = int(needed.sum())
        for some in done:
            self._done.append(some)
        if len(self._rows) and len(self._rows) >= 2 * self.metrics.granules:
            self._keep(held.filter(pa.array(needed)))
        return tables

    def _known(self, gap: int) -> Array:
        """Up to when sessions of each key have ended. What is in time comes after all of them."""
        until, done = np.full(len(self._keys), _EARLIEST, np.int64), self._done.all()
        mine = done.filter(pa.array(done.column("gap").to_numpy() == gap))
        until[mine.column(_KEY).to_numpy()] = mine.column(INSTANT).to_numpy()  # the last one stays
        return until

    def _keep(self, rows: pa.RecordBatch) -> None:
        """Hold some rows and nothing else, and forget keys where most of them have none."""
        owner = rows.column(_KEY).to_numpy()
        live = np.unique(owner)
        latest = self._latest(live)
        if len(self._keys) > 2 * len(live) + _FEW:
            number = self._keys.keep(live)
            rows = rows.set_column(0, _KEY, pa.array(number[owner]))
            latest = latest.set_column(1, _KEY, pa.array(number[latest.column(_KEY).to_numpy()]))
        self._rows.replace(rows)
        self._done.replace(latest)

    def _latest(self, live: Array) -> pa.RecordBatch:
        """The last entry of each gap and key that has rows."""
        done = self._done.all()
        done = done.filter(pa.array(np.isin(done.column(_KEY).to_numpy(), live)))
        place = done.column("gap").to_numpy() * (len(self._keys) + 1) + done.column(_KEY).to_numpy()
        _, last = np.unique(place[::-1], return_index=True)
        return done.take(pa.array(np.sort(len(place) - 1 - last)))
