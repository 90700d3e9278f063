"""Long answers into the wide form: one row per key and window end, a column per output column and window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.algebra.operations import Array
from panes.declare.query import Query
from panes.engine.keys import key_ordinals
from panes.engine.schema import wide_columns


def widen(answers: pa.Table, queries: Sequence[Query], keys: Sequence[str]) -> pa.Table:
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
