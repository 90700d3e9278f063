"""A key set: parts that share one sorted column, and the columns in which their rows are sent to a task or a shard.

``SentColumns`` names these columns, ``Own`` says which of them a part uses, and ``PartRows`` reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.engine.keys import INSTANT, one_zero
from panes.row_windows.bound_rows import BoundRows, RowInstances

MARK = "mark"
"""The column of waiting rows that says whether one is a mark of its key."""

WITHOUT_KEYS = pa.schema([("everything", pa.int32())])
"""The key column of rows without keys."""


def without_keys(rows: int) -> pa.RecordBatch:
    """Return the one key of rows without keys, a row per row."""
    return pa.RecordBatch.from_arrays([pa.array(np.zeros(rows, np.int32))], schema=WITHOUT_KEYS)


@dataclass(frozen=True)
class SentColumns:
    """The columns in which rows are sent, in this order.

    Parameters
    ----------
    keys, arguments, deltas, groups, flags, ties
        The types of keys, of arguments of aggregates, of columns that sizes and paces are measured in, of groups; how
        many columns say whether a row counts somewhere; and the types of what orders rows of one instant.
    """

    keys: tuple[pa.DataType, ...]
    arguments: tuple[pa.DataType, ...]
    deltas: tuple[pa.DataType, ...]
    groups: tuple[pa.DataType, ...]
    flags: int
    ties: tuple[pa.DataType, ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns of rows."""
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

    @property
    def key_schema(self) -> pa.Schema:
        """The columns of keys; without keys one that is always 0."""
        return pa.schema([(f"key{i}", type_) for i, type_ in enumerate(self.keys)]) if self.keys else WITHOUT_KEYS

    def keys_of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the keys of rows."""
        if not self.keys:
            return without_keys(len(rows))
        schema = self.key_schema
        return pa.RecordBatch.from_arrays([one_zero(rows.column(name)) for name in schema.names], schema=schema)

    def ties_of(self, rows: pa.RecordBatch) -> list[pa.ChunkedArray]:
        """Return the columns that order rows of one instant."""
        return [pa.chunked_array([rows.column(f"tie{i}")]) for i in range(len(self.ties))]


@dataclass(frozen=True)
class Own:
    """The columns of a part.

    Parameters
    ----------
    arguments, groups
        The numbers of its columns.
    passes, mark
        The flags that say whether a row counts, and whether it is a mark of its key; None if all count, and none is a
        mark.
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
    sent
        The columns in which rows are sent.
    """

    bounds: tuple[BoundRows, ...]
    own: tuple[Own, ...]
    sent: SentColumns

    def first_view(self, part: int) -> int:
        """Return the number of the first window of a part among those of all parts."""
        return sum(len(bound.part.windows) for bound in self.bounds[:part])

    def rows_of(self, part: int, rows: pa.RecordBatch) -> PartRows:
        """Return the rows of a part, in the same order."""
        own, bound = self.own[part], self.bounds[part]
        marks = None
        if own.mark is not None:
            marked = rows.column(f"flag{own.mark}").fill_null(False).to_numpy(zero_copy_only=False)
            marks = rows.filter(pa.array(marked))
        if own.passes is not None:
            rows = rows.filter(rows.column(f"flag{own.passes}").fill_null(False))
        return PartRows(bound, own, self.sent, rows, marks)

    def waiting_schema(self, part: int) -> pa.Schema:
        """Return the columns of rows of a part that wait for the watermark: without those that only others need."""
        own = self.own[part]
        used = {f"argument{i}" for i in own.arguments} | {f"group{i}" for i in own.groups}
        kept = [
            field
            for field in self.sent.schema
            if not field.name.startswith(("argument", "group", "flag")) or field.name in used
        ]
        return pa.schema([*kept, (MARK, pa.bool_())] if own.mark is not None else kept)


@dataclass(frozen=True, eq=False)
class PartRows:
    """Rows of a part, and the rows that are marks of their key."""

    bound: BoundRows
    own: Own
    sent: SentColumns
    rows: pa.RecordBatch
    marks: pa.RecordBatch | None = None

    @property
    def keys(self) -> list[pa.Array]:
        """The columns of keys, a row per row."""
        return [self.rows.column(f"key{i}") for i in range(len(self.sent.keys))]

    @property
    def instants(self) -> Array:
        """When rows arrive."""
        instants: Array = self.rows.column(INSTANT).to_numpy()
        return instants

    @cached_property
    def arguments(self) -> dict[str, pa.Array]:
        """The values of each argument, a row per row."""
        numbers = zip(self.bound.arguments, self.own.arguments, strict=True)
        return {sql: self.rows.column(f"argument{i}") for sql, i in numbers}

    @cached_property
    def groups(self) -> list[pa.Array]:
        """The columns of groups, a row per row."""
        return [one_zero(self.rows.column(f"group{i}")) for i in self.own.groups]

    @property
    def attributes(self) -> pa.Table:
        """The columns that sizes and paces are measured in."""
        deltas = self.bound.part.deltas
        return pa.table([self.rows.column(f"delta{i}") for i in range(len(deltas))], names=list(deltas))

    def answer(self, number: int, instances: RowInstances) -> pa.Table:
        """Return the answers of a window of the part over the instances that these rows make."""
        if not len(instances.frame):
            return self.bound.answers.empty_table()
        return self.bound.answer(number, instances, self.arguments, self.groups)

    def waiting(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the rows and the marks in the columns in which they wait."""
        for rows, is_mark in ((self.rows, False), (self.marks, True)):
            if rows is not None and len(rows):
                marked = pa.array(np.full(len(rows), is_mark))
                columns = [marked if field.name == MARK else rows.column(field.name) for field in schema]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)
