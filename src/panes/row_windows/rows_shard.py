"""Windows of rows in a stream: one shard of all windows of a key set, from micro-batch to micro-batch.

Rows are sent once. Each part has a ``PartShard``, which takes the rows and columns that it needs and keeps what its
windows still hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from panes.engine.keys import INSTANT
from panes.row_windows.key_set import KeySet
from panes.row_windows.part_shard import PartShard
from panes.row_windows.parts import is_session
from panes.row_windows.sessions_shard import SessionShard
from panes.row_windows.windows_shard import WindowShard
from panes.state.blob_store import BlobStore
from panes.state.held_rows import MEASURE
from panes.state.job import ShardMetrics
from panes.state.manifest import read_state, write_state

Answers = list[tuple[int, pa.Table]]
"""Answers, each with the number of its window among those of all parts."""


class RowsShard:
    """The windows of the keys of one shard, as the last micro-batch left them.

    Parameters
    ----------
    declared
        What a checkpoint must have been written with.
    """

    def __init__(self, keys: KeySet, declared: dict[str, Any], blob_store: BlobStore) -> None:
        self._keys, self._declared, self._blob_store = keys, declared, blob_store
        self._state = read_state(blob_store, declared)
        self.opened = bool(self._state)
        self.metrics = ShardMetrics.of_held(self._state)

    @cached_property
    def _shards(self) -> list[tuple[int, int, PartShard]]:
        """For each part shard its part, the number of the part's first window, and the shard."""
        states = iter(self._state.get("parts", ()))
        found: list[tuple[int, int, PartShard]] = []
        for number, bound in enumerate(self._keys.bounds):
            kinds = [is_session(window) for window in bound.part.windows]
            for sessions in (False, True):
                chosen = [i for i, is_session in enumerate(kinds) if is_session == sessions]
                if chosen:
                    make = SessionShard if sessions else WindowShard
                    shard = make(self._keys, number, tuple(chosen), self._blob_store, next(states, {}))
                    found.append((number, self._keys.first_view(number), shard))
        return found

    @property
    def watermark(self) -> int:
        """The instant up to which everything is done."""
        watermark: int = self._state.get("watermark", 0)
        return watermark

    def has_work(self, watermark: int) -> bool:
        """Return whether a micro-batch that brings nothing but a watermark changes anything."""
        return watermark > self.watermark

    def steps(self, rows: Sequence[pa.RecordBatch], marks: pa.RecordBatch, watermark: int) -> Iterator[Answers]:
        """Insert the rows of a micro-batch, advance the watermark, and yield answers; exhaust the iterator.

        Parameters
        ----------
        marks
            Marks for all keys: their instants, and the numbers of their punctuations.
        """
        self.metrics = metrics = ShardMetrics()
        instants, which = marks.column(INSTANT).to_numpy(), marks.column(MEASURE).to_numpy()
        self._count_late(rows)
        for number, first, shard in self._shards:
            own = self._keys.own[number]
            due = np.zeros(0, np.int64) if own.marks is None else instants[which == own.marks]
            mine = [self._keys.rows_of(number, some) for some in rows]
            for answers in shard.steps(mine, due, watermark):
                found = [(first + window, table) for window, table in answers]
                metrics.answers += sum(table.num_rows for _, table in found)
                yield found
            metrics.keys = max(metrics.keys, shard.metrics.keys)
            metrics.granules += shard.metrics.granules
            metrics.bytes += shard.metrics.bytes
        metrics.open_windows = metrics.keys
        states = [shard.state for _, _, shard in self._shards]
        highest = max(watermark, self.watermark)
        write_state(self._blob_store, self._declared, watermark=highest, parts=states, held=metrics.held)

    def _count_late(self, rows: Sequence[pa.RecordBatch]) -> None:
        """Count the rows that are too late for some window, and for all windows, that would have held them."""
        for some in rows:
            behind = self.watermark - some.column(INSTANT).to_numpy()
            late, lost, counts = (np.zeros(len(some), np.bool_) for _ in range(3))
            for number, _, shard in self._shards:
                passes = self._keys.own[number].passes
                mine = np.ones(len(some), np.bool_)
                if passes is not None:
                    mine = some.column(f"flag{passes}").fill_null(False).to_numpy(zero_copy_only=False)
                shortest, longest = shard.reach
                late |= mine & (behind >= shortest)
                counts |= mine & (behind < longest)
                lost |= mine & (behind >= longest)
            self.metrics.late += int(late.sum())
            self.metrics.lost += int((lost & ~counts).sum())
