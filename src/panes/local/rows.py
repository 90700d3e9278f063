"""Windows by rows over a table: sort the rows of a key set once, then answer every window from them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.engine.bind_program import types_in
from panes.engine.columns import column_of, instants_of, whole
from panes.engine.keys import one_zero
from panes.engine.results import together
from panes.engine.sorting import key_ranks, sort_by_time, sort_ties
from panes.expressions.evaluate import evaluate
from panes.expressions.expression import expression
from panes.frames import Positions
from panes.frames.row_frame import Arrivals, RowFrame
from panes.inputs import as_table, with_the_rest
from panes.planning.explanation import listed
from panes.planning.steps import Steps
from panes.queries.query import ARRIVAL
from panes.row_windows.arrival import delta_values, marks_of
from panes.row_windows.bound_rows import ENDLESS, BoundRows, bind_rows, labelled, needed, order_of
from panes.row_windows.framing import frame_rows
from panes.row_windows.parts import RowsPart, is_complete


def add_rows(steps: Steps, read: int, parts: Sequence[RowsPart], data: Any) -> int:
    """List what is to be done to answer windows that share one sorted column, after every check.

    Parameters
    ----------
    read
        The step that has the events.
    data
        A pyarrow Table, or anything with the Arrow C interface.
    """
    table = as_table(data, {name.lower() for name in needed(parts)})
    at = parts[0].stream.at
    if at is None:
        table = table.append_column(ARRIVAL, pa.array(np.arange(len(table)), pa.timestamp("us")))
    schema = table.schema
    bounds = [bind_rows(part, schema, types_in(schema)) for part in parts]

    def answer_all(rows: SortedRows) -> pa.Table:
        return together([found for bound in bounds for found in _answered(bound, rows)])

    order = "by time, all keys together" if parts[0].stream.together else f"by {listed(parts[0].stream.by)} and time"
    detail = f"events {order}" if at is not None else f"events by {listed(parts[0].stream.by)}, in their order"
    ordered = steps.add("sort", detail, lambda _: sorted_rows(parts, table, data), read)
    titles = [window.name for part in parts for window in part.windows]
    return steps.add("answer", "windows by rows, from one sorted column", answer_all, ordered, windows=titles)


@dataclass(frozen=True, eq=False)
class SortedRows:
    """The rows of a key set in the order of keys and time.

    Parameters
    ----------
    order
        Where each of them stands in the table.
    ordinals, instants
        Of each row in the order of the table.
    arriving, marks
        For each part, which rows of the table arrive, and which are marks.
    end
        Until when the clock runs.
    """

    table: pa.Table
    order: Array
    ordinals: Array
    instants: Array
    arriving: Mapping[RowsPart, npt.NDArray[np.bool_]]
    marks: Mapping[RowsPart, npt.NDArray[np.bool_] | None]
    end: int


def sorted_rows(parts: Sequence[RowsPart], table: pa.Table, data: Any) -> SortedRows:
    """The rows that arrive anywhere, in order."""
    stream = parts[0].stream
    instants, known = np.arange(len(table), dtype=np.int64), np.ones(len(table), np.bool_)
    if stream.at is not None:
        times = column_of(table, stream.at)
        instants = instants_of(times)
        known = times.is_valid().to_numpy(zero_copy_only=False) if times.null_count else known
    end = int(instants[known].max()) + 1 if known.any() else 0
    arriving, marks = dict[RowsPart, Any](), dict[RowsPart, Any]()
    for part in parts:
        marks[part], rows = None, known
        if part.stream.mark is not None:
            marked = column_of(table, part.stream.mark.column).fill_null(False).to_numpy(zero_copy_only=False)
            marks[part], rows = known & marked, known & ~marked
        arriving[part] = rows if part.query.where is None else rows & _passing(part, table, rows)
    anywhere = np.logical_or.reduce(list(arriving.values()))
    ordinals = key_ranks([column_of(table, key) for key in stream.by], len(table))
    chosen = np.arange(len(table)) if anywhere.all() else np.flatnonzero(anywhere)
    order = chosen[sort_by_time(ordinals[chosen], instants[chosen])]
    if stream.at is not None:
        same = (ordinals[order[1:]] == ordinals[order[:-1]]) & (instants[order[1:]] == instants[order[:-1]])
        if same.any():
            # Columns that no query reads count as well, and are looked at only where they have to be.
            everything = with_the_rest(data, table)
            names = order_of(parts, everything.schema)
            sort_ties(order, same, [everything.column(name) for name in names])
    return SortedRows(table, order, ordinals, instants, arriving, marks, end)


def _passing(part: RowsPart, table: pa.Table, rows: npt.NDArray[np.bool_]) -> Array:
    assert part.query.where is not None
    if rows.all():
        found = whole(evaluate(part.query.where, table)).fill_null(False).to_numpy(zero_copy_only=False)
        return np.asarray(found)
    # A condition need not make sense for a row without a time, or for a mark.
    some = whole(evaluate(part.query.where, table.filter(pa.array(rows)))).fill_null(False)
    passing = np.zeros(len(rows), np.bool_)
    passing[rows] = some.to_numpy(zero_copy_only=False)
    return passing


def _answered(bound: BoundRows, rows: SortedRows) -> list[pa.Table]:
    """The answers of one part."""
    part, order = bound.part, rows.order
    mine = rows.arriving[part]
    if not mine[order].all():
        order = order[mine[order]]
    # Of columns that are not read only the names remain.
    read = {name.lower() for name in part.used}
    table = taken(rows.table, order, read)
    groups = [one_zero(column_of(table, name)) for name in part.query.groups]
    arguments = {sql: whole(evaluate(expression(sql), table)) for sql in bound.arguments}
    deltas = pa.table([column_of(table, name) for name in part.deltas], names=list(part.deltas))
    return [
        labelled(bound, number, bound.answer(number, arrivals, *windows, keys, groups, arguments))
        for number, (arrivals, windows, keys) in enumerate(instances_of(part, rows, order, deltas))
    ]


def taken(table: pa.Table, order: Array, read: Collection[str]) -> pa.Table:
    """Rows of a table; of columns that are not read, by their names in lower case, only the names remain."""
    rows = pa.array(order)
    return pa.table(
        {
            name: column.take(rows) if name.lower() in read else pa.nulls(len(order))
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
    )


def instances_of(
    part: RowsPart, rows: SortedRows, order: Array, deltas: pa.Table
) -> Iterator[tuple[Arrivals, tuple[RowFrame, Array], list[pa.Array]]]:
    """For each window of a part how rows arrive, the instances with their numbers, and the columns of keys.

    Parameters
    ----------
    order
        Where the rows of the part stand in the table.
    deltas
        The columns that sizes and paces go by, in that order.
    """
    own = rows.ordinals[order]
    present, starts = _keys_in(own)
    first = pa.array(order[starts[:-1]])
    keys = [one_zero(column_of(rows.table, key).take(first)) for key in part.query.by]
    events = Positions.of_events(rows.instants[order], starts)
    punctuations, marks = _marks(part, rows, present)
    for window, stream in zip(part.windows, part.streams, strict=True):
        end = ENDLESS if is_complete(window) else rows.end
        arrivals = Arrivals(events, end, delta_values(stream.window, deltas), punctuations, marks)
        yield arrivals, frame_rows(stream, arrivals), keys


def _keys_in(ordinals: Array) -> tuple[Array, Array]:
    """The keys of sorted rows, and the first row of each; without any, the one key of a query without keys."""
    starts = np.flatnonzero(np.diff(ordinals, prepend=-1))
    return ordinals[starts], np.append(starts, len(ordinals))


def _marks(part: RowsPart, rows: SortedRows, present: Array) -> tuple[Array, Positions | None]:
    """When marks come: for all keys, or for each of some keys."""
    mask = rows.marks[part]
    if mask is None:
        return np.zeros(0, np.int64), None
    assert part.stream.mark is not None
    at = np.flatnonzero(mask)
    if part.stream.mark.scope == "stream":
        return np.sort(rows.instants[at]), None
    return np.zeros(0, np.int64), marks_of(rows.ordinals[at], rows.instants[at], present)
