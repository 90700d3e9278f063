"""Operators of a user's own on Spark: rows shuffled by key and sorted by arrival, or on their way to shards.

A task sees its keys one after another. Where keys are evicted because of others, or there are none, one task sees all
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from panes.aggregates.operations import Array
from panes.applying.operator_shard import OperatedShard
from panes.applying.tuple_by_tuple import answered, rows_of, submitted
from panes.applying.user_operators import WindowedOperator
from panes.engine.keys import INSTANT
from panes.errors import PlanError
from panes.frames import Positions
from panes.frames.row_frame import Arrivals
from panes.operators.policies import eviction_text
from panes.row_windows.arrival import delta_values, marks_of, tie_order
from panes.row_windows.window_input import WindowInput, check_tuples
from panes.spark.batches import large_batches, typed
from panes.spark.binding import arrow_field, check_substitution, check_watermark
from panes.spark.checkpoints import check_declared
from panes.spark.chunks import key_starts, whole_keys
from panes.spark.naming import key, micros, quoted, stored
from panes.spark.processor import unpack_answers
from panes.spark.rows_job import RowsJob
from panes.spark.rows_stream import pack_rows
from panes.spark.shards import METRICS, check_shards, run_shards
from panes.spark.versions import to_spark_type, whole_numbers
from panes.spark.workers import map_in_python
from panes.state.manifest import column_entries

_INSTANT, _TIE = "__panes_instant", "__panes_tie"
_ROWS = 1 << 18


def operated(declared: WindowedOperator, events: DataFrame) -> DataFrame:
    """What an operator submits, one key after another."""
    declared, schema = _checked(declared, events)
    input = declared.input
    names = tie_order(input, schema)
    keys = [F.col(quoted(name)).alias(key(i)) for i, name in enumerate(input.by)]
    own = [F.col(quoted(name)).alias(stored(i)) for i, name in enumerate(schema.names)]
    ties = [F.col(quoted(name)).alias(f"{_TIE}{i}") for i, name in enumerate(names)]
    rows = _arriving(input, events, marks=_of_key(input))
    rows = rows.select(*keys, F.expr(_instant_of(input, events)).alias(_INSTANT), *own, *ties)
    numbered = [key(i) for i in range(len(keys))]
    shuffled = rows.repartition(*numbered) if numbered and not input.together else rows.repartition(1)
    by_arrival = shuffled.sortWithinPartitions(*numbered, _INSTANT, *(f"{_TIE}{i}" for i in range(len(ties))))
    ordered = by_arrival.drop(*(f"{_TIE}{i}" for i in range(len(ties))))
    end, marks = _when(input, events)
    output = _output(declared)
    if input.alone and len(marks) and _arriving(input, events).isEmpty():
        # No task would get any rows, but an operator of all tuples sees punctuations even without rows.
        arrivals = Arrivals(Positions.of_events(np.zeros(0, np.int64), np.zeros(1, np.int64)), 0, punctuations=marks)
        found = rows_of(declared, submitted(declared, schema.empty_table(), arrivals))
        return events.sparkSession.createDataFrame([tuple(row.values()) for row in found.to_pylist()], output)
    return map_in_python(ordered, _Task(declared, schema, end, marks).run(), output)


def operated_stream(
    declared: WindowedOperator, events: DataFrame, shards: int, checkpoint: str | None = None, metrics: str = METRICS
) -> DataFrame:
    """What an operator submits while rows come.

    Parameters
    ----------
    metrics
        What its figures are called, which no others of a query may be.
    """
    declared, columns = _checked(declared, events)
    input = declared.input
    check_shards(events.sparkSession, shards)
    check_watermark(events, str(input.at))
    shards = 1 if input.alone else shards
    recorded = _declared_as(declared, shards, columns)
    job = RowsJob(recorded, partial(OperatedShard, declared, columns, recorded))
    if checkpoint is not None:
        check_declared(events.sparkSession, checkpoint, recorded)
    travels = [(pa.field(INSTANT, pa.int64()), _instant_of(input, events))]
    travels += [(field, quoted(field.name)) for field in columns]
    mark = None if input.mark is None else f"coalesce({quoted(input.mark.column)}, false)"
    conditions = []
    if input.where is not None:
        # A condition need not make sense for a mark.
        where = f"({input.where.sql})"
        conditions = [where if mark is None else f"CASE WHEN {mark} THEN true ELSE {where} END"]
    marked = [input.mark.column] if input.mark is not None and not _of_key(input) else []
    found = run_shards(pack_rows(events, input.by, shards, travels, conditions, marked), job, "append", metrics)
    return map_in_python(found, unpack_answers, _output(declared))


def _checked(declared: WindowedOperator, events: DataFrame) -> tuple[WindowedOperator, pa.Schema]:
    """An operator whose columns are known, and those of the data."""
    if declared.input.at is None:
        raise PlanError(
            "a DataFrame has no order in which its rows could arrive. Write at= with the column of their time."
        )
    check_substitution(events.sparkSession, events.columns)
    schema = pa.schema([arrow_field(field, True) for field in events.schema])
    check_tuples(declared.input, schema, declared.order)
    if declared.order:
        return replace(declared, schema=schema), schema
    if declared.schema is None:
        raise PlanError(
            "Spark has to know what the operator submits before it runs. Write schema= with the columns, as "
            "pa.schema({'n': pa.int64()})."
        )
    return declared, schema


def _output(declared: WindowedOperator) -> t.StructType:
    assert declared.schema is not None
    return t.StructType([t.StructField(field.name, to_spark_type(field.type)) for field in declared.schema])


def _instant_of(input: WindowInput, events: DataFrame) -> str:
    """SQL for the time of a row in µs."""
    assert input.at is not None
    name = input.at.lower()
    return micros(quoted(input.at), next(f.dataType for f in events.schema if f.name.lower() == name))


def _of_key(input: WindowInput) -> bool:
    """Whether marks end windows of their own key, and so travel with its rows."""
    return input.mark is not None and input.mark.scope == "key"


def _arriving(input: WindowInput, events: DataFrame, *, marks: bool = False) -> DataFrame:
    """The rows that are tuples, and optionally the marks."""
    where = "true" if input.where is None else f"coalesce({input.where.sql}, false)"
    if input.mark is not None:
        where = f"CASE WHEN coalesce({quoted(input.mark.column)}, false) THEN {str(marks).lower()} ELSE {where} END"
    return events.where(f"{quoted(str(input.at))} IS NOT NULL AND {where}")


def _when(input: WindowInput, events: DataFrame) -> tuple[int | None, Array]:
    """What every task has to know of all rows: until when the clock runs, and when marks for all keys come."""
    end, marks = None, np.zeros(0, np.int64)
    instant = F.expr(_instant_of(input, events)).alias(_INSTANT)
    if input.timed:
        last = whole_numbers(events.select(instant).agg(F.max(_INSTANT)))[0].as_py()
        end = 0 if last is None else last + 1
    if input.mark is not None and not _of_key(input):
        known = f"{quoted(input.mark.column)} AND {quoted(str(input.at))} IS NOT NULL"
        marks = np.sort(whole_numbers(events.where(known).select(instant)).to_numpy())
    return end, marks


@dataclass(frozen=True)
class _Task:
    """What a task does with its sorted rows: keys, instant, and the columns of the data."""

    declared: WindowedOperator
    schema: pa.Schema
    end: int | None
    punctuations: Array

    def run(self) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """The function of the task."""
        keys, together = len(self.declared.input.by), self.declared.input.together

        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            # All keys at once where they have an influence on each other.
            for chunk, _ in whole_keys(batches, 0 if together else keys, _ROWS):
                yield from large_batches(answered(*self._arrived(chunk, keys)).to_batches())

        return run

    def _arrived(self, chunk: pa.RecordBatch, keys: int) -> tuple[WindowedOperator, pa.Table, Any]:
        input, starts = self.declared.input, key_starts(chunk, keys)
        instants = chunk.column(keys).to_numpy()
        # Tuples have their times in UTC, whatever the zone of the session is.
        columns = [typed(c, field.type) for c, field in zip(chunk.columns[keys + 1 :], self.schema, strict=True)]
        table, marks = pa.Table.from_arrays(columns, schema=self.schema), None
        if _of_key(input):
            assert input.mark is not None
            marked = table.column(input.mark.column).fill_null(False).to_numpy()
            ordinals = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
            present = np.unique(ordinals[~marked])
            marks = marks_of(ordinals[marked], instants[marked], present)
            table, own, instants = table.filter(pa.array(~marked)), ordinals[~marked], instants[~marked]
            starts = np.append(np.searchsorted(own, present), len(own))
        end = int(instants.max(initial=0)) + 1 if self.end is None else self.end
        attributes = delta_values(input.window, table)
        events = Positions.of_events(instants, starts)
        return self.declared, table, Arrivals(events, end, attributes, self.punctuations, marks)


def _declared_as(declared: WindowedOperator, shards: int, columns: pa.Schema) -> dict[str, Any]:
    """What a checkpoint keeps: with anything else its state would mean something else."""
    input = declared.input
    partitioned, evicted = input.window.partitioned, None
    if partitioned is not None and partitioned.evict is not None:
        evicted = eviction_text(partitioned.evict)
    return {
        "window": str(input.window),
        "by": list(input.by),
        "at": input.at,
        "where": None if input.where is None else input.where.sql,
        "ties": list(input.ties),
        "port": input.port,
        "evicted": evicted,
        "shards": shards,
        "operator": declared.declaration,
        "columns": column_entries((quoted(field.name), field.type) for field in columns),
    }
