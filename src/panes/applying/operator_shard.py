"""Operators in a stream: one shard, from micro-batch to micro-batch.

Each partition has its own operator. It is made and loaded for a micro-batch with tuples for it, or if something is due
on its clock; in between only its saved state exists, as plain values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.applying.tuple_by_tuple import RunningOperator, rows_of, since
from panes.applying.user_operators import WindowedOperator
from panes.engine.keys import INSTANT
from panes.engine.schema import field_of
from panes.engine.sorting import sort_rows
from panes.row_windows.arrival import tie_order
from panes.row_windows.key_set import WITHOUT_KEYS, without_keys
from panes.state.blob_store import BlobStore
from panes.state.held_rows import Waiting
from panes.state.job import ShardMetrics
from panes.state.key_dictionary import BatchLog, KeyDictionary
from panes.state.manifest import from_text, read_state, to_text, write_state

_SAVED = pa.schema([("key", pa.int64()), ("saved", pa.string()), ("due", pa.int64())])
_Line: TypeAlias = "tuple[int, str | None, int | None]"
_NEVER = 2**62
_FEW = 1024


class OperatedShard:
    """The operators of the partitions of one shard, as the last micro-batch left them.

    Parameters
    ----------
    columns
        The columns of the data.
    declared_as
        What a checkpoint must have been written with.
    """

    def __init__(
        self, declared: WindowedOperator, columns: pa.Schema, declared_as: dict[str, Any], blob_store: BlobStore
    ) -> None:
        self._declared, self._columns, self._blob_store = declared, columns, blob_store
        self._declared_as = declared_as
        state = read_state(blob_store, declared_as)
        self.opened = bool(state)
        self.metrics = ShardMetrics.of_held(state)
        input = declared.input
        # If partitions depend on each other, one operator gets them all.
        self._by = () if input.alone else tuple(field_of(columns, name).name for name in input.by)
        self._waiting = Waiting(columns.insert(0, pa.field(INSTANT, pa.int64())), blob_store, state)
        keys = pa.schema([columns.field(name) for name in self._by]) if self._by else WITHOUT_KEYS
        self._keys = KeyDictionary(keys, blob_store, state.get("keys", ()))
        self._saved = BatchLog(_SAVED, blob_store, state.get("saved", ()))

    @property
    def watermark(self) -> int:
        """The instant up to which everything is done."""
        return self._waiting.watermark

    def has_work(self, watermark: int) -> bool:
        """Return whether a micro-batch that brings nothing but a watermark changes anything."""
        return watermark > self.watermark

    def steps(
        self, rows: Sequence[pa.RecordBatch], marks: pa.RecordBatch, watermark: int
    ) -> Iterator[list[tuple[int, pa.Table]]]:
        """Insert the rows of a micro-batch, advance the watermark, and yield what operators submit.

        Parameters
        ----------
        marks
            The instants of marks for all keys.
        """
        until, mark = self.watermark, self._declared.input.mark
        if mark is not None and mark.scope == "stream":
            rows = [some.filter(_not(some.column(mark.column))) for some in rows]
        came, due = self._waiting.pass_by(rows, marks.column(INSTANT).to_numpy(), watermark)
        table = rows_of(self._declared, self._submitted(came, due, until))
        self.metrics, waiting = ShardMetrics(), self._waiting
        metrics = self.metrics
        metrics.late = metrics.lost = waiting.late
        metrics.answers, metrics.keys = table.num_rows, len(self._keys)
        metrics.granules, metrics.bytes = len(waiting), waiting.bytes + self._saved.bytes
        metrics.open_windows = metrics.keys
        state = {"keys": self._keys.listed, "saved": self._saved.listed}
        write_state(self._blob_store, self._declared_as, **waiting.state, **state, held=metrics.held)
        yield [(0, table)]

    def _submitted(self, came: pa.RecordBatch, marks: Array, until: int) -> Iterator[Any]:
        mark = self._declared.input.mark
        ended = came.slice(0, 0)
        if mark is not None and mark.scope == "key":
            is_tuple = _not(came.column(mark.column))
            came, ended = came.filter(is_tuple), came.filter(_not(is_tuple))
        known = len(self._keys)
        if not self._by and len(marks):
            # A single operator of all tuples exists before the first of them.
            known = int(self._keys.ordinals(without_keys(1))[0]) + 1
        owner = self._keys.ordinals(self._partitions_of(came))
        marked, when = self._keys.find(self._partitions_of(ended)), ended.column(INSTANT).to_numpy()
        order = self._order(came, owner)
        came, owner = came.take(pa.array(order)), owner[order]
        place, due = self._known()
        wanted = np.unique(np.concatenate([owner, marked[marked >= 0], np.flatnonzero(due <= self.watermark)]))
        if len(marks):
            wanted = np.arange(len(self._keys))
        starts = np.searchsorted(owner, np.append(wanted, len(self._keys)))
        instants = came.column(INSTANT).to_numpy()
        table = pa.Table.from_batches([came.remove_column(0)])  # as the data have it
        texts, written = self._saved.all().column("saved"), list[_Line]()
        # An operator equal to a new one is not stored.
        new = RunningOperator(self._declared)
        nothing = to_text(new.save())
        for key, lo in zip(wanted.tolist(), starts[:-1].tolist(), strict=True):
            hi = int(np.searchsorted(owner, key, side="right"))
            text = texts[int(place[key])].as_py() if place[key] >= 0 else None
            running = RunningOperator(self._declared, *(() if text is None else (from_text(text), until)))
            own = instants[lo:hi]
            mine = marks if mark is None or mark.scope == "stream" else np.sort(when[marked == key])
            due_marks = mine if key < known else since(mine, own)
            yield from running.take_in(table.slice(lo, hi - lo), own, due_marks, self.watermark)
            running.check_kept(new)
            after = to_text(running.save())
            written.append((key, None if after == nothing else after, running.due))
        self._write(written)

    def _known(self) -> tuple[Array, Array]:
        """Return the position of the last state of each key, and when something is due for it."""
        place, due = np.full(len(self._keys), -1, np.int64), np.full(len(self._keys), _NEVER, np.int64)
        everything = self._saved.all()
        key = everything.column("key").to_numpy()
        place[key] = np.arange(len(key))  # the last write wins
        due[key] = everything.column("due").fill_null(_NEVER).to_numpy()
        return place, due

    def _write(self, written: list[_Line]) -> None:
        columns = zip(*written, strict=True) if written else ([], [], [])
        arrays = [pa.array(list(c), f.type) for c, f in zip(columns, _SAVED, strict=True)]
        self._saved.append(pa.RecordBatch.from_arrays(arrays, schema=_SAVED))
        place, _ = self._known()
        latest = self._saved.all().take(pa.array(np.sort(place[place >= 0])))
        latest = latest.filter(latest.column("saved").is_valid())
        # Keys whose operators equal new ones are dropped: their number may grow for ever.
        if len(self._saved) <= 2 * len(latest) + _FEW:
            return
        number = self._keys.keep(np.sort(latest.column("key").to_numpy()))
        renumbered = pa.array(number[latest.column("key").to_numpy()])
        self._saved.replace(latest.set_column(0, _SAVED.field("key"), renumbered))

    def _order(self, came: pa.RecordBatch, owner: Array) -> Array:
        input = self._declared.input
        names = tie_order(input, self._columns)
        if input.together:
            # Rows of one instant arrive in the order of their keys.
            names = [*(name for name in input.by if name not in names), *names]
        ties = [pa.chunked_array([came.column(name)]) for name in names]
        return sort_rows(owner, came.column(INSTANT).to_numpy(), ties)

    def _partitions_of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows.select(list(self._by)) if self._by else without_keys(len(rows))


def _not(marked: pa.Array) -> pa.Array:
    """Return the negation of a column, in which null counts as false."""
    return pa.array(~marked.fill_null(False).to_numpy(zero_copy_only=False))
