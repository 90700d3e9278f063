"""``trend``: the line of least squares through a value over event time.

The sums of equations (6) and (7) of the multi-granular paper (Patroumpas and Sellis 2010, section IV-B), centred: times
are counted from an instant near the events, in whole µs, and the sums of squares and products from the means. A line
through µs of the year 9000 is as exact as one through the first second of 1970.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from panes.aggregates.aggregate import Aggregate, Bound
from panes.aggregates.component import StructComponent, as_struct, call, fold_sql, numbers, struct_sql
from panes.aggregates.moments import (
    exact_products,
    mean_sql,
    mean_together_sql,
    merge_means,
    merge_products,
    no_spread,
    products_together_sql,
)
from panes.aggregates.operations import Array, Operations, State
from panes.aggregates.registry import arguments_of, constructor
from panes.aggregates.sums import exact_mean
from panes.errors import DurationError
from panes.timeline import MILLISECOND, SECOND, DurationLike, Geometry, format_duration, parse_duration

# What a user writes


@constructor("pn.trend('temp')")
def trend(value: str, *, every: DurationLike | None = None) -> Aggregate:
    """The line of least squares through a value over event time: a struct of ``slope``, ``intercept`` and ``r2``.

    The slope is per second, the intercept is the fitted value where the window starts, and R² the share of the
    variance that the line explains (1 for a value that never changes). Null where no two events differ in time.

    Parameters
    ----------
    value
        A column or expression.
    every
        Fit a regular series instead of the events: one value per tick, the mean of those in it, or that of the tick
        before where it has none, from the first event to the end of the window. Windows have to begin and end with
        ticks; a stream keeps a granule for every tick.

    Examples
    --------
    >>> import panes as pn
    >>> rising = pn.query("rising", by="device", at="ts", over=pn.tumbling("1 hour"),
    ...     select={"line": pn.trend("temp"), "per_minute": "line.slope * 60", "fit": "line.r2"})
    >>> print(pn.trend("temp"), pn.trend("temp", every="1 min"))
    trend(temp) trend(temp, every=1m)
    """
    ticks = 0 if every is None else parse_duration(every)
    if every is not None and ticks < MILLISECOND:
        raise DurationError(
            f"every={every!r} is too short: a tick has a millisecond or more. Write for example '1 min', or leave "
            "every= out to fit the events as they are."
        )
    return TrendOf(arguments_of(value), every=ticks)


# The aggregate


@dataclass(frozen=True)
class TrendOf(Aggregate):
    """``trend(x)``: the line of least squares through a value over event time, or over ticks of ``every`` µs."""

    every: int = 0

    name: ClassVar[str] = "trend"
    by_time: ClassVar[bool] = True
    weight: ClassVar[int] = 8

    @property
    def in_jvm(self) -> bool:
        return not self.every

    @property
    def in_order(self) -> bool:
        return bool(self.every)

    def misfit(self, window: Geometry) -> str | None:
        if not self.every or all(part % self.every == 0 for part in (window.range, window.slide, window.offset)):
            return None
        return (
            f"{self} has a value per tick of {format_duration(self.every)}, and the window begins or ends within one. "
            "Write an every= that divides its size, step and offset, and windows with bounds '[)'."
        )

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:
        self._require_number(types[1])
        if self.every:
            series = Series(arguments, types, every=self.every)
            return Bound((series,), LINE, series.fitted, by_window=True)
        lines = Lines(arguments, types)
        return Bound((lines,), LINE, lines.fitted, lines.fitted_sql, by_window=True)

    def native(self, arguments: tuple[str, ...]) -> None:
        # Spark's regr_slope and its sisters would need times from the start of each window.
        return None

    def reference(self, rows: Sequence[Any], **window: Any) -> dict[str, float] | None:
        start, end = window["start"], window["end"]
        pairs = [(when[0] - start, float(value)) for when, value in rows]
        if self.every:
            pairs = _ticks(pairs, self.every, (end - start) // self.every)
        if len({t for t, _ in pairs}) < 2:
            return None
        if not all(math.isfinite(value) for _, value in pairs):
            return dict.fromkeys(("slope", "intercept", "r2"), math.nan)
        t, y, tt, yy, ty = exact_products(pairs)
        slope = ty / tt
        r2 = Fraction(1) if yy == 0 else ty * ty / (tt * yy)
        return {"slope": float(slope * 10**6), "intercept": float(y - slope * t), "r2": float(r2)}

    def __str__(self) -> str:
        every = f", every={format_duration(self.every)}" if self.every else ""
        return f"trend({self.arguments[0]}{every})"


# What is stored


LINE: Final = pa.struct([("slope", pa.float64()), ("intercept", pa.float64()), ("r2", pa.float64())])
"""What a trend is: slope per second, the fitted value where the window starts, and R²."""

_ONE_INSTANT: Final = 0.25
"""Times are whole µs or ticks, so that two different ones have a sum of squared distances of 1/2 or more."""


def combine_lines(left: State, right: State) -> State:
    """Moments of values over time, for two disjoint bags of events taken together."""
    n_left, at_left, t_left, y_left, tt_left, yy_left, ty_left = left
    n_right, at_right, t_right, y_right, tt_right, yy_right, ty_right = right
    with np.errstate(invalid="ignore"):
        dt, dy = (at_right - at_left) + (t_right - t_left), y_right - y_left
    return (
        n_left + n_right,
        np.where(n_left == 0, at_right, at_left),
        np.where(n_left == 0, t_right, merge_means(n_left, t_left, n_right, dt)),
        merge_means(n_left, y_left, n_right, dy),
        merge_products(n_left, tt_left, n_right, tt_right, dt, dt),
        merge_products(n_left, yy_left, n_right, yy_right, dy, dy),
        merge_products(n_left, ty_left, n_right, ty_right, dt, dy),
    )


LINES = Operations(identity=(0, 0, 0.0, 0.0, 0.0, 0.0, 0.0), combine=combine_lines)

_LINES = pa.struct(
    [
        ("n", pa.int64()),
        ("at", pa.int64()),
        *((name, pa.float64()) for name in ("mean_t", "mean_y", "tt", "yy", "ty")),
    ]
)


@dataclass(frozen=True)
class Lines(StructComponent):
    """Moments of (time, value): the instant ``at`` that times are counted from, in µs, and what is centred there."""

    kind: ClassVar[str] = "line"
    operations: ClassVar[Operations] = LINES

    @property
    def storage(self) -> pa.DataType:
        return _LINES

    def build_from(self, instant: str, start: str, only: str | None = None) -> str:
        t, y = f"CAST({instant} - {start} AS DOUBLE)", f"CAST({self.arguments[1]} AS DOUBLE)"
        present = f"{y} IS NOT NULL" if only is None else f"{y} IS NOT NULL AND {only}"
        n = call("count", "1", present)
        parts = {
            "n": n,
            "at": call("min", start, present),
            "mean_t": call("avg", t, present),
            "mean_y": mean_sql(y, present),
            "tt": f"{call('var_pop', t, present)} * {n}",
            "yy": f"{call('var_pop', y, present)} * {n}",
            "ty": f"{call('covar_pop', f'{t}, {y}', present)} * {n}",
        }
        return f"CASE WHEN {n} > 0 THEN {struct_sql(parts)} END"

    def merge(self, stored: str) -> str:
        dt, dy = "((b.at - a.at) + (b.mean_t - a.mean_t))", "(b.mean_y - a.mean_y)"
        together = {
            "n": "a.n + b.n",
            "at": "a.at",
            "mean_t": mean_together_sql("mean_t", dt),
            "mean_y": mean_together_sql("mean_y", dy),
            "tt": products_together_sql("tt", dt, dt),
            "yy": products_together_sql("yy", dy, dy),
            "ty": products_together_sql("ty", dt, dy),
        }
        return fold_sql(stored, struct_sql(together))

    def lift(self, *values: pa.Array) -> pa.Array:
        time, y = values[0], values[1].cast(pa.float64(), safe=False)
        zero, one = np.zeros(len(y)), np.ones(len(y), dtype=np.int64)
        value = numbers(y, 0.0)
        spread = no_spread(value)
        missing = y.is_null().to_numpy(zero_copy_only=False)
        return self.stored((one, micros_of(time), zero, value, zero, spread, spread), missing)

    def fitted(self, stored: pa.Array, *, start: Array, end: Array) -> pa.Array:
        """The lines through stored moments, with the fitted value where each answer's window starts."""
        return line_through(self.state_of(stored), start)

    def fitted_sql(self, stored: str, *, start: str, end: str) -> str:
        """The same in Spark SQL, from the names of a stored column and of the start of windows in µs."""
        slope = f"({stored}.ty / {stored}.tt)"
        line = {
            "slope": f"{slope} * {SECOND}D",
            "intercept": f"{stored}.mean_y - {slope} * (({stored}.at - {start}) + {stored}.mean_t)",
            "r2": f"CASE WHEN {stored}.yy = 0D THEN 1D ELSE {slope} * ({stored}.ty / {stored}.yy) END",
        }
        return f"CASE WHEN {stored}.tt >= {_ONE_INSTANT}D THEN {struct_sql(line)} END"


def line_through(state: State, start: Array, tick: int = 1) -> pa.Array:
    """The lines through moments of time in ticks of some µs.

    Null where no two events differ in time: no line is steeper than another then. A value that never changes is
    explained wholly, as by Spark's ``regr_r2``.
    """
    _, at, t, y, tt, yy, ty = state
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        slope = ty / tt
        intercept = y - slope * ((at - start) + t)
        r2 = np.where(yy == 0, 1.0, slope * (ty / yy))
    return as_struct((slope * (SECOND / tick), intercept, r2), tt < _ONE_INSTANT, LINE)


def micros_of(time: pa.Array) -> Array:
    """Event times as µs since the epoch; zero where there is none."""
    whole = time.cast(pa.timestamp("us", time.type.tz)) if pa.types.is_timestamp(time.type) else time
    return numbers(whole.view(pa.int64())).astype(np.int64, copy=False)


# The same with every=: a value at every tick, as the multi-granular paper assumes it.
#
# Several values in a tick are averaged, and a tick without any has the value of the one before. A partial never lists
# its ticks: a value that holds over many of them is a *run*, whose moments have a closed form. Only the ends of a
# partial stay open, since its neighbours may have more events in the same tick:
#
#     first .. next | runs that are closed | last ..
#       3    3    3 |  5  5  2  2  2  4    |  6
#
# Partials are combined in the order of time. A stream brings events late, but those of one tick make the same sum in
# any order; so its panes are no longer than ticks, and stay so however old they are.

_OPEN: Final = {
    "first": pa.int64(),
    "first_sum": pa.float64(),
    "first_n": pa.int64(),
    "next": pa.int64(),
    "last": pa.int64(),
    "last_sum": pa.float64(),
    "last_n": pa.int64(),
}
_CLOSED: Final = {"n": pa.int64(), "at": pa.int64()} | dict.fromkeys(
    ("mean_t", "mean_y", "tt", "yy", "ty"), pa.float64()
)
_SERIES: Final = pa.struct([*_OPEN.items(), *_CLOSED.items()])
_OPEN_PARTS: Final = len(_OPEN)


@dataclass(frozen=True, kw_only=True)
class Series(StructComponent):
    """A value per tick of ``every`` µs since the epoch: the first and the last tick as they are, the rest as moments.

    ``next`` is the tick where the run of the first one ends; where there is only one tick, first and last are the same.
    """

    every: int

    kind: ClassVar[str] = "series"
    in_jvm: ClassVar[bool] = False

    @property
    def ticks(self) -> int:
        return self.every

    @property
    def name(self) -> str:
        return f"series({', '.join(self.arguments)}, every={self.every})"

    @property
    def storage(self) -> pa.DataType:
        return _SERIES

    def lift(self, *values: pa.Array) -> pa.Array:
        tick, value = micros_of(values[0]) // self.every, values[1].cast(pa.float64(), safe=False)
        x, one = numbers(value, 0.0), np.ones(len(value), dtype=np.int64)
        closed = LINES.identities((one, one, x, x, x, x, x), len(value))
        missing = value.is_null().to_numpy(zero_copy_only=False)
        return self.stored((tick, x, one, tick, tick, x, one, *closed), missing)

    @property
    def operations(self) -> Operations:
        return SERIES

    def fitted(self, stored: pa.Array, start: Array, end: Array) -> pa.Array:
        """The lines through all ticks from the first one with a value to the end of each window."""
        state = self.state_of(stored)
        first, first_sum, first_n, next_, last, last_sum, last_n = state[:_OPEN_PARTS]
        end_tick, several = end // self.every, first < last
        head = _run(first, np.where(several, next_, end_tick), first_sum, first_n)
        tail = _run(last, end_tick, last_sum, np.where(several, last_n, 0))
        whole = combine_lines(combine_lines(head, state[_OPEN_PARTS:]), tail)
        return line_through(whole, start // self.every, tick=self.every)


def _run(first: Array, end: Array, total: Array, n: Array) -> State:
    """Moments of the ticks from one to another (without it) that all have one mean value; none where n is zero."""
    ticks = np.where(n > 0, np.maximum(end - first, 0), 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(ticks > 0, total / n, 0.0)
    length, spread = ticks.astype(np.float64), no_spread(value)
    return ticks, first, np.maximum(length - 1, 0) / 2, value, length * (length * length - 1) / 12, spread, spread


def _combine(left: State, right: State) -> State:
    first_l, first_sum_l, first_n_l, next_l, last_l, last_sum_l, last_n_l = left[:_OPEN_PARTS]
    first_r, first_sum_r, first_n_r, next_r, last_r, last_sum_r, last_n_r = right[:_OPEN_PARTS]
    none_l, none_r = first_n_l == 0, first_n_r == 0
    single_l, single_r = first_l == last_l, first_r == last_r
    # Both sides may have events in the tick where they meet.
    shared = last_l == first_r
    met_sum, met_n = last_sum_l + np.where(shared, first_sum_r, 0.0), last_n_l + np.where(shared, first_n_r, 0)
    # What is neither the first tick of the left side nor the last one of the right side is known now.
    ends_left = ~single_l & ~(shared & single_r)
    left_run = _run(last_l, np.where(shared, next_r, first_r), met_sum, np.where(ends_left, met_n, 0))
    right_run = _run(first_r, next_r, first_sum_r, np.where(~shared & ~single_r, first_n_r, 0))
    closed = left[_OPEN_PARTS:]
    for more in (left_run, right_run, right[_OPEN_PARTS:]):
        closed = combine_lines(closed, more)
    grown, reached = single_l & shared, single_r & shared
    together = (
        first_l,
        np.where(grown, met_sum, first_sum_l),
        np.where(grown, met_n, first_n_l),
        np.where(single_l, np.where(shared, next_r, first_r), next_l),
        last_r,
        np.where(reached, met_sum, last_sum_r),
        np.where(reached, met_n, last_n_r),
        *closed,
    )
    return tuple(np.where(none_l, b, np.where(none_r, a, c)) for a, b, c in zip(left, right, together, strict=True))


SERIES: Final = Operations(identity=(0, 0.0, 0, 0, 0, 0.0, 0, *LINES.identity), combine=_combine)


# The reference


def _ticks(pairs: list[tuple[int, float]], every: int, end: int) -> list[tuple[int, float]]:
    """A value for every tick from the first event to the end of the window: the mean in it, or the one before."""
    found: dict[int, list[float]] = {}
    for since, value in pairs:
        found.setdefault(since // every, []).append(value)
    series: list[tuple[int, float]] = []
    for tick in range(min(found, default=end), end):
        value = float(exact_mean(found[tick])) if tick in found else series[-1][1]
        series.append((tick * every, value))
    return series
