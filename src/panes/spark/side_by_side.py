"""The wide form of sliding windows: a row per key and instant, all windows side by side, straight from the events.

All of them are answered at the same instants, so there is nothing to bring together afterwards: the long form of twenty
windows would have twenty times as many rows, and a group-by to make them wide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_type

from panes.engine.per_event import side_by_side
from panes.engine.program import Program
from panes.engine.run import parts_per_event
from panes.engine.schema import field_of, wide_columns
from panes.planning.blueprint import Blueprint
from panes.spark.binding import Input
from panes.spark.chunks import arguments_of, keys_of, whole_keys
from panes.spark.columnar import CHUNK
from panes.spark.naming import key, quoted

_END = "window_end"
_BATCH = 1 << 23
"""Values at once: a row has the columns of all windows."""


def all_at_one_instant(blueprint: Blueprint) -> bool:
    """Whether all answers that stand in one row are answers to one event, and nothing is made of them."""
    return (
        len(blueprint.stores) == 1
        and blueprint.stores[0].per_event
        and not any(query.derived or query.having is not None for query in blueprint.queries)
        and not any(window.ago for query in blueprint.queries for window in query.windows)
    )


def wide_per_event(rows: DataFrame, blueprint: Blueprint, program: Program, source: Input) -> DataFrame:
    """One row per key and instant, a column per output column and window.

    Parameters
    ----------
    rows
        The events that ``events_by_key`` has sorted.
    """
    store, names = blueprint.stores[0], wide_columns(blueprint.queries)
    columns = {names[v.query, v.window.name, r.alias]: r.bound.type for v in program.views for r in v.readings}
    schema = t.StructType(
        [
            *(t.StructField(key(i), source.spark_type(name)) for i, name in enumerate(store.keys)),
            t.StructField(_END, source.spark_type(store.at)),
            *(t.StructField(name, from_arrow_type(type_)) for name, type_ in columns.items()),
        ]
    )
    count, arguments = len(store.keys), program.arguments
    at_once = max(1, _BATCH // len(columns))
    instant, listed = field_of(source.schema, store.at).type, schema.names

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for chunk, starts in whole_keys(batches, count, CHUNK):
            keys, instants = keys_of(chunk, count, starts), chunk.column(count).to_numpy()
            for level, rows in parts_per_event(program, instants, starts, arguments_of(chunk, count, arguments)):
                for first in range(0, len(rows), at_once):
                    some = rows[first : first + at_once]
                    at = pa.array(level.positions.keys_at(some))
                    end = pa.array(level.positions.start[some]).view(instant)
                    found = [*(column.take(at) for column in keys), end, *side_by_side(program, level, some)]
                    yield pa.RecordBatch.from_arrays(found, names=listed)
                del level  # Else there would be two of them while the next one is made.

    found = rows.mapInArrow(run, schema)
    shown = [f"{key(store.keys.index(name))} AS {quoted(name)}" for name in blueprint.queries[0].by]
    return found.selectExpr(*shown, _END, *(quoted(name) for name in names.values()))
