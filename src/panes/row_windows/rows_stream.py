"""Windows by rows while rows come: one shard of a stream, from micro-batch to micro-batch.

All windows of a key set are in one shard. Rows travel once; each part of a query takes the rows and columns that it
needs, and keeps what its windows still hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.engine.keys import one_zero
from panes.row_windows.answer import BoundRows
from panes.row_windows.parts import is_session
from panes.row_windows.sessions_stream import SessionShard
from panes.row_windows.waiting import INSTANT, Counted, read_state, write_state
from panes.row_windows.windows_stream import WindowedShard
from panes.state.blob_store import BlobStore

WHICH = "which"
"""The column of marks with the number of their measure; beside it is ``INSTANT``."""

Answers = list[tuple[int, pa.Table]]
"""Answers, each with the number of its window among those of all parts."""


@dataclass(frozen=True)
class Shape:
    """The columns in which rows travel, in this order.

    Parameters
    ----------
    keys, arguments, deltas, groups, flags, ties
        The types of keys, of arguments of aggregates, of columns that sizes and paces go by, of groups; how many
        columns say whether a row counts somewhere; and the types of what orders rows of one instant.
    """

    keys: tuple[pa.DataType, ...]
    arguments: tuple[pa.DataType, ...]
    deltas: tuple[pa.DataType, ...]
    groups: tuple[pa.DataType, ...]
    flags: int
    ties: tuple[pa.DataType, ...]

    @property
    def schema(self) -> pa.Schema:
        """Of rows that travel."""
        parts = {
            "key": self.keys,
            INSTANT: None,
            "argument": self.arguments,
            "delta": self.deltas,
            "group": self.groups,
            "flag": (pa.bool_(),) * self.flags,
            "tie": self.ties,
        }
        fields: list[tuple[str, pa.DataType]] = []
        for name, types in parts.items():
            fields += [(name, pa.int64())] if types is None else [(f"{name}{i}", t) for i, t in enumerate(types)]
        return pa.schema(fields)


@dataclass(frozen=True)
class Own:
    """Which of the columns that travel are those of a part.

    Parameters
    ----------
    arguments, groups
        By their numbers.
    passes, mark
        The flags that say whether a row counts, and whether it is a mark of its key; None for all rows and for none.
    marks
        The number of its marks for all keys; None for none.
    """

    arguments: tuple[int, ...]
    groups: tuple[int, ...]
    passes: int | None = None
    mark: int | None = None
    marks: int | None = None


@dataclass(frozen=True)
class KeySet:
    """Parts that share one sorted column, with the types of their columns.

    Parameters
    ----------
    bounds, own
        The parts, and which columns are theirs.
    shape
        The columns in which rows travel.
    """

    bounds: tuple[BoundRows, ...]
    own: tuple[Own, ...]
    shape: Shape

    def first_view(self, part: int) -> int:
        """The number of the first window of a part among those of all parts."""
        return sum(len(bound.part.windows) for bound in self.bounds[:part])

    def rows_of(self, part: int, rows: pa.RecordBatch) -> PartRows:
        """The rows of a part among all, in the same order."""
        own, bound = self.own[part], self.bounds[part]
        marks = None
        if own.mark is not None:
            marked = rows.column(f"flag{own.mark}").fill_null(False).to_numpy(zero_copy_only=False)
            marks = rows.filter(pa.array(marked))
        if own.passes is not None:
            rows = rows.filter(rows.column(f"flag{own.passes}").fill_null(False))
        return PartRows(bound, own, self.shape, rows, marks)


@dataclass(frozen=True, eq=False)
class PartRows:
    """The rows of a part, and the rows that are marks of their key."""

    bound: BoundRows
    own: Own
    shape: Shape
    rows: pa.RecordBatch
    marks: pa.RecordBatch | None

    @property
    def keys(self) -> list[pa.Array]:
        """The columns of keys, a row per row."""
        return [self.rows.column(f"key{i}") for i in range(len(self.shape.keys))]

    @property
    def instants(self) -> Array:
        """When rows come."""
        instants: Array = self.rows.column(INSTANT).to_numpy()
        return instants

    @property
    def arguments(self) -> dict[str, pa.Array]:
        """The values of each argument, a row per row."""
        numbers = zip(self.bound.arguments, self.own.arguments, strict=True)
        return {sql: self.rows.column(f"argument{i}") for sql, i in numbers}

    @property
    def groups(self) -> list[pa.Array]:
        """The columns of groups, a row per row."""
        return [one_zero(self.rows.column(f"group{i}")) for i in self.own.groups]

    @property
    def attributes(self) -> pa.Table:
        """The columns that sizes and paces go by."""
        deltas = self.bound.part.deltas
        return pa.table([self.rows.column(f"delta{i}") for i in range(len(deltas))], names=list(deltas))


class RowsShard:
    """The windows of some keys, as the last micro-batch left them.

    Parameters
    ----------
    declared
        What a checkpoint has to have been written with.
    """

    def __init__(self, keys: KeySet, declared: dict[str, Any], blob_store: BlobStore) -> None:
        self._keys, self._declared, self._blob_store = keys, declared, blob_store
        self._state = read_state(blob_store, declared)
        self.opened = bool(self._state)
        self.counted = Counted()

    @cached_property
    def _shards(self) -> list[tuple[int, int, WindowedShard | SessionShard]]:
        """The part of each shard, the number of its first window among those of the part, and the shard."""
        states = iter(self._state.get("parts", ()))
        found: list[tuple[int, int, WindowedShard | SessionShard]] = []
        for number, bound in enumerate(self._keys.bounds):
            kinds = [is_session(window) for window in bound.part.windows]
            for sessions in (False, True):
                chosen = [i for i, is_session in enumerate(kinds) if is_session == sessions]
                if chosen:
                    make = SessionShard if sessions else WindowedShard
                    shard = make(self._keys, number, tuple(chosen), self._blob_store, next(states, {}))
                    found.append((number, self._keys.first_view(number), shard))
        return found

    @property
    def watermark(self) -> int:
        """How far everything has happened."""
        watermark: int = self._state.get("watermark", 0)
        return watermark

    def steps(self, rows: Sequence[pa.RecordBatch], marks: pa.RecordBatch, watermark: int) -> Iterator[Answers]:
        """Take in the rows of a micro-batch and let the watermark pass; all pieces have to be taken.

        Parameters
        ----------
        marks
            Those for all keys: their instants, and the numbers of their measures.
        """
        counted = self.counted
        instants, which = marks.column(INSTANT).to_numpy(), marks.column(WHICH).to_numpy()
        self._count_late(rows)
        for number, first, shard in self._shards:
            own = self._keys.own[number]
            due = np.zeros(0, np.int64) if own.marks is None else instants[which == own.marks]
            mine = [self._keys.rows_of(number, some) for some in rows]
            for pieces in shard.steps(mine, due, watermark):
                found = [(first + window, table) for window, table in pieces]
                counted.answers += sum(table.num_rows for _, table in found)
                yield found
            counted.keys = max(counted.keys, shard.counted.keys)
            counted.rows += shard.counted.rows
            counted.bytes += shard.counted.bytes
        states = [shard.state for _, _, shard in self._shards]
        highest = max(watermark, self.watermark)
        write_state(self._blob_store, self._declared, watermark=highest, parts=states)

    def _count_late(self, rows: Sequence[pa.RecordBatch]) -> None:
        """Rows that are too late for a window that would have held them, and for all of these."""
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
            self.counted.late += int(late.sum())
            self.counted.lost += int((lost & ~counts).sum())

    def step(self, rows: Sequence[pa.RecordBatch], marks: pa.RecordBatch, watermark: int) -> Answers:
        """The same at once, a table for each window."""
        found = [list[pa.Table]() for bound in self._keys.bounds for _ in bound.part.windows]
        for pieces in self.steps(rows, marks, watermark):
            for view, table in pieces:
                found[view].append(table)
        bounds = [bound for bound in self._keys.bounds for _ in bound.part.windows]
        empty = (bound.answers.empty_table() for bound in bounds)
        return [
            (view, pa.concat_tables([first, *some]))
            for view, (first, some) in enumerate(zip(empty, found, strict=True))
        ]


def no_marks() -> pa.RecordBatch:
    """Marks of a micro-batch that has none."""
    return pa.record_batch({INSTANT: pa.array([], pa.int64()), WHICH: pa.array([], pa.int64())})
