"""``pn.join`` on Spark: windows in time are joined in the JVM, windows of rows in Python.

Over windows of rows, both sides of a batch are shuffled by key together; those of a stream go to one stateful operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from panes.applying.joined_rows import PORT, BothSides, Condition, both_sides, key_name
from panes.applying.joined_tables import join_tables
from panes.applying.user_operators import operator_of
from panes.errors import PlanError
from panes.queries.join_declarations import JoinDeclaration
from panes.queries.windows import RowWindow
from panes.spark.batches import large_batches, typed
from panes.spark.chunks import whole_keys
from panes.spark.naming import quoted, text
from panes.spark.operated import operated_stream
from panes.spark.shards import metrics_name
from panes.spark.time_joins import (
    JoinSides,
    check_watermarks,
    examine,
    join_batches,
    join_streams,
)
from panes.spark.versions import to_spark_type
from panes.spark.workers import map_in_python

_SIDES = "__panes_left", "__panes_right"
_SHARDS = 4
_ROWS = 1 << 18


def join(declared: JoinDeclaration, left: DataFrame, right: DataFrame) -> DataFrame:
    """Join two DataFrames, batches or streams; nothing runs until the result is used."""
    if left.isStreaming != right.isStreaming:
        stream, batch = ("left", "right") if left.isStreaming else ("right", "left")
        raise PlanError(
            f"the {stream} side is a stream and the {batch} side is not, so it would never be known when its rows have "
            "no more matches to come. Read both as streams, or both as batches."
        )
    sides = examine(declared, left, right)
    found = []
    if declared.sizes:
        found.append(join_streams(sides) if left.isStreaming else join_batches(sides))
    if declared.rows:
        found += join_rows_of_streams(sides) if left.isStreaming else [join_rows(sides)]
    return reduce(lambda one, other: one.unionAll(other), found)


def join_rows(sides: JoinSides) -> DataFrame:
    """Join two batches over all windows of rows; a task sees its keys with the rows of both sides."""
    declared = replace(sides.declared, names=(), sizes=())
    for window in declared.rows:
        both_sides(declared, sides.columns, sides.schemas, window)
    rows = [side.select(F.struct("*").alias(called)) for (side, _, _), called in zip(sides.all, _SIDES, strict=True)]
    placed = []
    for some, called, (_, name, side), kept in zip(rows, _SIDES, sides.all, _kept(declared), strict=True):
        keys = [f"{called}.{name}{i} AS {key_name(number)}" for number, i in enumerate(side.keys)]
        if not kept:
            # Rows that can match nothing need not travel.
            some = some.where(" AND ".join(f"{called}.{name}{i} IS NOT NULL" for i in (*side.keys, side.at)))
        placed.append(some.selectExpr(*keys, called))
    together = placed[0].unionByName(placed[1], allowMissingColumns=True)
    names = [key_name(number) for number in range(len(declared.on))]
    sorted_ = together.repartition(*names).sortWithinPartitions(*names)
    schema = sides.columns.result
    output = t.StructType([t.StructField(field.name, to_spark_type(field.type)) for field in schema])
    return map_in_python(sorted_, _Task(declared, sides.schemas, schema).run(), output)


def _kept(declared: JoinDeclaration) -> tuple[bool, bool]:
    return declared.keeps_left, declared.keeps_right


@dataclass(frozen=True)
class _Task:
    """What a task does with its rows, sorted by key: keys, and the row of one side as a struct."""

    declared: JoinDeclaration
    schemas: tuple[pa.Schema, pa.Schema]
    output: pa.Schema

    def run(self) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """The function of the task."""
        keys = len(self.declared.on)

        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for chunk, _ in whole_keys(batches, keys, _ROWS):
                tables = (self._table(chunk.column(keys + side), schema) for side, schema in enumerate(self.schemas))
                yield from large_batches(join_tables(self.declared, *tables).cast(self.output).to_batches())

        return run

    @staticmethod
    def _table(rows: pa.StructArray, schema: pa.Schema) -> pa.Table:
        present = rows.filter(rows.is_valid())
        columns = [typed(column, field.type) for column, field in zip(present.flatten(), schema, strict=True)]
        return pa.Table.from_arrays(columns, schema=schema)


def join_rows_of_streams(sides: JoinSides) -> list[DataFrame]:
    """Join two streams over the windows of rows; each is a stateful operator of its own."""
    check_watermarks(sides)
    for key, i in zip(sides.declared.on, sides.columns.left.keys, strict=True):
        type_ = sides.schemas[0].field(i).type
        if pa.types.is_nested(type_):
            raise PlanError(
                f"on={key!r} holds {type_}, and on a stream keys of windows of rows are single values. Take a field "
                "of it, or its text."
            )
    return [_over_rows(sides, window, metrics_name(number)) for number, window in enumerate(sides.declared.rows)]


def _over_rows(sides: JoinSides, window: RowWindow, metrics: str) -> DataFrame:
    declared, match = sides.declared, sides.columns.match
    both = both_sides(declared, sides.columns, sides.schemas, window)
    # Which rows have no match is known inside; matches themselves can be looked at afterwards.
    inside = declared.where is not None and declared.how != "inner"
    make = both.operator(Condition(declared.where, match) if inside and declared.where is not None else None)
    operator = operator_of(both.input, make, match)
    if inside:
        assert declared.where is not None
        operator = replace(operator, declaration=f"{operator.declaration}, where={declared.where.sql}")
    found = operated_stream(operator, _together(sides, both), _SHARDS, metrics=metrics)
    if declared.where is not None and not inside:
        found = found.where(declared.where.sql)
    own = [quoted(name) for name in match.names]
    expires = f"CAST(NULL AS {sides.time.simpleString()}) AS expires"
    return found.selectExpr(f"{text(window.suffix)} AS window_name", *own, expires)


def _together(sides: JoinSides, both: BothSides) -> DataFrame:
    """The rows of both sides, with the numbers of their ports."""
    placed = []
    for port, ((rows, name, _), other) in enumerate(zip(sides.all, (sides.right, sides.left), strict=True)):
        columns = [F.lit(port).alias(PORT)]
        for called, places in both.places.items():
            # Only the column of a side that has it: a null of the other's type beside it.
            column = F.col(f"{name}{places[port]}") if places[port] is not None else _null(other, called)
            columns.append(column.alias(called))
        some = rows.select(*columns)
        if not _kept(sides.declared)[port]:
            some = some.where(" AND ".join(f"{called} IS NOT NULL" for called in both.keys))
        placed.append(some)
    return placed[0].unionByName(placed[1])


def _null(other: DataFrame, called: str) -> Any:
    return F.lit(None).cast(other.schema[called].dataType)
