"""Run a plan on a Spark DataFrame: check everything first, then one lazy DataFrame with all answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type

from panes.engine.program import Program, emitting_all
from panes.engine.schema import field_of
from panes.local.schema import answer_schema
from panes.planning.blueprint import Blueprint
from panes.spark.binding import Input, bind, bind_family, examine
from panes.spark.columnar import answers_from_events, answers_from_panes, coarser_panes, panes
from panes.spark.finish import Shape, finish_many, finish_one, union, widen
from panes.spark.naming import quoted
from panes.spark.native import native
from panes.spark.rewrite import rewrite
from panes.spark.side_by_side import all_at_one_instant, wide_per_event
from panes.spark.sieve import Sieve


def run(
    blueprint: Blueprint,
    source: Input,
    *,
    layout: str = "long",
    observation: Observation | None = None,
    emit_all: bool = False,
) -> DataFrame:
    """Answer every query of a plan; nothing runs until the result is used.

    Parameters
    ----------
    source
        Events that ``check`` has seen.
    observation
        Counts events (``events``) and those without a time, which are in no window (``null_timestamps``).
    emit_all
        Also answer instances without events, between a key's first and last event; for columnar plans.
    """
    if observation is not None:
        times = dict.fromkeys(query.at for query in blueprint.queries)
        source = replace(source, events=observed(source.events, times, observation))
    programs = _programs(blueprint, source)
    if emit_all:
        programs = emitting_all(programs)
    shape = _shape(blueprint, programs, source)
    if layout == "wide" and all_at_one_instant(blueprint):
        return wide_per_event(blueprint, programs[0], source)
    parts = [part for number in range(len(programs)) for part in _run_store(blueprint, number, programs, source, shape)]
    answers = union(parts)
    return widen(answers, blueprint.queries) if layout == "wide" else answers


def observed(events: DataFrame, times: Iterable[str], observation: Observation) -> DataFrame:
    """Events that are counted when they are read: all, and those without a time."""
    missing = sum((F.count_if(F.col(quoted(at)).isNull()) for at in times), F.lit(0))
    return events.observe(observation, F.count(F.lit(1)).alias("events"), missing.alias("null_timestamps"))


def check(blueprint: Blueprint, events: DataFrame) -> Input:
    """Find every mistake that ``run`` would find, without a job."""
    source = examine(blueprint.queries, events)
    _shape(blueprint, _programs(blueprint, source), source)
    return source


def unreadable(blueprint: Blueprint, source: Input) -> str | None:
    """An output column that a tree of group-bys is to answer and that SQL cannot read out of what it keeps."""
    if all(store.strategy != "rewrite" for store in blueprint.stores):
        return None
    programs = zip(blueprint.stores, _programs(blueprint, source), strict=True)
    views = (view for store, program in programs if store.strategy == "rewrite" for view in program.views)
    return next((r.alias for view in views for r in view.readings if r.bound.read is None), None)


def _programs(blueprint: Blueprint, source: Input) -> list[Program]:
    """One program per store; a store and those it feeds are bound together."""
    programs: dict[int, Program] = {}
    for number, store in enumerate(blueprint.stores):
        if store.source is not None:
            continue
        fed = [i for i, other in enumerate(blueprint.stores) if other.source == number]
        if fed:
            bound = bind_family(store, [blueprint.stores[i] for i in fed], source)
            programs |= dict(zip([number, *fed], bound, strict=True))
        else:
            programs[number] = bind(store, source)
    return [programs[i] for i in range(len(blueprint.stores))]


def _shape(blueprint: Blueprint, programs: list[Program], source: Input) -> Shape:
    """The Spark types of all key and output columns; derived columns and ``having`` are analysed here."""
    schema = answer_schema(blueprint.queries, programs, source.schema)
    return Shape(
        {name: source.spark_type(name) for name in schema.keys},
        {name: from_arrow_type(type_) for name, type_ in schema.columns.items()},
    )


def _run_store(
    blueprint: Blueprint, number: int, programs: list[Program], source: Input, shape: Shape
) -> list[DataFrame]:
    store, program = blueprint.stores[number], programs[number]
    if store.strategy == "columnar":
        answers = _columnar(blueprint, number, programs, source)
        return [finish_many(answers, program.views, store.keys, blueprint.queries, shape)]
    answered = native(store, source) if store.strategy == "native" else rewrite(store, program, source)
    return [finish_one(one, blueprint.queries[one.query], shape) for one in answered]


def _columnar(blueprint: Blueprint, number: int, programs: list[Program], source: Input) -> DataFrame:
    store, program = blueprint.stores[number], programs[number]
    keys = {name: field_of(source.schema, name).type for name in store.keys}
    sieve = Sieve.of(blueprint.queries, keys, program.views)
    if store.from_events:
        return answers_from_events(store, program, source, sieve)
    if store.source is None:
        return answers_from_panes(panes(store, program, source), store, program, source, sieve)
    finer = blueprint.stores[store.source]
    fine = panes(finer, programs[store.source], source)
    return answers_from_panes(coarser_panes(fine, finer, store, program), store, program, source, sieve)
