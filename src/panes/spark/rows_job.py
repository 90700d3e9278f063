"""What the shards of windows of rows and of operators do: rows and marks arrive, answers leave.

Workers import this module; a job brings the class of its shards with it, so that they import nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import Row

from panes.spark.batches import AnswerColumns
from panes.spark.packing import READ, joined_marks
from panes.state.blob_store import BlobStore, unpack
from panes.state.held_rows import no_marks
from panes.state.job import ShardMetrics


class TakesRows(Protocol):
    """A shard that takes rows and marks."""

    opened: bool
    metrics: ShardMetrics

    @property
    def watermark(self) -> int:
        """The watermark of the last micro-batch."""

    def steps(
        self, rows: Sequence[pa.RecordBatch], marks: pa.RecordBatch, watermark: int
    ) -> Iterator[list[tuple[int, pa.Table]]]:
        """Take in a micro-batch, and return answers with the numbers of their windows; all of it must be consumed."""


@dataclass(frozen=True)
class RowsJob:
    """What the shards of windows of rows, or of an operator, do.

    Parameters
    ----------
    declared
        What a checkpoint must have been written with.
    open
        Opens a shard.
    columns
        The columns of answers; None where they leave as they are.
    """

    declared: dict[str, Any]
    open: Callable[[BlobStore], TakesRows]
    columns: AnswerColumns | None = None

    def collect(self, rows: Iterator[Row]) -> ArrivedRows:
        """Collect what a micro-batch brings to a shard."""
        arrived = ArrivedRows()
        for row in rows:
            arrived.add(row)
        return arrived

    def answer(
        self, shard: TakesRows, arrived: ArrivedRows, watermark: int, *, first: bool
    ) -> Iterator[Iterable[pa.RecordBatch]]:
        """Return the answers of a shard, some windows or some time at once."""
        for found in shard.steps(arrived.rows, joined_marks(arrived.marks), watermark):
            batches = ((view, batch) for view, table in found for batch in table.combine_chunks().to_batches())
            yield (batch if self.columns is None else self.columns.batch(view, batch) for view, batch in batches)


@dataclass
class ArrivedRows:
    """What a micro-batch brings to a shard: its rows, marks for all keys, counts."""

    rows: list[pa.RecordBatch] = field(default_factory=list)
    marks: list[pa.RecordBatch] = field(default_factory=lambda: [no_marks()])
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, row: Row) -> None:
        """Add a row."""
        if row.rows is not None:
            self.rows.append(unpack(row.rows).replace_schema_metadata(None))
        else:
            self.marks.append(unpack(row.marks).replace_schema_metadata(None))
            self.counts.update({name: row[name] for name in READ})

    @property
    def anything(self) -> bool:
        """Whether it brings anything but empty counts."""
        return bool(self.rows or any(map(len, self.marks)) or any(self.counts.values()))
