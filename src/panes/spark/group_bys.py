"""Strategies that run in the JVM alone: Spark's own windows, and a tree of group-bys.

``native`` is one ``groupBy(window(...))`` per query and window: the fastest where sharing cannot pay, as for a single
tumbling window. ``rewrite`` is the tree of the factor-window paper (section III-C): each window is a group-by over the
partials of its provider, and readers of one provider share its shuffle.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from panes.engine.keys import START
from panes.engine.program import Node, Program, View
from panes.expressions.expression import expression
from panes.planning.physical_plan import StorePlan
from panes.queries.query import Query
from panes.queries.windows import Window
from panes.spark.binding import Input
from panes.spark.columnar import keep_events
from panes.spark.finish import WindowRows
from panes.spark.naming import instant, key, micros, quoted, stored
from panes.timeline import Geometry


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


_WINDOW, _INSTANT = "__panes_window", "__panes_instant"


def from_events(store: StorePlan, program: Program, node: Node, source: Input) -> DataFrame:
    """The groups of a window that is read from the events."""
    instant = micros(quoted(store.at), source.spark_type(store.at))
    keys = [F.col(quoted(name)).alias(key(i)) for i, name in enumerate(store.keys)]
    events = keep_events(store, source)
    geometry = node.geometry
    if geometry.range < geometry.slide:
        events = events.where(F.expr(f"pmod({instant} - {geometry.offset}L, {geometry.slide}L) < {geometry.range}L"))
    # Spark's own window expands hopping windows in generated code, faster than exploding a sequence.
    at = F.col(quoted(store.at))
    length = max(geometry.range, geometry.slide)
    window = F.window(at, f"{length} microseconds", f"{geometry.slide} microseconds", f"{geometry.offset} microseconds")
    # Times are columns before the grouping, for aggregates that need them; otherwise Spark drops them.
    placed = events.withColumn(_WINDOW, window)
    start = micros(f"{_WINDOW}.start", source.spark_type(store.at))
    placed = placed.selectExpr("*", f"{instant} AS {_INSTANT}", f"{start} AS {START}")
    built = [F.expr(program.components[i].build_from(_INSTANT, START)).alias(stored(i)) for i in node.needed]
    grouped = placed.groupBy(_WINDOW, *keys).agg(*built)
    columns = [*(key(i) for i in range(len(keys))), *(stored(i) for i in node.needed)]
    return grouped.select(F.expr(start).alias(START), *columns)


def from_partials(store: StorePlan, program: Program, node: Node, partials: DataFrame, provider: Node) -> DataFrame:
    """The groups of a window that is read from those of another one."""
    keys = [key(i) for i in range(len(store.keys))]
    merged = [F.expr(program.components[i].merge(stored(i))).alias(stored(i)) for i in node.needed]
    rows = partials.select(START, *keys, *(stored(i) for i in node.needed))
    return _instances(rows, node.geometry, provider.geometry).groupBy(START, *keys).agg(*merged)


def _instances(partials: DataFrame, window: Geometry, provider: Geometry) -> DataFrame:
    """Partials of the provider, each once per instance of the window that holds it, with that instance's start."""
    slide = window.slide
    last = f"({START} - pmod({START} - {window.offset}L, {slide}L))"
    if window.tumbling and provider.tumbling:
        return partials.withColumn(START, F.expr(last))
    # From the first instance that ends no sooner than the partial to the last that begins no later.
    inside = f"({START} + {provider.range - window.range}L)"
    first = f"({last} - (({last} - {inside}) - pmod({last} - {inside}, {slide}L)))"
    starts = F.expr(f"CASE WHEN {last} >= {inside} THEN sequence({first}, {last}, {slide}L) END")
    # An outer explode, and the filter after it: Spark would push any other filter down through every group-by
    # below, and the plan would double with each level of the tree.
    exploded = partials.withColumn(START, F.explode_outer(starts))
    return exploded.where(F.col(START).isNotNull())


def read_view(store: StorePlan, view: View, geometry: Geometry, partials: DataFrame, source: Input) -> WindowRows:
    """What a query reads out of the groups of its window."""
    if view.exists is not None:
        partials = partials.where(F.expr(f"{stored(view.exists)} > 0"))
    columns = []
    for reading in view.readings:
        assert reading.bound.read is not None
        names, bounds = [stored(c) for c in reading.components], {}
        if reading.bound.by_window:
            begin = f"({START} - {view.window.shift}L)"
            bounds = {"start": begin, "end": f"({begin} + {geometry.range}L)"}
        columns.append(F.expr(reading.bound.read(*names, **bounds)).alias(reading.alias))
    keys = [F.col(key(i)).alias(name) for i, name in enumerate(store.keys)]
    ends = [
        F.expr(instant(f"{START} + {shift}L", source.spark_type(store.at)))
        for shift in (-view.window.shift, geometry.range - view.window.shift)
    ]
    window = F.struct(ends[0].alias("start"), ends[1].alias("end")).alias("window")
    return WindowRows(view.query, view.window, partials.select(window, *keys, *columns))
