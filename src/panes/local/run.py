"""The in-process runner: an Arrow table in, an Arrow table out, through the same engine as Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.engine.answer import answer_events
from panes.engine.columns import column_of, counting, whole
from panes.engine.keys import key_ordinals, one_zero
from panes.engine.program import Program, assemble, bind_components, describe_windows, emitting_all
from panes.engine.results import piece_of, widen_table
from panes.engine.schema import answer_schema, check_columns
from panes.expressions.evaluate import evaluate, require_boolean, result_type
from panes.expressions.expression import expression
from panes.inputs import as_table
from panes.planning.blueprint import Blueprint, StorePlan
from panes.planning.explanation import describe_edges, listed
from panes.planning.steps import Steps

NULL_TIMESTAMPS = b"panes.null_timestamps"
"""Where a result's metadata says how many events had no time, and so are in no window."""


def run(
    blueprint: Blueprint, data: Any, *, layout: str = "long", kernel: str | None = None, emit_all: bool = False
) -> pa.Table:
    """Answer every query of a plan on an Arrow table.

    Parameters
    ----------
    data
        A pyarrow Table, or anything with the Arrow C interface.
    layout
        ``long`` or ``wide``.
    kernel
        Use one kernel by name instead of the cheapest, for tests.
    emit_all
        Also answer instances without events, between a key's first and last event.
    """
    steps = Steps("plan.run on a table")
    read = steps.add("read", "events", lambda: None)
    add_steps(steps, read, blueprint, data, layout=layout, kernel=kernel, emit_all=emit_all)
    found: pa.Table = steps.carry_out()
    return found


def add_steps(
    steps: Steps,
    read: int,
    blueprint: Blueprint,
    data: Any,
    *,
    layout: str = "long",
    kernel: str | None = None,
    emit_all: bool = False,
) -> int:
    """List what is to be done, after every check; the number of the step that has all answers.

    Parameters
    ----------
    read
        The step that has the events.
    """
    table = as_table(data, {name.lower() for query in blueprint.queries for name in query.used})
    check_columns(blueprint.queries, table.schema)
    programs = [program_of(store, table.schema) for store in blueprint.stores]
    if emit_all:
        programs = [emitting_all(program) for program in programs]
    schema = answer_schema(blueprint.queries, programs, table.schema)
    answers = []
    for store, program in zip(blueprint.stores, programs, strict=True):

        def sort(_: object, store: StorePlan = store, program: Program = program) -> Sorted:
            return sorted_events(store, program, table)

        def answer(events: Sorted, program: Program = program) -> list[pa.Table]:
            found = answer_events(program, events.instants, events.key_starts, events.arguments, kernel=kernel)
            return [piece_of(blueprint.queries, program, some, events.keys, schema) for some in found]

        ordered = steps.add("sort", f"events by {listed(store.keys)} and time", sort, read)
        panes = "single instants" if store.per_event else f"panes {describe_edges(program.edges)}"
        titles = describe_windows(program)
        answers.append(steps.add("answer", f"{panes}, and every window from them", answer, ordered, windows=titles))
    missing = sum(column_of(table, at).null_count for at in {query.at for query in blueprint.queries})

    def put_together(*pieces: list[pa.Table]) -> pa.Table:
        result = pa.concat_tables([schema.long.empty_table(), *(piece for some in pieces for piece in some)])
        if layout == "wide":
            result = widen_table(result, blueprint.queries, list(schema.keys))
        return result.replace_schema_metadata({NULL_TIMESTAMPS: str(missing).encode()})

    detail = "a row per key and window end" if layout == "wide" else "all answers"
    return steps.add("widen" if layout == "wide" else "union", detail, put_together, *answers)


def program_of(store: StorePlan, schema: pa.Schema) -> Program:
    """A store's part of a plan, with the types of its columns."""
    for _, query in store.queries:
        if query.where is not None:
            require_boolean(query.where, schema)
    components, readings = bind_components(store.queries, store.kept, lambda sql: result_type(expression(sql), schema))
    return assemble(components, store.edges, store.forest, store.queries, readings)


@dataclass(frozen=True)
class Sorted:
    """The events of a store, sorted by key and time."""

    instants: Array
    key_starts: Array
    keys: pa.Table
    arguments: dict[str, pa.Array]


def sorted_events(store: StorePlan, program: Program, table: pa.Table) -> Sorted:
    """The events that count for a store, those without a time left out."""
    table = counting(table, store.at, store.kept)
    instants = column_of(table, store.at).view(pa.int64()).to_numpy()
    keys = pa.table([one_zero(column_of(table, key)) for key in store.keys], names=list(store.keys))
    arguments = {sql: whole(evaluate(expression(sql), table)) for sql in program.arguments}
    ordinals = key_ordinals([column.combine_chunks() for column in keys.columns], len(instants))
    order = np.lexsort((instants, ordinals))
    sorted_ordinals = ordinals[order]
    firsts = np.flatnonzero(np.diff(sorted_ordinals, prepend=-1))
    return Sorted(
        instants[order],
        np.append(firsts, len(order)),
        keys.take(pa.array(order[firsts])) if store.keys else keys,
        {sql: array.take(pa.array(order)) for sql, array in arguments.items()},
    )
