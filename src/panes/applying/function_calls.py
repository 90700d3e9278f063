"""Call a user's function for each window, with a slice of the sorted rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.applying.outputs import CollectedResults
from panes.applying.user_functions import BEFORE, Function, Instance, WindowedFunction
from panes.engine.columns import whole
from panes.engine.keys import END, START
from panes.engine.schema import ResultSchema, field_of
from panes.frames.row_frame import RowFrame
from panes.queries.query import ARRIVAL
from panes.queries.windows import RowWindow, Window
from panes.row_windows.bound_rows import BoundRows, RowInstances, bounds_of, check_part
from panes.row_windows.parts import RowsPart, is_complete
from panes.row_windows.window_input import check_order

OUTPUT = "__panes_output_"
"""The prefix of the function's columns until results are labelled: a key may have the same name."""

_AT_ONCE = 1 << 14
"""The number of windows that are described at a time."""


@dataclass(frozen=True)
class AppliedRows(BoundRows):
    """Windows that a function is called for.

    Parameters
    ----------
    columns
        The columns of the rows that it gets.
    output
        The columns that it returns; None to infer them.
    bare
        Whether results have only the columns that it returns, without windows and keys.
    """

    columns: tuple[str, ...] = ()
    function: Function | None = None
    output: pa.Schema | None = None
    bare: bool = False

    @property
    def arguments(self) -> tuple[str, ...]:
        """The SQL of all columns."""
        return tuple("`" + name.replace("`", "``") + "`" for name in self.columns)

    @property
    def outputs(self) -> dict[str, pa.DataType]:
        """The columns that the function returns."""
        return {OUTPUT + field.name: field.type for field in self.output or ()}

    @property
    def answers(self) -> pa.Schema:
        """The columns of answers before they are labelled: keys, bounds, and what the function returns."""
        bounds = [(START, self.schema.instant), (END, self.schema.instant)]
        return pa.schema([*self.schema.keys.items(), *bounds, *self.outputs.items()])

    def answer(
        self, number: int, instances: RowInstances, arguments: Mapping[str, pa.Array], groups: Sequence[pa.Array] = ()
    ) -> pa.Table:
        """Call the function for each instance of a window."""
        assert self.function is not None
        window, keys = self.part.windows[number], instances.keys
        found, numbers = held_by(window, instances)
        start, end = bounds_of(window, found, instances.arrivals.events.start)
        rows = pa.table(list(arguments.values()), names=list(self.columns))
        names, key_rows = list(self.schema.keys), list(zip(*(key.to_pylist() for key in keys), strict=True)) or [()]
        collected = CollectedResults(self.output, () if self.bare else (*BEFORE, *names))
        for begin in range(0, len(found), _AT_ONCE):
            some = slice(begin, begin + _AT_ONCE)
            described = self._described(window, found.instant[some], start[some], end[some], numbers[some])
            held = (found.key[some].tolist(), found.lo[some].tolist(), found.hi[some].tolist())
            for call, (key, lo, hi, instance) in enumerate(zip(*held, described, strict=True), begin):
                own = dict(zip(names, key_rows[key], strict=True))
                collected.add(call, self.function(own, instance, rows.slice(lo, hi - lo)))
        owner, table = collected.found()
        instant, owners = self.schema.instant, pa.array(found.key[owner])
        columns = {name: key.take(owners) for name, key in zip(names, keys, strict=True)}
        columns |= {START: pa.array(start[owner]).view(instant), END: pa.array(end[owner]).view(instant)}
        columns |= {OUTPUT + name: whole(table.column(name)) for name in table.column_names}
        return pa.table(columns)

    def _described(self, window: Any, instants: Array, start: Array, end: Array, numbers: Array) -> Iterator[Instance]:
        """Describe windows for the function."""
        time, count = self.schema.instant, len(start)
        nothing = [None] * count
        timed, of_rows = self.part.query.timed, not is_complete(window)
        bounds = [pa.array(edge).view(time).to_pylist() if timed else nothing for edge in (start, end)]
        processed = pa.array(instants).view(time).to_pylist() if timed and of_rows else nothing
        which = numbers.tolist() if of_rows else nothing
        return map(Instance, [window.name] * count, *bounds, which, processed)


def held_by(window: RowWindow | Window, instances: RowInstances) -> tuple[RowFrame, Array]:
    """Return instances and their numbers. Policies may hold more rows than a window on the clock does."""
    found, numbers = instances.frame, instances.numbers
    if not isinstance(window, Window):
        return found, numbers
    events, lo, hi = instances.arrivals.events, found.lo, found.hi
    if window.per_event:
        # Rows of one instant have the same answer.
        last = found.instant + 1 - window.ago
        lo, hi = events.search(found.key, last - window.geometry.range), events.search(found.key, last)
        return RowFrame(found.key, found.instant, lo, hi), numbers
    if window.since is None:
        return found, numbers
    lo = np.maximum(lo, events.search(found.key, np.full_like(found.key, window.since)))
    some = hi > lo
    return RowFrame(found.key, found.instant, lo, hi).where(some), numbers[some]


def bind_function(declared: WindowedFunction, part: RowsPart, schema: pa.Schema) -> AppliedRows:
    """Bind a function to the columns of the data, or raise if its windows do not fit them."""
    check_part(part, schema)
    check_order(declared.order, schema)
    keys = {name: field_of(schema, name).type for name in part.query.by}
    result = ResultSchema(keys, {}, field_of(schema, part.query.at).type)
    columns = tuple(name for name in schema.names if name != ARRIVAL)
    return AppliedRows(part, (), (), result, columns, declared.function, declared.schema, bool(declared.order))


def label_calls(bound: AppliedRows, number: int, answers: pa.Table) -> pa.Table:
    """Return what the function returned, with windows and keys."""
    instant = bound.schema.instant
    own = {name.removeprefix(OUTPUT): answers.column(name) for name in answers.column_names if name.startswith(OUTPUT)}
    if bound.bare:
        return pa.table(own)
    edges = [whole(answers.column(name)) for name in (START, END)]
    if not bound.part.query.timed:
        edges = [pa.nulls(len(answers), instant)] * 2
    columns = {
        "window_name": pa.repeat(pa.scalar(bound.part.windows[number].name), len(answers)),
        "window": pa.StructArray.from_arrays(edges, names=["start", "end"]),
    }
    return pa.table(columns | {name: answers.column(name) for name in bound.schema.keys} | own)
