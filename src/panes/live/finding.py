"""How ``live.find`` finds keys: an index gives candidates where one serves the condition, and a scan all keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.aggregates.aggregate import is_number
from panes.aggregates.operations import Array
from panes.engine.columns import whole
from panes.engine.schema import field_of
from panes.errors import DeclarationError
from panes.expressions.evaluate import evaluate, require_boolean
from panes.expressions.expression import Expression
from panes.live.conditions import Range, range_of
from panes.live.over import OneWindow, ends_of
from panes.live.part import Part
from panes.queries.lookup_declarations import LookupWindow
from panes.queries.query import Query
from panes.queries.windows import Sliding
from panes.suggestions import nearest


def find(
    part: Part, number: int, condition: Expression | None, window: LookupWindow, time: int, newest: int | None
) -> pa.Table:
    """The keys that pass a condition over a window that ends at a time, and the output columns of the query."""
    query = part.declared.queries[number]
    if condition is not None:
        _check_condition(part, number, condition)
    served = served_range(part, number, condition, window, time, newest)
    key = part.occupied() if served is None else _candidates(part, query.name, served, window, time)
    columns, held = OneWindow(part, number, window).answers(key, np.full(len(key), time), part.keys(key))
    keys = dict(zip(part.declared.by, part.keys(key), strict=True))
    named = {name: next(c for k, c in keys.items() if k.lower() == name.lower()) for name in query.by}
    answers = _table({**named, **columns}, len(key)).filter(pa.array(held))
    return passing(answers, condition).select([*query.by, *query.columns])


def served_range(
    part: Part, number: int, condition: Expression | None, window: LookupWindow, time: int, newest: int | None
) -> Range | None:
    """The range of an indexed column that a condition implies; None where all keys have to be scanned."""
    query = part.declared.queries[number]
    indexed = [column for name, column in part.indexes if name == query.name]
    if condition is None or not isinstance(window, Sliding) or not indexed:
        return None
    assert part.keep.micros is not None
    if newest is not None and ends_of(window, time)[0] <= newest - part.keep.micros:
        return None
    numeric = indexed
    if part.schema is not None:
        types = part.types[number]
        numeric = [alias for alias, _ in query.aggregates if alias in types and is_number(types[alias])]
    return range_of(condition, numeric, indexed)


def passing(answers: pa.Table, condition: Expression | None) -> pa.Table:
    """The answers for which a condition is true."""
    if condition is None:
        return answers
    return answers.filter(pc.fill_null(whole(evaluate(condition, answers)), False))


def check_names(query: Query, condition: Expression, names: Sequence[str]) -> None:
    """Reject a condition that refers to other columns than these."""
    known = [*query.by, *query.columns]
    for name in condition.roots:
        if name.lower() not in map(str.lower, names):
            raise DeclarationError(
                f"the condition refers to {name!r}, which is neither a key nor an output column of query "
                f"{query.name!r} ({nearest(name, known)})."
            )


def _check_condition(part: Part, number: int, condition: Expression) -> None:
    query = part.declared.queries[number]
    assert part.schema is not None
    keys = [(key, field_of(part.schema, key).type) for key in query.by]
    require_boolean(condition, pa.schema([*keys, *part.types[number].items()]))


def _candidates(part: Part, query: str, wanted: Range, window: LookupWindow, time: int) -> Array:
    assert isinstance(window, Sliding)
    return part.indexes[query, wanted.column].candidates(wanted, *ends_of(window, time))


def _table(columns: dict[str, pa.Array], rows: int) -> pa.Table:
    return pa.table(columns) if columns else pa.table({"": pa.nulls(rows)})
