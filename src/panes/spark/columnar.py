"""The columnar strategy: panes in the JVM, one shuffle by key, every window at once from sorted columns.

Spark's code generation makes the finest panes with map-side combine. A second shuffle brings the panes of a key
together, which are few, and ``mapInArrow`` answers all windows of all queries from them, whole keys at a time. Events
take the place of panes for aggregates that only Python can build, and for answers per event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from panes.aggregates.operations import Array
from panes.engine.answer import Answers, answer_events, answer_panes, parts_per_event, side_by_side
from panes.engine.keys import END, START
from panes.engine.partials import next_edge
from panes.engine.program import Program
from panes.engine.schema import field_of, wide_columns
from panes.frames import Positions
from panes.planning.physical_plan import PhysicalPlan, StorePlan
from panes.spark import lanes
from panes.spark.batches import batch_of, large_batches
from panes.spark.binding import Input
from panes.spark.chunks import arguments_of, keys_of, whole_keys
from panes.spark.naming import VIEW, floor_to_edges, key, micros, quoted, stored
from panes.spark.prefilter import Prefilter
from panes.spark.versions import to_spark_type
from panes.spark.workers import map_in_python

CHUNK = 1 << 18


def panes(store: StorePlan, program: Program, source: Input) -> DataFrame:
    """The finest panes of a store: one row per key and pane, or per key and block of panes side by side."""
    names = [key(i) for i in range(len(store.keys))]
    events, keys = keep_events(store, source), _keys(store)
    instant = micros(quoted(store.at), source.spark_type(store.at))
    if store.lanes > 1:
        return lanes.panes_side_by_side(events, names, keys, instant, store.edges, store.lanes, program.components)
    start = f"{floor_to_edges(store.edges, instant)} AS {lanes.PLACE}"
    placed = events.selectExpr("*", *keys, start, f"{instant} AS {lanes.EVENT}")
    components = enumerate(program.components)
    built = [F.expr(f"{c.build_from(lanes.EVENT, lanes.PLACE)} AS {stored(i)}") for i, c in components]
    return placed.groupBy(*names, lanes.PLACE).agg(*built)


def coarser_panes(fine: DataFrame, finer: StorePlan, store: StorePlan, program: Program) -> DataFrame:
    """The panes of a store with coarser keys, out of the panes of one with finer keys."""
    names = {name: key(i) for i, name in enumerate(finer.keys)}
    keys = [F.col(names[name]).alias(key(i)) for i, name in enumerate(store.keys)]
    # Every component is merged, needed here or not: pruning one would give the events another aggregate,
    # and Spark would read them twice instead of reusing the shuffle.
    if store.lanes > 1:
        merged = lanes.merge_side_by_side(store.lanes, program.components)
    else:
        merged = [F.expr(f"{c.merge(stored(i))} AS {stored(i)}") for i, c in enumerate(program.components)]
    return fine.groupBy(*keys, F.col(lanes.PLACE)).agg(*merged)


def answers_from_panes(
    rows: DataFrame, store: StorePlan, program: Program, source: Input, prefilter: Prefilter
) -> DataFrame:
    """Every view of a store, answered from its panes that ``by_key`` has sorted."""
    count, edges, side_by_side = len(store.keys), store.edges, store.lanes

    def answer(chunk: pa.RecordBatch, starts: Array) -> Iterator[Answers]:
        place, columns = chunk.column(count).to_numpy(), chunk.columns[count + 1 :]
        if side_by_side > 1:
            return answer_panes(program, *lanes.one_after_another(place, starts, columns, edges, side_by_side))
        return answer_panes(program, Positions(place, next_edge(edges, place), starts), columns)

    return _answer(rows, store, program, source, prefilter, answer)


def answers_from_events(
    rows: DataFrame, store: StorePlan, program: Program, source: Input, prefilter: Prefilter
) -> DataFrame:
    """Every view of a store, answered from raw events that ``events_by_key`` has sorted.

    For aggregates that only Python can build, and for answers per event.
    """
    count, names = len(store.keys), program.arguments

    def answer(chunk: pa.RecordBatch, starts: Array) -> Iterator[Answers]:
        return answer_events(program, chunk.column(count).to_numpy(), starts, arguments_of(chunk, count, names))

    return _answer(rows, store, program, source, prefilter, answer)


def events_by_key(store: StorePlan, program: Program, source: Input) -> DataFrame:
    """The events of a store, sorted by key and time: keys, the time in µs, the arguments of aggregates."""
    instant = f"{micros(quoted(store.at), source.spark_type(store.at))} AS {lanes.PLACE}"
    values = [f"{sql} AS {stored(i)}" for i, sql in enumerate(program.arguments)]
    return by_key(keep_events(store, source).selectExpr(*_keys(store), instant, *values), len(store.keys))


def keep_events(store: StorePlan, source: Input) -> DataFrame:
    """The events that some query of a store wants; those without a time are in no window."""
    timed = f"{quoted(store.at)} IS NOT NULL"
    return source.events.where(timed if store.kept is None else f"{timed} AND ({store.kept.sql})")


def _keys(store: StorePlan) -> list[str]:
    return [f"{quoted(name)} AS {key(i)}" for i, name in enumerate(store.keys)]


def by_key(rows: DataFrame, keys: int) -> DataFrame:
    """Rows brought together by key, and sorted by key and time."""
    names = [key(i) for i in range(keys)]
    together = rows.repartition(*names) if names else rows.repartition(1)
    return together.sortWithinPartitions(*names, lanes.PLACE)


def _answer(
    rows: DataFrame,
    store: StorePlan,
    program: Program,
    source: Input,
    prefilter: Prefilter,
    answer: Callable[[pa.RecordBatch, Array], Iterator[Answers]],
) -> DataFrame:
    columns = {r.alias: r.bound.type for view in program.views for r in view.readings}
    instant = source.spark_type(store.at)
    schema = t.StructType(
        [
            # Never null, which spares Spark three checks per answer.
            t.StructField(VIEW, t.IntegerType(), nullable=False),
            t.StructField(START, instant, nullable=False),
            t.StructField(END, instant, nullable=False),
            *(t.StructField(key(i), source.spark_type(name)) for i, name in enumerate(store.keys)),
            *(t.StructField(alias, to_spark_type(type_)) for alias, type_ in columns.items()),
        ]
    )
    names, count = store.keys, len(store.keys)
    instant_type = field_of(source.schema, store.at).type
    # Many windows make every chunk dear, so that chunks grow with them.
    rows_per_chunk = max(CHUNK, 1024 * len(program.nodes)) // store.lanes

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for chunk, starts in whole_keys(batches, count, rows_per_chunk):
            keys = keys_of(chunk, count, starts)
            named = dict(zip(names, keys, strict=True))
            found = (prefilter.kept(program.views[some.view], some, named) for some in answer(chunk, starts))
            yield from large_batches(
                batch_of(program.views[answers.view], answers.view, answers, keys, columns, instant_type)
                for answers in found
            )

    return map_in_python(rows, run, schema)


_END = "window_end"
_BATCH = 1 << 23
"""Values per batch; a row has the columns of all windows."""


def all_at_one_instant(physical: PhysicalPlan) -> bool:
    """Whether ``wide_per_event`` serves a plan: all windows have an answer per event, and no query derives columns."""
    return (
        len(physical.stores) == 1
        and physical.stores[0].per_event
        and not any(query.derived or query.having is not None for query in physical.queries)
        and not any(window.ago for query in physical.queries for window in query.windows)
    )


def wide_per_event(rows: DataFrame, physical: PhysicalPlan, program: Program, source: Input) -> DataFrame:
    """One row per key and instant, a column per output column and window, straight from the events.

    All windows are answered at the same instants, so nothing has to be brought together afterwards: the long form of
    twenty windows has twenty times as many rows, and making it wide takes a group-by.

    Parameters
    ----------
    rows
        The events that ``events_by_key`` has sorted.
    """
    store, names = physical.stores[0], wide_columns(physical.queries)
    columns = {names[v.query, v.window.name, r.alias]: r.bound.type for v in program.views for r in v.readings}
    schema = t.StructType(
        [
            *(t.StructField(key(i), source.spark_type(name)) for i, name in enumerate(store.keys)),
            t.StructField(_END, source.spark_type(store.at)),
            *(t.StructField(name, to_spark_type(type_)) for name, type_ in columns.items()),
        ]
    )
    count, arguments = len(store.keys), program.arguments
    at_once = max(1, _BATCH // len(columns))
    instant, listed = field_of(source.schema, store.at).type, schema.names

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for chunk, starts in whole_keys(batches, count, CHUNK):
            keys, instants = keys_of(chunk, count, starts), chunk.column(count).to_numpy()
            for column, rows in parts_per_event(program, instants, starts, arguments_of(chunk, count, arguments)):
                for first in range(0, len(rows), at_once):
                    some = rows[first : first + at_once]
                    at = pa.array(column.positions.keys_at(some))
                    end = pa.array(column.positions.start[some]).view(instant)
                    found = [*(each.take(at) for each in keys), end, *side_by_side(program, column, some)]
                    yield pa.RecordBatch.from_arrays(found, names=listed)
                del column  # or two would be held while the next one is built

    found = map_in_python(rows, run, schema)
    shown = [f"{key(store.keys.index(name))} AS {quoted(name)}" for name in physical.queries[0].by]
    return found.selectExpr(*shown, _END, *(quoted(name) for name in names.values()))
