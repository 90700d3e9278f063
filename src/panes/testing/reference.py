"""The answers the slow way: every window of every query on its own, event by event, in plain Python.

Nothing of the planner, the frames or the kernels is used, so that a mistake there cannot hide here. Sums are exact
(Python integers, ``Fraction``) and rounded once at the end. Only scalar expressions come from ``panes.local``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from panes.aggregates.aged import AgedOf, LevelledOf
from panes.aggregates.aggregates import (
    Aggregate,
    CountOf,
    CustomOf,
    MaxOf,
    MeanOf,
    MinOf,
    PickOf,
    SumOf,
    VarianceOf,
)
from panes.aggregates.collecting import CountDistinctOf, DistinctOf, QuantileOf, RecurringOf
from panes.aggregates.fits import CorrelationOf, TrendOf
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
    pieces = [_of_query(query, groups, table) for query, groups in listed]
    keys = list(dict.fromkeys(key for query, _ in listed for key in query.by))
    columns = list(dict.fromkeys(column for query, _ in listed for column in query.columns))
    names = ["query", "window_name", "window", *keys, *columns]
    types = {field.name: field.type for piece in reversed(pieces) for field in piece.schema}
    whole = [
        pa.table(
            [piece[name] if name in piece.column_names else pa.nulls(len(piece), types[name]) for name in names],
            names=names,
        )
        for piece in pieces
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
        Whether aggregates of one's own see rows in the order in which they are given, as in windows by rows.

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
            found = list(_by_rows(query, declared, groups, table, instants, keys, kept, passed))
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
                reader(row[4], row[1], row[2], row[5], as_given=by_rows)
                for row, by_rows in zip(rows, given, strict=True)
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


def _by_rows(
    query: Query,
    window: RowWindow,
    groups: int,
    table: pa.Table,
    instants: list[Any],
    keys: list[Row],
    kept: list[int],
    passed: list[Any],
) -> Iterator[tuple[str, int, int, Row, list[int], tuple[int, ...], int]]:
    """The instances of a window by rows: its name, bounds, key, rows, no levels, and which of its key it is."""
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
        self.arguments = [argument.to_pylist() for argument in arguments]
        types = [argument.type for argument in arguments]
        self.type, self.read = _reading(aggregate, types)
        self.levels: Callable[[list[int], tuple[int, ...]], list[Any]] | None = None
        if isinstance(aggregate, PickOf):
            value = self.arguments[0]
            order: list[Any] = instants if aggregate.timed else self.arguments[1]
            if aggregate.timed and ties:
                tied = [_column(table, name).to_pylist() for name in ties]
                order = [None if t is None else (t, *(c[i] for c in tied)) for i, t in enumerate(instants)]
            # The wider order first, then the value: ties are broken by value.
            self.arguments = [order, value]
        elif isinstance(aggregate, CustomOf):
            # The order of time, and of values among events at one instant.
            self.arguments = [instants, *self.arguments]
        elif isinstance(aggregate, (RecurringOf, LevelledOf)):
            self.levels = lambda rows, bounds: [
                [self.arguments[0][i] for i in rows if instants[i] in span] for span in _spans(bounds)
            ]
        self.custom, self.placed = isinstance(aggregate, CustomOf), isinstance(aggregate, (TrendOf, AgedOf))
        if self.placed:
            self.arguments = [instants, *self.arguments]

    def __call__(
        self, rows: list[int], start: int, end: int, bounds: tuple[int, ...] = (), *, as_given: bool = False
    ) -> Any:
        if self.levels is not None:
            return self.read(self.levels(rows, bounds))
        values = [tuple(argument[i] for argument in self.arguments) for i in rows]
        present = [row for row in values if all(value is not None for value in row)]
        if self.placed:
            # How long after the start of the window, and how long before its end.
            present = [(t - start, end - t, value) for t, value in present]
        if self.custom and not as_given:
            present.sort(key=lambda row: [comparable(x) for x in row])
        return self.read(present)


Read: TypeAlias = Callable[[list[Row]], Any]


def _reading(aggregate: Aggregate, types: list[pa.DataType]) -> tuple[pa.DataType, Read]:
    """The output type of an aggregate, and its answer from rows of arguments, none of them null."""
    if isinstance(aggregate, CountOf):
        return pa.int64(), len
    if isinstance(aggregate, SumOf):
        return _sum_type(types[0]), lambda rows: _sum([x for (x,) in rows], _sum_type(types[0]))
    if isinstance(aggregate, MeanOf):
        return _mean_type(types[0]), lambda rows: _mean([x for (x,) in rows], _mean_type(types[0]))
    if isinstance(aggregate, (MinOf, MaxOf)):
        pick = min if isinstance(aggregate, MinOf) else max
        return types[0], lambda rows: pick((x for (x,) in rows), key=comparable, default=None)
    if isinstance(aggregate, VarianceOf):
        return pa.float64(), lambda rows: _variance([x for (x,) in rows], aggregate.ddof, aggregate.root)
    if isinstance(aggregate, PickOf):
        best = max if aggregate.largest else min
        return types[0], lambda rows: best(rows, key=lambda row: [comparable(x) for x in row], default=(None, None))[1]
    if isinstance(aggregate, CorrelationOf):
        return pa.float64(), _correlation
    if isinstance(aggregate, TrendOf):
        line = pa.struct([(name, pa.float64()) for name in ("slope", "intercept", "r2")])
        return line, lambda rows: _trend(
            _ticks(rows, aggregate.every) if aggregate.every else [(t, y) for t, _, y in rows]
        )
    if isinstance(aggregate, AgedOf):
        return pa.float64(), lambda rows: _aged(aggregate, [(age, x) for _, age, x in rows])
    if isinstance(aggregate, CustomOf):
        return aggregate.output, lambda rows: _custom(aggregate, types, rows)
    if isinstance(aggregate, CountDistinctOf):
        return pa.int64(), lambda rows: len({comparable(x) for (x,) in rows})
    if isinstance(aggregate, DistinctOf):
        return pa.list_(types[0]), lambda rows: _distinct([x for (x,) in rows])
    if isinstance(aggregate, QuantileOf):
        return (types[0] if aggregate.element else pa.float64()), lambda rows: _quantile(
            aggregate, [x for (x,) in rows]
        )
    if isinstance(aggregate, LevelledOf):
        return pa.float64(), lambda levels: _levelled(aggregate, levels)
    if isinstance(aggregate, RecurringOf):
        item = pa.struct([("item", types[0]), ("n", pa.int64())]) if aggregate.ranked else types[0]
        return pa.list_(item), lambda levels: _recurring(aggregate, levels)
    raise NotImplementedError(f"no reference for {aggregate}")


def _spans(bounds: tuple[int, ...]) -> list[range]:
    """The instants of each level without those below it; the first bound is where the finest level begins."""
    ends = (2**62, *bounds)
    return [range(begin, end) for begin, end in zip(bounds, ends, strict=False)]


def _distinct(values: list[Any]) -> list[Any]:
    found = {comparable(x): x + 0.0 if isinstance(x, float) else x for x in values}
    return [found[order] for order in sorted(found)]


def _quantile(aggregate: QuantileOf, values: list[Any]) -> Any:
    ordered = sorted(values, key=comparable)
    if not ordered:
        return None
    if aggregate.element:
        return ordered[max(math.floor(Fraction(str(aggregate.q)) * len(ordered)), 1) - 1]
    place = (len(ordered) - 1) * aggregate.q
    low, high = float(ordered[math.floor(place)]), float(ordered[math.ceil(place)])
    return low if low == high or place.is_integer() else (math.ceil(place) - place) * low + (place % 1) * high


def _levelled(aggregate: LevelledOf, levels: list[list[Any]]) -> float | None:
    pairs = zip(aggregate.weights, levels, strict=False)
    present = [(w, x) for w, level in pairs for x in level if x is not None]
    n = math.fsum(w for w, _ in present)
    if aggregate.kind == "count":
        return n
    weighed = [(w, float(x)) for w, x in present]
    if not weighed or (aggregate.kind == "mean" and n == 0):
        return None
    finite = all(math.isfinite(x) for _, x in weighed)
    total = math.fsum(w * x for w, x in weighed) if finite else float(np.sum([w * x for w, x in weighed]))
    return total / n if aggregate.kind == "mean" else total


def _recurring(aggregate: RecurringOf, levels: list[list[Any]]) -> list[Any]:
    bags = [[x for x in level if x is not None] for level in levels]
    common = set.intersection(*({comparable(x) for x in bag} for bag in bags))
    every = [x for bag in bags for x in bag if comparable(x) in common]
    items = _distinct(every)
    if not aggregate.ranked:
        return items
    counted = [{"item": x, "n": sum(comparable(x) == comparable(y) for y in every)} for x in items]
    return sorted(counted, key=lambda entry: -entry["n"])


def _sum_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(type_):
        return pa.decimal128(min(38, type_.precision + 10), type_.scale)
    return pa.int64() if pa.types.is_integer(type_) else pa.float64()


def _mean_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(type_):
        return pa.decimal128(min(38, type_.precision + 4), min(38, type_.scale + 4))
    return pa.float64()


def _sum(values: list[Any], type_: pa.DataType) -> Any:
    if not values:
        return None
    if pa.types.is_floating(type_):
        return _float_sum(values)
    exact = sum(map(Fraction, values))
    if pa.types.is_decimal(type_):
        return _decimal(exact, type_)
    if not -(2**63) <= exact < 2**63:
        raise AnswerOverflowError(f"the exact sum {exact} does not fit a BIGINT")
    return int(exact)


def _mean(values: list[Any], type_: pa.DataType) -> Any:
    if not values:
        return None
    if pa.types.is_decimal(type_):
        return _decimal(sum(map(Fraction, values), Fraction(0)) / len(values), type_)
    if not all(map(math.isfinite, values)):
        return _float_sum(values)
    return float(sum(map(Fraction, values), Fraction(0)) / len(values))


def _float_sum(values: list[float]) -> float:
    if all(map(math.isfinite, values)):
        return math.fsum(values)
    infinities = {x for x in values if not math.isfinite(x)}
    return infinities.pop() if len(infinities) == 1 else math.nan


def _variance(values: list[Any], ddof: int, root: bool) -> float | None:
    if len(values) <= ddof:
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    # Spark computes in doubles, so a decimal or a BIGINT is rounded to one first.
    exact = [Fraction(float(x)) for x in values]
    mean = sum(exact, Fraction(0)) / len(exact)
    variance = sum(((x - mean) ** 2 for x in exact), Fraction(0)) / (len(exact) - ddof)
    return math.sqrt(variance) if root else float(variance)


def _products(pairs: list[Row]) -> tuple[Fraction, ...]:
    """Means, and sums of squares and products of distances from them, exactly."""
    xs, ys = ([Fraction(float(pair[i])) for pair in pairs] for i in (0, 1))
    x, y = (sum(values, Fraction(0)) / len(pairs) for values in (xs, ys))
    distances = [(a - x, b - y) for a, b in zip(xs, ys, strict=True)]
    return (
        x,
        y,
        sum((a * a for a, _ in distances), Fraction(0)),
        sum((b * b for _, b in distances), Fraction(0)),
        sum((a * b for a, b in distances), Fraction(0)),
    )


def _correlation(pairs: list[Row]) -> float | None:
    constant = any(len({comparable(float(pair[i])) for pair in pairs}) == 1 and pairs[0][i] * 0 == 0 for i in (0, 1))
    if len(pairs) < 2 or constant:
        return None
    if not all(math.isfinite(value) for pair in pairs for value in pair):
        return math.nan
    _, _, xx, yy, xy = _products(pairs)
    return math.sqrt(xy * xy / (xx * yy)) * (1 if xy > 0 else -1)


def _trend(pairs: list[Row]) -> dict[str, float] | None:
    if len({t for t, _ in pairs}) < 2:
        return None
    if not all(math.isfinite(y) for _, y in pairs):
        return dict.fromkeys(("slope", "intercept", "r2"), math.nan)
    t, y, tt, yy, ty = _products(pairs)
    slope = ty / tt
    r2 = Fraction(1) if yy == 0 else ty * ty / (tt * yy)
    return {"slope": float(slope * 10**6), "intercept": float(y - slope * t), "r2": float(r2)}


def _ticks(rows: list[Row], every: int) -> list[Row]:
    """A value for every tick from the first event to the end of the window: the mean in it, or the one before."""
    if not rows:
        return []
    found: dict[int, list[float]] = {}
    for since, _, value in rows:
        found.setdefault(since // every, []).append(float(value))
    end = (rows[0][0] + rows[0][1]) // every
    series: list[Row] = []
    for tick in range(min(found), end):
        value = _mean(found[tick], pa.float64()) if tick in found else series[-1][1]
        series.append((tick * every, value))
    return series


def _aged(aggregate: AgedOf, rows: list[Row]) -> float | None:
    if not rows:
        return 0.0 if aggregate.kind == "count" else None
    # A decaying mean is the same whatever the unit of weights: seen from the youngest event, not all of them vanish.
    youngest = min(age for age, _ in rows) if aggregate.kind == "mean" and not aggregate.power else 0
    weighed = [(_weight(aggregate, age - youngest), x) for age, x in rows]
    weights = math.fsum(weight for weight, _ in weighed)
    if aggregate.kind == "count":
        return weights
    # What decays never weighs nothing, so that infinity stays; what has faded counts no more.
    values = [(weight, float(x)) for weight, x in weighed if weight > 0 or not aggregate.power]
    total = _float_sum([weight * x if math.isfinite(x) else x for weight, x in values])
    if aggregate.kind == "sum":
        return total
    return total / weights if weights else None


def _weight(aggregate: AgedOf, age: int) -> float:
    if not aggregate.power:
        return math.pow(2.0, -age / aggregate.half_life)
    horizon = aggregate.half_life / (1 - 2 ** (-1 / aggregate.power))
    return math.pow((horizon - age) / horizon, aggregate.power)


def _decimal(exact: Fraction | int, type_: pa.DataType) -> Decimal:
    scaled = Fraction(exact) * 10**type_.scale
    # Half away from zero, as Spark rounds decimals.
    whole = math.floor(abs(scaled) + Fraction(1, 2)) * (-1 if scaled < 0 else 1)
    if abs(whole) >= 10**type_.precision:
        raise AnswerOverflowError(f"the exact answer {exact} does not fit {type_}")
    return Decimal(whole).scaleb(-type_.scale, _WIDE)


def _custom(aggregate: CustomOf, types: list[pa.DataType], rows: list[Row]) -> Any:
    if not rows:
        return None
    columns = [pa.array([row[i + 1] for row in rows], type_) for i, type_ in enumerate(types)]
    lifted = aggregate.lift(*(column.to_numpy(zero_copy_only=False) for column in columns))
    parts = [np.asarray(part) for part in (lifted if isinstance(lifted, tuple) else (lifted,))]
    states = [tuple(part[i : i + 1] for part in parts) for i in range(len(rows))]
    answer = np.asarray(aggregate.lowered(*reduce(aggregate.operations.combine, states)))
    return pa.array(answer, from_pandas=True).cast(aggregate.output)[0].as_py()


def _column(table: pa.Table, name: str) -> pa.ChunkedArray:
    return table.column(next(found for found in table.column_names if found.lower() == name.lower()))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()
