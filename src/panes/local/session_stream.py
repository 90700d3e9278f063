"""Sessions while rows come: one shard of a stream, from micro-batch to micro-batch.

A session is open until the watermark has reached its end, a gap after its last row. A row may join it, or join two of
them, for as long as its own session would be open; then it is late, as with Spark's ``session_window``. State are the
rows of open sessions, and as many of others at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from panes.algebra.operations import Array
from panes.engine.batch_log import BatchLog
from panes.engine.cabinet import Cabinet
from panes.engine.dictionary import Dictionary
from panes.frames import Positions
from panes.frames.ranges import ranges
from panes.frames.tumbling_policies import tumbling_by_gap
from panes.local.arriving import in_order
from panes.local.waiting import INSTANT, Counted, read_state, write_state
from panes.local.windowed_aggregates import BoundAggregates, answer
from panes.local.windowed_stream import Shape, partitions_of
from panes.operators.declarations import Gap
from panes.operators.vectorised import Arrivals

_KEY = "key"
_DONE = pa.schema([(_KEY, pa.int64()), (INSTANT, pa.int64())])
_EARLIEST = -(2**62)
_FEW = 1024


class SessionShard:
    """The sessions of some keys, as the last micro-batch left them.

    Parameters
    ----------
    declared
        What a checkpoint has to have been written with.
    """

    def __init__(self, bound: BoundAggregates, shape: Shape, declared: dict[str, Any], cabinet: Cabinet) -> None:
        policy = bound.declared.stream.window.evict
        assert isinstance(policy, Gap)
        self._bound, self._shape, self._gap = bound, shape, policy.gap
        self._declared, self._cabinet = declared, cabinet
        state = read_state(cabinet, declared)
        self.opened = bool(state)
        self.counted = Counted()
        self.watermark: int = state.get("watermark", 0)
        self._keys = Dictionary(shape.partitions, cabinet, state.get("keys", ()))
        schema = pa.schema([field for field in shape.schema if field.name not in shape.partitions.names])
        self._rows = BatchLog(schema.insert(0, pa.field(_KEY, pa.int64())), cabinet, state.get("rows", ()))
        # Up to when sessions of a key have ended whose rows are still among the others.
        self._done = BatchLog(_DONE, cabinet, state.get("done", ()))

    def step(self, rows: Sequence[pa.RecordBatch], punctuations: Array, watermark: int) -> list[pa.Table]:
        """Take in the rows of a micro-batch, and give the sessions that the watermark ends."""
        for some in rows:
            in_time = some.column(INSTANT).to_numpy() + self._gap > self.watermark
            self.counted.late += int((~in_time).sum())
            some = some.filter(pa.array(in_time))
            owner = self._keys.ordinals(partitions_of(some, self._shape))
            self._rows.append(some.select(self._rows.schema.names[1:]).add_column(0, _KEY, pa.array(owner)))
        self.watermark = max(watermark, self.watermark)
        table = self._ended()
        counted = self.counted
        counted.answers, counted.keys = table.num_rows, len(self._keys)
        counted.bytes = self._rows.bytes
        listed = {"keys": self._keys.listed, "rows": self._rows.listed, "done": self._done.listed}
        write_state(self._cabinet, self._declared, watermark=self.watermark, **listed)
        return [table]

    def _ended(self) -> pa.Table:
        held = self._open()
        self.counted.rows = len(held)
        if not len(held):
            return self._bound.schema.empty_table()
        ties = [pa.chunked_array([held.column(f"tie{i}")]) for i in range(len(self._shape.ties))]
        order = in_order(held.column(_KEY).to_numpy(), held.column(INSTANT).to_numpy(), ties)
        held = held.take(pa.array(order))
        owner = held.column(_KEY).to_numpy()
        starts = np.searchsorted(owner, np.arange(len(self._keys) + 1))
        events = Positions.of_events(held.column(INSTANT).to_numpy(), starts)
        found = tumbling_by_gap(events, self._gap, self.watermark + 1)
        if not len(found):
            return self._bound.schema.empty_table()
        keys = self._keys.keys.columns if self._shape.keys else []
        arguments = {sql: held.column(f"argument{i}") for i, sql in enumerate(self._bound.arguments)}
        table = answer(self._bound, Arrivals(events, self.watermark), found, found.numbers(), keys, [], arguments)
        open_ = np.ones(len(held), np.bool_)
        open_[ranges(found.lo, found.hi - found.lo)] = False
        self.counted.rows = int(open_.sum())
        if len(self._rows) >= 2 * self.counted.rows:
            self._keep(held.filter(pa.array(open_)))
        else:
            ended = [pa.array(found.key), pa.array(events.start[found.hi - 1])]
            self._done.append(pa.RecordBatch.from_arrays(ended, schema=_DONE))
        return table

    def _open(self) -> pa.RecordBatch:
        """The rows of open sessions. What is in time comes after all sessions of its key that have ended."""
        rows, done = self._rows.all(), self._done.all()
        if not len(done):
            return rows
        until = np.full(len(self._keys), _EARLIEST, np.int64)
        until[done.column(_KEY).to_numpy()] = done.column(INSTANT).to_numpy()  # the last one stays
        return rows.filter(pa.array(rows.column(INSTANT).to_numpy() > until[rows.column(_KEY).to_numpy()]))

    def _keep(self, rows: pa.RecordBatch) -> None:
        """Hold some rows and nothing else, and forget keys where most of them have none."""
        self._done.replace(self._done.all().slice(0, 0))
        owner = rows.column(_KEY).to_numpy()
        live = np.unique(owner)
        if len(self._keys) > 2 * len(live) + _FEW:
            number = self._keys.keep(live)
            rows = rows.set_column(0, _KEY, pa.array(number[owner]))
        self._rows.replace(rows)
