"""A plan on Structured Streaming: panes where events are read, one stateful operator by shard, answers unpacked.

Every event is touched once, by the ``mapInArrow`` that makes panes of it (``packing``). What travels by shard, lies in
the state store and comes out of the operator are packed columns: a handful of calls per shard and micro-batch,
whatever the number of keys and windows.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal, TypeAlias

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_type

from panes.engine.bind_program import describe_windows
from panes.engine.program import Program, cut_into_ticks, emitting_all, from_panes
from panes.engine.schema import answer_schema, field_of
from panes.errors import PlanError, StateWarning
from panes.expressions.expression import Expression
from panes.frames.positions import FARTHEST
from panes.planning.explanation import counted, listed
from panes.planning.panes import describe_edges
from panes.planning.physical_plan import PhysicalPlan, StorePlan
from panes.planning.steps import Steps
from panes.queries.eviction import Limits
from panes.spark.binding import Input, bind, check_watermark, examine
from panes.spark.checkpoints import check_checkpoint
from panes.spark.finish import Remarks, Shape, check_wide, finish_many, widened
from panes.spark.naming import END, START, VIEW, key, micros, quoted, stored
from panes.spark.packing import EVENT, EVERYTHING, INSTANT, TRAVELLING, Intake, changes, packing
from panes.spark.prefilter import Prefilter
from panes.spark.processor import (
    COVERAGE,
    DATA,
    DETAIL,
    FIGURES,
    HIGHEST,
    KIND,
    NAME,
    OUTPUT,
    WINDOW_NAME,
    Job,
    unpack_answers,
)
from panes.spark.stateful_operator import ShardProcessor
from panes.state.job import JobOptions, Mode, Store
from panes.state.limits import Bounds
from panes.state.views import Offer
from panes.timeline import format_duration, parse_duration

Late: TypeAlias = Literal["count", "emit"]

METRICS = "panes"
"""What the figures of a micro-batch are called among a query's observed metrics."""

_LOG = logging.getLogger("panes")
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_DEFAULT = "HDFSBackedStateStoreProvider"
"""What Spark takes by itself."""
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_MOST_SHARDS = 1024


@dataclass(frozen=True)
class StreamOptions:
    """How a stream is to run.

    Parameters
    ----------
    mode
        ``append``: an answer once, when the watermark has passed its end. ``update``: early answers and corrections.
    shards
        Into how many parts keys are divided. A checkpoint keeps its number.
    catalogue
        The folder of a catalogue of views that come and go.
    history
        For how long panes are kept as they are for views that come later, in µs.
    late
        ``count``: late events are counted. ``emit``: they also come out, as rows of kind ``late``.
    emit_all
        Whether instances without events are answered too, for keys that are held.
    limits
        When keys are evicted.
    checkpoint
        Where the stream will have its checkpoint, to be checked now.
    layout
        ``long``: a row per answer. ``wide``: a row per key and window end.
    """

    mode: Mode
    shards: int
    catalogue: str | None = None
    history: int = 0
    late: Late = "count"
    emit_all: bool = False
    limits: Limits | None = None
    checkpoint: str | None = None
    layout: Literal["long", "wide"] = "long"


def add_stream(steps: Steps, read: int, physical: PhysicalPlan, events: DataFrame, options: StreamOptions) -> int:
    """List what is to be done to answer every query of a plan while events come, after every check.

    Parameters
    ----------
    read
        The step that has the events.
    """
    _check(physical, events, options)
    source = examine(physical.queries, events)
    programs = [cut_into_ticks(bind(store, source)) for store in physical.stores]
    _check_components(programs)
    if options.emit_all:
        programs = [emitting_all(program) for program in programs]
    schema = answer_schema(physical.queries, programs, source.schema)
    shape = Shape.of(schema, source)
    intakes, columns = _columns(physical.stores, programs, source, options.shards)
    kept = _any_of([store.kept for store in physical.stores])
    if options.late == "emit":
        columns.append(f"to_json(struct(*)) AS {EVENT}")
    stores = [
        _store(plan, program, source, physical, options.history)
        for plan, program in zip(physical.stores, programs, strict=True)
    ]
    aggregates = {r.alias: r.bound.type for program in programs for view in program.views for r in view.readings}
    partial = options.catalogue is not None or (options.limits is not None and options.limits.emit)
    remarked = partial or options.late == "emit"
    job_options = JobOptions(options.mode, options.shards, partial=partial, remarks=remarked, bounds=_bounds(options))
    views = [view for program in programs for view in program.views]
    prefilter = Prefilter.of(physical.queries, schema.keys, views)
    job = Job(tuple(stores), job_options, schema.keys, aggregates, schema.instant, prefilter)
    if options.checkpoint is not None:
        check_checkpoint(events.sparkSession, options.checkpoint, job)
    remarks = None
    if job_options.remarks:
        coverage = {"coverage": COVERAGE} if partial else {}
        remarks = Remarks(NAME, WINDOW_NAME, {**coverage, "kind": KIND, "detail": DETAIL})

    def pack(events: DataFrame) -> DataFrame:
        wanted = events if kept is None else events.where(kept)
        work = packing(intakes, options.shards, themselves=options.late == "emit")
        packed = wanted.selectExpr(*columns).mapInArrow(work, ", ".join(map(" ".join, TRAVELLING.items())))
        if options.catalogue is None:
            return packed
        told = changes(events.sparkSession, options.catalogue, options.shards)
        return packed.unionByName(told, allowMissingColumns=True)

    def work(packed: DataFrame) -> DataFrame:
        prepare(packed.sparkSession)
        operator = ShardProcessor(cloudpickle.dumps(job))  # type: ignore[no-untyped-call]
        worked = packed.groupBy("shard").transformWithState(operator, OUTPUT, options.mode, "EventTime")
        figures = [(F.max if name in HIGHEST else F.sum)(name).alias(name) for name in FIGURES]
        return worked.observe(METRICS, *figures).where(f"{DATA} IS NOT NULL").select(DATA)

    def unpack(packed: DataFrame) -> DataFrame:
        instant = source.spark_type(physical.queries[0].at)
        answers = packed.mapInArrow(unpack_answers, _answers(job, shape, instant))
        return finish_many(answers, views, tuple(schema.keys), physical.queries, shape, remarks)

    granules = " and ".join(
        f"single instants by {listed(plan.keys)}"
        if plan.per_event
        else f"{describe_edges(program.edges)} by {listed(plan.keys)}"
        for plan, program in zip(physical.stores, programs, strict=True)
    )
    told = "" if options.catalogue is None else "; changes of the catalogue"
    packed = steps.add("pack", f"events into granules: {granules}{told}", pack, read)
    titles = [title for program in programs for title in describe_windows(from_panes(program.views, program))]
    detail = f"granules by key, in {counted(options.shards, 'shard')}, and every window from them"
    found = steps.add("state", detail, work, packed, windows=titles)
    answers = steps.add("unpack", "answers", unpack, found)
    if options.layout == "long":
        return answers
    detail = "a row per key and window end"
    return steps.add("widen", detail, lambda rows: widened(rows, physical.queries, shape), answers)


def _check(physical: PhysicalPlan, events: DataFrame, options: StreamOptions) -> None:
    mode = options.mode
    if mode not in ("append", "update"):
        raise PlanError(
            f"mode={mode!r}: write 'append' (an answer once, when the watermark has passed its end) or 'update' "
            "(early answers and corrections). All answers again and again ('complete') would never end."
        )
    if options.emit_all and mode != "append":
        raise PlanError("empty=True needs mode='append': in update mode rows come out for what has changed.")
    check_shards(options.shards)
    if options.layout == "wide":
        one_by_one = {"mode='update'": mode == "update", "late='emit'": options.late == "emit"}
        one_by_one |= {"limits=": options.limits is not None, "catalogue=": options.catalogue is not None}
        check_wide(physical.queries, one_by_one)
    if options.late not in ("count", "emit"):
        raise PlanError(
            f"late={options.late!r}: write 'count', or 'emit' to let late events out as rows of kind 'late'."
        )
    _check_free(physical, options)
    times = list(dict.fromkeys(query.at for query in physical.queries))
    if len(times) > 1:
        raise PlanError(
            f"the queries have several event times ({', '.join(times)}), but a stream has one watermark. "
            "Run the queries of each event time as a stream of their own."
        )
    check_watermark(events, times[0])
    _warn_of_growth(physical, options)
    check_session(events.sparkSession)


def check_shards(shards: object) -> None:
    """Refuse a number of shards that is none."""
    if not isinstance(shards, int) or not 1 <= shards <= _MOST_SHARDS:
        raise PlanError(f"shards={shards!r}: write a whole number from 1 to {_MOST_SHARDS}.")


def _warn_of_growth(physical: PhysicalPlan, options: StreamOptions) -> None:
    """Say what exact aggregates over values may cost where nothing bounds them."""
    found = [(query, aggregate) for query in physical.queries for _, aggregate in query.aggregates]
    kept = next(((query, aggregate) for query, aggregate in found if aggregate.collects), None)
    if kept is None or options.limits is not None:
        return
    query, aggregate = kept
    widest = max((window.geometry.range for window in query.windows), default=0)
    warnings.warn(
        f"query {query.name!r}: {aggregate} keeps every different value of each key and granule for "
        f"{format_duration(widest)}, some 16 bytes each and more for text, and nothing bounds how many there are. Take "
        "approx_count_distinct or approx_quantile, which keep sketches, or bound the keys with limits=pn.Limits(...).",
        StateWarning,
        stacklevel=2,
    )


def _check_free(physical: PhysicalPlan, options: StreamOptions) -> None:
    """Refuse output columns that would hide what rows say about themselves."""
    taken = {"kind", "detail"} if options.late == "emit" else set()
    if options.catalogue is not None or options.limits is not None:
        taken |= {"kind", "detail", "coverage"}
    for query in physical.queries:
        for column in (*query.by, *query.columns):
            if column.lower() in taken:
                raise PlanError(
                    f"query {query.name!r} has a column {column!r}, which rows of this stream use to tell answers from "
                    "late events and refusals. Rename it."
                )


def _check_components(programs: Iterable[Program]) -> None:
    """Refuse two columns of state with one name: they would be taken for one another after a restart."""
    for program in programs:
        names = [component.name for component in program.components]
        for name in names:
            if names.count(name) > 1:
                raise PlanError(f"two aggregates of your own are called {name}; give each a name= of its own.")


def check_session(session: SparkSession) -> None:
    """Refuse a session whose settings ``transformWithState`` cannot run with."""
    if find_spec("google") is None or find_spec("google.protobuf") is None:
        raise PlanError("streams need the package protobuf: pip install 'protobuf>=6.33.5'.")
    provider = session.conf.get(_PROVIDER) or ""
    if not provider.endswith((_DEFAULT, "RocksDBStateStoreProvider")):
        raise PlanError(f"{_PROVIDER} is {provider}, but the state of Panes needs {_ROCKSDB}. Set that.")


def prepare(session: SparkSession) -> None:
    """Settings without which ``transformWithState`` does not run; what a user has set is left as it is."""
    if (session.conf.get(_PROVIDER) or "").endswith(_DEFAULT):
        # It has no map state. With RocksDB, write changes and not whole snapshots.
        session.conf.set(_PROVIDER, _ROCKSDB)
        session.conf.set(_CHANGELOG, "true")
        _LOG.warning("set %s to RocksDB, which streams of Panes need, and %s to true", _PROVIDER, _CHANGELOG)


def _store(plan: StorePlan, program: Program, source: Input, physical: PhysicalPlan, history: int) -> Store:
    keys = [pa.field(name, field_of(source.schema, name).type) for name in plan.keys]
    # A store without keys has one for everything, which no answer shows.
    schema = pa.schema(keys or [pa.field(EVERYTHING, pa.int32())])
    read = {view.query: (view.readings, view.exists) for view in program.views}
    offered = tuple((query, *read[i]) for i, query in plan.queries)
    offer = Offer(offered, plan.keys, program.edges, plan.at, plan.per_event)
    # Nothing that may be registered later is answered from single events.
    history = 0 if plan.per_event else history
    return Store(program, schema, offer, history, None if plan.kept is None else plan.kept.sql)


def _bounds(options: StreamOptions) -> Bounds | None:
    """The limits of one shard: its part of those of the stream."""
    if options.limits is None:
        return None
    age, (keys, rows) = options.limits.age, (options.limits.keys, options.limits.rows)
    share = [None if limit is None else -(-limit // options.shards) for limit in (keys, rows)]
    return Bounds(None if age is None else parse_duration(age), *share)


def _any_of(conditions: Iterable[Expression | None]) -> str | None:
    """SQL for events that fulfil any of some conditions; None where one of them is none."""
    listed = [None if condition is None else f"({condition.sql})" for condition in conditions]
    known = [sql for sql in listed if sql is not None]
    return " OR ".join(dict.fromkeys(known)) if len(known) == len(listed) else None


def _columns(
    stores: Sequence[StorePlan], programs: Sequence[Program], source: Input, shards: int
) -> tuple[list[Intake], list[str]]:
    """What is read of each event, and how each store finds its part of it."""
    aliases: dict[str, str] = {}
    arguments: dict[str, str] = {}
    intakes: list[Intake] = []
    columns: dict[str, str] = {}
    for i, (store, program) in enumerate(zip(stores, programs, strict=True)):
        columns[INSTANT] = micros(quoted(store.at), source.spark_type(store.at))
        keys = tuple(aliases.setdefault(name.lower(), key(len(aliases))) for name in store.keys)
        columns |= {alias: quoted(name) for name, alias in zip(store.keys, keys, strict=True)}
        for sql in program.arguments:
            users = [s.kept for s, p in zip(stores, programs, strict=True) if sql in p.arguments]
            columns[arguments.setdefault(sql, stored(len(arguments)))] = _where_wanted(
                sql, columns[INSTANT], _any_of(users) if len(stores) > 1 else None
            )
        shard, kept = f"__panes_shard{i}", None
        hashed = f"pmod(xxhash64({', '.join(map(quoted, store.keys))}), {shards})" if keys else str(i % shards)
        columns[shard] = f"CAST({hashed} AS INT)"
        if store.kept is not None:
            kept = f"__panes_kept{i}"
            columns[kept] = f"coalesce({store.kept.sql}, FALSE)"
        found = {sql: arguments[sql] for sql in program.arguments}
        types = tuple(field_of(source.schema, name).type for name in store.keys)
        intakes.append(Intake(program, keys, store.keys, types, found, shard, kept))
    return intakes, [f"{sql} AS {alias}" for alias, sql in columns.items()]


def _where_wanted(sql: str, instant: str, condition: str | None) -> str:
    """An argument where the event counts: what is left out may not even have a value."""
    if Expression(sql).is_column:
        return sql
    sensible = f"{instant} BETWEEN {-FARTHEST} AND {FARTHEST}"
    return f"CASE WHEN {sensible if condition is None else f'{sensible} AND ({condition})'} THEN {sql} END"


def _answers(job: Job, shape: Shape, instant: t.DataType) -> t.StructType:
    """The columns of packed answers as Spark types them; where all rows are answers, their bounds are never null."""
    known = {START: instant, END: instant} | {key(i): type_ for i, type_ in enumerate(shape.keys.values())}
    never_null = {VIEW} if job.options.remarks else {VIEW, START, END}
    return t.StructType(
        [
            t.StructField(name, known[name] if name in known else from_arrow_type(type_), name not in never_null)
            for name, type_ in job.types.items()
        ]
    )
