"""``plan.run`` on a table in this process: through the same engine as on Spark, without a shuffle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from panes.engine.bind_program import bind_plan, describe_windows
from panes.engine.columns import column_of
from panes.engine.program import Program, emitting_all
from panes.engine.results import answer_tables, together, widen_table
from panes.engine.sorting import SortedEvents, sorted_events
from panes.inputs import as_table, reread
from panes.planning.explanation import listed
from panes.planning.panes import describe_edges
from panes.planning.physical_plan import PhysicalPlan, StorePlan
from panes.planning.steps import Steps

if TYPE_CHECKING:
    from panes.row_windows.parts import RowsPart

NULL_TIMESTAMPS = b"panes.null_timestamps"
"""The key in a result's metadata for the number of events without a time, which are in no window."""


def run_steps(
    physical: PhysicalPlan,
    data: Any,
    key_sets: Sequence[Sequence[RowsPart]] = (),
    *,
    layout: str = "long",
    empty: bool = False,
    kernel: str | None = None,
) -> Steps:
    """List what answers every query on a table, after every check.

    Parameters
    ----------
    data
        A pyarrow Table, or anything with the Arrow C interface.
    key_sets
        Windows of rows, those that share a sorted column together.
    layout
        ``long`` or ``wide``.
    empty
        Whether to answer instances without events too, between a key's first and last event.
    kernel
        The one kernel to use instead of the cheapest, for comparison.
    """
    data = reread(data)
    steps = Steps("plan.run on a table")
    read, parts = steps.add("read", "events", lambda: None), list[int]()
    if physical.stores:
        parts.append(_add_time_windows(steps, read, physical, data, layout=layout, empty=empty, kernel=kernel))
    if key_sets:
        from panes.local.rows import add_row_windows

        parts += [add_row_windows(steps, read, some, data) for some in key_sets]
    if len(parts) > 1:
        steps.add("union", "the answers of all parts", lambda *tables: together(tables), *parts)
    return steps


def _add_time_windows(
    steps: Steps, read: int, physical: PhysicalPlan, data: Any, *, layout: str, empty: bool, kernel: str | None
) -> int:
    """List what answers the windows over time; the number of the step that has all answers."""
    queries = physical.queries
    table = as_table(data, {name.lower() for query in queries for name in query.used})
    programs, schema = bind_plan(physical, table.schema)
    if empty:
        programs = [emitting_all(program) for program in programs]
    answers = []
    for store, program in zip(physical.stores, programs, strict=True):

        def sort(_: object, store: StorePlan = store, program: Program = program) -> SortedEvents:
            return sorted_events(store, program, table)

        def answer(events: SortedEvents, program: Program = program) -> list[pa.Table]:
            return answer_tables(queries, program, events, schema, kernel=kernel)

        ordered = steps.add("sort", f"events by {listed(store.keys)} and time", sort, read)
        panes = "single instants" if store.per_event else f"panes {describe_edges(program.edges)}"
        windows = describe_windows(program)
        answers.append(steps.add("answer", f"{panes}, and every window from them", answer, ordered, windows=windows))
    untimed = sum(column_of(table, at).null_count for at in {query.at for query in queries})

    def put_together(*answers: list[pa.Table]) -> pa.Table:
        result = pa.concat_tables([schema.long.empty_table(), *(table for some in answers for table in some)])
        if layout == "wide":
            result = widen_table(result, queries, list(schema.keys))
        return result.replace_schema_metadata({NULL_TIMESTAMPS: str(untimed).encode()})

    if layout == "wide":
        return steps.add("widen", "a row per key and window end", put_together, *answers)
    return steps.add("union", "all answers", put_together, *answers)
