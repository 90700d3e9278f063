"""Windows over single rows in a stateful operator: rows on their way to shards, and the steps of shards.

Executors import this module, so it imports nothing that only the driver needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Row

from panes.aggregates.operations import Array
from panes.applying.operator_shard import OperatedShard
from panes.applying.user_operators import WindowedOperator
from panes.row_windows.key_set import KeySet
from panes.row_windows.rows_shard import WHICH as MARKS_WHICH
from panes.row_windows.rows_shard import RowsShard, no_marks
from panes.spark.batches import large_batches, parts_of
from panes.spark.naming import VIEW
from panes.spark.packing import READ, labels, sensible, typed
from panes.spark.processor import BLOB, row_of
from panes.state.blob_store import BlobStore, pack, unpack
from panes.state.held_rows import INSTANT

TRAVELLING = {"shard": "INT", "rows": "BINARY", "marks": "BINARY", **dict.fromkeys(READ, "BIGINT")}
"""Rows on their way to shards: packed rows, marks for all keys, counts."""

SHARD, WHICH = "__panes_shard", "__panes_which"
_ROWS = 1 << 16


def packing(
    schema: pa.Schema, shards: int, whose: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What to do with the rows of a partition.

    Parameters
    ----------
    schema
        The columns that travel; before them come ``SHARD`` and ``WHICH``, of which measures a row is a mark.
    whose
        A name that no other operator of the query has. Where two of them get the same rows, Spark lets them share the
        shuffle, and the second one is then told every watermark a micro-batch late.
    """
    names = np.array(labels(shards), np.int32)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        counts, marks, _ = dict.fromkeys(READ, 0), list[pa.RecordBatch](), whose  # which makes it part of the function
        for everything in large_batches(batches, _ROWS):
            some = sensible(everything, counts, INSTANT)
            marks.append(_marks(some))
            yield from _by_shard(some, schema, names)
        # One row for every shard, whatever came: all of them see every micro-batch. The first one counts.
        together = pa.Table.from_batches([no_marks(), *marks]).combine_chunks().to_batches()
        ends = [pack(together[0] if together else no_marks())] * shards
        first = np.arange(shards) == 0
        counted = {name: pa.array(first * count, pa.int64()) for name, count in counts.items()}
        yield _travelling(pa.array(names), marks=pa.array(ends, pa.binary()), **counted)

    return run


def _marks(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The marks among rows: when, and of which measure."""
    listed = rows.column(WHICH)
    if listed.null_count == len(rows):
        return no_marks()
    values = listed.flatten().cast(pa.int64())
    owner = pa.compute.list_parent_indices(listed)
    return pa.record_batch({INSTANT: rows.column(INSTANT).take(owner), MARKS_WHICH: values})


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


@dataclass(frozen=True)
class Answering:
    """The answers of several windows in the columns of all.

    Parameters
    ----------
    schema
        The columns: the number of the window, its bounds, its number among those of its key, keys, aggregates.
    names
        What answers call a column that has another name there.
    """

    schema: pa.Schema
    names: Mapping[str, str]

    def batch(self, view: int, answers: pa.RecordBatch) -> pa.RecordBatch:
        """The answers of one window."""
        known = {self.names.get(name, name): answers.column(name) for name in answers.schema.names}
        known[VIEW] = pa.array(np.full(len(answers), view, np.int32))
        arrays = [known.get(f.name, pa.nulls(len(answers), f.type)) for f in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


@dataclass(frozen=True)
class RowsJob:
    """What an operator runs.

    Parameters
    ----------
    declared_as
        What a checkpoint has to have been written with.
    """

    declared_as: dict[str, Any]
    keys: KeySet
    answering: Answering

    def steps(self, blob_store: BlobStore) -> RowsSteps:
        """The steps of the shards of one task."""
        return RowsSteps(self, blob_store)

    def open(self, blob_store: BlobStore) -> RowsShard:
        """A shard as it left its state."""
        return RowsShard(self.keys, self.declared_as, blob_store)

    def batch(self, view: int, answers: pa.RecordBatch) -> pa.RecordBatch:
        """The answers of one window as they travel."""
        return self.answering.batch(view, answers)


@dataclass(frozen=True)
class OperatorJob:
    """An operator that is given one row after another.

    Parameters
    ----------
    declared_as
        What a checkpoint has to have been written with.
    columns
        The columns of the data.
    """

    declared_as: dict[str, Any]
    declared: WindowedOperator
    columns: pa.Schema

    def steps(self, blob_store: BlobStore) -> RowsSteps:
        """The steps of the shards of one task."""
        return RowsSteps(self, blob_store)

    def open(self, blob_store: BlobStore) -> OperatedShard:
        """A shard as it left its state."""
        return OperatedShard(self.declared, self.columns, self.declared_as, blob_store)

    def batch(self, view: int, answers: pa.RecordBatch) -> pa.RecordBatch:
        """What was submitted, as it travels."""
        return answers


class RowsSteps:
    """The steps of the shards of one task.

    Parameters
    ----------
    blob_store
        Where the shard that is called keeps its state.
    """

    def __init__(self, job: RowsJob | OperatorJob, blob_store: BlobStore) -> None:
        self._job, self._blob_store = job, blob_store
        self._stepped: set[Any] = set()
        self.began = False
        """Whether the last step was the first of its shard."""

    def with_rows(self, key: Any, rows: Iterator[Row], watermark: int) -> Iterator[Row]:
        """Rows came, marks, or a row that only says that there is a micro-batch."""
        came, marks, read = list[pa.RecordBatch](), [no_marks()], dict.fromkeys(READ, 0)
        for row in rows:
            if row.rows is not None:
                came.append(unpack(row.rows).replace_schema_metadata(None))
            else:
                marks.append(unpack(row.marks).replace_schema_metadata(None))
                for name in READ:
                    read[name] += row[name]
        together = pa.Table.from_batches(marks).combine_chunks().to_batches()
        yield from self._step(key, came, together[0] if together else no_marks(), watermark, read)

    def without(self, key: Any, watermark: int) -> Iterator[Row]:
        """The watermark has moved; rows may have come before, in the same micro-batch."""
        if tuple(key) not in self._stepped:
            yield from self._step(key, [], no_marks(), watermark, {})

    def _step(
        self, key: Any, came: list[pa.RecordBatch], marks: pa.RecordBatch, watermark: int, read: dict[str, int]
    ) -> Iterator[Row]:
        self._stepped.add(tuple(key))
        job = self._job
        shard = job.open(self._blob_store)
        self.began = not shard.opened
        if shard.opened and not came and not len(marks) and not any(read.values()) and watermark <= shard.watermark:
            return
        for found in shard.steps(came, marks, watermark):
            answers = (job.batch(view, batch) for view, table in found for batch in table.combine_chunks().to_batches())
            for batch in large_batches(answers):
                for part in parts_of(batch, BLOB):
                    yield row_of(data=pack(part))
        highest = max(watermark, shard.watermark)
        yield row_of(watermark=highest, **read, **asdict(shard.metrics))
