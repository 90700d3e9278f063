"""The rewrite strategy: the tree of group-bys of the factor-window paper (section III-C), all in the JVM.

Each window is a group-by over the partials of its provider; the shuffle of a provider is shared by its readers.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from panes.engine.program import Node, Program, View
from panes.planning.blueprint import StorePlan
from panes.spark.binding import Input
from panes.spark.columnar import keep_events
from panes.spark.finish import Answered
from panes.spark.naming import START, instant, key, micros, quoted, stored
from panes.timeline import Geometry

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
    # Times stand in columns before the grouping, for aggregates that ask; where none does, Spark drops them again.
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


def read_view(store: StorePlan, view: View, geometry: Geometry, partials: DataFrame, source: Input) -> Answered:
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
    return Answered(view.query, view.window, partials.select(window, *keys, *columns))
