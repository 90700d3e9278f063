"""Windows by rows, in process: rows are sorted once for all windows of a key set, and kernels answer index pairs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from panes.aggregates.component import Component
from panes.aggregates.operations import Array
from panes.engine.columns import column_of, instants_of, tie_columns, whole
from panes.engine.index_pairs import answers_over, groups_in, lifted
from panes.engine.keys import key_ordinals, one_zero
from panes.engine.program import Reading, TypeOf, bind_components
from panes.engine.results import finished, together
from panes.engine.schema import ResultSchema, check_columns, field_of, output_types, result_schema
from panes.errors import SchemaError, nearest
from panes.expressions.evaluate import evaluate, require_boolean, result_type
from panes.expressions.expression import expression
from panes.frames import Frame, Positions
from panes.frames.positions import FARTHEST
from panes.frames.row_windows import Processed, key_of_rows
from panes.inputs import as_table, with_the_rest
from panes.operators.policies import SlidingPolicies
from panes.planning.explanation import listed
from panes.planning.steps import Steps
from panes.queries.query import ARRIVAL, NUMBER, Query
from panes.queries.windows import RowWindow, Window
from panes.row_windows.arrival import by_key, by_time, check_delta, delta_values, marks_of, sort_ties
from panes.row_windows.parts import RowsPart, is_complete, is_session
from panes.row_windows.recorded import recorded
from panes.row_windows.tables import Stream
from panes.row_windows.vectorised import Arrivals, deltas_of, processed

ENDLESS = 4 * FARTHEST
"""Later than anything is ever due."""

START, END, NUMBERED = "__panes_start", "__panes_end", "__panes_number"
"""What answers call the bounds and the number of instances before they are finished: a key may be called so, too."""


# What is computed


@dataclass(frozen=True)
class BoundRows:
    """Windows of a query over columns of known types.

    Parameters
    ----------
    components, readings
        What is made of single rows, and what is read out of that.
    schema
        The columns of results.
    """

    part: RowsPart
    components: tuple[Component, ...]
    readings: tuple[Reading, ...]
    schema: ResultSchema

    @property
    def arguments(self) -> tuple[str, ...]:
        """The SQL of what is needed of each row."""
        return tuple(dict.fromkeys(a for component in self.components for a in component.arguments))

    @property
    def answers(self) -> pa.Schema:
        """The columns of answers before they are finished: keys, groups, bounds, the number of the window."""
        keys, instant = self.schema.keys, self.schema.instant
        bounds = [(START, instant), (END, instant), (NUMBERED, pa.int64())]
        return pa.schema([*keys.items(), *bounds, *self.outputs.items()])

    @property
    def outputs(self) -> dict[str, pa.DataType]:
        """What is computed."""
        return {reading.alias: reading.bound.type for reading in self.readings}

    def answer(
        self,
        number: int,
        arrivals: Arrivals,
        found: Processed,
        numbers: Array,
        keys: Sequence[pa.Array],
        groups: Sequence[pa.Array],
        arguments: Mapping[str, pa.Array],
    ) -> pa.Table:
        """What is computed over the instances of a window: the columns of ``answers``.

        Parameters
        ----------
        number
            Which window of the part it is.
        found, numbers
            Its instances, and which one of its key each is.
        keys
            The columns of keys, a row per key.
        groups, arguments
            The columns of groups, and the values of each argument; a row per row, in order.
        """
        return _answer(self, number, arrivals, found, numbers, keys, groups, arguments)


def flat(query: Query) -> Query:
    """A query whose groups are keys: what its results look like."""
    return replace(query, by=(*query.by, *query.groups), groups=())


def bind_rows(part: RowsPart, events: pa.Schema, type_of: TypeOf) -> BoundRows:
    """Fix the types, and refuse what does not fit the data."""
    check_part(part, events)
    query = flat(part.query)
    components, readings = bind_components([(0, part.bare)], query.where, type_of)
    types = output_types(query, {reading.alias: reading.bound.type for reading in readings[0][0]}, events)
    keys = {name: field_of(events, name).type for name in query.by}
    schema = result_schema([query], keys, [types], [field_of(events, query.at).type])
    return BoundRows(part, components, readings[0][0], schema)


def check_part(part: RowsPart, schema: pa.Schema) -> None:
    """Refuse columns that are not there, or not of a type that can serve."""
    check_columns([flat(part.query)], schema)
    for name in part.deltas:
        _check_name(part, "delta", name, schema)
    for stream in part.streams:
        for policy in deltas_of(stream.window):
            check_delta(policy, field_of(schema, str(policy.column)).type)
    mark = part.stream.mark
    if mark is not None:
        _check_name(part, "punctuation", mark.column, schema)
        type_ = field_of(schema, mark.column).type
        if not pa.types.is_boolean(type_):
            raise SchemaError(
                f"query {part.query.name!r}: punctuation({mark.column!r}) is of type {type_}, and has to say true or "
                "false. Compare it with something first."
            )
    tie_columns(schema, part.query.ties)


def _check_name(part: RowsPart, what: str, name: str, schema: pa.Schema) -> None:
    if name.lower() not in {known.lower() for known in schema.names}:
        raise SchemaError(
            f"query {part.query.name!r}: {what}({name!r}) is not a column of the data ({nearest(name, schema.names)})"
        )


def order_of(parts: Sequence[RowsPart], schema: pa.Schema) -> list[str]:
    """The columns that order rows of one instant: those that never decrease, then by the one rule of all verbs."""
    query = parts[0].query
    found = [field_of(schema, name).name for name in parts[0].deltas]
    found += tie_columns(schema, query.ties, (*query.by, query.at), needed(parts))
    return list(dict.fromkeys(found))


# The rows of a table


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
    bounds = [bind_rows(part, schema, lambda sql: result_type(expression(sql), schema)) for part in parts]
    for part in parts:
        if part.query.where is not None:
            require_boolean(part.query.where, schema)

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
    ordinals = by_key([column_of(table, key) for key in stream.by], len(table))
    chosen = np.arange(len(table)) if anywhere.all() else np.flatnonzero(anywhere)
    order = chosen[by_time(ordinals[chosen], instants[chosen])]
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
) -> Iterator[tuple[Arrivals, tuple[Processed, Array], list[pa.Array]]]:
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
        yield arrivals, windows_of(stream, arrivals), keys


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


# Answers, wherever the rows come from


def windows_of(stream: Stream, arrivals: Arrivals) -> tuple[Processed, Array]:
    """The windows that are answered, and which one of its key each is."""
    if stream.together:
        return recorded(stream.window, arrivals)
    found = processed(stream.window, arrivals)
    found = found if leaves_out(stream) else found.held()
    return found, found.numbers()


def leaves_out(stream: Stream) -> bool:
    """Whether windows leave out the latest rows, and are answered though they hold none."""
    return isinstance(stream.window, SlidingPolicies) and (stream.window.before or stream.window.ago > 0)


def _answer(
    bound: BoundRows,
    number: int,
    arrivals: Arrivals,
    found: Processed,
    numbers: Array,
    keys: Sequence[pa.Array],
    groups: Sequence[pa.Array],
    arguments: Mapping[str, pa.Array],
) -> pa.Table:
    events, instants = arrivals.events, arrivals.events.start
    start, end = bounds_of(bound.part.windows[number], found, instants)
    frame, members, owner = found.frame(), list[pa.Array](), found.key
    if groups:
        code = key_ordinals([*groups, pa.array(key_of_rows(events))], len(events))
        inside = groups_in(code, found.lo, found.hi)
        own = inside.window
        frame = Frame(found.key[own], found.instant[own], inside.lo, inside.hi)
        members = [column.take(pa.array(inside.first)) for column in groups]
        arguments = {a: array.take(pa.array(inside.order)) for a, array in arguments.items()}
        start, end, owner, numbers = start[own], end[own], owner[own], numbers[own]
    partials = [lifted(c, [arguments[a] for a in c.arguments], len(events)) for c in bound.components]
    columns = answers_over(bound.readings, partials, frame, start, end)
    schema = bound.answers
    taken = pa.array(owner)
    arrays = [*(key.take(taken) for key in keys), *members]
    instant = bound.schema.instant
    arrays += [pa.array(start).view(instant), pa.array(end).view(instant), pa.array(numbers, pa.int64()), *columns]
    table = pa.table([_typed(a, f.type) for a, f in zip(arrays, schema, strict=True)], schema=schema)
    # By window, and the groups of one as they first occur in it.
    return table.take(pa.array(inside.turn)) if groups else table


def _typed(array: pa.Array, type_: pa.DataType) -> pa.Array:
    return array if array.type == type_ else array.cast(type_)


def bounds_of(window: RowWindow | Window, found: Processed, instants: Array) -> tuple[Array, Array]:
    """Where results say that instances start and end.

    An instance ends when it is answered. It starts as long before as its size says where that is in time, and with its
    first row otherwise; one without rows where it ends.
    """
    if isinstance(window, Window):
        # One that is answered per row is answered with it, and not when it has ended.
        last = found.instant + 1 - window.ago if window.per_event else found.instant
        first = window.begins(last - window.geometry.range)
        return first - window.shift, last - window.end_shift
    end = found.instant - (1 if is_session(window) or window.bounds == "(]" else 0)
    if isinstance(window.size, int) and not is_session(window):
        return end - window.size, end
    start, some = end.copy(), found.hi > found.lo
    start[some] = instants[found.lo[some]]
    return start, end


def labelled(bound: BoundRows, number: int, answers: pa.Table) -> pa.Table:
    """Answers as results show them: derived columns, those that ``having`` wants, all columns."""
    query, window = flat(bound.part.query), bound.part.windows[number]
    columns = {name: answers.column(name) for name in answers.column_names if name not in (START, END, NUMBERED)}
    if query.asks_for(NUMBER):
        columns[NUMBER] = answers.column(NUMBERED)
    bounds = [whole(answers.column(name)) for name in (START, END)]
    if not query.timed:
        bounds = [pa.nulls(len(answers), bound.schema.instant)] * 2
    columns["window"] = pa.StructArray.from_arrays(bounds, names=["start", "end"])
    columns["window_name"] = pa.repeat(window.name, len(answers))
    return finished(query, pa.table(columns), bound.schema)


def needed(parts: Collection[RowsPart]) -> frozenset[str]:
    """The columns of the data that parts need, beside those that order rows of one instant."""
    return frozenset[str]().union(*(part.used for part in parts))
