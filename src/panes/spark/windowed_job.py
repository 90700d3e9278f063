"""Windows by policy in a stateful operator: rows on their way to shards, and the steps of shards.

Executors import this module, so it imports nothing that only the driver needs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Row

from panes.algebra.operations import Array
from panes.engine.blobs import pack, unpack
from panes.engine.cabinet import Cabinet
from panes.local.operated_stream import OperatedShard
from panes.local.session_stream import SessionShard
from panes.local.waiting import INSTANT
from panes.local.windowed_aggregates import BoundAggregates
from panes.local.windowed_stream import Shape, WindowedShard
from panes.operators.declarations import Gap
from panes.operators.over_operators import WindowedOperator
from panes.spark.batches import large_batches, parts_of
from panes.spark.naming import END, START, VIEW, key
from panes.spark.packing import READ, sensible, typed
from panes.spark.placing import labels
from panes.spark.processor import BLOB, row_of

TRAVELLING = {"shard": "INT", "rows": "BINARY", "marks": "BINARY", **dict.fromkeys(READ, "BIGINT")}
"""Rows on their way to shards: packed rows, the instants of punctuations, counts."""

SHARD, MARK = "__panes_shard", "__panes_mark"
_ROWS = 1 << 16


def packing(
    schema: pa.Schema, shards: int, whose: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What to do with the rows of a partition.

    Parameters
    ----------
    schema
        The columns that travel; before them come ``SHARD`` and ``MARK``, whether a row is a punctuation.
    whose
        A name that no other operator of the query has. Where two of them get the same rows, Spark lets them share the
        shuffle, and the second one is then told every watermark a micro-batch late.
    """
    names = np.array(labels(shards), np.int32)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        counts, marks, _ = dict.fromkeys(READ, 0), list[int](), whose  # which makes it part of the function
        for everything in large_batches(batches, _ROWS):
            some = sensible(everything, counts, INSTANT)
            marked = some.column(MARK)
            marks += some.filter(marked).column(INSTANT).to_pylist()
            yield from _by_shard(some.filter(_not(marked)), schema, names)
        # One row for every shard, whatever came: all of them see every micro-batch. The first one counts.
        ends = [pack(pa.record_batch({INSTANT: pa.array(marks, pa.int64())}))] * shards
        first = np.arange(shards) == 0
        counted = {name: pa.array(first * count, pa.int64()) for name, count in counts.items()}
        yield _travelling(pa.array(names), marks=pa.array(ends, pa.binary()), **counted)

    return run


def _by_shard(rows: pa.RecordBatch, schema: pa.Schema, names: Array) -> Iterator[pa.RecordBatch]:
    if not len(rows):
        return
    shard = rows.column(SHARD).to_numpy()
    order = np.argsort(shard, kind="stable")
    columns = [typed(rows.column(field.name), field.type) for field in schema]
    sorted_ = pa.RecordBatch.from_arrays(columns, schema=schema).take(pa.array(order))
    present, starts = np.unique(shard[order], return_index=True)
    ends = np.append(starts[1:], len(order))
    packed = [pack(sorted_.slice(lo, hi - lo)) for lo, hi in zip(starts.tolist(), ends.tolist(), strict=True)]
    yield _travelling(pa.array(names[present]), rows=pa.array(packed, pa.binary()))


def _travelling(shard: pa.Array, **columns: pa.Array) -> pa.RecordBatch:
    types = {"INT": pa.int32(), "BINARY": pa.binary(), "BIGINT": pa.int64()}
    given = {"shard": shard, **columns}
    arrays = [given.get(name, pa.nulls(len(shard), types[type_])) for name, type_ in TRAVELLING.items()]
    return pa.RecordBatch.from_arrays(arrays, names=list(TRAVELLING))


def _not(marked: pa.Array) -> pa.Array:
    return pa.array(~marked.to_numpy(zero_copy_only=False))


@dataclass(frozen=True)
class WindowedJob(ABC):
    """What an operator runs.

    Parameters
    ----------
    declared_as
        What a checkpoint has to have been written with.
    """

    declared_as: dict[str, Any]

    @abstractmethod
    def open(self, cabinet: Cabinet) -> WindowedShard | SessionShard | OperatedShard:
        """A shard as it left its state."""

    @abstractmethod
    def finished(self, tables: list[pa.Table]) -> Iterator[pa.RecordBatch]:
        """What comes out."""

    def steps(self, cabinet: Cabinet) -> WindowedSteps:
        """The steps of the shards of one task."""
        return WindowedSteps(self, cabinet)


@dataclass(frozen=True)
class Numbered:
    """The answers of several windows of a query in the columns of all: the number of the window, its bounds, keys.

    Parameters
    ----------
    after
        How long after its last event each window ends, in µs.
    keys, columns
        The names of keys, and of aggregates.
    """

    after: tuple[int, ...]
    keys: tuple[str, ...]
    columns: tuple[str, ...]

    def batch(self, number: int, answers: pa.RecordBatch) -> pa.RecordBatch:
        """The answers of one window."""
        window = answers.column("window")
        start, end = window.field("start"), window.field("end")
        end = pa.array(end.view(pa.int64()).to_numpy() + self.after[number]).view(end.type)
        columns = {VIEW: pa.array(np.full(len(answers), number, np.int32)), START: start, END: end}
        columns |= {key(i): answers.column(name) for i, name in enumerate(self.keys)}
        columns |= {alias: answers.column(alias) for alias in self.columns}
        return pa.RecordBatch.from_pydict(columns)


@dataclass(frozen=True)
class AggregatesJob(WindowedJob):
    """Aggregates over a window, or over several of them; then answers are numbered."""

    bounds: tuple[BoundAggregates, ...]
    shape: Shape
    numbered: Numbered | None = None

    def open(self, cabinet: Cabinet) -> WindowedShard | SessionShard:
        """A shard as it left its state."""
        if isinstance(self.bounds[0].declared.stream.window.evict, Gap):
            (bound,) = self.bounds
            return SessionShard(bound, self.shape, self.declared_as, cabinet)
        return WindowedShard(self.bounds, self.shape, self.declared_as, cabinet)

    def finished(self, tables: list[pa.Table]) -> Iterator[pa.RecordBatch]:
        """What comes out."""
        for number, table in enumerate(tables):
            for batch in table.combine_chunks().to_batches():
                yield batch if self.numbered is None else self.numbered.batch(number, batch)


@dataclass(frozen=True)
class OperatorJob(WindowedJob):
    """An operator of the user's own."""

    declared: WindowedOperator
    columns: pa.Schema

    def open(self, cabinet: Cabinet) -> OperatedShard:
        """A shard as it left its state."""
        return OperatedShard(self.declared, self.columns, self.declared_as, cabinet)

    def finished(self, tables: list[pa.Table]) -> Iterator[pa.RecordBatch]:
        """What comes out."""
        for table in tables:
            yield from table.combine_chunks().to_batches()


class WindowedSteps:
    """The steps of the shards of one task.

    Parameters
    ----------
    cabinet
        Where the shard that is called keeps its state.
    """

    def __init__(self, job: WindowedJob, cabinet: Cabinet) -> None:
        self._job, self._cabinet = job, cabinet
        self._stepped: set[Any] = set()
        self.began = False
        """Whether the last step was the first of its shard."""

    def with_rows(self, key: Any, rows: Iterator[Row], watermark: int) -> Iterator[Row]:
        """Rows came, punctuations, or a row that only says that there is a micro-batch."""
        came, marks, read = list[pa.RecordBatch](), [np.zeros(0, np.int64)], dict.fromkeys(READ, 0)
        for row in rows:
            if row.rows is not None:
                came.append(unpack(row.rows).replace_schema_metadata(None))
            else:
                marks.append(unpack(row.marks).column(0).to_numpy())
                for name in READ:
                    read[name] += row[name]
        yield from self._step(key, came, np.concatenate(marks), watermark, read)

    def without(self, key: Any, watermark: int) -> Iterator[Row]:
        """The watermark has moved; rows may have come before, in the same micro-batch."""
        if tuple(key) not in self._stepped:
            yield from self._step(key, [], np.zeros(0, np.int64), watermark, {})

    def _step(
        self, key: Any, came: list[pa.RecordBatch], marks: Array, watermark: int, read: dict[str, int]
    ) -> Iterator[Row]:
        self._stepped.add(tuple(key))
        shard = self._job.open(self._cabinet)
        self.began = not shard.opened
        if shard.opened and not came and not len(marks) and not any(read.values()) and watermark <= shard.watermark:
            return
        pieces: Iterable[list[pa.Table]]
        if isinstance(shard, WindowedShard):
            pieces = shard.steps(came, marks, watermark)
        else:
            pieces = [shard.step(came, marks, watermark)]
        for found in pieces:
            for batch in large_batches(self._job.finished(found)):
                for part in parts_of(batch, BLOB):
                    yield row_of(data=pack(part))
        counted = shard.counted
        figures = {"late": counted.late, "lost": counted.late, "answers": counted.answers, "keys": counted.keys}
        held = {"granules": counted.rows, "bytes": counted.bytes, "open_windows": counted.keys}
        yield row_of(watermark=shard.watermark, evicted=0, **read, **figures, **held)
