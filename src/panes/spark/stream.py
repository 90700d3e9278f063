"""Windows over time on Structured Streaming: one stateful operator that keeps a shard of the keys per group.

A micro-batch, step by step:

1. ``packing.py``: each event is touched once, where it is read. It becomes part of a pane (a row per key and shortest
   span between edges of windows), and panes travel packed, one blob per shard. A row per shard goes along, so that
   every shard takes part in every micro-batch.
2. ``stateful_operator.py`` and ``processor.py``: Spark calls the operator for each shard, which opens it from its
   manifest (``panes.state.manifest``).
3. ``panes.state.shard``: the shard applies changes of the catalogue, counts late events and answers what the watermark
   has completed (``panes.state.watermark``) from its granules; then these age, and keys beyond the limits are evicted
   (``panes.state.key_eviction``). At last it writes the new blobs and the manifest.
4. ``time_job.py`` gives all answers the same columns; they leave the operator packed, with a row of metrics.
5. ``processor.unpack_answers`` unpacks them, and ``finish.py`` adds names, derived columns and ``having``.

On the driver, start with :func:`stream_steps`. What a state store holds is packed too: a handful of calls per shard and
micro-batch, whatever the number of keys and windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from panes.engine.bind_program import describe_windows
from panes.engine.keys import END, INSTANT, START
from panes.engine.program import Program, View, cut_into_ticks, emitting_all, from_panes
from panes.engine.schema import ResultSchema, answer_schema, field_of
from panes.errors import PlanError
from panes.expressions.expression import Expression
from panes.frames.positions import FARTHEST
from panes.planning.explanation import counted, listed
from panes.planning.panes import describe_edges
from panes.planning.physical_plan import PhysicalPlan, StorePlan
from panes.planning.steps import Steps
from panes.spark.binding import Input, bind, check_watermark, examine
from panes.spark.checkpoints import check_checkpoint
from panes.spark.finish import Remarks, Shape, finish_many, union_by_name, widened
from panes.spark.naming import VIEW, key, micros, quoted, stored
from panes.spark.packing import EVENT, EVERYTHING, PANES, Intake, PanesPacker, Tallying
from panes.spark.prefilter import Prefilter
from panes.spark.processor import unpack_answers
from panes.spark.shards import check_session, metrics_name, pack_events, read_changes, run_shards, shard_sql
from panes.spark.time_job import COVERAGE, DETAIL, KIND, NAME, WINDOW_NAME, TimeJob
from panes.spark.versions import to_spark_type
from panes.spark.workers import map_in_python
from panes.state.job import JobStore
from panes.state.registered_queries import Offer
from panes.state.stream_options import StreamOptions
from panes.state.tally import conditions_of, panes_are_tally

if TYPE_CHECKING:
    from panes.row_windows.parts import RowsPart


def stream_steps(
    physical: PhysicalPlan, events: DataFrame, key_sets: Sequence[Sequence[RowsPart]], options: StreamOptions
) -> Steps:
    """List what answers every query over a stream, after every check.

    Parameters
    ----------
    key_sets
        Windows of rows, those that share a sorted column together.
    """
    check_session(events.sparkSession)
    steps = Steps("plan.stream", shuffling=True)
    read, parts = steps.add("read", "events as they come", lambda: events), list[int]()
    if physical.stores:
        parts.append(_add_time_windows(steps, read, physical, events, options))
    if key_sets:
        from panes.spark.rows import prepare_rows
        from panes.spark.rows_stream import add_row_stream

        for prepared in [prepare_rows(some, events) for some in key_sets]:
            metrics = metrics_name(len(parts))
            parts.append(add_row_stream(steps, read, prepared, options.shards, metrics, options.checkpoint))
    if len(parts) > 1:
        steps.add("union", "the answers of all parts", union_by_name, *parts)
    return steps


def _add_time_windows(
    steps: Steps, read: int, physical: PhysicalPlan, events: DataFrame, options: StreamOptions
) -> int:
    """List what answers the windows over time; the number of the step that has all answers."""
    check_watermark(events, physical.queries[0].at)
    stream = bind_stream(physical, examine(physical.queries, events), options)
    if options.checkpoint is not None:
        check_checkpoint(events.sparkSession, options.checkpoint, stream.job)
    changes = "" if options.catalogue is None else "; changes of the catalogue"
    packed = steps.add("pack", f"events into panes: {stream.panes}{changes}", stream.pack, read)
    detail = f"granules by key, in {counted(options.shards, 'shard')}, and every window from them"
    found = steps.add("state", detail, stream.run, packed, windows=stream.titles)
    answers = steps.add("unpack", "answers", stream.unpack, found)
    if options.layout == "long":
        return answers
    detail = "a row per key and window end"
    return steps.add("widen", detail, lambda rows: widened(rows, physical.queries, stream.shape), answers)


def bind_stream(physical: PhysicalPlan, source: Input, options: StreamOptions) -> BoundStream:
    """Bind a plan to the types of its events, as streams need it: every window is read from granules."""
    programs = [cut_into_ticks(bind(store, source)) for store in physical.stores]
    programs = [from_panes(program.views, program) for program in programs]
    _check_component_names(programs)
    if options.empty:
        programs = [emitting_all(program) for program in programs]
    schema = answer_schema(physical.queries, programs, source.schema)
    return BoundStream(physical, options, source, tuple(programs), schema)


def _check_component_names(programs: Iterable[Program]) -> None:
    """Refuse two columns of state with one name: after a restart, one would be taken for the other."""
    for program in programs:
        names = [component.name for component in program.components]
        for name in names:
            if names.count(name) > 1:
                raise PlanError(f"two aggregates of your own are called {name}; give each a name= of its own.")


@dataclass(frozen=True)
class BoundStream:
    """A plan bound to the types of a stream."""

    physical: PhysicalPlan
    options: StreamOptions
    source: Input
    programs: tuple[Program, ...]
    schema: ResultSchema

    @property
    def views(self) -> list[View]:
        """The views of all stores."""
        return [view for program in self.programs for view in program.views]

    @cached_property
    def shape(self) -> Shape:
        """The key columns and output columns, with their Spark types."""
        return Shape.of(self.schema, self.source)

    @cached_property
    def job(self) -> TimeJob:
        """What the shards do."""
        options, schema = self.options, self.schema
        aggregates = {r.alias: r.bound.type for view in self.views for r in view.readings}
        prefilter = Prefilter.of(self.physical.queries, schema.keys, self.views)
        plans = zip(self.physical.stores, self.programs, strict=True)
        stores = tuple(_store(plan, program, self.source, options.history) for plan, program in plans)
        return TimeJob(stores, options, schema.keys, aggregates, schema.instant, prefilter)

    @property
    def panes(self) -> str:
        """What events become, in words."""
        plans = zip(self.physical.stores, self.programs, strict=True)
        return " and ".join(
            f"{'single instants' if plan.per_event else describe_edges(program.edges)} by {listed(plan.keys)}"
            for plan, program in plans
        )

    @property
    def titles(self) -> list[str]:
        """The windows, in words."""
        return [title for program in self.programs for title in describe_windows(program)]

    @property
    def kept(self) -> str | None:
        """SQL for the events that travel; None for all."""
        return _any_of([store.kept for store in self.physical.stores])

    @property
    def packer(self) -> tuple[Callable[[], PanesPacker], dict[str, str]]:
        """What makes the packer of a partition, and the columns that it reads, with their SQL."""
        stores, shards, whole_events = self.physical.stores, self.options.shards, self.options.late == "emit"
        intakes, columns = _intakes(stores, self.programs, self.source, shards)
        if whole_events:
            columns[EVENT] = "to_json(struct(*))"
        return partial(PanesPacker, intakes, _tallying(self.job.stores, intakes), shards, whole_events), columns

    def pack(self, events: DataFrame) -> DataFrame:
        """Pack events into panes where they are read, and add the changes of the catalogue."""
        options, (packer, columns) = self.options, self.packer
        wanted = events if self.kept is None else events.where(self.kept)
        named = wanted.selectExpr(*(f"{sql} AS {column}" for column, sql in columns.items()))
        packed = pack_events(named, packer, PANES, options.shards)
        if options.catalogue is None:
            return packed
        changes = read_changes(events.sparkSession, options.catalogue, options.shards)
        return packed.unionByName(changes, allowMissingColumns=True)

    def run(self, packed: DataFrame) -> DataFrame:
        """Run the shards."""
        return run_shards(packed, self.job, self.options.mode)

    def unpack(self, packed: DataFrame) -> DataFrame:
        """Unpack answers, and give them names, derived columns and ``having``."""
        answers = map_in_python(packed, unpack_answers, self._packed_types())
        labels = None
        if self.options.labelled:
            coverage = {"coverage": COVERAGE} if self.options.partial else {}
            labels = Remarks(NAME, WINDOW_NAME, {**coverage, "kind": KIND, "detail": DETAIL})
        return finish_many(answers, self.views, tuple(self.schema.keys), self.physical.queries, self.shape, labels)

    def _packed_types(self) -> t.StructType:
        """The columns of packed answers as Spark types them; the bounds are never null where all rows are answers."""
        instant = self.source.spark_type(self.physical.queries[0].at)
        known = {START: instant, END: instant} | {key(i): type_ for i, type_ in enumerate(self.shape.keys.values())}
        never_null = {VIEW} if self.options.labelled else {VIEW, START, END}
        return t.StructType(
            [
                t.StructField(name, known[name] if name in known else to_spark_type(type_), name not in never_null)
                for name, type_ in self.job.types.items()
            ]
        )


def _store(plan: StorePlan, program: Program, source: Input, history: int) -> JobStore:
    """Describe a store to its shards."""
    keys = [pa.field(name, field_of(source.schema, name).type) for name in plan.keys]
    read = {view.query: (view.readings, view.exists) for view in program.views}
    queries = tuple((query, *read[i]) for i, query in plan.queries)
    return JobStore(
        program,
        # A store without keys has one key for everything, which no answer shows.
        pa.schema(keys or [pa.field(EVERYTHING, pa.int32())]),
        Offer(queries, plan.keys, program.edges, plan.at, plan.per_event),
        # No query registered later is answered from single events.
        0 if plan.per_event else history,
        None if plan.kept is None else plan.kept.sql,
    )


def _intakes(
    plans: Sequence[StorePlan], programs: Sequence[Program], source: Input, shards: int
) -> tuple[list[Intake], dict[str, str]]:
    """Return where each store finds its part of an event, and all columns that they need, each once, with its SQL."""
    key_columns, argument_columns = dict[str, str](), dict[str, str]()
    intakes, columns = list[Intake](), dict[str, str]()
    for i, (plan, program) in enumerate(zip(plans, programs, strict=True)):
        columns[INSTANT] = micros(quoted(plan.at), source.spark_type(plan.at))
        keys = tuple(key_columns.setdefault(name.lower(), key(len(key_columns))) for name in plan.keys)
        columns |= {column: quoted(name) for name, column in zip(plan.keys, keys, strict=True)}
        for sql in program.arguments:
            users = [p.kept for p, other in zip(plans, programs, strict=True) if sql in other.arguments]
            column = argument_columns.setdefault(sql, stored(len(argument_columns)))
            columns[column] = _where_wanted(sql, columns[INSTANT], _any_of(users) if len(plans) > 1 else None)
        shard, kept = f"__panes_shard{i}", None
        columns[shard] = shard_sql(plan.keys, shards, keyless=i)
        if plan.kept is not None:
            kept = f"__panes_kept{i}"
            columns[kept] = f"coalesce({plan.kept.sql}, FALSE)"
        types = tuple(field_of(source.schema, name).type for name in plan.keys)
        arguments = {sql: argument_columns[sql] for sql in program.arguments}
        intakes.append(Intake(program, keys, plan.keys, types, arguments, shard, kept))
    return intakes, columns


def _tallying(stores: Sequence[JobStore], intakes: Sequence[Intake]) -> Tallying:
    """Return how events are tallied: by the edges of all stores, and by the columns that say which queries count them.

    Other rows do not travel, so that all events pass a condition that all queries have.
    """
    flags: dict[Expression | None, str | None] = dict.fromkeys(conditions_of(stores))
    for store, intake in zip(stores, intakes, strict=True):
        for query, _, counter in store.offer.queries:
            if query.where is not None and len(flags) > 1:
                flags[query.where] = intake.kept
                if query.where.sql != store.kept:
                    # A component counts the events that pass it.
                    assert counter is not None
                    flags[query.where] = intake.arguments[store.program.components[counter].arguments[0]]
    edges = {edge for store in stores for edge in store.program.edges}
    finest = [edge for edge in edges if not any(edge != other and edge.within(other) for other in edges)]
    return Tallying(tuple(sorted(finest)), tuple(flags.values()), panes_are_tally(stores))


def _any_of(conditions: Iterable[Expression | None]) -> str | None:
    """Return SQL for events that fulfil one of some conditions; None where one of them is no condition."""
    sqls = [None if condition is None else f"({condition.sql})" for condition in conditions]
    known = [sql for sql in sqls if sql is not None]
    return " OR ".join(dict.fromkeys(known)) if len(known) == len(sqls) else None


def _where_wanted(sql: str, instant: str, condition: str | None) -> str:
    """Return an argument where the event counts: elsewhere it may fail to evaluate."""
    if Expression(sql).is_column:
        return sql
    possible = f"{instant} BETWEEN {-FARTHEST} AND {FARTHEST}"
    return f"CASE WHEN {possible if condition is None else f'{possible} AND ({condition})'} THEN {sql} END"
