"""Long answers into the wide form: one row per key and window end, a column per output column and window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.declare.query import Query
from panes.engine.keys import key_ordinals
from panes.engine.schema import ResultSchema, wide_columns


def widen(answers: pa.Table, queries: Sequence[Query], schema: ResultSchema) -> pa.Table:
    """Spread the answers of every window over columns ``<output column>_<suffix of the window>``."""
    names = wide_columns(queries)
    end = pc.struct_field(answers.column("window"), "end").combine_chunks()
    by = [answers.column(key).combine_chunks() for key in schema.keys]
    ordinals = key_ordinals([*by, end], len(answers))
    rows, first, row = np.unique(ordinals, return_index=True, return_inverse=True)
    columns = {key: column.take(pa.array(first)) for key, column in zip(schema.keys, by, strict=True)}
    columns["window_end"] = end.take(pa.array(first))
    for (number, window_name, alias), name in names.items():
        of_query = pc.equal(answers.column("query"), queries[number].name)
        chosen = pc.and_(of_query, pc.equal(answers.column("window_name"), window_name))
        at = np.flatnonzero(chosen.to_numpy(zero_copy_only=False))
        source = np.full(len(rows), -1, dtype=np.int64)
        source[row[at]] = at
        columns[name] = answers.column(alias).combine_chunks().take(pa.array(source, mask=source < 0))
    return pa.table(columns)
