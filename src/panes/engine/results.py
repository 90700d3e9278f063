"""Answers as results: derived columns, ``having``, one schema for all queries, in the long or the wide layout.

In the long layout there is one row per key, query and window instance. The wide one has one row per key and window end,
and a column for each output column and window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.aggregates.operations import Array
from panes.engine.answer import Answers, answer_events
from panes.engine.columns import whole
from panes.engine.keys import key_ordinals
from panes.engine.program import Program
from panes.engine.schema import ResultSchema, one_type_each, wide_columns
from panes.engine.sorting import SortedEvents
from panes.expressions.evaluate import evaluate
from panes.queries.query import EXPIRES, NUMBER, Query


def answer_tables(
    queries: tuple[Query, ...],
    program: Program,
    events: SortedEvents,
    schema: ResultSchema,
    *,
    kernel: str | None = None,
) -> list[pa.Table]:
    """The answers of a store's program to its sorted events: a table in the schema of all answers per view."""
    found = answer_events(program, events.instants, events.key_starts, events.arguments, kernel=kernel)
    return [table_of_view(queries, program, some, events.keys, schema) for some in found]


def table_of_view(
    queries: tuple[Query, ...], program: Program, answers: Answers, keys: pa.Table, schema: ResultSchema
) -> pa.Table:
    """The answers of one view as they come out."""
    view = program.views[answers.view]
    query, length = queries[view.query], len(answers.start)
    at = pa.array(answers.key)
    columns: dict[str, Any] = {key: keys.column(key).take(at) for key in query.by}
    columns |= {r.alias: column for r, column in zip(view.readings, answers.columns, strict=True)}
    start, end = (pa.array(bound).view(schema.instant) for bound in view.window.shown(answers.start))
    columns["window"] = pa.StructArray.from_arrays([start, end], names=["start", "end"])
    columns["window_name"] = pa.repeat(view.window.name, length)
    if query.uses_expires:
        geometry = view.window.geometry
        expires = answers.start + geometry.range + geometry.slide - view.window.shift
        columns[EXPIRES] = pa.array(expires).view(schema.instant)
    return finished(query, pa.table(columns), schema)


def finished(query: Query, answers: pa.Table, schema: ResultSchema) -> pa.Table:
    """The answers of a query over a window: what is derived from aggregates, those that are wanted, all columns."""
    lent = [name for name in (EXPIRES, NUMBER) if query.refers_to(name)]
    for alias, value in query.derived:
        found = whole(evaluate(value, answers))
        if alias.lower() in lent:
            lent.remove(alias.lower())
            answers = answers.drop_columns([alias.lower()])
        answers = answers.append_column(alias, found)
    if query.having is not None:
        answers = answers.filter(whole(evaluate(query.having, answers)))
    # Another query may have a column of this name.
    answers = answers.drop_columns(lent)
    named, length = {"query": query.name}, answers.num_rows
    return pa.table(
        [
            pa.repeat(named[field.name], length)
            if field.name in named
            else answers.column(field.name)
            if field.name in answers.column_names
            else pa.nulls(length, field.type)
            for field in schema.long
        ],
        schema=schema.long,
    )


def together(tables: Sequence[pa.Table]) -> pa.Table:
    """The answers of all parts of a plan; a column that one has not is null there."""
    one_type_each((field.name, field.type) for table in tables for field in table.schema)
    found = pa.concat_tables(tables, promote_options="default")
    return found.replace_schema_metadata(tables[0].schema.metadata)


def widen_table(answers: pa.Table, queries: Sequence[Query], keys: Sequence[str]) -> pa.Table:
    """Spread the answers of every window over columns ``<output column>_<suffix of the window>``."""
    names = wide_columns(queries)
    end = pc.struct_field(answers.column("window"), "end").combine_chunks()
    by = [answers.column(key).combine_chunks() for key in keys]
    ordinals = key_ordinals([*by, end], len(answers))
    rows, first, row = np.unique(ordinals, return_index=True, return_inverse=True)
    columns = {key: column.take(pa.array(first)) for key, column in zip(keys, by, strict=True)}
    columns["window_end"] = end.take(pa.array(first))
    views = {view: i for i, view in enumerate(dict.fromkeys((number, name) for number, name, _ in names))}
    order, lows, highs = _by_view(answers, queries, list(views))
    for (number, window_name, alias), name in names.items():
        view = views[number, window_name]
        at = order[lows[view] : highs[view]]
        source = np.full(len(rows), -1, dtype=np.int64)
        source[row[at]] = at
        columns[name] = answers.column(alias).combine_chunks().take(pa.array(source, mask=source < 0))
    return pa.table(columns)


def _by_view(
    answers: pa.Table, queries: Sequence[Query], views: Sequence[tuple[int, str]]
) -> tuple[Array, Array, Array]:
    """The rows of each view, one view after another, and where each begins and ends."""
    windows = list(dict.fromkeys(window_name for _, window_name in views))
    query, window = (
        pc.index_in(answers.column(column), pa.array(known, pa.string())).to_numpy()
        for column, known in (("query", [query.name for query in queries]), ("window_name", windows))
    )
    codes = query * len(windows) + window
    order = np.argsort(codes, kind="stable")
    place = [number * len(windows) + windows.index(name) for number, name in views]
    lows, highs = (np.searchsorted(codes[order], place, side) for side in ("left", "right"))
    return order, lows, highs
