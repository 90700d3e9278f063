"""The schema of all answers: aggregates as they were bound, derived columns and ``having`` as Arrow types them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from panes.declare.query import EXPIRES, Query
from panes.engine.program import Program
from panes.engine.schema import ResultSchema, field_of, result_schema
from panes.local.evaluate import require_boolean, result_type


def answer_schema(queries: Sequence[Query], programs: Iterable[Program], events: pa.Schema) -> ResultSchema:
    """The types of all key and output columns; a derived column or ``having`` that cannot be evaluated is an error."""
    columns: list[dict[str, pa.DataType]] = [{} for _ in queries]
    for program in programs:
        for view in program.views:
            columns[view.query].update({r.alias: r.bound.type for r in view.readings})
    keys = {key: field_of(events, key).type for query in queries for key in query.by}
    for query, known in zip(queries, columns, strict=True):
        instant = field_of(events, query.at).type
        labels = {"window": pa.struct([("start", instant), ("end", instant)]), "window_name": pa.string()}
        own = pa.schema([*((key, keys[key]) for key in query.by), *known.items(), *labels.items()])
        if query.expiring:
            own = own.append(pa.field(EXPIRES, instant))
        for alias, value in query.derived:
            known[alias] = result_type(value, own)
            if alias.lower() == EXPIRES and query.expiring:
                own = own.remove(own.get_field_index(EXPIRES))
            own = own.append(pa.field(alias, known[alias]))
        if query.having is not None:
            require_boolean(query.having, own)
    return result_schema(queries, keys, columns, [field_of(events, query.at).type for query in queries])
