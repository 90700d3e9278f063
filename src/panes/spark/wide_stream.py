"""The wide form of a stream's answers: one row per key and window end, as a batch has it.

All windows that end together are complete together: one shard answers them in one micro-batch, and its answers are in
one partition. So they are brought together where they come out, without state and without a shuffle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from panes.declare.query import Query
from panes.declare.windows import Window
from panes.engine.schema import wide_columns
from panes.errors import PlanError
from panes.local.layout import widen
from panes.spark.batches import large_batches
from panes.spark.finish import Shape
from panes.spark.naming import quoted

_ROWS = 1 << 16


def check_wide(queries: Sequence[Query], asked: dict[str, bool]) -> None:
    """Refuse where windows that end together may not come out together.

    Parameters
    ----------
    asked
        Options of a stream by which answers come out one by one, and whether they were given.
    """
    wide_columns(queries)
    option = next((name for name, given in asked.items() if given), None)
    if option is not None:
        raise PlanError(
            f"layout='wide' with {option}: rows then come out one by one, and in a row of all windows nobody could "
            "tell which of them it is about. Take layout='long'."
        )
    windows = [window for query in queries for window in query.windows]
    other = next((window for window in windows if _lag(window) != _lag(windows[0])), None)
    if other is not None:
        raise PlanError(
            f"layout='wide' has one row for all windows that end together, and {windows[0]} and {other} come out at "
            "different times: windows on the clock when the watermark has reached their end, sliding windows and "
            "those that hold their end when it has passed it. Plan them apart, or take layout='long'."
        )


def widened(answers: DataFrame, queries: Sequence[Query], shape: Shape) -> DataFrame:
    """The answers of each micro-batch with a column per output column and window."""
    keys, names = tuple(queries[0].by), wide_columns(queries)
    window = answers.schema["window"].dataType
    assert isinstance(window, t.StructType)
    schema = t.StructType(
        [
            *(t.StructField(name, shape.keys[name]) for name in keys),
            t.StructField("window_end", window["end"].dataType),
            *(t.StructField(name, shape.columns[alias]) for (_, _, alias), name in names.items()),
        ]
    )

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        listed = list(batches)
        if listed:
            yield from large_batches(widen(pa.Table.from_batches(listed), queries, keys).to_batches(), _ROWS)

    return answers.mapInArrow(run, schema).select(*(quoted(name) for name in schema.names))


def _lag(window: Window) -> tuple[int, int]:
    """How long after the end that results show an instance is complete, in µs, and before the event it is about."""
    return window.end_shift or window.shift, window.ago
