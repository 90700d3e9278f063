"""The native strategy: Spark's own ``groupBy(window(...))``, once per query and window.

Where sharing cannot pay (a single tumbling window), nothing is faster than this.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from panes.declare.expressions import expression
from panes.declare.query import Query
from panes.declare.windows import Window
from panes.spark.binding import Input
from panes.spark.naming import micros, quoted


def native(query: Query, declared: Window, source: Input) -> DataFrame:
    """The answers of a query over one window: ``window``, its keys, its aggregates."""
    geometry = declared.geometry
    at = quoted(query.at)
    events = source.events.where(F.expr(f"{at} IS NOT NULL"))
    if query.where is not None:
        events = events.where(F.expr(query.where.sql))
    slide, size = geometry.slide, min(geometry.range, geometry.slide)
    if geometry.range < geometry.slide:
        # Spark has no windows with gaps: group by slide, without the events in the gaps.
        instant = micros(at, source.spark_type(query.at))
        events = events.where(F.expr(f"pmod({instant} - {geometry.offset}L, {slide}L) < {size}L"))
    length = max(geometry.range, slide)
    window = F.window(at, _interval(length), _interval(slide), _interval(geometry.offset))
    grouped = events.groupBy(window.alias("window"), *(F.col(quoted(name)) for name in query.by))
    answers = grouped.agg(*_aggregates(query))
    if geometry.range >= geometry.slide and not declared.shift:
        return answers
    # Spark's windows have no gaps, and hold their start and not their end.
    start, end = (
        F.expr(f"window.start + INTERVAL '{micros}' MICROSECOND")
        for micros in (-declared.shift, geometry.range - declared.shift)
    )
    return answers.withColumn("window", F.struct(start.alias("start"), end.alias("end")))


def _aggregates(query: Query) -> list[Column]:
    columns = []
    for alias, aggregate in query.aggregates:
        arguments = tuple(expression(argument).sql for argument in aggregate.arguments)
        if aggregate.by_time:
            arguments = (*map(quoted, (query.at, *query.ties)), *arguments)
        sql = aggregate.native(arguments)
        assert sql is not None
        columns.append(F.expr(sql).alias(alias))
    return columns


def _interval(micros: int) -> str:
    return f"{micros} microseconds"
