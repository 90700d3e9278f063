"""Run a plan on a Spark DataFrame: check everything first, then one lazy DataFrame with all answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type

from panes.engine.bind_program import describe_windows
from panes.engine.program import Node, Program, emitting_all
from panes.engine.schema import answer_schema, field_of
from panes.planning.explanation import describe_panes, listed
from panes.planning.physical_plan import PhysicalPlan
from panes.planning.steps import Steps
from panes.queries.query import Query
from panes.queries.windows import Window
from panes.spark.binding import Input, bind, bind_family, examine
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
from panes.spark.finish import Shape, WindowRows, finish_many, finish_one, union, widen
from panes.spark.group_bys import from_events, from_partials, native, read_view
from panes.spark.naming import quoted
from panes.spark.prefilter import Prefilter


@dataclass(frozen=True)
class Checked:
    """A plan that fits the data, bound to their types."""

    physical: PhysicalPlan
    source: Input
    programs: tuple[Program, ...]
    shape: Shape

    def redrawn(self, physical: PhysicalPlan) -> Checked:
        """Another plan for the same queries and data."""
        return self if physical is self.physical else _checked(physical, self.source)

    @property
    def unreadable(self) -> str | None:
        """An output column that a tree of group-bys is to answer and that SQL cannot read out of what it keeps."""
        programs = zip(self.physical.stores, self.programs, strict=True)
        views = (view for store, program in programs if store.strategy == "rewrite" for view in program.views)
        return next((r.alias for view in views for r in view.readings if r.bound.read is None), None)


def check(physical: PhysicalPlan, events: DataFrame) -> Checked:
    """Find every mistake that ``run`` would find, without a job."""
    return _checked(physical, examine(physical.queries, events))


def run(
    physical: PhysicalPlan,
    checked: Checked,
    *,
    layout: str = "long",
    observation: Observation | None = None,
    emit_all: bool = False,
) -> DataFrame:
    """Answer every query of a plan; nothing runs until the result is used."""
    steps = Steps("plan.run on a DataFrame", shuffling=True)
    read = steps.add("read", "events", lambda: checked.source.events)
    add_steps(steps, read, checked.redrawn(physical), layout=layout, observation=observation, emit_all=emit_all)
    found: DataFrame = steps.carry_out()
    return found


def add_steps(
    steps: Steps,
    read: int,
    checked: Checked,
    *,
    layout: str = "long",
    observation: Observation | None = None,
    emit_all: bool = False,
) -> int:
    """List what is to be done; the number of the step that has all answers.

    Parameters
    ----------
    read
        The step that has the events.
    observation
        Counts events (``events``) and those without a time, which are in no window (``null_timestamps``).
    emit_all
        Also answer instances without events, between a key's first and last event; for columnar plans.
    """
    physical = checked.physical
    if observation is not None:
        read = add_count(steps, read, dict.fromkeys(query.at for query in physical.queries), observation)
    if emit_all:
        checked = replace(checked, programs=tuple(map(emitting_all, checked.programs)))
    if layout == "wide" and all_at_one_instant(physical):
        return _add_wide_per_event(steps, read, checked)
    panes_at: dict[int, int] = {}
    answers = [n for store in range(len(physical.stores)) for n in _add_store(steps, read, checked, store, panes_at)]
    found = answers[0]
    if len(answers) > 1:
        found = steps.add("union", "all answers", lambda *parts: union(parts), *answers)
    if layout == "long":
        return found
    detail = "a row per key and window end"
    return steps.add("widen", detail, lambda rows: widen(rows, physical.queries), found)


def add_count(steps: Steps, read: int, times: Iterable[str], observation: Observation) -> int:
    """Count events when they are read: all, and those without a time."""
    missing = sum((F.count_if(F.col(quoted(at)).isNull()) for at in times), F.lit(0))

    def count(events: DataFrame) -> DataFrame:
        return events.observe(observation, F.count(F.lit(1)).alias("events"), missing.alias("null_timestamps"))

    return steps.add("count", "events, and those without a time, while they are read", count, read)


def _checked(physical: PhysicalPlan, source: Input) -> Checked:
    programs = _programs(physical, source)
    return Checked(physical, source, tuple(programs), _shape(physical, programs, source))


def _programs(physical: PhysicalPlan, source: Input) -> list[Program]:
    """One program per store; a store and those it feeds are bound together."""
    programs: dict[int, Program] = {}
    for number, store in enumerate(physical.stores):
        if store.source is not None:
            continue
        fed = [i for i, other in enumerate(physical.stores) if other.source == number]
        if fed:
            bound = bind_family(store, [physical.stores[i] for i in fed], source)
            programs |= dict(zip([number, *fed], bound, strict=True))
        else:
            programs[number] = bind(store, source)
    return [programs[i] for i in range(len(physical.stores))]


def _shape(physical: PhysicalPlan, programs: list[Program], source: Input) -> Shape:
    """The Spark types of all key and output columns; derived columns and ``having`` are analysed here."""
    schema = answer_schema(physical.queries, programs, source.schema)
    return Shape(
        {name: source.spark_type(name) for name in schema.keys},
        {name: from_arrow_type(type_) for name, type_ in schema.columns.items()},
    )


def _add_store(steps: Steps, read: int, checked: Checked, number: int, panes_at: dict[int, int]) -> list[int]:
    """The steps of a store; the numbers of those that have answers, in the schema of all.

    Parameters
    ----------
    panes_at
        The steps that have the panes of stores; the one with this store's panes is added.
    """
    store = checked.physical.stores[number]
    if store.strategy == "native":
        return _add_native(steps, read, checked, number)
    if store.strategy == "rewrite":
        return [_add_tree(steps, read, checked, number)]
    return [_add_columns(steps, read, checked, number, panes_at)]


def _add_native(steps: Steps, read: int, checked: Checked, number: int) -> list[int]:
    """One group-by per query and window."""
    source, found = checked.source, []
    for place, query in checked.physical.stores[number].queries:
        for window in query.windows:

            def group(
                events: DataFrame, place: int = place, query: Query = query, window: Window = window
            ) -> DataFrame:
                rows = native(query, window, replace(source, events=events))
                return finish_one(WindowRows(place, window, rows), query, checked.shape)

            detail = f"events by {listed(query.by)} and Spark's own window"
            found.append(steps.add("group", detail, group, read, windows=[window.name]))
    return found


def _add_tree(steps: Steps, read: int, checked: Checked, number: int) -> int:
    """One group-by per node of the forest."""
    physical, program, source = checked.physical, checked.programs[number], checked.source
    store, at, told = physical.stores[number], list[int](), describe_windows(program)
    for node, title in zip(program.nodes, told, strict=True):
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
        return union([finish_one(one, physical.queries[one.query], checked.shape) for one in read_out])

    return steps.add("union", "the answers of all of its windows", answers, *at)


def _add_columns(steps: Steps, read: int, checked: Checked, number: int, panes_at: dict[int, int]) -> int:
    """Panes, or events, sorted by key and time, and every window at once from sorted columns."""
    physical, program, source = checked.physical, checked.programs[number], checked.source
    store = physical.stores[number]
    keys = {name: field_of(source.schema, name).type for name in store.keys}
    prefilter = Prefilter.of(physical.queries, keys, program.views)
    if store.from_events:
        ordered = _add_sorted_events(steps, read, checked, number)
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
        return finish_many(answers, program.views, store.keys, physical.queries, checked.shape)

    return steps.add("answer", "all windows from sorted columns", answer, ordered, windows=describe_windows(program))


def _add_sorted_events(steps: Steps, read: int, checked: Checked, number: int) -> int:
    store, program, source = checked.physical.stores[number], checked.programs[number], checked.source

    def sort(events: DataFrame) -> DataFrame:
        return events_by_key(store, program, replace(source, events=events))

    return steps.add("sort", f"events by {listed(store.keys)} and time", sort, read)


def _add_wide_per_event(steps: Steps, read: int, checked: Checked) -> int:
    """All windows side by side, straight from the events."""
    program = checked.programs[0]
    ordered = _add_sorted_events(steps, read, checked, 0)

    def answer(rows: DataFrame) -> DataFrame:
        return wide_per_event(rows, checked.physical, program, checked.source)

    detail = "all windows from sorted columns, side by side"
    return steps.add("answer", detail, answer, ordered, windows=describe_windows(program))
