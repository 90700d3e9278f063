"""Answers as Arrow batches on their way back to the JVM.

Executors import this module, so it imports nothing that only the driver needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from panes.engine.answer import Answers
from panes.engine.program import View
from panes.spark.naming import END, START, VIEW, key

_BATCH = 1 << 17


def batch_of(
    view: View,
    number: int,
    answers: Answers,
    keys: Sequence[pa.Array],
    columns: Mapping[str, pa.DataType],
    instant: pa.DataType,
) -> pa.RecordBatch:
    """The answers of one view, with the columns of all views and the number of this one."""
    length = len(answers.start)
    found = {r.alias: column for r, column in zip(view.readings, answers.columns, strict=True)}
    at = pa.array(answers.key)
    arrays = [
        pa.array(np.full(length, number, dtype=np.int32)),
        *(pa.array(bound).view(instant) for bound in view.window.shown(answers.start)),
        *(column.take(at) for column in keys),
        *(_typed(found.get(alias), type_, length) for alias, type_ in columns.items()),
    ]
    names = [VIEW, START, END, *(key(i) for i in range(len(keys))), *columns]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _typed(column: pa.Array | None, type_: pa.DataType, length: int) -> pa.Array:
    """A column of a view, or nulls where it has none; times as all views call them, whatever the session's zone is."""
    if column is None:
        return pa.nulls(length, type_)
    return column if column.type == type_ else column.cast(type_)


def large_batches(batches: Iterable[pa.RecordBatch], rows: int = _BATCH) -> Iterator[pa.RecordBatch]:
    """Small batches joined until there are so many rows: each batch costs a trip to the JVM, or a blob."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.num_rows
        if size >= rows:
            yield from _joined(held)
            held, size = [], 0
    yield from _joined(held)


def parts_of(batch: pa.RecordBatch, size: int) -> Iterator[pa.RecordBatch]:
    """A batch in parts of so many bytes."""
    rows = max(1, len(batch) * size // max(1, batch.nbytes))
    return (batch.slice(first, rows) for first in range(0, len(batch), rows))


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if not batches:
        return []
    joined: list[pa.RecordBatch] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined
