"""Answer windows of rows over sorted rows: kernels compute the aggregates of index pairs.

``bind_rows`` checks a part against the columns of the data. ``instances_of`` finds the instances of its windows, and
``BoundRows.answer`` computes their aggregates, wherever the rows were sorted. ``labelled`` names the results.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from panes.aggregates.component import Component
from panes.aggregates.operations import Array
from panes.engine.bind_program import TypeOf, bind_components
from panes.engine.columns import whole
from panes.engine.index_pairs import answers_over, groups_in, lifted
from panes.engine.keys import END, START, key_ordinals
from panes.engine.program import Reading
from panes.engine.results import finished
from panes.engine.schema import ResultSchema, check_columns, field_of, output_types, result_schema
from panes.engine.sorting import tie_columns
from panes.frames import Frame
from panes.frames.positions import FARTHEST
from panes.frames.row_frame import Arrivals, RowFrame, key_of_rows
from panes.queries.query import NUMBER, Query
from panes.queries.windows import RowWindow, Window
from panes.row_windows.arrival import delta_values
from panes.row_windows.framing import frame_rows
from panes.row_windows.parts import RowsPart, is_complete, is_session
from panes.row_windows.window_input import check_measures

ENDLESS = 4 * FARTHEST
"""An instant after everything that is ever due."""

NUMBERED = "__panes_number"
"""The column of numbers until results are labelled, as ``START`` and ``END`` are those of bounds."""


# The instances to answer


@dataclass(frozen=True, eq=False)
class RowInstances:
    """The instances of a window over sorted rows.

    Parameters
    ----------
    arrivals
        The rows, as they arrived.
    frame, numbers
        The instances, and the number of each within its key.
    keys
        The key columns, a row per key.
    """

    arrivals: Arrivals
    frame: RowFrame
    numbers: Array
    keys: Sequence[pa.Array]


def instances_of(
    part: RowsPart, arrivals: Arrivals, attributes: pa.Table, keys: Sequence[pa.Array]
) -> Iterator[RowInstances]:
    """Yield the instances of each window of a part.

    Parameters
    ----------
    attributes
        A table of the same rows, with the columns that sizes and paces are measured in.
    """
    for window, input in zip(part.windows, part.inputs, strict=True):
        end = ENDLESS if is_complete(window) else arrivals.end
        own = replace(arrivals, end=end, attributes=delta_values(input.window, attributes))
        yield RowInstances(own, *frame_rows(input, own), keys)


# Their answers


@dataclass(frozen=True)
class BoundRows:
    """Windows of a query over columns of known types.

    Parameters
    ----------
    components, readings
        What is kept of rows, and what is read out of that.
    schema
        The columns of results.
    """

    part: RowsPart
    components: tuple[Component, ...]
    readings: tuple[Reading, ...]
    schema: ResultSchema

    @property
    def arguments(self) -> tuple[str, ...]:
        """The SQL of the arguments of aggregates."""
        return tuple(dict.fromkeys(a for component in self.components for a in component.arguments))

    @property
    def answers(self) -> pa.Schema:
        """The columns of answers before they are labelled: keys, groups, bounds, number, aggregates."""
        keys, instant = self.schema.keys, self.schema.instant
        bounds = [(START, instant), (END, instant), (NUMBERED, pa.int64())]
        return pa.schema([*keys.items(), *bounds, *self.outputs.items()])

    @property
    def outputs(self) -> dict[str, pa.DataType]:
        """The aggregates and their types."""
        return {reading.alias: reading.bound.type for reading in self.readings}

    def answer(
        self, number: int, instances: RowInstances, arguments: Mapping[str, pa.Array], groups: Sequence[pa.Array] = ()
    ) -> pa.Table:
        """Compute the aggregates over the instances of a window: the columns of ``answers``.

        Parameters
        ----------
        number
            Which window of the part it is.
        arguments, groups
            The values of each argument and of each group column, a row per row.
        """
        found, numbers, events = instances.frame, instances.numbers, instances.arrivals.events
        start, end = bounds_of(self.part.windows[number], found, events.start)
        frame, members, owner = found.frame(), list[pa.Array](), found.key
        if groups:
            code = key_ordinals([*groups, pa.array(key_of_rows(events))], len(events))
            inside = groups_in(code, found.lo, found.hi)
            own = inside.window
            frame = Frame(found.key[own], found.instant[own], inside.lo, inside.hi)
            members = [column.take(pa.array(inside.first)) for column in groups]
            arguments = {a: array.take(pa.array(inside.order)) for a, array in arguments.items()}
            start, end, owner, numbers = start[own], end[own], owner[own], numbers[own]
        partials = [lifted(c, [arguments[a] for a in c.arguments], len(events)) for c in self.components]
        columns = answers_over(self.readings, partials, frame, start, end)
        schema, instant, taken = self.answers, self.schema.instant, pa.array(owner)
        arrays = [*(key.take(taken) for key in instances.keys), *members]
        arrays += [pa.array(start).view(instant), pa.array(end).view(instant), pa.array(numbers, pa.int64()), *columns]
        table = pa.table([_typed(a, f.type) for a, f in zip(arrays, schema, strict=True)], schema=schema)
        # By window, and the groups of each as they first occur in it.
        return table.take(pa.array(inside.turn)) if groups else table


def flat(query: Query) -> Query:
    """Return a query with its groups as keys, which gives the columns of its results."""
    return replace(query, by=(*query.by, *query.groups), groups=())


def bind_rows(part: RowsPart, events: pa.Schema, type_of: TypeOf) -> BoundRows:
    """Bind a part to the columns of the data, or raise if it does not fit them."""
    check_part(part, events)
    query = flat(part.query)
    components, readings = bind_components([(0, part.bare)], query.where, type_of)
    types = output_types(query, {reading.alias: reading.bound.type for reading in readings[0][0]}, events)
    keys = {name: field_of(events, name).type for name in query.by}
    schema = result_schema([query], keys, [types], [field_of(events, query.at).type])
    return BoundRows(part, components, readings[0][0], schema)


def check_part(part: RowsPart, schema: pa.Schema) -> None:
    """Reject columns that are missing, or of an unsuitable type."""
    check_columns([flat(part.query)], schema)
    for input in part.inputs:
        check_measures(input, schema, f"query {part.query.name!r}: ")
    tie_columns(schema, part.query.ties)


def _typed(array: pa.Array, type_: pa.DataType) -> pa.Array:
    return array if array.type == type_ else array.cast(type_)


def bounds_of(window: RowWindow | Window, found: RowFrame, instants: Array) -> tuple[Array, Array]:
    """Return the start and end of instances in results.

    An instance ends when it is answered. With a size in time it starts that long before; otherwise with its first row,
    or at its end if it holds none.
    """
    if isinstance(window, Window):
        # With an answer per row, an instance is answered with the row, and not at its own end.
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
    """Return answers as results: named, with derived columns, filtered by ``having``."""
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
    """Return the columns of the data that parts need, except those that only order rows of one instant."""
    return frozenset[str]().union(*(part.used for part in parts))
