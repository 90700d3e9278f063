"""Windows by policy on Spark: rows shuffled by partition once, sorted by arrival, answered in columns.

A task sees its partitions one after another. Where partitions are evicted because of others, or there are none, one
task sees all rows: such windows are one window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_type

from panes.algebra.operations import Array
from panes.engine.keys import one_zero
from panes.engine.program import argument_expressions
from panes.errors import PlanError
from panes.local.arriving import arrivals_of, check_stream, check_tuples, tie_order
from panes.local.windowed_aggregates import BoundAggregates, answer, bind_aggregates, used_columns, windows_of
from panes.local.windowed_operators import answered, submitted, table_of
from panes.operators.over_tables import Stream, WindowedAggregates, WindowedOperator
from panes.spark.batches import large_batches
from panes.spark.binding import arrow_field, examine
from panes.spark.chunks import key_starts, keys_of, whole_keys
from panes.spark.naming import key, micros, quoted, stored
from panes.spark.packing import typed

_INSTANT, _DELTA, _GROUP, _TIE = "__panes_instant", "__panes_delta", "__panes_group", "__panes_tie"
_ROWS = 1 << 18
Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
Answer = Callable[[Iterable[pa.RecordBatch]], Iterator[tuple[int, pa.Table]]]


def windowed(declared: WindowedAggregates, events: DataFrame) -> DataFrame:
    """Aggregates over every window; nothing runs until the result is used, but what ``_when`` has to know."""
    stream, query = declared.stream, declared.query
    _check_time(stream)
    source = examine([query], events)
    check_stream(stream, source.schema)
    types = source.types_of(argument_expressions([(0, query)], query.where))
    bound = bind_aggregates(declared, source.schema, types.__getitem__)
    ordered = sorted_rows(bound, events, tie_order(stream, used_columns(declared), source.schema))
    schema = t.StructType([t.StructField(field.name, from_arrow_type(field.type)) for field in bound.schema])
    answer = answers_of((bound,), *_when(stream, events))

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from large_batches(batch for _, table in answer(batches) for batch in table.to_batches())

    return ordered.mapInArrow(run, schema)


def sorted_rows(bound: BoundAggregates, events: DataFrame, names: Sequence[str]) -> DataFrame:
    """What windows need of the rows, shuffled by partition, in the order of arrival; names are those of ties."""
    stream = bound.declared.stream
    rows = _arriving(stream, events)
    kept = [
        *_head(stream, events),
        *(F.expr(sql).alias(stored(i)) for i, sql in enumerate(bound.arguments)),
        *(F.col(quoted(name)).alias(f"{_DELTA}{i}") for i, name in enumerate(stream.deltas)),
        *(F.col(quoted(name)).alias(f"{_GROUP}{i}") for i, name in enumerate(bound.groups)),
    ]
    ties = [F.col(quoted(name)).alias(f"{_TIE}{i}") for i, name in enumerate(names)]
    return _sorted(stream, rows.select(*kept, *ties), len(ties)).drop(*(f"{_TIE}{i}" for i in range(len(ties))))


def operated(declared: WindowedOperator, events: DataFrame) -> DataFrame:
    """What an operator submits, one partition after another."""
    stream = declared.stream
    _check_time(stream)
    submitted_as = check_schema(declared)
    schema = pa.schema([arrow_field(field, True) for field in events.schema])
    check_tuples(stream, schema)
    names = tie_order(stream, schema.names, schema)
    own = [F.col(quoted(name)).alias(stored(i)) for i, name in enumerate(schema.names)]
    ties = [F.col(quoted(name)).alias(f"{_TIE}{i}") for i, name in enumerate(names)]
    rows = _arriving(stream, events).select(*_head(stream, events), *own, *ties)
    ordered = _sorted(stream, rows, len(ties)).drop(*(f"{_TIE}{i}" for i in range(len(ties))))
    output = t.StructType([t.StructField(field.name, from_arrow_type(field.type)) for field in submitted_as])
    end, marks = _when(stream, events)
    if stream.alone and len(marks) and _arriving(stream, events).isEmpty():
        # No task would be given anything, and the operator of all tuples is told of punctuations without any.
        none, nobody = np.zeros(0, np.int64), np.zeros(1, np.int64)
        arrivals = arrivals_of(stream, schema.empty_table(), none, nobody, 0, marks)
        found = table_of(declared, submitted(declared, schema.empty_table(), arrivals))
        return events.sparkSession.createDataFrame(found, output)
    return ordered.mapInArrow(_Operators(declared, schema, end, marks).task(), output)


def check_schema(declared: WindowedOperator) -> pa.Schema:
    """What an operator submits, which Spark has to know."""
    if declared.schema is None:
        raise PlanError(
            "Spark has to know what the operator submits before it runs. Write schema= with the columns, as "
            "pa.schema({'n': pa.int64()})."
        )
    return declared.schema


def _check_time(stream: Stream) -> None:
    if stream.at is None:
        raise PlanError("a DataFrame has no order in which its rows could arrive. Write at= with their time.")


def instant_of(stream: Stream, events: DataFrame) -> str:
    """SQL for the time of a row in µs."""
    assert stream.at is not None
    name = stream.at.lower()
    return micros(quoted(stream.at), next(f.dataType for f in events.schema if f.name.lower() == name))


def _arriving(stream: Stream, events: DataFrame) -> DataFrame:
    """The rows that are tuples."""
    assert stream.at is not None
    conditions = [f"{quoted(stream.at)} IS NOT NULL"]
    if stream.punctuations is not None:
        conditions.append(f"NOT coalesce({quoted(stream.punctuations)}, false)")
    if stream.where is not None:
        conditions.append(f"({stream.where.sql})")
    return events.where(" AND ".join(conditions))


def _head(stream: Stream, events: DataFrame) -> list[Column]:
    keys = [F.col(quoted(name)).alias(key(i)) for i, name in enumerate(stream.by)]
    return [*keys, F.expr(instant_of(stream, events)).alias(_INSTANT)]


def _sorted(stream: Stream, rows: DataFrame, ties: int) -> DataFrame:
    names = [key(i) for i in range(len(stream.by))]
    shuffled = rows.repartition(*names) if names and not stream.together else rows.repartition(1)
    return shuffled.sortWithinPartitions(*names, _INSTANT, *(f"{_TIE}{i}" for i in range(ties)))


def _when(stream: Stream, events: DataFrame) -> tuple[int | None, Array]:
    """What every task has to know of all rows: until when the clock runs, and when punctuations come."""
    end, punctuations = None, np.zeros(0, np.int64)
    instant = F.expr(instant_of(stream, events)).alias(_INSTANT)
    if stream.timed:
        last = _arriving(stream, events).select(instant).agg(F.max(_INSTANT)).toArrow().column(0)[0].as_py()
        end = 0 if last is None else last + 1
    if stream.punctuations is not None:
        known = f"{quoted(stream.punctuations)} AND {quoted(str(stream.at))} IS NOT NULL"
        found = events.where(known).select(instant).toArrow().column(0)
        punctuations = np.sort(found.to_numpy())
    return end, punctuations


@dataclass(frozen=True)
class _Chunks:
    """How the sorted rows of a task are cut, and when things happen."""

    end: int | None
    punctuations: Array

    def chunks(self, stream: Stream, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, Array]]:
        """Whole partitions; all of them at once where they have an influence on each other."""
        if not stream.together:
            yield from whole_keys(batches, len(stream.by), _ROWS)
            return
        for chunk, _ in whole_keys(batches, 0, _ROWS):
            yield chunk, key_starts(chunk, len(stream.by))

    def until(self, instants: Array) -> int:
        """Until when the clock runs."""
        return int(instants.max()) + 1 if self.end is None else self.end


def answers_of(bounds: Sequence[BoundAggregates], end: int | None, punctuations: Array | None = None) -> Answer:
    """What a task does with sorted rows: the answers of every window, with its number, chunk after chunk.

    Parameters
    ----------
    bounds
        What is computed over each of some windows; all have the same keys, arguments and groups.
    end, punctuations
        Until when the clock runs, if that is the same for all chunks, and when punctuations come.
    """
    cut = _Chunks(end, np.zeros(0, np.int64) if punctuations is None else punctuations)
    one = bounds[0]
    stream = one.declared.stream
    keys, deltas, groups = len(stream.by), len(stream.deltas), len(one.groups)
    first = keys + 1 + len(one.arguments)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
        for chunk, starts in cut.chunks(stream, batches):
            instants = chunk.column(keys).to_numpy()
            attributes = pa.table(chunk.columns[first : first + deltas], names=list(stream.deltas))
            own = [one_zero(column) for column in keys_of(chunk, keys, starts)]
            inside = [one_zero(column) for column in chunk.columns[first + deltas : first + deltas + groups]]
            arguments = dict(zip(one.arguments, chunk.columns[keys + 1 : first], strict=True))
            arrivals = arrivals_of(stream, attributes, instants, starts, cut.until(instants), cut.punctuations)
            for number, bound in enumerate(bounds):
                windows = windows_of(bound.declared, arrivals)
                yield number, answer(bound, arrivals, *windows, own, inside, arguments)

    return run


@dataclass(frozen=True)
class _Operators:
    declared: WindowedOperator
    schema: pa.Schema
    end: int | None
    punctuations: Array

    def task(self) -> Task:
        """The function of a task, whose rows are keys, instant, and the columns of the data."""
        declared, schema, cut = self.declared, self.schema, _Chunks(self.end, self.punctuations)
        stream = declared.stream
        keys = len(stream.by)

        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for chunk, starts in cut.chunks(stream, batches):
                instants = chunk.column(keys).to_numpy()
                # Tuples have their times in UTC, whatever the zone of the session is.
                columns = [typed(c, field.type) for c, field in zip(chunk.columns[keys + 1 :], schema, strict=True)]
                table = pa.Table.from_arrays(columns, schema=schema)
                arrivals = arrivals_of(stream, table, instants, starts, cut.until(instants), cut.punctuations)
                yield from answered(declared, table, arrivals).to_batches()

        return run
