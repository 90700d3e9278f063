"""Arrow batches between the JVM and Python: rows with their planned types, and answers on their way back.

Executors import this module, so it imports nothing that only the driver needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panes.engine.answer import Answers
from panes.engine.keys import END, START
from panes.engine.program import View
from panes.spark.naming import VIEW, key

_BATCH = 1 << 17


def typed(column: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return a column with its planned type: times arrive in the zone of the session, and are kept in UTC."""
    return column if column.type == type_ else column.cast(type_)


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
        *(_of_view(found.get(alias), type_, length) for alias, type_ in columns.items()),
    ]
    names = [VIEW, START, END, *(key(i) for i in range(len(keys))), *columns]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _of_view(column: pa.Array | None, type_: pa.DataType, length: int) -> pa.Array:
    """A column of a view, or nulls where it has none; times as all views call them, whatever the session's zone is."""
    if column is None:
        return pa.nulls(length, type_)
    return column if column.type == type_ else column.cast(type_)


@dataclass(frozen=True)
class AnswerColumns:
    """The columns that the answers of several windows share.

    Parameters
    ----------
    schema
        The number of the window, its bounds, its number among those of its key, keys, aggregates.
    names
        What is called differently in the answers of a window, and how.
    """

    schema: pa.Schema
    names: Mapping[str, str]

    def batch(self, view: int, answers: pa.RecordBatch) -> pa.RecordBatch:
        """Return the answers of one window with the columns of all."""
        known = {self.names.get(name, name): answers.column(name) for name in answers.schema.names}
        known[VIEW] = pa.array(np.full(len(answers), view, np.int32))
        arrays = [known.get(f.name, pa.nulls(len(answers), f.type)) for f in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


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
