"""Windows by rows, in process: rows are sorted once for all windows of a key set, and kernels answer index pairs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from panes.aggregates.component import Component
from panes.aggregates.operations import Array
from panes.engine.bind_program import TypeOf, bind_components
from panes.engine.columns import whole
from panes.engine.index_pairs import answers_over, groups_in, lifted
from panes.engine.keys import key_ordinals
from panes.engine.program import Reading
from panes.engine.results import finished
from panes.engine.schema import ResultSchema, check_columns, field_of, output_types, result_schema
from panes.engine.sorting import tie_columns
from panes.errors import SchemaError, nearest
from panes.frames import Frame
from panes.frames.positions import FARTHEST
from panes.frames.row_frame import Arrivals, RowFrame, key_of_rows
from panes.queries.query import NUMBER, Query
from panes.queries.windows import RowWindow, Window
from panes.row_windows.arrival import check_delta
from panes.row_windows.parts import RowsPart, is_session

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
        found: RowFrame,
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
        for policy in stream.window.deltas:
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


# Answers, wherever the rows come from


def _answer(
    bound: BoundRows,
    number: int,
    arrivals: Arrivals,
    found: RowFrame,
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


def bounds_of(window: RowWindow | Window, found: RowFrame, instants: Array) -> tuple[Array, Array]:
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
    if query.refers_to(NUMBER):
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
