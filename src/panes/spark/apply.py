"""``pn.apply`` and ``pn.sort`` on Spark: rows are shuffled and sorted once, or go to one stateful operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from panes.applying.function_calls import OUTPUT, bind_function
from panes.applying.user_functions import WindowedFunction
from panes.applying.user_operators import WindowedOperator
from panes.engine.keys import END, START
from panes.engine.schema import ResultSchema, field_of
from panes.errors import PlanError
from panes.planning.steps import Steps
from panes.row_windows.parts import RowsPart, key_sets
from panes.spark.binding import arrow_field, examine
from panes.spark.naming import VIEW, quoted
from panes.spark.operated import operated, operated_stream
from panes.spark.rows import Prepared, add_row_windows, prepared_with
from panes.spark.rows_stream import add_row_stream
from panes.spark.shards import metrics_name


class PreparedFunction(Prepared):
    """Windows that share one sorted column, and a function that is called for them."""

    def finished(self, answers: DataFrame) -> DataFrame:
        """What it returned, with windows and keys."""
        names = self.keys.bounds[0].outputs
        own = [F.col(quoted(name)).alias(name.removeprefix(OUTPUT)) for name in names]
        if getattr(self.keys.bounds[0], "bare", False):
            return answers.select(*own)
        labels = [F.lit(window.name) for part in self.parts for window in part.windows]
        window = F.struct(F.col(START).alias("start"), F.col(END).alias("end")).alias("window")
        keys = [F.col(number).alias(name) for name, number in self.answering.names.items()]
        return answers.select(F.element_at(F.array(*labels), F.col(VIEW) + 1).alias("window_name"), window, *keys, *own)


def apply_to_batch(declared: WindowedFunction | WindowedOperator, events: DataFrame) -> DataFrame:
    """What a function returns for the windows of a batch, or an operator submits when its rows arrive."""
    if isinstance(declared, WindowedOperator):
        return operated(declared, events)
    steps = Steps("pn.apply on a DataFrame", shuffling=True)
    read = steps.add("read", "events", lambda: events)
    return _together(steps, [add_row_windows(steps, read, some, look_at=read) for some in _prepared(declared, events)])


def apply_to_stream(
    declared: WindowedFunction | WindowedOperator, events: DataFrame, shards: int, checkpoint: str | None
) -> DataFrame:
    """The same on a stream: a function is called for each window when the window is complete."""
    if isinstance(declared, WindowedOperator):
        return operated_stream(declared, events, shards, checkpoint)
    steps = Steps("pn.apply on a stream", shuffling=True)
    read, parts = steps.add("read", "events as they come", lambda: events), list[int]()
    for some in _prepared(declared, events):
        parts.append(add_row_stream(steps, read, some, shards, metrics_name(len(parts)), checkpoint))
    return _together(steps, parts)


def _together(steps: Steps, parts: Sequence[int]) -> DataFrame:
    if len(parts) > 1:
        steps.add(
            "union", "what was returned for all windows", lambda *found: reduce(DataFrame.unionByName, found), *parts
        )
    answers: DataFrame = steps.carry_out()
    return answers


def _prepared(declared: WindowedFunction, events: DataFrame) -> list[Prepared]:
    """Bind the function to the data, which finds every mistake without a job."""
    query = declared.query
    if not query.timed:
        raise PlanError(
            "a DataFrame has no order in which its rows could arrive. Write at= with the column of their time."
        )
    if declared.schema is None and not declared.order:
        raise PlanError(
            "Spark has to know what the function returns before it runs. Write schema= with the columns, as "
            "pa.schema({'n': pa.int64()})."
        )
    source = examine([replace(query, by=(*query.by, *query.groups), groups=())], events)
    # A function sees all columns.
    source = replace(source, schema=pa.schema([arrow_field(field, True) for field in events.schema]))
    if declared.order:
        declared = replace(declared, schema=source.schema)
    parts = declared.parts(source.schema)
    keys = {name: field_of(source.schema, name).type for name in query.by}
    result = ResultSchema(keys, {}, field_of(source.schema, query.at).type)

    def prepare(some: tuple[RowsPart, ...]) -> Prepared:
        bounds: tuple[Any, ...] = tuple(bind_function(declared, part, source.schema) for part in some)
        return prepared_with(some, source, bounds, result, PreparedFunction)

    return [prepare(some) for some in key_sets(parts)]
