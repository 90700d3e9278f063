"""Parts that share one sorted column, and the columns in which their rows travel to a task or a shard."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from panes.aggregates.operations import Array
from panes.engine.keys import one_zero
from panes.row_windows.bound_rows import BoundRows
from panes.state.held_rows import INSTANT


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
