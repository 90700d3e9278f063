"""Windows of rows on Spark: rows of a key set are shuffled and sorted once, or go to one stateful operator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from panes.aggregates.operations import Array
from panes.engine.bind_program import argument_expressions
from panes.engine.keys import END, INSTANT, START, key_ordinals, one_zero
from panes.engine.program import View
from panes.engine.schema import ResultSchema, field_of, output_types, result_schema
from panes.errors import PlanError
from panes.frames import Positions
from panes.frames.row_frame import Arrivals
from panes.planning.explanation import listed
from panes.planning.steps import Steps
from panes.queries.measures import Punctuation
from panes.queries.windows import Window
from panes.row_windows.arrival import NO_PUNCTUATIONS, marks_of, tie_order
from panes.row_windows.bound_rows import ENDLESS, NUMBERED, BoundRows, bind_rows, flat, instances_of, needed
from panes.row_windows.key_set import KeySet, Own, PartRows, SentColumns
from panes.row_windows.parts import RowsPart, depends_on_clock
from panes.spark.batches import AnswerColumns, large_batches, typed
from panes.spark.binding import Input, examine
from panes.spark.chunks import key_starts, whole_keys
from panes.spark.finish import Shape, finish_many
from panes.spark.naming import VIEW, key, micros, quoted
from panes.spark.versions import to_spark_type, whole_numbers
from panes.spark.workers import map_in_python
from panes.timeline import Geometry

_ROWS = 1 << 18
_MOST_MARKS = 10_000_000


@dataclass(frozen=True)
class Prepared:
    """A key set with the types of its columns, and the SQL of what travels.

    Parameters
    ----------
    sqls
        The columns in which rows travel, in the order of ``keys.sent.schema``.
    travels
        Which rows do; None for all with a time.
    marks
        The columns whose marks end the windows of all keys.
    """

    parts: tuple[RowsPart, ...]
    source: Input
    keys: KeySet
    schema: ResultSchema
    sqls: tuple[str, ...]
    travels: str | None
    marks: tuple[str, ...]

    @property
    def clocked(self) -> bool:
        """Whether the clock answers windows, which then has to stop at the last event."""
        return any(depends_on_clock(window) for part in self.parts for window in part.windows)

    @property
    def titles(self) -> tuple[str, ...]:
        """The windows, as they are called."""
        return tuple(window.name for part in self.parts for window in part.windows)

    @property
    def answering(self) -> AnswerColumns:
        """How the answers of all windows travel together."""
        keys = [(key(i), type_) for i, type_ in enumerate(self.schema.keys.values())]
        outputs = {name: type_ for bound in self.keys.bounds for name, type_ in bound.outputs.items()}
        instant = self.schema.instant
        bounds = [(VIEW, pa.int32()), (START, instant), (END, instant), (NUMBERED, pa.int64())]
        names = {name: key(i) for i, name in enumerate(self.schema.keys)}
        return AnswerColumns(pa.schema([*bounds, *keys, *outputs.items()]), names)

    @property
    def travelling(self) -> t.StructType:
        """The columns in which they do."""
        instant = self.source.spark_type(self.parts[0].query.at)
        types = {START: instant, END: instant}
        types |= {key(i): self.source.spark_type(name) for i, name in enumerate(self.schema.keys)}
        schema = self.answering.schema
        return t.StructType([t.StructField(f.name, types.get(f.name) or to_spark_type(f.type)) for f in schema])

    def finished(self, answers: DataFrame) -> DataFrame:
        """Answers with names, derived columns and ``having``."""
        queries = [flat(part.query) for part in self.parts]
        # Only their names matter.
        views = [
            View(number, Window(Geometry(1, 1), window.name), self.keys.bounds[number].readings, None)
            for number, part in enumerate(self.parts)
            for window in part.windows
        ]
        shape = Shape.of(self.schema, self.source)
        return finish_many(answers, views, list(self.schema.keys), queries, shape, number=NUMBERED)


def prepare_rows(parts: Sequence[RowsPart], events: DataFrame) -> Prepared:
    """Bind windows that share a sorted column to the data, which finds every mistake without a job."""
    for part in parts:
        if part.input.at is None:
            raise PlanError(
                f"query {part.query.name!r} has no at=, and a DataFrame has no order in which its rows could arrive. "
                "Write at= with the column of their time."
            )
    queries = [part.bare for part in parts]
    source = examine(queries, events)
    bounds = []
    for part, query in zip(parts, queries, strict=True):
        types = source.types_of(argument_expressions([(0, query)], query.where))
        bounds.append(bind_rows(part, source.schema, types.__getitem__))
    schema = _result(parts, bounds, source)
    return prepared_with(tuple(parts), source, tuple(bounds), schema)


def _result(parts: Sequence[RowsPart], bounds: Sequence[Any], source: Input) -> ResultSchema:
    queries = [flat(part.query) for part in parts]
    types = [
        output_types(query, {r.alias: r.bound.type for r in bound.readings}, source.schema)
        for query, bound in zip(queries, bounds, strict=True)
    ]
    keys = {name: field_of(source.schema, name).type for query in queries for name in query.by}
    return result_schema(queries, keys, types, [field_of(source.schema, query.at).type for query in queries])


def prepared_with(
    parts: tuple[RowsPart, ...],
    source: Input,
    bounds: tuple[BoundRows, ...],
    schema: ResultSchema,
    make: type[Prepared] = Prepared,
) -> Prepared:
    """Which columns travel: what all parts need, each once."""
    input = parts[0].input
    counts = [_counts(part) for part in parts]
    # Where all parts count the same rows, only these travel; otherwise each row says for whom it counts.
    alike = len(set(counts)) == 1 and parts[0].input.mark is None
    flags = list(dict.fromkeys(sql for sql in counts if sql is not None)) if not alike else []
    arguments, groups, marks = dict[tuple[str, str | None], int](), dict[str, int](), dict[str, int]()
    own = []
    for part, bound, sql in zip(parts, bounds, counts, strict=True):
        guard = None if alike else sql
        numbers = [arguments.setdefault((a, guard), len(arguments)) for a in bound.arguments]
        inside = [groups.setdefault(name.lower(), len(groups)) for name in part.query.groups]
        mark, of_key, of_all = part.input.mark, None, None
        if mark is not None and mark.scope == "key":
            of_key = _place(flags, _marked(mark))
        elif mark is not None:
            of_all = marks.setdefault(mark.column, len(marks))
        passes = None if guard is None else _place(flags, guard)
        own.append(Own(tuple(numbers), tuple(inside), passes, of_key, of_all))
    ties = _ties(parts, source)
    names = (input.by, parts[0].deltas, tuple(groups), ties)
    keys, deltas, members, orders = (tuple(field_of(source.schema, n).type for n in some) for some in names)
    types = source.types_of([sql for sql, _ in arguments])
    sent = SentColumns(keys, tuple(types[sql] for sql, _ in arguments), deltas, members, len(flags), orders)
    sqls = (
        *map(quoted, input.by),
        micros(quoted(str(input.at)), source.spark_type(str(input.at))),
        *(sql if guard is None else f"CASE WHEN {guard} THEN {sql} END" for sql, guard in arguments),
        *map(quoted, (*parts[0].deltas, *groups)),
        *flags,
        *map(quoted, ties),
    )
    travels = counts[0] if alike else " OR ".join(flags) if None not in counts else None
    return make(parts, source, KeySet(bounds, tuple(own), sent), schema, sqls, travels, tuple(marks))


def _place(flags: list[str], sql: str) -> int:
    if sql not in flags:
        flags.append(sql)
    return flags.index(sql)


def _counts(part: RowsPart) -> str | None:
    """SQL that says whether a row counts for a part; None where every row does."""
    where = None if part.query.where is None else f"coalesce({part.query.where.sql}, false)"
    if part.input.mark is None:
        return where
    # A condition need not make sense for a mark.
    return f"CASE WHEN {_marked(part.input.mark)} THEN false ELSE {where or 'true'} END"


def _marked(mark: Punctuation) -> str:
    return f"coalesce({quoted(mark.column)}, false)"


def _ties(parts: Sequence[RowsPart], source: Input) -> tuple[str, ...]:
    """The columns that order rows of one instant; text with a collation has another order than here."""
    names = tie_order(parts[0].input, source.schema, needed(parts))
    plain = {name for name, type_ in source.spark_types.items() if getattr(type_, "collation", None) in (None, _PLAIN)}
    return tuple(name for name in names if name.lower() in plain)


_PLAIN = "UTF8_BINARY"


# A batch


def add_row_windows(steps: Steps, read: int, prepared: Prepared, look_at: int) -> int:
    """List what answers windows of rows over a batch.

    Parameters
    ----------
    read
        The step that has the events.
    look_at
        The step that has them for looks, which are not to be counted.
    """
    keys, names, answering = prepared.keys, prepared.keys.sent.schema.names, prepared.answering
    own = [name for name in names if name.startswith("key")]
    together = prepared.parts[0].input.together

    def sort(events: DataFrame) -> DataFrame:
        rows = _rows(prepared, events)
        shuffled = rows.repartition(*own) if own and not together else rows.repartition(1)
        return shuffled.sortWithinPartitions(*own, INSTANT, *(name for name in names if name.startswith("tie")))

    def answer(ordered: DataFrame, when: tuple[int, list[Array]] | None = None) -> DataFrame:
        end, marks = when or (ENDLESS, [])
        task = _task(keys, len(own), together, end, marks, answering)
        return prepared.finished(map_in_python(ordered, task, prepared.travelling))

    seen = []
    if prepared.clocked or prepared.marks:
        marks = f"marks in {listed(prepared.marks)}" if prepared.marks else ""
        what = " and ".join(filter(None, ["the time of the last event" if prepared.clocked else "", marks]))
        seen.append(
            steps.add("look", f"at {what}, in a job of its own", lambda events: _when(prepared, events), look_at)
        )
    apart = "time, all keys in one task" if together else f"{listed(prepared.parts[0].input.by)} and time"
    ordered = steps.add("sort", f"events by {apart}", sort, read)
    titles = prepared.titles
    return steps.add("answer", "windows of rows, from one sorted column", answer, ordered, *seen, windows=titles)


def _rows(prepared: Prepared, events: DataFrame) -> DataFrame:
    """What windows need of the rows that count anywhere."""
    known = f"{quoted(str(prepared.parts[0].input.at))} IS NOT NULL"
    rows = events.where(known if prepared.travels is None else f"{known} AND ({prepared.travels})")
    names = prepared.keys.sent.schema.names
    return rows.selectExpr(*(f"{sql} AS {name}" for sql, name in zip(prepared.sqls, names, strict=True)))


def _when(prepared: Prepared, events: DataFrame) -> tuple[int, list[Array]]:
    """What every task needs to know of all rows: how far the clock runs, and when marks for all keys come."""
    at = str(prepared.parts[0].input.at)
    instant = F.expr(micros(quoted(at), prepared.source.spark_type(at))).alias(INSTANT)
    end = ENDLESS
    if prepared.clocked:
        last = whole_numbers(events.select(instant).agg(F.max(INSTANT)))[0].as_py()
        end = 0 if last is None else last + 1
    marks = []
    for column in prepared.marks:
        known = f"coalesce({quoted(column)}, false) AND {quoted(at)} IS NOT NULL"
        found = whole_numbers(events.where(known).select(instant).limit(_MOST_MARKS + 1)).to_numpy()
        if len(found) > _MOST_MARKS:
            raise PlanError(
                f"{column!r} is true in more than {_MOST_MARKS:,} rows, which every task would have to know. Write "
                f"pn.punctuation({column!r}, scope='key') if a mark is about its own key."
            )
        marks.append(np.sort(found))
    return end, marks


def _task(
    keys: KeySet, count: int, together: bool, end: int, marks: list[Array], answering: AnswerColumns
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task does with sorted rows: the answers of every window, chunk after chunk."""

    def answered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        chunks = whole_keys(batches, 0 if together else count, _ROWS)
        for chunk, _ in chunks:
            columns = [typed(column, field.type) for column, field in zip(chunk.columns, keys.sent.schema, strict=True)]
            rows = pa.RecordBatch.from_arrays(columns, schema=keys.sent.schema)
            for part in range(len(keys.bounds)):
                first = keys.first_view(part)
                mine = keys.rows_of(part, rows)
                for number, table in _answers(mine, count, end, marks):
                    for batch in table.combine_chunks().to_batches():
                        yield answering.batch(first + number, batch)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from large_batches(answered(batches))

    return run


def _answers(mine: PartRows, keys: int, end: int, marks: list[Array]) -> Iterator[tuple[int, pa.Table]]:
    """The answers of every window of a part over some rows."""
    if not len(mine.rows):
        return
    starts = key_starts(mine.rows, keys)
    events = Positions.of_events(mine.instants, starts)
    own = [one_zero(column.take(pa.array(starts[:-1]))) for column in mine.keys]
    punctuations = NO_PUNCTUATIONS if mine.own.marks is None else marks[mine.own.marks]
    ended = None if mine.marks is None else _marks_by_key(mine, own)
    arrivals = Arrivals(events, end, punctuations=punctuations, marks=ended)
    for number, instances in enumerate(instances_of(mine.bound.part, arrivals, mine.attributes, own)):
        yield number, mine.answer(number, instances)


def _marks_by_key(mine: PartRows, keys: list[pa.Array]) -> Positions:
    """The marks of a chunk, by the keys of its rows."""
    assert mine.marks is not None
    marked = [one_zero(mine.marks.column(f"key{i}")) for i in range(len(keys))]
    instants = mine.marks.column(INSTANT).to_numpy()
    if not keys:
        return marks_of(np.zeros(len(instants), np.int64), instants, np.zeros(1, np.int64))
    both = [pa.concat_arrays([a, b]) for a, b in zip(keys, marked, strict=True)]
    ordinals = key_ordinals(both, len(keys[0]) + len(instants))
    present = len(keys[0])
    place = np.full(int(ordinals.max(initial=-1)) + 1, -1, np.int64)
    place[ordinals[:present]] = np.arange(present)
    own = place[ordinals[present:]]
    return marks_of(own[own >= 0], instants[own >= 0], np.arange(present))
