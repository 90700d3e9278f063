"""The in-process runner: an Arrow table in, an Arrow table out, through the same engine as Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from panes.engine.answer import answer_events
from panes.engine.bind_program import bind_store, describe_windows, types_in
from panes.engine.columns import column_of
from panes.engine.program import Program, emitting_all
from panes.engine.results import piece_of, widen_table
from panes.engine.schema import answer_schema, check_columns
from panes.engine.sorted_events import SortedEvents, sorted_events
from panes.inputs import as_table
from panes.planning.explanation import listed
from panes.planning.panes import describe_edges
from panes.planning.physical_plan import PhysicalPlan, StorePlan
from panes.planning.steps import Steps

NULL_TIMESTAMPS = b"panes.null_timestamps"
"""Where a result's metadata says how many events had no time, and so are in no window."""


def run(
    physical: PhysicalPlan, data: Any, *, layout: str = "long", kernel: str | None = None, emit_all: bool = False
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
    add_steps(steps, read, physical, data, layout=layout, kernel=kernel, emit_all=emit_all)
    found: pa.Table = steps.carry_out()
    return found


def add_steps(
    steps: Steps,
    read: int,
    physical: PhysicalPlan,
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
    table = as_table(data, {name.lower() for query in physical.queries for name in query.used})
    check_columns(physical.queries, table.schema)
    programs = [bind_store(store, types_in(table.schema)) for store in physical.stores]
    if emit_all:
        programs = [emitting_all(program) for program in programs]
    schema = answer_schema(physical.queries, programs, table.schema)
    answers = []
    for store, program in zip(physical.stores, programs, strict=True):

        def sort(_: object, store: StorePlan = store, program: Program = program) -> SortedEvents:
            return sorted_events(store, program, table)

        def answer(events: SortedEvents, program: Program = program) -> list[pa.Table]:
            found = answer_events(program, events.instants, events.key_starts, events.arguments, kernel=kernel)
            return [piece_of(physical.queries, program, some, events.keys, schema) for some in found]

        ordered = steps.add("sort", f"events by {listed(store.keys)} and time", sort, read)
        panes = "single instants" if store.per_event else f"panes {describe_edges(program.edges)}"
        titles = describe_windows(program)
        answers.append(steps.add("answer", f"{panes}, and every window from them", answer, ordered, windows=titles))
    missing = sum(column_of(table, at).null_count for at in {query.at for query in physical.queries})

    def put_together(*pieces: list[pa.Table]) -> pa.Table:
        result = pa.concat_tables([schema.long.empty_table(), *(piece for some in pieces for piece in some)])
        if layout == "wide":
            result = widen_table(result, physical.queries, list(schema.keys))
        return result.replace_schema_metadata({NULL_TIMESTAMPS: str(missing).encode()})

    detail = "a row per key and window end" if layout == "wide" else "all answers"
    return steps.add("widen" if layout == "wide" else "union", detail, put_together, *answers)
