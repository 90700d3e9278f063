"""``having`` applied in Python, so that most unwanted answers never travel to the JVM.

Spark evaluates ``having`` again on all answers that arrive, so this may keep too many but must never drop a wanted one.
Where a condition fails on some row, all rows stay: Spark raises or returns null, as the session is configured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from panes.engine.answer import Answers
from panes.engine.program import View
from panes.expressions.expression import Expression
from panes.queries.query import Query
from panes.spark.naming import depends_on_zone, tells_time

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from panes.expressions.bound import BoundExpression


@dataclass(frozen=True)
class Prefilter:
    """The conditions of some queries on their own answers, by number of query.

    Parameters
    ----------
    conditions
        SQL over keys and aggregates, with the lower-cased names of the columns that it needs.
    """

    conditions: Mapping[int, tuple[str, frozenset[str]]]

    @classmethod
    def of(cls, queries: Sequence[Query], keys: Mapping[str, pa.DataType], views: Sequence[View]) -> Prefilter:
        """What can be known of ``having`` from keys and aggregates alone."""
        readings = {view.query: view.readings for view in views}
        conditions = {}
        for number, query in enumerate(queries):
            if query.having is None or number not in readings:
                continue
            types = {name.lower(): type_ for name, type_ in keys.items()}
            types |= {r.alias.lower(): r.bound.type for r in readings[number]}
            condition = _without_derived(query, query.having)
            roots = frozenset(root.lower() for root in condition.roots)
            # How a time becomes text or a day depends on the session's time zone.
            if not roots or not roots <= types.keys() or depends_on_zone(condition, types):
                continue
            if not any(tells_time(types[root]) for root in roots):
                conditions[number] = condition.sql, roots
        return cls(conditions)

    def kept(self, view: View, answers: Answers, keys: Mapping[str, pa.Array]) -> Answers:
        """The answers of a view that may fulfil its query's condition."""
        wanted = self.wanted(view, answers, keys)
        return answers if wanted is None else answers.where(wanted)

    def wanted(self, view: View, answers: Answers, keys: Mapping[str, pa.Array]) -> npt.NDArray[np.bool_] | None:
        """Which answers of a view may fulfil its query's condition; None where nothing is known."""
        if view.query not in self.conditions or not len(answers.start):
            return None
        sql, needed = self.conditions[view.query]
        found = {r.alias: column for r, column in zip(view.readings, answers.columns, strict=True)}
        columns = {name: column for name, column in found.items() if name.lower() in needed}
        at = pa.array(answers.key)
        columns |= {name: column.take(at) for name, column in keys.items() if name.lower() in needed}
        batch = pa.RecordBatch.from_pydict(columns)
        # Loaded only for a condition: it imports the SQL parser.
        from panes.expressions.bound import Failure

        try:
            values = _bound(sql, batch.schema).evaluate(batch)
        except Failure:
            return None
        mask: npt.NDArray[np.bool_] = values.fill_null(False).to_numpy(zero_copy_only=False)
        return mask


def _without_derived(query: Query, condition: Expression) -> Expression:
    """A condition with derived columns written out; the later ones may use the earlier ones."""
    for alias, value in reversed(query.derived):
        condition = condition.rename({alias: value})
    return condition


@lru_cache(maxsize=256)
def _bound(sql: str, schema: pa.Schema) -> BoundExpression:
    from panes.expressions.binder import bind

    return bind(Expression(sql), schema)
