"""``plan.run`` on a Spark DataFrame: check everything first, plan on a sample, then one lazy DataFrame of answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from panes.engine.bind_program import describe_windows
from panes.engine.program import Node, Program, emitting_all
from panes.engine.schema import answer_schema, field_of
from panes.errors import PlanError
from panes.planning.explanation import describe_panes, listed
from panes.planning.physical_plan import PhysicalPlan
from panes.planning.statistics import Statistics
from panes.planning.steps import Steps
from panes.planning.strategy import Strategy
from panes.queries.query import Query
from panes.queries.windows import Window
from panes.spark.binding import Input, bind_plan, examine
from panes.spark.columnar import (
    all_at_one_instant,
    answers_from_events,
    answers_from_panes,
    by_key,
    coarser_panes,
    events_by_key,
    panes,
    wide_per_event,
)
from panes.spark.finish import Shape, WindowRows, finish_many, finish_one, union, union_by_name, widen
from panes.spark.group_bys import from_events, from_partials, native, read_view
from panes.spark.naming import quoted
from panes.spark.prefilter import Prefilter
from panes.spark.sampling import sample, worth_a_sample

if TYPE_CHECKING:
    from panes.row_windows.parts import RowsPart
    from panes.spark.rows import Prepared


Plan: TypeAlias = Callable[[Statistics, Strategy | None], PhysicalPlan]
"""Plans the same queries under some statistics, with one strategy or the cheapest ones."""


def run_steps(
    physical: PhysicalPlan,
    events: DataFrame,
    key_sets: Sequence[Sequence[RowsPart]] = (),
    *,
    layout: str = "long",
    empty: bool = False,
    strategy: Strategy | None = None,
    observation: Observation | None = None,
    plan: Plan | None = None,
) -> Steps:
    """List what answers every query on a DataFrame, after every check and a look at the first events.

    Parameters
    ----------
    key_sets
        Windows of rows, those that share a sorted column together.
    layout
        ``long`` or ``wide``.
    empty
        Whether to answer instances without events too, between a key's first and last event.
    strategy
        How to run all of it; without it, what is in the plan.
    observation
        Counts events (``events``) and those without a time, which are in no window (``null_timestamps``).
    plan
        Plans the queries anew, once the data are known; without it, the plan stays as it is.
    """
    steps = Steps("plan.run on a DataFrame", shuffling=True)
    read, parts = steps.add("read", "events", lambda: events), list[int]()
    key_sets_bound, bound = _bind_row_windows(key_sets, events), None
    if physical.stores:
        bound, notes = check(physical, events), list[str]()
        if plan is not None:
            bound, notes = _planned_on(bound, plan, "columnar" if empty else strategy, empty=empty)
    counted = read
    if observation is not None:
        queries = physical.queries or [part.query for some in key_sets for part in some]
        counted = _add_count(steps, read, dict.fromkeys(query.at for query in queries), observation)
    if bound is not None:
        parts.append(_add_time_windows(steps, counted, bound, layout=layout, empty=empty))
        steps.because(bound.physical, notes)
        counted = read  # events are counted once
    if key_sets:
        from panes.spark.rows import add_row_windows

        parts += [add_row_windows(steps, counted, prepared, look_at=read) for prepared in key_sets_bound]
    if len(parts) > 1:
        steps.add("union", "the answers of all parts", union_by_name, *parts)
    return steps


def _bind_row_windows(key_sets: Sequence[Sequence[RowsPart]], events: DataFrame) -> list[Prepared]:
    if not key_sets:
        return []
    from panes.spark.rows import prepare_rows

    return [prepare_rows(some, events) for some in key_sets]


@dataclass(frozen=True)
class BoundPlan:
    """A plan bound to the data.

    Parameters
    ----------
    programs
        One per store.
    shape
        The Spark types of all key and output columns.
    """

    physical: PhysicalPlan
    source: Input
    programs: tuple[Program, ...]
    shape: Shape

    def replanned(self, physical: PhysicalPlan) -> BoundPlan:
        """Another plan for the same queries and data; what a query reads stays bound."""
        return replace(self, physical=physical, programs=bind_plan(physical, self.source))

    @property
    def unreadable(self) -> str | None:
        """An output column that a tree of group-bys is to answer and that SQL cannot read out of what it keeps."""
        programs = zip(self.physical.stores, self.programs, strict=True)
        views = (view for store, program in programs if store.strategy == "rewrite" for view in program.views)
        return next((r.alias for view in views for r in view.readings if r.bound.read is None), None)


def check(physical: PhysicalPlan, events: DataFrame) -> BoundPlan:
    """Bind a plan to the data, which finds every mistake without a job."""
    source = examine(physical.queries, events)
    programs = bind_plan(physical, source)
    # Derived columns and having are analysed here.
    schema = answer_schema(physical.queries, programs, source.schema)
    return BoundPlan(physical, source, programs, Shape.of(schema, source))


def _planned_on(bound: BoundPlan, plan: Plan, strategy: Strategy | None, *, empty: bool) -> tuple[BoundPlan, list[str]]:
    """The plan for these data, and why it differs from the cheapest one."""
    statistics, notes = bound.physical.statistics, list[str]()
    if statistics.origin == "assumed" and strategy is None and worth_a_sample(bound.physical):
        statistics = sample(bound.source.events, bound.physical.queries, statistics)
    planned = plan(statistics, strategy)
    if planned is not bound.physical:
        bound = bound.replanned(planned)
    if empty:
        notes.append("empty=True runs in columns: Spark's group-bys have no empty groups")
    if (alias := bound.unreadable) is not None:
        why = f"column {alias!r}: the average of decimals has digits that a division in SQL does not keep"
        if strategy is not None:
            raise PlanError(
                f"{why}, so strategy={strategy!r} cannot run it. Take strategy='columnar', or let the planner choose."
            )
        bound = bound.replanned(plan(statistics, "columnar"))
        notes.append(f"{why}, so all of it runs in columns")
    return bound, notes


def _add_time_windows(steps: Steps, read: int, bound: BoundPlan, *, layout: str, empty: bool) -> int:
    """List what answers the windows over time; the number of the step that has all answers."""
    physical = bound.physical
    if empty:
        bound = replace(bound, programs=tuple(map(emitting_all, bound.programs)))
    if layout == "wide" and all_at_one_instant(physical):
        return _add_wide_per_event(steps, read, bound)
    panes_at: dict[int, int] = {}
    answers = [n for store in range(len(physical.stores)) for n in _add_store(steps, read, bound, store, panes_at)]
    found = answers[0]
    if len(answers) > 1:
        found = steps.add("union", "all answers", lambda *parts: union(parts), *answers)
    if layout == "long":
        return found
    return steps.add("widen", "a row per key and window end", lambda rows: widen(rows, physical.queries), found)


def _add_count(steps: Steps, read: int, times: Iterable[str], observation: Observation) -> int:
    """Count events when they are read: all, and those without a time."""
    missing = sum((F.count_if(F.col(quoted(at)).isNull()) for at in times), F.lit(0))

    def count(events: DataFrame) -> DataFrame:
        return events.observe(observation, F.count(F.lit(1)).alias("events"), missing.alias("null_timestamps"))

    return steps.add("count", "events, and those without a time, while they are read", count, read)


def _add_store(steps: Steps, read: int, bound: BoundPlan, number: int, panes_at: dict[int, int]) -> list[int]:
    """The steps of a store; the numbers of those that have answers, in the schema of all.

    Parameters
    ----------
    panes_at
        The steps that have the panes of stores; the one with this store's panes is added.
    """
    store = bound.physical.stores[number]
    if store.strategy == "native":
        return _add_native(steps, read, bound, number)
    if store.strategy == "rewrite":
        return [_add_tree(steps, read, bound, number)]
    return [_add_columns(steps, read, bound, number, panes_at)]


def _add_native(steps: Steps, read: int, bound: BoundPlan, number: int) -> list[int]:
    """One group-by per query and window."""
    source, found = bound.source, []
    for place, query in bound.physical.stores[number].queries:
        for window in query.windows:

            def group(
                events: DataFrame, place: int = place, query: Query = query, window: Window = window
            ) -> DataFrame:
                rows = native(query, window, replace(source, events=events))
                return finish_one(WindowRows(place, window, rows), query, bound.shape)

            detail = f"events by {listed(query.by)} and Spark's own window"
            found.append(steps.add("group", detail, group, read, windows=[window.name]))
    return found


def _add_tree(steps: Steps, read: int, bound: BoundPlan, number: int) -> int:
    """One group-by per node of the forest."""
    physical, program, source = bound.physical, bound.programs[number], bound.source
    store, at = physical.stores[number], list[int]()
    for node, title in zip(program.nodes, describe_windows(program), strict=True):
        provider = None if node.provider is None else program.nodes[node.provider]

        def group(rows: DataFrame, node: Node = node, provider: Node | None = provider) -> DataFrame:
            if provider is None:
                return from_events(store, program, node, replace(source, events=rows))
            return from_partials(store, program, node, rows, provider)

        what = "events" if provider is None else "the groups of another window"
        reads = read if node.provider is None else at[node.provider]
        at.append(steps.add("group", f"{what} by {listed(store.keys)} and window", group, reads, windows=[title]))

    def answers(*partials: DataFrame) -> DataFrame:
        views = [
            (v, node.geometry, some) for node, some in zip(program.nodes, partials, strict=True) for v in node.views
        ]
        read_out = [read_view(store, program.views[v], geometry, some, source) for v, geometry, some in views]
        return union([finish_one(one, physical.queries[one.query], bound.shape) for one in read_out])

    return steps.add("union", "the answers of all of its windows", answers, *at)


def _add_columns(steps: Steps, read: int, bound: BoundPlan, number: int, panes_at: dict[int, int]) -> int:
    """Panes, or events, sorted by key and time, and every window at once from sorted columns."""
    physical, program, source = bound.physical, bound.programs[number], bound.source
    store = physical.stores[number]
    keys = {name: field_of(source.schema, name).type for name in store.keys}
    prefilter = Prefilter.of(physical.queries, keys, program.views)
    if store.from_events:
        ordered = _add_sorted_events(steps, read, bound, number)
    else:
        if store.source is None:

            def make(events: DataFrame) -> DataFrame:
                return panes(store, program, replace(source, events=events))

            panes_at[number] = steps.add("panes", f"of events: {describe_panes(store)}", make, read)
        else:
            finer = physical.stores[store.source]

            def merge(fine: DataFrame) -> DataFrame:
                return coarser_panes(fine, finer, store, program)

            detail = f"the panes by {listed(finer.keys)} into those by {listed(store.keys)}"
            panes_at[number] = steps.add("merge", detail, merge, panes_at[store.source])
        detail = f"panes by {listed(store.keys)} and time"
        ordered = steps.add("sort", detail, lambda rows: by_key(rows, len(store.keys)), panes_at[number])

    def answer(rows: DataFrame) -> DataFrame:
        answering = answers_from_events if store.from_events else answers_from_panes
        answers = answering(rows, store, program, source, prefilter)
        return finish_many(answers, program.views, store.keys, physical.queries, bound.shape)

    return steps.add("answer", "all windows from sorted columns", answer, ordered, windows=describe_windows(program))


def _add_sorted_events(steps: Steps, read: int, bound: BoundPlan, number: int) -> int:
    store, program, source = bound.physical.stores[number], bound.programs[number], bound.source

    def sort(events: DataFrame) -> DataFrame:
        return events_by_key(store, program, replace(source, events=events))

    return steps.add("sort", f"events by {listed(store.keys)} and time", sort, read)


def _add_wide_per_event(steps: Steps, read: int, bound: BoundPlan) -> int:
    """All windows side by side, straight from the events."""
    program = bound.programs[0]
    ordered = _add_sorted_events(steps, read, bound, 0)

    def answer(rows: DataFrame) -> DataFrame:
        return wide_per_event(rows, bound.physical, program, bound.source)

    detail = "all windows from sorted columns, side by side"
    return steps.add("answer", detail, answer, ordered, windows=describe_windows(program))
