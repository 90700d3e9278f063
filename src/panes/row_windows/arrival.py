"""The order in which the rows of a table arrive at windows: by key and time, and rows of one instant by value.

``sorted_rows`` sorts a table once for several windows. On Spark and in streams rows are sorted elsewhere, with the same
``tie_order``, and the same ``delta_values`` and ``marks_of`` say what windows are measured in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.engine.columns import column_of, instants_of, whole
from panes.engine.schema import field_of
from panes.engine.sorting import key_ranks, sort_by_time, sort_ties, tie_columns
from panes.errors import SchemaError
from panes.expressions.evaluate import evaluate
from panes.expressions.expression import Expression
from panes.frames import Positions
from panes.frames.distances import Booleans, Values
from panes.frames.order import PUNCTUATION, sees_its_instant
from panes.frames.positions import Integers
from panes.frames.row_frame import Arrivals
from panes.inputs import with_the_rest
from panes.operators.policies import Attribute, WindowPolicies, policy_text
from panes.queries.measures import Delta
from panes.row_windows.window_input import WindowInput

NO_PUNCTUATIONS = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class SortedRows:
    """The rows of a table that arrive at some windows, sorted by key and time.

    Parameters
    ----------
    order
        The position of each of them in the table.
    ordinals, instants
        The ordinal of the key and the time of each row, in the order of the table.
    arriving, marks
        For each input, which rows of the table arrive, and which are marks; None without marks.
    end
        How far the clock runs.
    """

    table: pa.Table
    order: Array
    ordinals: Array
    instants: Array
    arriving: Mapping[WindowInput, Booleans]
    marks: Mapping[WindowInput, Booleans | None]
    end: int

    def at(self, input: WindowInput) -> tuple[Array, Arrivals]:
        """Return the rows that arrive at a window, by their positions in the table, and when they do."""
        order, mine = self.order, self.arriving[input]
        if not mine[order].all():
            order = order[mine[order]]
        own = self.ordinals[order]
        starts = np.flatnonzero(np.diff(own, prepend=-1))
        events = Positions.of_events(self.instants[order], np.append(starts, len(own)))
        arrivals = Arrivals(events, self.end)
        mask = self.marks[input]
        if mask is None:
            return order, arrivals
        marked = np.flatnonzero(mask)
        assert input.mark is not None
        if input.mark.scope == "stream":
            return order, replace(arrivals, punctuations=np.sort(self.instants[marked]))
        return order, replace(arrivals, marks=marks_of(self.ordinals[marked], self.instants[marked], own[starts]))


def sorted_rows(
    inputs: Sequence[WindowInput], table: pa.Table, data: Any = None, read: Collection[str] | None = None
) -> SortedRows:
    """Sort the rows that arrive at any of some windows, which share keys, time and ties.

    Parameters
    ----------
    data
        What the table was made of, if it may have columns that the table lacks.
    read
        The columns that order rows which ``ties`` leaves equal; None for all.
    """
    input = inputs[0]
    instants, known = np.arange(len(table), dtype=np.int64), np.ones(len(table), np.bool_)
    if input.at is not None:
        times = column_of(table, input.at)
        instants = instants_of(times)
        known = times.is_valid().to_numpy(zero_copy_only=False) if times.null_count else known
    # Rows that do not arrive, and marks, advance the clock too: so does the watermark of a stream.
    end = int(instants[known].max()) + 1 if known.any() else 0
    arriving, marks = dict[WindowInput, Any](), dict[WindowInput, Any]()
    for each in inputs:
        marks[each], rows = None, known
        if each.mark is not None:
            marked = column_of(table, each.mark.column).fill_null(False).to_numpy(zero_copy_only=False)
            marks[each], rows = known & marked, known & ~marked
        arriving[each] = rows if each.where is None else rows & _passing(each.where, table, rows)
    anywhere = np.logical_or.reduce(list(arriving.values()))
    ordinals = key_ranks([column_of(table, key) for key in input.by], len(table))
    chosen = np.arange(len(table)) if anywhere.all() else np.flatnonzero(anywhere)
    order = chosen[sort_by_time(ordinals[chosen], instants[chosen])]
    if input.at is not None:
        same = (ordinals[order[1:]] == ordinals[order[:-1]]) & (instants[order[1:]] == instants[order[:-1]])
        if same.any():
            # Columns that no query reads count too, and are only loaded if they have to be.
            everything = table if data is None else with_the_rest(data, table)
            names = tie_order(input, everything.schema, read)
            sort_ties(order, same, [everything.column(name) for name in names])
    return SortedRows(table, order, ordinals, instants, arriving, marks, end)


def _passing(where: Expression, table: pa.Table, rows: Booleans) -> Array:
    if rows.all():
        return np.asarray(whole(evaluate(where, table)).fill_null(False).to_numpy(zero_copy_only=False))
    # A condition need not make sense for a row without a time, or for a mark.
    some = whole(evaluate(where, table.filter(pa.array(rows)))).fill_null(False)
    passing = np.zeros(len(rows), np.bool_)
    passing[rows] = some.to_numpy(zero_copy_only=False)
    return passing


def arrive(input: WindowInput, table: pa.Table) -> tuple[pa.Table, Arrivals]:
    """Return the rows that arrive at one window in their order, and when they do."""
    order, arrivals = sorted_rows([input], table).at(input)
    if len(order) < len(table) or (order[1:] < order[:-1]).any():
        table = table.take(pa.array(order))
    return table, replace(arrivals, attributes=delta_values(input.window, table))


def tie_order(input: WindowInput, schema: pa.Schema, read: Iterable[str] | None = None) -> list[str]:
    """Return the columns that order rows of one instant: those that never decrease, then by the rule of all verbs.

    Parameters
    ----------
    read
        The columns that order rows which ``ties`` leaves equal; None for all, as an operator sees them all.
    """
    # Windows that an operator makes may be measured in attributes of tuples of its own.
    others = [policy.column for window in input.others for policy in window.deltas]
    first = [field_of(schema, name).name for name in input.deltas] + [n for n in schema.names if n in others]
    shared = (*input.by, input.at or "")
    return list(
        dict.fromkeys((*first, *tie_columns(schema, input.ties, shared, schema.names if read is None else read)))
    )


# What windows are measured in


def rows_before(punctuations: Integers, instants: Integers) -> Integers:
    """Return how many of some rows, in the order of time, arrive before each punctuation: those of its instant too."""
    return np.searchsorted(instants, punctuations, side="right" if sees_its_instant(PUNCTUATION) else "left")


def marks_of(ordinals: Array, instants: Array, present: Array) -> Positions:
    """Return the marks of some keys, in the order of these. Marks of other keys end no window."""
    at = np.searchsorted(present, ordinals)
    # A key without rows finds -2, and not the key after it.
    known = np.append(present, -2)[at] == ordinals
    key, instants = at[known], instants[known]
    order = np.lexsort((instants, key))
    starts = np.searchsorted(key[order], np.arange(len(present) + 1))
    return Positions.of_events(instants[order], starts)


def delta_values(window: WindowPolicies, table: pa.Table) -> dict[Attribute, Values]:
    """Return the columns that the delta policies of a window are measured in."""
    values: dict[Attribute, Values] = {}
    for policy in window.deltas:
        if policy.column not in values:
            values[policy.column] = _values(policy, column_of(table, str(policy.column)))
    return values


def _values(policy: Delta, column: pa.Array) -> Values:
    if pa.types.is_floating(column.type):
        values: Values = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        missing = np.isnan(values)
    else:
        integers = column.view(pa.int64()) if pa.types.is_timestamp(column.type) else column.cast(pa.int64())
        missing = column.is_null().to_numpy(zero_copy_only=False)
        values = (integers.fill_null(0) if column.null_count else integers).to_numpy(zero_copy_only=False)
    if missing.any():
        raise SchemaError(
            f"{int(missing.sum())} rows have no value for {policy.column!r}, and {policy_text(policy)} is measured in "
            f'it. Leave such rows out with where="{policy.column} IS NOT NULL" (NaN is not a value), or give them one.'
        )
    return values
