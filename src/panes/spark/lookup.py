"""``plan.lookup`` on Spark: events and requests shuffled by key once each, sorted together, answered in columns.

A task sees the events and the requests of its keys in the order of time. However many windows there are, an event is
lifted once; each window is a search among the events and a call of a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from panes.aggregates.operations import Array
from panes.engine.bind_program import argument_expressions
from panes.engine.columns import instants_of
from panes.engine.input_columns import check_added, request_columns
from panes.engine.lookback import BoundLookup, Lookback, bind_lookup
from panes.engine.lookup_results import Types, answers_of, feature_types, spread
from panes.engine.schema import field_of, one_type_each
from panes.engine.sorting import sort_tied_events, tie_columns
from panes.errors import PlanError
from panes.planning.explanation import listed
from panes.planning.steps import Steps
from panes.queries.lookup_declarations import LookupDeclaration, LookupLayout, LookupPart, features
from panes.queries.query import EXPIRES
from panes.spark.batches import large_batches
from panes.spark.binding import Input, arrow_field, check_substitution, examine
from panes.spark.lookup_chunks import SLICE, LookupChunk, Slices, lookup_chunks, slices_for
from panes.spark.naming import depends_on_zone, is_utc, key, micros, quoted, stored
from panes.spark.versions import to_spark_type
from panes.spark.workers import map_in_python

_INSTANT, _ASKS, _TIE, _OTHER = "__panes_instant", "__panes_asks", "__panes_tie", "__panes_other"
_ROWS = 1 << 18
_VALUES = 1 << 22


def lookup_steps(declared: LookupDeclaration, events: DataFrame, requests: DataFrame) -> Steps:
    """List what answers every request, after every check and a look at the first events."""
    for name, side in (("events", events), ("requests", requests)):
        if side.isStreaming:
            raise PlanError(
                f"the {name} are a stream, and a lookup is for batches. plan.stream(events) answers sliding windows at "
                "every event of a stream; requests that come at any time are for plan.live()."
            )
    requested = pa.schema([arrow_field(field, True) for field in requests.schema])
    check_added(declared, requested)
    # Mistakes first: the share of keys is looked up in a small job.
    parts = [_Part.of(part, events, requested) for part in declared.parts]
    long, added = declared.layout == "long", (*requests.columns, *declared.added)
    if long:
        one_type_each((alias, type_) for part in parts for types in part.types for alias, type_ in types.items())
    steps = Steps("plan.lookup on DataFrames", shuffling=True)
    read = steps.add("read", "events", lambda: events)
    asking = steps.add("read", "requests", lambda: requests)
    # In one row, the answers of one part are columns of the requests for the next.
    answers, following = [], asking
    for part in parts:
        following = part.add(steps, read, asking if long else following, declared.layout)
        answers.append(following)
    if len(parts) > 1 and long:

        def union(*found: DataFrame) -> DataFrame:
            together = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), found)
            return together.select(*map(quoted, added))

        steps.add("union", "all answers", union, *answers)
    elif len(parts) > 1:
        steps.add("union", "all columns", lambda found: found.select(*map(quoted, added)), following)
    return steps


@dataclass(frozen=True)
class _Part:
    """Queries that share their sorted events, checked against the data.

    Parameters
    ----------
    ties
        The columns that order events of one instant, if that matters.
    types
        The output columns of each query.
    """

    bound: BoundLookup
    source: Input
    ties: tuple[str, ...]
    types: tuple[Types, ...]

    @classmethod
    def of(cls, part: LookupPart, events: DataFrame, requested: pa.Schema) -> _Part:
        source = examine(part.queries, events)
        check_substitution(events.sparkSession, requested.names)
        known = source.types_of(argument_expressions(enumerate(part.queries), part.kept))
        bound = bind_lookup(part, known.__getitem__)
        types = feature_types(bound, source.schema)
        _check_zone(part, source, types)
        request_columns(part, source.schema, requested)
        ties = tie_columns(source.schema, part.ties, (*part.by, part.at), part.read) if part.rows else []
        return cls(bound, source, tuple(ties), types)

    def add(self, steps: Steps, read: int, asking: int, layout: LookupLayout) -> int:
        """List what answers these queries, beside the requests.

        Parameters
        ----------
        read, asking
            The steps that have the events and the requests.
        """
        part, source = self.bound.part, self.source
        cut = slices_for(part, source)

        def sort(events: DataFrame, requests: DataFrame) -> DataFrame:
            task = self._task(requests, layout)
            return _side_by_side(task, replace(source, events=events), self.ties, requests, cut)

        def answer(rows: DataFrame, requests: DataFrame) -> DataFrame:
            task = self._task(requests, layout)
            schema = t.StructType([*requests.schema.fields, *task.added()])
            return map_in_python(rows, task.run(len(part.by) + (cut is not None)), schema)

        detail = f"events and requests by {listed(part.by)}{'' if cut is None else f', {cut}'} and time"
        ordered = steps.add("sort", detail, sort, read, asking)
        titles = [window.name for _, window in part.views]
        detail = "a search among the events of the key for every window"
        return steps.add("answer", detail, answer, ordered, asking, windows=titles)

    def _task(self, requests: DataFrame, layout: LookupLayout) -> _Task:
        part = self.bound.part
        requested = pa.schema([arrow_field(field, True) for field in requests.schema])
        columns = request_columns(part, self.source.schema, requested)
        others = tuple(i for i in range(len(requested)) if i not in (*columns.keys, columns.at))
        time = field_of(self.source.schema, part.at).type
        return _Task(self.bound, requested, columns.keys, columns.at, others, len(self.ties), time, self.types, layout)


def _check_zone(part: LookupPart, source: Input, features: Sequence[Types]) -> None:
    """Refuse derived columns that Spark would compute otherwise: Python computes them, and has times in UTC."""
    zone = source.events.sparkSession.conf.get("spark.sql.session.timeZone") or "UTC"
    time = field_of(source.schema, part.at).type
    for query, own in zip(part.queries, features, strict=True):
        types = {name.lower(): field_of(source.schema, name).type for name in query.by}
        types |= {"window": time, EXPIRES: time, **{a.lower(): type_ for a, type_ in own.items()}}
        for alias, value in query.derived:
            if not is_utc(zone) and depends_on_zone(value, types):
                raise PlanError(
                    f"{alias!r} = {value.sql} depends on the time zone of the session, {zone}, and a lookup computes "
                    "its columns in UTC. Compute it from the result, or set spark.sql.session.timeZone to UTC."
                )


def _side_by_side(
    task: _Task, source: Input, ties: Sequence[str], requests: DataFrame, cut: Slices | None
) -> DataFrame:
    """Events and requests in one sequence of columns, by key (and slice) and time."""
    part, asked_at = task.bound.part, requests.schema[task.at]
    names = [key(i) for i in range(len(part.by))]
    instant = micros(quoted(part.at), source.spark_type(part.at))
    known = f"{quoted(part.at)} IS NOT NULL"
    counting = source.events.where(known if part.kept is None else f"{known} AND ({part.kept.sql})")
    kinds = [requests.schema[i].dataType for i in task.others]
    happened = counting.select(
        *(F.col(quoted(name)).alias(key(i)) for i, name in enumerate(part.by)),
        F.expr(instant).alias(_INSTANT),
        F.lit(False).alias(_ASKS),
        *(F.expr(sql).alias(stored(i)) for i, sql in enumerate(task.bound.arguments)),
        *(F.col(quoted(name)).alias(f"{_TIE}{i}") for i, name in enumerate(ties)),
        *(F.lit(None).cast(type_).alias(f"{_OTHER}{i}") for i, type_ in enumerate(kinds)),
    )
    # By position: names of requests need not be what SQL takes.
    plain = requests.toDF(*(f"{_OTHER}{i}" for i in range(len(requests.columns))))
    of_events = happened.schema.fields[len(names) + 2 : len(names) + 2 + task.of_events]
    asking = plain.select(
        *(F.col(f"{_OTHER}{place}").alias(key(i)) for i, place in enumerate(task.keys)),
        F.expr(micros(f"{_OTHER}{task.at}", asked_at.dataType)).alias(_INSTANT),
        F.lit(True).alias(_ASKS),
        *(F.lit(None).cast(field.dataType).alias(field.name) for field in of_events),
        *(F.col(f"{_OTHER}{place}").alias(f"{_OTHER}_{i}") for i, place in enumerate(task.others)),
    )
    if cut is not None:
        happened, asking = cut.of_events(happened, names, _INSTANT), cut.of_requests(asking, names, _INSTANT)
        names = [*names, SLICE]
    together = happened.unionAll(asking)
    shuffled = together.repartition(*names) if names else together.repartition(1)
    return shuffled.sortWithinPartitions(*names, _INSTANT)


@dataclass(frozen=True)
class _Task:
    """What happens to the rows of a partition.

    Parameters
    ----------
    requested
        The columns of the requests.
    keys, at, others
        The positions of the keys among them, of the time, and of the rest.
    ties
        How many columns order events of one instant.
    time
        The type of event time.
    types
        The types of the output columns of each query.
    """

    bound: BoundLookup
    requested: pa.Schema
    keys: tuple[int, ...]
    at: int
    others: tuple[int, ...]
    ties: int
    time: pa.DataType
    types: tuple[Types, ...]
    layout: LookupLayout

    @property
    def of_events(self) -> int:
        """How many columns only events have."""
        return len(self.bound.arguments) + self.ties

    @property
    def _at_once(self) -> int:
        """How many requests are answered together: the more windows, the fewer."""
        return max(_VALUES // len(features(self.bound.part.queries)), 1024)

    def added(self) -> list[t.StructField]:
        """The columns of the answers."""
        if self.layout == "wide":
            queries = self.bound.part.queries
            of = {query.name: types for query, types in zip(queries, self.types, strict=True)}
            return [t.StructField(name, to_spark_type(of[q][alias])) for q, _, alias, name in features(queries)]
        labels = [t.StructField(name, t.StringType()) for name in ("query", "window_name")]
        every = {alias: type_ for types in self.types for alias, type_ in types.items()}
        return [*labels, *(t.StructField(alias, to_spark_type(type_)) for alias, type_ in every.items())]

    def run(self, keys: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """The function of a partition, whose rows begin with so many columns that tell keys apart."""
        part = self.bound.part

        def answer(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for chunk in lookup_chunks(batches, keys, _ROWS, reach=part.reach, rows=part.rows):
                yield from large_batches(self._answer(chunk, keys), self._at_once)

        return answer

    def _answer(self, chunk: LookupChunk, keys: int) -> Iterator[pa.RecordBatch]:
        if not len(chunk.requests):
            return
        names, first = self.bound.arguments, keys + 2
        instants, columns = chunk.events.column(keys).to_numpy(), chunk.events.columns[first : first + self.of_events]
        if self.bound.part.rows:
            order = np.arange(len(instants))
            sort_tied_events(order, instants, chunk.key_starts, columns[len(names) :])
            columns = [column.take(pa.array(order)) for column in columns[: len(names)]]
        arguments = dict(zip(names, columns, strict=True))
        lookback = Lookback(self.bound, instants, chunk.key_starts, arguments)
        for begin in range(0, len(chunk.requests), self._at_once):
            part = chunk.requests.slice(begin, self._at_once)
            ordinal = chunk.ordinals[begin : begin + len(part)]
            yield from self._found(lookback, part, ordinal, keys).to_batches()

    def _found(self, lookback: Lookback, part: pa.RecordBatch, ordinal: Array, keys: int) -> pa.Table:
        times = part.column(keys)
        own = list(part.columns[: len(self.keys)])
        found = answers_of(self.bound, lookback.ask(ordinal, instants_of(times)), own, self.time, self.types)
        first = keys + 2 + self.of_events
        columns = dict(zip(self.keys, own, strict=True))
        columns[self.at] = times.view(self.requested.field(self.at).type)
        columns |= {place: part.column(first + i) for i, place in enumerate(self.others)}
        requests = pa.table([columns[i] for i in range(len(columns))], names=list(self.requested.names))
        return spread(self.bound.part.queries, self.layout, requests, found)
