"""The answers the slow way: every window of every query on its own, event by event, in plain Python.

The planner, the frames and the kernels take no part, so that a mistake there cannot hide here. Each aggregate brings
its own reference (``Aggregate.reference``), plain Python too: sums are exact (``Fraction``) and rounded once at the
end. Scalar expressions are those of ``panes.expressions``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import pyarrow as pa

from panes.aggregates.aggregate import Aggregate
from panes.aggregates.ordering import is_ordered
from panes.errors import AnswerOverflowError
from panes.expressions.evaluate import evaluate
from panes.expressions.expression import expression
from panes.queries.measures import Punctuation
from panes.queries.query import EXPIRES, NUMBER, Query
from panes.queries.windows import RowWindow
from panes.testing.rows_reference import Arrived, instances
from panes.timeline import Geometry

Row: TypeAlias = tuple[Any, ...]
_WIDE = Context(prec=120, rounding=ROUND_HALF_UP)


def brute_force(queries: Query | Iterable[Query], table: pa.Table) -> pa.Table:
    """Answer queries one window instance at a time; slow, and meant to be obviously right.

    Examples
    --------
    >>> import panes as pn
    >>> table = pa.table({"ts": pa.array([1, 9, 12], pa.timestamp("us")), "temp": [20, 21, 25]})
    >>> query = pn.query("q", at="ts", select={"top": pn.max("temp")}, over=pn.hopping("10us", every="5us"))
    >>> brute_force(query, table)["top"].to_pylist()
    [20, 21, 25, 25]
    """
    listed = [flat(query) for query in ((queries,) if isinstance(queries, Query) else tuple(queries))]
    tables = [_of_query(query, groups, table) for query, groups in listed]
    keys = list(dict.fromkeys(key for query, _ in listed for key in query.by))
    columns = list(dict.fromkeys(column for query, _ in listed for column in query.columns))
    names = ["query", "window_name", "window", *keys, *columns]
    types = {field.name: field.type for own in reversed(tables) for field in own.schema}
    whole = [
        pa.table(
            [own[name] if name in own.column_names else pa.nulls(len(own), types[name]) for name in names],
            names=names,
        )
        for own in tables
    ]
    return pa.concat_tables(whole)


def answers_of(
    aggregate: Aggregate,
    table: pa.Table,
    windows: Iterable[tuple[Any, ...]],
    *,
    at: str,
    ties: tuple[str, ...] = (),
    as_given: bool = False,
) -> pa.Array:
    """One aggregate over windows that no query has: their rows, bounds in µs, and where levels of a nested one begin.

    Parameters
    ----------
    ties
        The columns that order rows of one instant for ``first`` and ``last``.
    as_given
        Whether aggregates of one's own see rows in the order in which they are given, as in windows of rows.

    Examples
    --------
    >>> import panes as pn
    >>> table = pa.table({"ts": pa.array([1, 9, 12], pa.timestamp("us")), "temp": [20, 21, 25]})
    >>> answers_of(pn.sum("temp"), table, [([0, 2], 0, 20), ([], 20, 30)], at="ts").to_pylist()
    [45, None]
    """
    reader = _Reader(aggregate, table, _whole(_column(table, at)).cast(pa.int64()).to_pylist(), ties)
    found = [reader(rows, start, end, *levels, as_given=as_given) for rows, start, end, *levels in windows]
    return pa.array(found, reader.type)


def comparable(value: Any) -> Any:
    """A value that equals and orders as Spark's keys and extrema do: NaN above all, equal to itself; -0.0 is 0.0.

    Examples
    --------
    >>> comparable(float("nan")) == comparable(float("nan")) > comparable(float("inf"))
    True
    """
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value + 0.0)
    if isinstance(value, dict):
        return tuple((part is not None, comparable(part)) for part in value.values())
    if isinstance(value, (list, tuple)):
        return tuple((part is not None, comparable(part)) for part in value)
    return value


def flat(query: Query) -> tuple[Query, int]:
    """A query whose groups are the last of its keys, and how many these are."""
    return replace(query, by=(*query.by, *query.groups), groups=()), len(query.groups)


def _of_query(query: Query, groups: int, table: pa.Table) -> pa.Table:
    if not query.timed:
        table = table.append_column(query.at, pa.array(range(len(table)), pa.timestamp("us")))
    instant_type = _column(table, query.at).type
    instants = _whole(_column(table, query.at)).cast(pa.int64()).to_pylist()
    passed = [True] * len(table) if query.where is None else evaluate(query.where, table).to_pylist()
    keys = list(zip(*(_column(table, key).to_pylist() for key in query.by), strict=True)) or [()] * len(table)
    kept = [i for i, t in enumerate(instants) if t is not None and passed[i]]
    readers = [(alias, _Reader(aggregate, table, instants, query.ties)) for alias, aggregate in query.aggregates]
    rows: list[tuple[str, int, int, Row, list[int], tuple[int, ...]]] = []
    numbers: list[int] = []
    for declared in query.over:
        if isinstance(declared, RowWindow):
            found = list(_of_rows(query, declared, groups, table, instants, keys, kept, passed))
            rows += [each[:6] for each in found]
            numbers += [each[6] for each in found]
    on_clock = [window for declared in query.over if not isinstance(declared, RowWindow) for window in declared.windows]
    for window in on_clock:
        if window.per_event:
            for i in kept:
                last = instants[i] - window.ago
                first = last - window.geometry.range
                ids = [j for j in kept if first < instants[j] <= last and comparable(keys[j]) == comparable(keys[i])]
                shown = first + 1 - window.shift, last + 1 - window.end_shift
                rows.append((window.name, *shown, keys[i], ids, ()))
            continue
        by_start: dict[Any, tuple[int, Row, list[int]]] = {}
        for i in kept:
            if window.since is not None and instants[i] < window.since:
                continue
            for start in _starts(window.geometry, instants[i]):
                by_start.setdefault((start, comparable(keys[i])), (start, keys[i], []))[2].append(i)
        # An instance (start, end] was looked for as the one that begins and ends a microsecond later.
        for start, held_by, ids in by_start.values():
            first = start if window.since is None else max(start, window.since)
            last = start + window.geometry.range
            # Where the levels of a nested window begin, the finest first.
            levels = tuple(last - age for age in (*window.finer, window.geometry.range))
            rows.append((window.name, first - window.shift, last - window.shift, held_by, ids, levels))
    bounds = [pa.array([row[i] for row in rows], pa.int64()).cast(instant_type) for i in (1, 2)]
    if not query.timed:
        bounds = [pa.nulls(len(rows), instant_type)] * 2
    answers = {
        "query": pa.array([query.name] * len(rows), pa.string()),
        "window_name": pa.array([row[0] for row in rows], pa.string()),
        "window": pa.StructArray.from_arrays(bounds, names=["start", "end"]),
    }
    for number, key in enumerate(query.by):
        answers[key] = pa.array([row[3][number] for row in rows], _column(table, key).type)
    for alias, reader in readers:
        given = [place < len(numbers) for place in range(len(rows))]
        answers[alias] = pa.array(
            [
                reader(row[4], row[1], row[2], row[5], as_given=of_rows)
                for row, of_rows in zip(rows, given, strict=True)
            ],
            reader.type,
        )
    lent: dict[str, pa.Array] = {}
    if query.uses_expires:
        slides = {window.name: window.geometry.slide for window in on_clock}
        lent[EXPIRES] = pa.array([row[2] + slides[row[0]] for row in rows], pa.int64()).cast(instant_type)
    if query.refers_to(NUMBER):
        lent[NUMBER] = pa.array(numbers, pa.int64())
    result = pa.table(answers | lent)
    for alias, value in query.derived:
        found = evaluate(value, result)
        kept = [name for name in result.column_names if name.lower() != alias.lower()]
        result = result.select(kept).append_column(alias, found)
    result = result if query.having is None else result.filter(evaluate(query.having, result))
    return result.drop_columns([name for name in lent if name not in (column.lower() for column in query.columns)])


def _of_rows(
    query: Query,
    window: RowWindow,
    groups: int,
    table: pa.Table,
    instants: list[Any],
    keys: list[Row],
    kept: list[int],
    passed: list[Any],
) -> Iterator[tuple[str, int, int, Row, list[int], tuple[int, ...], int]]:
    """The instances of a window of rows: its name, bounds, key, rows, no levels, and which of its key it is."""
    marks: list[int] = []
    if isinstance(window.size, Punctuation):
        marked = _column(table, window.size.column).to_pylist()
        marks = [i for i, t in enumerate(instants) if t is not None and marked[i]]
        kept = [i for i in kept if not marked[i]]
    kept = in_order(query, window, groups, table, instants, kept)
    names = {each.column for each in window.deltas}
    values = {name: dict(enumerate(_numbers(_column(table, str(name))))) for name in names}
    end = max((t for t in instants if t is not None), default=-1) + 1
    own_key = [comparable(key[: len(key) - groups]) for key in keys]
    for own in dict.fromkeys(own_key[i] for i in kept):
        mine = [i for i in kept if own_key[i] == own]
        stops = [instants[i] for i in marks if window.size.scope == "stream" or own_key[i] == own]  # type: ignore[union-attr]
        came = Arrived(mine, dict(enumerate(instants)), values, sorted(set(stops)), end)
        for number, (start, last, ids) in enumerate(instances(window, came)):
            if not groups:
                yield window.name, start, last, keys[mine[0]], ids, (), number
            for inside in dict.fromkeys(comparable(keys[i]) for i in ids) if groups else ():
                some = [i for i in ids if comparable(keys[i]) == inside]
                yield window.name, start, last, keys[some[0]], some, (), number


def in_order(
    query: Query, window: RowWindow, groups: int, table: pa.Table, instants: list[Any], rows: list[int]
) -> list[int]:
    """Rows by time; those of one instant by columns that never decrease, then by ties, or by all columns by name."""
    deltas = [each.column for each in window.deltas]
    if not query.timed:
        return rows
    shared = {name.lower() for name in (*query.by[: len(query.by) - groups], query.at)}
    listed = sorted(table.column_names, key=str.lower)
    others = [name for name in listed if name.lower() not in shared and is_ordered(table.schema.field(name).type)]
    used = {name.lower() for name in query.used}
    names = [*deltas, *query.ties, *((n for n in others if n.lower() in used) if query.ties else others)]
    columns = [_column(table, name).to_pylist() for name in dict.fromkeys(names)]
    return sorted(
        rows,
        key=lambda i: (instants[i], [(c[i] is not None, comparable(c[i]) if c[i] is not None else 0) for c in columns]),
    )


def _numbers(column: pa.ChunkedArray) -> list[Any]:
    found: list[Any] = (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
    return found


def _starts(geometry: Geometry, instant: int) -> list[int]:
    """Where the instances that hold an instant start, the earliest first."""
    start = geometry.offset + (instant - geometry.offset) // geometry.slide * geometry.slide
    found = []
    while start + geometry.range > instant:
        found.append(start)
        start -= geometry.slide
    return found[::-1]


class _Reader:
    """One aggregate over some rows of a table."""

    def __init__(
        self, aggregate: Aggregate, table: pa.Table, instants: list[int | None], ties: tuple[str, ...] = ()
    ) -> None:
        arguments = [evaluate(expression(argument), table) for argument in aggregate.arguments]
        self.aggregate, self.instants = aggregate, instants
        self.types = tuple(argument.type for argument in arguments)
        self.rows: list[Row] = list(zip(*(argument.to_pylist() for argument in arguments), strict=True))
        tied = [_column(table, name) for name in ties]
        if aggregate.by_time:
            orders = [[(x is not None, comparable(x)) for x in column.to_pylist()] for column in tied]
            self.rows = [((t, *order), *row) for t, row, *order in zip(instants, self.rows, *orders, strict=True)]
        # Bound with the time, and what orders rows of one instant, before the arguments.
        times = (pa.timestamp("us"), *(column.type for column in tied)) if aggregate.by_time else ()
        names = tuple(f"a{i}" for i in range(len(times) + len(self.types)))
        self.type = aggregate.bind(names, (*times, *self.types)).type

    def __call__(
        self, rows: list[int], start: int, end: int, bounds: tuple[int, ...] = (), *, as_given: bool = False
    ) -> Any:
        present = [i for i in rows if None not in self.rows[i]]
        if self.aggregate.by_order and not as_given:
            present.sort(key=lambda i: (self.instants[i], comparable(self.rows[i])))
        given: list[Any] = [self.rows[i] for i in present]
        if self.aggregate.levels:
            given = [[self.rows[i] for i in present if self.instants[i] in span] for span in _spans(bounds)]
        return _rounded(self.aggregate.reference(given, start=start, end=end, types=self.types), self.type)


def _spans(bounds: tuple[int, ...]) -> list[range]:
    """The instants of each level without those below it; the first bound is where the finest level begins."""
    ends = (2**62, *bounds)
    return [range(begin, end) for begin, end in zip(bounds, ends, strict=False)]


def _rounded(answer: Any, type_: pa.DataType) -> Any:
    """An exact answer in its type, rounded once."""
    if not isinstance(answer, Fraction):
        return answer
    if pa.types.is_decimal(type_):
        return _decimal(answer, type_)
    if pa.types.is_floating(type_):
        return float(answer)
    if not -(2**63) <= answer < 2**63:
        raise AnswerOverflowError(f"the exact answer {answer} does not fit a BIGINT")
    return int(answer)


def _decimal(exact: Fraction, type_: pa.DataType) -> Decimal:
    scaled = Fraction(exact) * 10**type_.scale
    # Half away from zero, as Spark rounds decimals.
    whole = math.floor(abs(scaled) + Fraction(1, 2)) * (-1 if scaled < 0 else 1)
    if abs(whole) >= 10**type_.precision:
        raise AnswerOverflowError(f"the exact answer {exact} does not fit {type_}")
    return Decimal(whole).scaleb(-type_.scale, _WIDE)


def _column(table: pa.Table, name: str) -> pa.ChunkedArray:
    return table.column(next(found for found in table.column_names if found.lower() == name.lower()))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()
