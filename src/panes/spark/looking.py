"""Lookups on Spark: events and requests shuffled by key once each, sorted together, answered in columns.

A task sees the events and the requests of its keys in the order of time. However many windows there are, an event is
lifted once; each window is a search among the events and a call of a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_type

from panes.algebra.operations import Array
from panes.declare.lookups import Lookup
from panes.engine.lookup import BoundLookup, Lookback, bind_lookup
from panes.engine.program import argument_expressions
from panes.engine.request_columns import request_columns
from panes.engine.schema import field_of
from panes.errors import PlanError
from panes.local.looking import answers_of, feature_types, instants_of, spread
from panes.spark.batches import large_batches
from panes.spark.binding import Input, arrow_field, examine
from panes.spark.naming import key, micros, quoted, stored
from panes.spark.pieces import Piece, pieces
from panes.spark.slices import SLICE, Slices, slices_for
from panes.spark.zones import depends_on_zone, is_utc

_INSTANT, _ASKS, _OTHER = "__panes_instant", "__panes_asks", "__panes_other"
_ROWS = 1 << 18
_VALUES = 1 << 22


def lookup(declared: Lookup, events: DataFrame, requests: DataFrame) -> DataFrame:
    """Answer every request; nothing runs until the result is used, but a look at the first events."""
    for name, side in (("events", events), ("requests", requests)):
        if side.isStreaming:
            raise PlanError(
                f"the {name} are a stream, and a lookup is for batches. An answer per event of a stream is a query "
                "over pn.sliding(size); requests that come at any time are for pn.Index."
            )
    query = declared.query
    source = examine([query], events)
    types = source.types_of(argument_expressions([(0, query)], query.where))
    bound = bind_lookup(declared, types.__getitem__)
    features = feature_types(bound, source.schema)
    _check_zone(declared, source, features)
    asked = pa.schema([arrow_field(field, True) for field in requests.schema])
    columns = request_columns(declared, source.schema, asked)
    others = tuple(i for i in range(len(asked)) if i not in (*columns.keys, columns.at))
    task = _Task(bound, asked, columns.keys, columns.at, others, field_of(source.schema, query.at).type, features)
    cut = slices_for(declared, source)
    rows = _side_by_side(task, source, requests, cut)
    schema = t.StructType([*requests.schema.fields, *_added(declared, features)])
    return rows.mapInArrow(task.run(len(query.by) + (cut is not None)), schema)


def _check_zone(declared: Lookup, source: Input, features: Mapping[str, pa.DataType]) -> None:
    """Refuse derived columns that Spark would compute otherwise: Python computes them, and has times in UTC."""
    zone, query = source.events.sparkSession.conf.get("spark.sql.session.timeZone") or "UTC", declared.query
    types = {name.lower(): field_of(source.schema, name).type for name in query.by}
    types |= {"window": field_of(source.schema, query.at).type, **{a.lower(): type_ for a, type_ in features.items()}}
    for alias, value in query.derived:
        if not is_utc(zone) and depends_on_zone(value, types):
            raise PlanError(
                f"{alias!r} = {value.sql} depends on the time zone of the session, {zone}, and a lookup computes its "
                "columns in UTC. Compute it from the result, or set spark.sql.session.timeZone to UTC."
            )


def _added(declared: Lookup, features: Mapping[str, pa.DataType]) -> list[t.StructField]:
    types = {alias: from_arrow_type(type_) for alias, type_ in features.items()}
    if declared.layout == "wide":
        return [t.StructField(name, types[alias]) for _, alias, name in declared.features]
    return [t.StructField("window_name", t.StringType()), *(t.StructField(*column) for column in types.items())]


def _side_by_side(task: _Task, source: Input, requests: DataFrame, cut: Slices | None) -> DataFrame:
    """Events and requests in one sequence of columns, by key (and slice) and time."""
    query, asked_at = task.bound.lookup.query, requests.schema[task.at]
    names = [key(i) for i in range(len(query.by))]
    instant = micros(quoted(query.at), source.spark_type(query.at))
    known = f"{quoted(query.at)} IS NOT NULL"
    counting = source.events.where(known if query.where is None else f"{known} AND ({query.where.sql})")
    kinds = [requests.schema[i].dataType for i in task.others]
    happened = counting.select(
        *(F.col(quoted(name)).alias(key(i)) for i, name in enumerate(query.by)),
        F.expr(instant).alias(_INSTANT),
        F.lit(False).alias(_ASKS),
        *(F.expr(sql).alias(stored(i)) for i, sql in enumerate(task.bound.arguments)),
        *(F.lit(None).cast(type_).alias(f"{_OTHER}{i}") for i, type_ in enumerate(kinds)),
    )
    # By position: names of requests need not be what SQL takes.
    plain = requests.toDF(*(f"{_OTHER}{i}" for i in range(len(requests.columns))))
    arguments = happened.schema.fields[len(names) + 2 : len(names) + 2 + len(task.bound.arguments)]
    asking = plain.select(
        *(F.col(f"{_OTHER}{place}").alias(key(i)) for i, place in enumerate(task.keys)),
        F.expr(micros(f"{_OTHER}{task.at}", asked_at.dataType)).alias(_INSTANT),
        F.lit(True).alias(_ASKS),
        *(F.lit(None).cast(field.dataType).alias(field.name) for field in arguments),
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
    asked
        The columns of the requests.
    keys, at, others
        Where the keys stand among them, the time, and the rest.
    time
        The type of event time.
    features
        The types of the output columns.
    """

    bound: BoundLookup
    asked: pa.Schema
    keys: tuple[int, ...]
    at: int
    others: tuple[int, ...]
    time: pa.DataType
    features: Mapping[str, pa.DataType]

    @property
    def _at_once(self) -> int:
        """How many requests are answered together: the more windows, the fewer."""
        return max(_VALUES // len(self.bound.lookup.features), 1024)

    def run(self, keys: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """The function of a partition, whose rows begin with so many columns that tell keys apart."""
        lookup = self.bound.lookup

        def answer(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for piece in pieces(batches, keys, _ROWS, reach=lookup.reach, rows=lookup.rows):
                yield from large_batches(self._answer(piece, keys), self._at_once)

        return answer

    def _answer(self, piece: Piece, keys: int) -> Iterator[pa.RecordBatch]:
        if not len(piece.requests):
            return
        bound = self.bound
        events, first = piece.events, keys + 2
        arguments = dict(zip(bound.arguments, events.columns[first : first + len(bound.arguments)], strict=True))
        lookback = Lookback(bound, events.column(keys).to_numpy(), piece.key_starts, arguments)
        for begin in range(0, len(piece.requests), self._at_once):
            part = piece.requests.slice(begin, self._at_once)
            ordinal = piece.ordinals[begin : begin + len(part)]
            yield from self._found(lookback, part, ordinal, keys).to_batches()

    def _found(self, lookback: Lookback, part: pa.RecordBatch, ordinal: Array, keys: int) -> pa.Table:
        times = part.column(keys)
        instant = instants_of(times)
        own = list(part.columns[: len(self.keys)])
        asked = lookback.ask(ordinal, instant)
        parts = {
            window.name: answers_of(self.bound, asked, window, instant, own, self.time, self.features)
            for window in self.bound.lookup.windows
        }
        first = keys + 2 + len(self.bound.arguments)
        columns = dict(zip(self.keys, own, strict=True))
        columns[self.at] = times.view(self.asked.field(self.at).type)
        columns |= {place: part.column(first + i) for i, place in enumerate(self.others)}
        requests = pa.table([columns[i] for i in range(len(columns))], names=list(self.asked.names))
        return spread(self.bound.lookup, requests, parts)
