"""Windows of queries that go by the events themselves, on Spark: all windows of a query from one sorted shuffle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_type

from panes.declare.windows import Window
from panes.engine.program import View, argument_expressions
from panes.engine.schema import ResultSchema
from panes.local.arriving import ENDLESS, tie_order
from panes.local.rows_queries import schema_of
from panes.local.windowed_aggregates import BoundAggregates, bind_aggregates
from panes.operators.over_queries import RowsQuery
from panes.spark.binding import Input, examine
from panes.spark.finish import Shape, finish_many
from panes.spark.naming import END, START, VIEW, key
from panes.spark.windowed_job import Numbered
from panes.spark.windowed_streams import aggregates_stream, check_streaming
from panes.spark.windowed_tables import Task, answers_of, sorted_rows
from panes.timeline import Geometry


@dataclass(frozen=True)
class Prepared:
    """A query with the types of its columns."""

    asked: RowsQuery
    source: Input
    bounds: tuple[BoundAggregates, ...]
    schema: ResultSchema

    @property
    def ties(self) -> list[str]:
        """The columns that order events of one instant."""
        return tie_order(self.asked.windows[0].stream, self.asked.query.used, self.source.schema)

    @property
    def numbered(self) -> Numbered:
        """How answers of several windows travel together."""
        columns = tuple(reading.alias for reading in self.bounds[0].readings)
        return Numbered(self.asked.after, self.asked.query.by, columns)

    @property
    def travelling(self) -> t.StructType:
        """The columns in which they do."""
        query, source = self.asked.query, self.source
        instant = source.spark_type(query.at)
        return t.StructType(
            [
                t.StructField(VIEW, t.IntegerType(), nullable=False),
                t.StructField(START, instant, nullable=False),
                t.StructField(END, instant, nullable=False),
                *(t.StructField(key(i), source.spark_type(name)) for i, name in enumerate(query.by)),
                *(t.StructField(r.alias, from_arrow_type(r.bound.type)) for r in self.bounds[0].readings),
            ]
        )

    def finished(self, answers: DataFrame) -> DataFrame:
        """Answers with names, derived columns and ``having``."""
        query, readings = self.asked.query, self.bounds[0].readings
        # Only their names are asked for.
        views = [View(0, Window(Geometry(1, 1), name), readings, None) for name in self.asked.names]
        shape = Shape(
            {name: self.source.spark_type(name) for name in self.schema.keys},
            {name: from_arrow_type(type_) for name, type_ in self.schema.columns.items()},
        )
        return finish_many(answers, views, query.by, [query], shape)


def prepare_rows(asked: RowsQuery, events: DataFrame) -> Prepared:
    """Find every mistake without a job."""
    query = asked.query
    source = examine([asked.windows[0].query], events)
    types = source.types_of(argument_expressions([(0, asked.windows[0].query)], query.where))
    bounds = tuple(bind_aggregates(each, source.schema, types.__getitem__) for each in asked.windows)
    return Prepared(asked, source, bounds, schema_of(asked, bounds[0], source.schema))


def run_rows(prepared: Prepared) -> DataFrame:
    """Answer a query; nothing runs until the result is used."""
    rows = sorted_rows(prepared.bounds[0], prepared.source.events, prepared.ties)
    return prepared.finished(rows.mapInArrow(_task(prepared.bounds, prepared.numbered), prepared.travelling))


def stream_rows(prepared: Prepared, shards: int, metrics: str, checkpoint: str | None = None) -> DataFrame:
    """Answer a query while events come; a checkpoint that cannot serve it is refused now."""
    stream = prepared.asked.windows[0].stream
    check_streaming(stream, prepared.source.events, shards)
    answers = aggregates_stream(
        prepared.bounds,
        prepared.source,
        prepared.ties,
        shards,
        prepared.travelling,
        prepared.numbered,
        metrics,
        checkpoint,
    )
    return prepared.finished(answers)


def _task(bounds: tuple[BoundAggregates, ...], numbered: Numbered) -> Task:
    answer = answers_of(bounds, ENDLESS)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, table in answer(batches):
            for batch in table.combine_chunks().to_batches():
                yield numbered.batch(number, batch)

    return run
