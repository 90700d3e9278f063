"""The schema of all answers: aggregates as they were bound, derived columns and ``having`` as Arrow types them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from panes.declare.query import EXPIRES, NUMBER, Query
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
    columns = [output_types(query, known, events) for query, known in zip(queries, columns, strict=True)]
    return result_schema(queries, keys, columns, [field_of(events, query.at).type for query in queries])


def output_types(query: Query, aggregates: Mapping[str, pa.DataType], events: pa.Schema) -> dict[str, pa.DataType]:
    """The types of a query's aggregates and derived columns; expressions over them that cannot work are errors."""
    known, instant = dict(aggregates), field_of(events, query.at).type
    labels = {"window": pa.struct([("start", instant), ("end", instant)]), "window_name": pa.string()}
    keys = [pa.field(key, field_of(events, key).type) for key in query.by]
    own = pa.schema([*keys, *(pa.field(*column) for column in (*known.items(), *labels.items()))])
    lent = {name: type_ for name, type_ in ((EXPIRES, instant), (NUMBER, pa.int64())) if query.asks_for(name)}
    for name, type_ in lent.items():
        own = own.append(pa.field(name, type_))
    for alias, value in query.derived:
        known[alias] = result_type(value, own)
        if lent.pop(alias.lower(), None) is not None:
            own = own.remove(own.get_field_index(alias.lower()))
        own = own.append(pa.field(alias, known[alias]))
    if query.having is not None:
        require_boolean(query.having, own)
    return known
