"""The events of a store, sorted by key and time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.engine.columns import column_of, counting, whole
from panes.engine.keys import key_ordinals, one_zero
from panes.engine.program import Program
from panes.expressions.evaluate import evaluate
from panes.expressions.expression import expression
from panes.planning.physical_plan import StorePlan


@dataclass(frozen=True)
class SortedEvents:
    """The events of a store, sorted by key and time."""

    instants: Array
    key_starts: Array
    keys: pa.Table
    arguments: dict[str, pa.Array]


def sorted_events(store: StorePlan, program: Program, table: pa.Table) -> SortedEvents:
    """The events that count for a store, those without a time left out."""
    table = counting(table, store.at, store.kept)
    instants = column_of(table, store.at).view(pa.int64()).to_numpy()
    keys = pa.table([one_zero(column_of(table, key)) for key in store.keys], names=list(store.keys))
    arguments = {sql: whole(evaluate(expression(sql), table)) for sql in program.arguments}
    ordinals = key_ordinals([column.combine_chunks() for column in keys.columns], len(instants))
    order = np.lexsort((instants, ordinals))
    sorted_ordinals = ordinals[order]
    firsts = np.flatnonzero(np.diff(sorted_ordinals, prepend=-1))
    return SortedEvents(
        instants[order],
        np.append(firsts, len(order)),
        keys.take(pa.array(order[firsts])) if store.keys else keys,
        {sql: array.take(pa.array(order)) for sql, array in arguments.items()},
    )
