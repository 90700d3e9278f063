"""Aggregates over windows by policy, in columns: the windows become index pairs, and kernels answer them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from panes.algebra.component import Component
from panes.algebra.operations import Array
from panes.declare.expressions import expression
from panes.engine.groups import groups_in
from panes.engine.keys import key_ordinals, one_zero
from panes.engine.over_pairs import answers_over, lifted
from panes.engine.program import Reading, TypeOf, bind_components
from panes.engine.schema import check_columns, field_of
from panes.frames import Frame
from panes.frames.processed import Processed, key_of_rows
from panes.local.arriving import arrive, check_stream
from panes.local.columns import column_of
from panes.local.evaluate import evaluate, require_boolean, result_type
from panes.local.intake import as_table
from panes.local.schema import output_types
from panes.operators.over_tables import ARRIVAL, WindowedAggregates
from panes.operators.recorded import recorded
from panes.operators.vectorised import Arrivals, processed


@dataclass(frozen=True)
class BoundAggregates:
    """Aggregates over windows, with columns of known types.

    Parameters
    ----------
    components, readings
        What is made of single rows, and what is read out of that.
    schema
        The columns of the result.
    """

    declared: WindowedAggregates
    components: tuple[Component, ...]
    readings: tuple[Reading, ...]
    schema: pa.Schema

    @property
    def arguments(self) -> tuple[str, ...]:
        """The SQL of what is needed of each row."""
        return tuple(dict.fromkeys(a for component in self.components for a in component.arguments))

    @property
    def read(self) -> frozenset[str]:
        """The columns that are read of each row: those of arguments and of groups."""
        return frozenset((*self.groups, *(root for a in self.arguments for root in expression(a).roots)))

    @property
    def groups(self) -> tuple[str, ...]:
        """The columns of groups that are not those of partitions."""
        return self.declared.query.by[len(self.declared.stream.by) :]


def used_columns(declared: WindowedAggregates) -> frozenset[str]:
    """The columns of the data that are needed at all; their values order rows of one instant."""
    return (declared.stream.used | declared.query.used) - {ARRIVAL}


def bind_aggregates(declared: WindowedAggregates, schema: pa.Schema, type_of: TypeOf) -> BoundAggregates:
    """Fix the types, and refuse what does not fit the data."""
    query, stream = declared.query, declared.stream
    components, readings = bind_components([(0, query)], query.where, type_of)
    instant = field_of(schema, query.at).type
    bounds = [] if stream.at is None else [(name, instant) for name in ("start", "end", "processed")]
    window = pa.struct([*bounds, ("number", pa.int64())])
    types = output_types(query, {r.alias: r.bound.type for r in readings[0][0]}, schema, window)
    keys = {name: field_of(schema, name).type for name in query.by}
    partitions, groups = list(keys.items())[: len(stream.by)], list(keys.items())[len(stream.by) :]
    columns = [(alias, types[alias]) for alias in query.columns]
    names = pa.schema([*partitions, ("window", window), *groups, *columns])
    return BoundAggregates(declared, components, readings[0][0], names)


def windowed(declared: WindowedAggregates, data: Any) -> pa.Table:
    """Every window of a table.

    Parameters
    ----------
    data
        A pyarrow Table, or anything with the Arrow C interface.
    """
    query, stream = declared.query, declared.stream
    used = used_columns(declared)
    table = as_table(data, {name.lower() for name in used})
    check_stream(stream, table.schema)
    if stream.at is None:
        table = table.append_column(ARRIVAL, pa.array(np.arange(len(table)), pa.timestamp("us")))
    check_columns([query], table.schema)
    if query.where is not None:
        require_boolean(query.where, table.schema)
    schema = table.schema
    bound = bind_aggregates(declared, schema, lambda sql: result_type(expression(sql), schema))
    arrived = arrive(stream, table, used, bound.read)
    table = arrived.table
    groups = [one_zero(column_of(table, name)) for name in bound.groups]
    arguments = {a: evaluate(expression(a), table).combine_chunks() for a in bound.arguments}
    return answer(bound, arrived.arrivals, *windows_of(declared, arrived.arrivals), arrived.keys, groups, arguments)


def windows_of(declared: WindowedAggregates, arrivals: Arrivals) -> tuple[Processed, Array]:
    """The windows of a table that held a tuple, and which one of its partition each was."""
    window, partial = declared.stream.window, declared.partial
    if declared.stream.together:
        return recorded(window, arrivals, partial=partial)
    found = processed(window, arrivals, partial=partial).held()
    return found, found.numbers()


def answer(
    bound: BoundAggregates,
    arrivals: Arrivals,
    found: Processed,
    numbers: Array,
    keys: Sequence[pa.Array],
    groups: Sequence[pa.Array],
    arguments: Mapping[str, pa.Array],
) -> pa.Table:
    """What is computed over windows.

    Parameters
    ----------
    found, numbers
        The windows, none of them empty, and which one of its partition each is.
    keys
        The columns of partitions, a row per partition.
    groups, arguments
        The columns of groups, and the values of each argument; a row per tuple, in the order of arrival.
    """
    declared, events = bound.declared, arrivals.events
    frame, members = found.frame(), list[pa.Array]()
    window: Array | None = None
    if groups:
        code = key_ordinals([*groups, pa.array(key_of_rows(events))], len(events))
        inside = groups_in(code, found.lo, found.hi)
        window = inside.window
        frame = Frame(found.key[window], found.instant[window], inside.lo, inside.hi)
        members = [column.take(pa.array(inside.first)) for column in groups]
        arguments = {a: array.take(pa.array(inside.order)) for a, array in arguments.items()}
    partials = [lifted(c, [arguments[a] for a in c.arguments], len(events)) for c in bound.components]
    starts = events.start[found.lo]
    columns = answers_over(bound.readings, partials, frame, starts if window is None else starts[window], frame.start)
    table = _labelled(bound, found, numbers, window, keys, members, events.start)
    for reading, column in zip(bound.readings, columns, strict=True):
        table = table.append_column(reading.alias, column)
    for alias, value in declared.query.derived:
        table = table.append_column(alias, evaluate(value, table))
    table = table.select(bound.schema.names)
    table = table if table.schema == bound.schema else table.cast(bound.schema)
    # By window, and the groups of one as they first occur in it.
    return table.take(pa.array(inside.turn)) if groups else table


def _labelled(
    bound: BoundAggregates,
    found: Processed,
    numbers: Array,
    window: Array | None,
    keys: Sequence[pa.Array],
    members: Sequence[pa.Array],
    instants: Array,
) -> pa.Table:
    """What every row of the result begins with, and what derived columns may name.

    Parameters
    ----------
    window
        The window of each row, where there are groups.
    """
    stream, kind = bound.declared.stream, bound.schema.field("window").type
    names = [field.name for field in kind]
    bounds = {"start": instants[found.lo], "end": instants[found.hi - 1], "processed": found.instant}
    parts = [pa.array(bounds[name]).view(kind.field(name).type) for name in names[:-1]]
    label = pa.StructArray.from_arrays([*parts, pa.array(numbers)], names=names)
    owner = pa.array(found.key if window is None else found.key[window])
    columns = {name: key.take(owner) for name, key in zip(stream.by, keys, strict=True)}
    columns["window"] = label if window is None else label.take(pa.array(window))
    columns |= dict(zip(bound.groups, members, strict=True))
    if bound.declared.query.derived:
        columns["window_name"] = pa.repeat(str(stream.window), len(owner))
    return pa.table(columns)
