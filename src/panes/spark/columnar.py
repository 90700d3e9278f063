"""The columnar strategy: panes in the JVM, one shuffle by key, every window at once from sorted columns.

Spark's code generation makes the finest panes with map-side combine; a second shuffle brings the panes of a key
together, which are few; ``mapInArrow`` then answers all windows of all queries with frames and kernels, whole keys at
a time. Raw events stay in the JVM unless an aggregate of the user's own or an answer per event needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_type

from panes.algebra.operations import Array
from panes.engine.level import next_edge
from panes.engine.program import Program
from panes.engine.reading import Answers
from panes.engine.run import answer_events, answer_panes
from panes.engine.schema import field_of
from panes.frames import Positions
from panes.planning.blueprint import StorePlan
from panes.spark import lanes
from panes.spark.batches import batch_of, large_batches
from panes.spark.binding import Input
from panes.spark.chunks import arguments_of, keys_of, whole_keys
from panes.spark.naming import END, START, VIEW, floor_to_edges, key, micros, quoted, stored
from panes.spark.sieve import Sieve

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


def answers_from_panes(rows: DataFrame, store: StorePlan, program: Program, source: Input, sieve: Sieve) -> DataFrame:
    """Every view of a store, answered from its panes that ``by_key`` has sorted."""
    count, edges, side_by_side = len(store.keys), store.edges, store.lanes

    def answer(chunk: pa.RecordBatch, starts: Array) -> Iterator[Answers]:
        place, columns = chunk.column(count).to_numpy(), chunk.columns[count + 1 :]
        if side_by_side > 1:
            return answer_panes(program, *lanes.one_after_another(place, starts, columns, edges, side_by_side))
        return answer_panes(program, Positions(place, next_edge(edges, place), starts), columns)

    return _answer(rows, store, program, source, sieve, answer)


def answers_from_events(rows: DataFrame, store: StorePlan, program: Program, source: Input, sieve: Sieve) -> DataFrame:
    """Every view of a store, answered from raw events that ``events_by_key`` has sorted.

    For aggregates that only Python can build, and for answers per event.
    """
    count, names = len(store.keys), program.arguments

    def answer(chunk: pa.RecordBatch, starts: Array) -> Iterator[Answers]:
        return answer_events(program, chunk.column(count).to_numpy(), starts, arguments_of(chunk, count, names))

    return _answer(rows, store, program, source, sieve, answer)


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
    sieve: Sieve,
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
            *(t.StructField(alias, from_arrow_type(type_)) for alias, type_ in columns.items()),
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
            found = (sieve.kept(program.views[some.view], some, named) for some in answer(chunk, starts))
            yield from large_batches(
                batch_of(program.views[answers.view], answers.view, answers, keys, columns, instant_type)
                for answers in found
            )

    return rows.mapInArrow(run, schema)
