"""Windows by policy on Structured Streaming: rows by shard, one stateful operator, answers unpacked.

Rows arrive at windows when the watermark has passed them, in the order of time and of values, as in a batch. What
travels, lies in the state store and comes out are packed columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_type

from panes.engine.cabinet import new_name
from panes.engine.program import argument_expressions
from panes.engine.schema import field_of
from panes.errors import PlanError
from panes.local.arriving import check_stream, check_tuples, tie_order
from panes.local.waiting import INSTANT
from panes.local.windowed_aggregates import BoundAggregates, bind_aggregates, used_columns
from panes.local.windowed_stream import Shape
from panes.operators.declarations import WindowDeclaration
from panes.operators.over_tables import Stream, WindowedAggregates, WindowedOperator
from panes.spark.binding import Input, arrow_field, examine
from panes.spark.checkpoints import check_declared
from panes.spark.naming import quoted
from panes.spark.operator import ShardProcessor
from panes.spark.processor import DATA, FIGURES, HIGHEST, OUTPUT, unpack_answers
from panes.spark.stream import METRICS, check_shards, prepare
from panes.spark.watermarks import check_watermark
from panes.spark.windowed_job import (
    MARK,
    SHARD,
    TRAVELLING,
    AggregatesJob,
    Numbered,
    OperatorJob,
    WindowedJob,
    packing,
)
from panes.spark.windowed_tables import check_schema, instant_of


def windowed_stream(
    declared: WindowedAggregates, events: DataFrame, shards: int, checkpoint: str | None = None
) -> DataFrame:
    """Aggregates over every window while rows come; nothing runs until the result is written somewhere."""
    stream, query = declared.stream, declared.query
    check_streaming(stream, events, shards)
    source = examine([query], events)
    check_stream(stream, source.schema)
    types = source.types_of(argument_expressions([(0, query)], query.where))
    bound = bind_aggregates(declared, source.schema, types.__getitem__)
    ties = tie_order(stream, used_columns(declared), source.schema)
    return aggregates_stream((bound,), source, ties, shards, _spark(bound.schema), checkpoint=checkpoint)


def aggregates_stream(
    bounds: tuple[BoundAggregates, ...],
    source: Input,
    ties: Sequence[str],
    shards: int,
    output: t.StructType,
    numbered: Numbered | None = None,
    metrics: str = METRICS,
    checkpoint: str | None = None,
) -> DataFrame:
    """Aggregates over some windows of the same keys and arguments, in one operator.

    Parameters
    ----------
    ties
        The columns that order rows of one instant.
    output, numbered
        The columns that come out, and how those of several windows do.
    metrics
        What the figures of a micro-batch are called.
    checkpoint
        Where the stream will have its checkpoint, to be checked now.
    """
    bound = bounds[0]
    stream = bound.declared.stream
    groups = (stream.by, stream.deltas, bound.groups, ties)
    keys, deltas, members, orders = (tuple(field_of(source.schema, name).type for name in names) for names in groups)
    arguments = tuple(source.types_of(bound.arguments)[sql] for sql in bound.arguments)
    shape = Shape(keys, arguments, deltas, members, orders)
    sqls = [
        *map(quoted, stream.by),
        instant_of(stream, source.events),
        *(_where_it_counts(sql, stream) for sql in bound.arguments),
        *map(quoted, (*stream.deltas, *bound.groups, *ties)),
    ]
    windows = [each.declared.stream.window for each in bounds]
    names = (*stream.by, *bound.arguments, *stream.deltas, *bound.groups, *ties)
    types = (*keys, *arguments, *deltas, *members, *orders)
    declared_as = _declared_as(stream, windows, shards, zip(names, types, strict=True))
    job = AggregatesJob(declared_as, bounds, shape, numbered)
    return _run(stream, source.events, shards, shape.schema, sqls, job, output, metrics, checkpoint)


def operated_stream(
    declared: WindowedOperator, events: DataFrame, shards: int, checkpoint: str | None = None
) -> DataFrame:
    """What an operator submits while rows come."""
    stream = declared.stream
    check_streaming(stream, events, shards)
    output = check_schema(declared)
    columns = pa.schema([arrow_field(field, True) for field in events.schema])
    check_tuples(stream, columns)
    schema = columns.insert(0, pa.field(INSTANT, pa.int64()))
    sqls = [instant_of(stream, events), *map(quoted, columns.names)]
    types = [(field.name, field.type) for field in columns]
    declared_as = _declared_as(stream, [stream.window], shards, types, declared.declaration)
    job = OperatorJob(declared_as, declared, columns)
    return _run(stream, events, shards, schema, sqls, job, _spark(output), METRICS, checkpoint)


def check_streaming(stream: Stream, events: DataFrame, shards: int) -> None:
    """Refuse what cannot run as a stream, and set what it needs."""
    if stream.at is None:
        raise PlanError("a stream has no order in which its rows could arrive. Write at= with their time.")
    check_shards(shards)
    check_watermark(events, stream.at)
    prepare(events.sparkSession)


def _run(
    stream: Stream,
    events: DataFrame,
    shards: int,
    schema: pa.Schema,
    sqls: Sequence[str],
    job: WindowedJob,
    output: t.StructType,
    metrics: str,
    checkpoint: str | None,
) -> DataFrame:
    if checkpoint is not None:
        check_declared(events.sparkSession, checkpoint, job.declared_as)
    shards = _used(stream, shards)
    mark = "false" if stream.punctuations is None else f"coalesce({quoted(stream.punctuations)}, false)"
    hashed = f"pmod(xxhash64({', '.join(map(quoted, stream.by))}), {shards})" if shards > 1 else "0"
    arriving = events if stream.where is None else events.where(f"{mark} OR ({stream.where.sql})")
    columns = [f"{sql} AS {quoted(name)}" for sql, name in zip(sqls, schema.names, strict=True)]
    rows = arriving.selectExpr(f"CAST({hashed} AS INT) AS {SHARD}", f"{mark} AS {MARK}", *columns)
    packed = rows.mapInArrow(packing(schema, shards, new_name()), ", ".join(map(" ".join, TRAVELLING.items())))
    operator = ShardProcessor(cloudpickle.dumps(job))  # type: ignore[no-untyped-call]
    worked = packed.groupBy("shard").transformWithState(operator, OUTPUT, "append", "EventTime")
    figures = [(F.max if name in HIGHEST else F.sum)(name).alias(name) for name in FIGURES]
    found = worked.observe(metrics, *figures).where(f"{DATA} IS NOT NULL").select(DATA)
    return found.mapInArrow(unpack_answers, output)


def _spark(schema: pa.Schema) -> t.StructType:
    return t.StructType([t.StructField(field.name, from_arrow_type(field.type)) for field in schema])


def _used(stream: Stream, shards: int) -> int:
    """Windows that have an influence on each other, or are one, are in one shard."""
    return 1 if stream.alone else shards


def _where_it_counts(sql: str, stream: Stream) -> str:
    """An argument; of a punctuation it may not even have a value."""
    if stream.punctuations is None:
        return sql
    return f"CASE WHEN NOT coalesce({quoted(stream.punctuations)}, false) THEN {sql} END"


def _declared_as(
    stream: Stream,
    windows: Sequence[WindowDeclaration],
    shards: int,
    columns: Iterable[tuple[str, pa.DataType]],
    operator: str | None = None,
) -> dict[str, Any]:
    """What a checkpoint keeps: with anything else its state would mean something else.

    Parameters
    ----------
    columns
        What is kept of rows, by the names and expressions of the user.
    operator
        Which one, and what it was declared with; None where aggregates are computed.
    """
    partitioned = stream.window.partitioned
    evicted = None
    if partitioned is not None and partitioned.evict is not None:
        selected = partitioned.select if isinstance(partitioned.select, str) else "by a function"
        evicted = f"{partitioned.evict}, {selected}"
    return {
        "window": "; ".join(map(str, windows)),
        "by": list(stream.by),
        "at": stream.at,
        "where": None if stream.where is None else stream.where.sql,
        "punctuations": stream.punctuations,
        "port": stream.port,
        "evicted": evicted,
        "shards": _used(stream, shards),
        "operator": operator,
        "columns": [f"{name} {type_}" for name, type_ in columns],
    }
