"""Sessions in a stream, one part in one shard: sessions of all gaps share their rows.

A session is open until the watermark reaches its end, a gap after its last row. Until then a row may extend it, or join
two of them; a row whose own session would have ended is late, as with Spark's ``session_window``. With several gaps, a
row may be late for a short one and in time for a long one. The state holds the rows of open sessions, and at most as
many others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.engine.keys import INSTANT
from panes.engine.sorting import sort_rows
from panes.frames import Positions
from panes.frames.positions import ranges
from panes.frames.row_frame import Arrivals
from panes.frames.row_tumbling import tumbling_by_gap
from panes.operators.policies import Gap
from panes.row_windows.bound_rows import RowInstances
from panes.row_windows.key_set import KeySet, PartRows
from panes.row_windows.part_shard import PartShard
from panes.state.blob_store import BlobStore
from panes.state.key_dictionary import BatchLog, KeyDictionary

_KEY, _SEEN = "key", "seen"
_DONE = pa.schema([("gap", pa.int64()), (_KEY, pa.int64()), (INSTANT, pa.int64())])
_EARLIEST = -(2**62)
_FEW = 1024


class SessionShard(PartShard):
    """The sessions of a part.

    Parameters
    ----------
    state
        The ``state`` after the last micro-batch.
    """

    def __init__(
        self, keys: KeySet, part: int, chosen: tuple[int, ...], blob_store: BlobStore, state: dict[str, Any]
    ) -> None:
        super().__init__(keys, part, chosen)
        self._gaps = list[int]()
        for input in self._inputs:
            assert isinstance(input.window.evict, Gap)
            self._gaps.append(input.window.evict.gap)
        self.reach = min(self._gaps), max(self._gaps)
        self.watermark: int = state.get("watermark", 0)
        self._keys = KeyDictionary(self._sent.key_schema, blob_store, state.get("keys", ()))
        own = [field for field in self._schema if field.name not in self._sent.key_schema.names]
        # The watermark when a row came says for which gaps it was in time.
        held = pa.schema([(_KEY, pa.int64()), (_SEEN, pa.int64()), *own])
        self._log = BatchLog(held, blob_store, state.get("rows", ()))
        # When the last ended session of a key ended: its rows may still be among the others.
        self._done = BatchLog(_DONE, blob_store, state.get("done", ()))

    @property
    def state(self) -> dict[str, Any]:
        """What a manifest records."""
        listed = {"keys": self._keys.listed, "rows": self._log.listed, "done": self._done.listed}
        return {"watermark": self.watermark, **listed}

    def steps(
        self, rows: Sequence[PartRows], punctuations: Array, watermark: int
    ) -> Iterator[list[tuple[int, pa.Table]]]:
        """Insert the rows of a micro-batch, advance the watermark, and yield the sessions that it ends."""
        for mine in rows:
            for some in mine.waiting(self._schema):
                instants = some.column(INSTANT).to_numpy()
                some = some.filter(pa.array(instants + self.reach[1] > self.watermark))
                owner = self._keys.ordinals(self._sent.keys_of(some))
                seen = pa.array(np.full(len(some), self.watermark), pa.int64())
                columns = [pa.array(owner), seen, *(some.column(name) for name in self._log.schema.names[2:])]
                self._log.append(pa.RecordBatch.from_arrays(columns, schema=self._log.schema))
        self.watermark = max(watermark, self.watermark)
        ended = self._ended()
        self.metrics.keys, self.metrics.bytes = len(self._keys), self._log.bytes
        yield ended

    def _ended(self) -> list[tuple[int, pa.Table]]:
        """Return the sessions of each gap that have ended, and drop the rows that no session needs any more."""
        held = self._log.all()
        order = sort_rows(held.column(_KEY).to_numpy(), held.column(INSTANT).to_numpy(), self._sent.ties_of(held))
        held = held.take(pa.array(order))
        owner, instants = held.column(_KEY).to_numpy(), held.column(INSTANT).to_numpy()
        seen = held.column(_SEEN).to_numpy()
        needed, answers, done = np.zeros(len(held), np.bool_), list[tuple[int, pa.Table]](), list[pa.RecordBatch]()
        for number, gap in enumerate(self._gaps):
            until = self._known(number)
            mine = np.flatnonzero((instants > until[owner]) & (instants + gap > seen))
            starts = np.searchsorted(owner[mine], np.arange(len(self._keys) + 1))
            events = Positions.of_events(instants[mine], starts)
            found = tumbling_by_gap(events, gap, self.watermark + 1)
            rows = held if len(mine) == len(held) else held.take(pa.array(mine))
            keys = self._keys.keys.columns if self._sent.keys else []
            instances = RowInstances(Arrivals(events, self.watermark), found, found.numbers(), keys)
            answers.append(self._answers(number, rows, instances))
            still = np.ones(len(mine), np.bool_)
            still[ranges(found.lo, found.hi - found.lo)] = False
            needed[mine[still]] = True
            last = events.start[found.hi - 1]
            ended = [pa.array(column, pa.int64()) for column in (np.full(len(found), number), found.key, last)]
            done.append(pa.RecordBatch.from_arrays(ended, schema=_DONE))
        self.metrics.granules = int(needed.sum())
        for some in done:
            self._done.append(some)
        if len(self._log) and len(self._log) >= 2 * self.metrics.granules:
            self._keep(held.filter(pa.array(needed)))
        return answers

    def _known(self, gap: int) -> Array:
        """Return when the last ended session of each key ended. Rows in time come after it."""
        until, done = np.full(len(self._keys), _EARLIEST, np.int64), self._done.all()
        mine = done.filter(pa.array(done.column("gap").to_numpy() == gap))
        until[mine.column(_KEY).to_numpy()] = mine.column(INSTANT).to_numpy()  # the last one stays
        return until

    def _keep(self, rows: pa.RecordBatch) -> None:
        """Keep only some rows, and drop keys without rows if they are the majority."""
        owner = rows.column(_KEY).to_numpy()
        live = np.unique(owner)
        latest = self._latest(live)
        if len(self._keys) > 2 * len(live) + _FEW:
            number = self._keys.keep(live)
            rows = rows.set_column(0, _KEY, pa.array(number[owner]))
            latest = latest.set_column(1, _KEY, pa.array(number[latest.column(_KEY).to_numpy()]))
        self._log.replace(rows)
        self._done.replace(latest)

    def _latest(self, live: Array) -> pa.RecordBatch:
        """Return the last entry of each gap and key with rows."""
        done = self._done.all()
        done = done.filter(pa.array(np.isin(done.column(_KEY).to_numpy(), live)))
        place = done.column("gap").to_numpy() * (len(self._keys) + 1) + done.column(_KEY).to_numpy()
        _, last = np.unique(place[::-1], return_index=True)
        return done.take(pa.array(np.sort(len(place) - 1 - last)))
