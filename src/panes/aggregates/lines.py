"""The component behind ``trend(x, every=...)``: a value at every tick, as the multi-granular paper assumes it.

Several values in a tick are averaged, and a tick without any has the value of the one before (Patroumpas and Sellis
2010, section IV-B). A partial never lists its ticks: a value that holds over many of them is a *run*, whose moments
have a closed form. Only the ends of a partial stay open, since its neighbours may have more events in the same tick:

::

    first .. next | runs that are closed | last ..
      3    3    3 |  5  5  2  2  2  4    |  6

Partials are combined in the order of time. A stream brings events late, but those of one tick make the same sum in any
order; so its panes are no longer than ticks, and stay so however old they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from panes.aggregates.component import (
    Component,
    Decoded,
    as_struct,
    call,
    fold_sql,
    numbers,
    parts_of,
    struct_sql,
    validity,
)
from panes.aggregates.moments import (
    mean_sql,
    mean_together_sql,
    merge_means,
    merge_products,
    no_spread,
    products_together_sql,
)
from panes.aggregates.operations import Array, Operations, State
from panes.timeline import SECOND

# The component behind ``trend``: how a value varies with time, and the line of least squares through it.
#
# The sums of equations (6) and (7) of the multi-granular paper (Patroumpas and Sellis 2010, section IV-B), centred:
# times are counted from an instant near the events, in whole µs, and the sums of squares and products from the means.
# A line through µs of the year 9000 is as exact as one through the first second of 1970.


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
class Lines(Component):
    """Moments of (time, value): the instant ``at`` that times are counted from, in µs, and what is centred there."""

    kind: ClassVar[str] = "line"

    @property
    def storage(self) -> pa.DataType:  # noqa: D102
        return _LINES

    def build_from(self, instant: str, start: str, only: str | None = None) -> str:  # noqa: D102
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

    def merge(self, stored: str) -> str:  # noqa: D102
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

    def lift(self, *values: pa.Array) -> pa.Array:  # noqa: D102
        time, y = values[0], values[1].cast(pa.float64(), safe=False)
        zero, one = np.zeros(len(y)), np.ones(len(y), dtype=np.int64)
        value = numbers(y, 0.0)
        spread = no_spread(value)
        missing = y.is_null().to_numpy(zero_copy_only=False)
        return _stored((one, micros_of(time), zero, value, zero, spread, spread), missing)

    def decode(self, stored: pa.Array) -> Decoded:  # noqa: D102
        valid = validity(stored)
        return Decoded(LINES, parts_of(stored, valid, LINES.identity), valid, _stored)


def fitted(stored: pa.Array, start: Array) -> pa.Array:
    """The lines through stored moments, with the fitted value where each answer's window starts."""
    return line_through(parts_of(stored, validity(stored), LINES.identity), start)


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


def fitted_sql(stored: str, start: str) -> str:
    """The same in Spark SQL, from the names of a stored column and of the start of windows in µs."""
    slope = f"({stored}.ty / {stored}.tt)"
    line = {
        "slope": f"{slope} * {SECOND}D",
        "intercept": f"{stored}.mean_y - {slope} * (({stored}.at - {start}) + {stored}.mean_t)",
        "r2": f"CASE WHEN {stored}.yy = 0D THEN 1D ELSE {slope} * ({stored}.ty / {stored}.yy) END",
    }
    return f"CASE WHEN {stored}.tt >= {_ONE_INSTANT}D THEN {struct_sql(line)} END"


def micros_of(time: pa.Array) -> Array:
    """Event times as µs since the epoch; zero where there is none."""
    whole = time.cast(pa.timestamp("us", time.type.tz)) if pa.types.is_timestamp(time.type) else time
    return numbers(whole.view(pa.int64())).astype(np.int64, copy=False)


def _stored(state: State, nulls: Array | None) -> pa.Array:
    return as_struct(state, nulls, _LINES)


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
class Series(Component):
    """A value per tick of ``every`` µs since the epoch: the first and the last tick as they are, the rest as moments.

    ``next`` is the tick where the run of the first one ends; where there is only one tick, first and last are the same.
    """

    every: int

    kind: ClassVar[str] = "series"
    in_jvm: ClassVar[bool] = False

    @property
    def ticks(self) -> int:  # noqa: D102
        return self.every

    @property
    def name(self) -> str:  # noqa: D102
        return f"series({', '.join(self.arguments)}, every={self.every})"

    @property
    def storage(self) -> pa.DataType:  # noqa: D102
        return _SERIES

    def lift(self, *values: pa.Array) -> pa.Array:  # noqa: D102
        tick, value = micros_of(values[0]) // self.every, values[1].cast(pa.float64(), safe=False)
        x, one = numbers(value, 0.0), np.ones(len(value), dtype=np.int64)
        closed = LINES.identities((one, one, x, x, x, x, x), len(value))
        missing = value.is_null().to_numpy(zero_copy_only=False)
        return _series_stored((tick, x, one, tick, tick, x, one, *closed), missing)

    def decode(self, stored: pa.Array) -> Decoded:  # noqa: D102
        valid = validity(stored)
        return Decoded(SERIES, parts_of(stored, valid, SERIES.identity), valid, _series_stored)

    def fitted(self, stored: pa.Array, start: Array, end: Array) -> pa.Array:
        """The lines through all ticks from the first one with a value to the end of each window."""
        state = parts_of(stored, validity(stored), SERIES.identity)
        first, first_sum, first_n, next_, last, last_sum, last_n = state[:_OPEN_PARTS]
        end_tick, several = end // self.every, first < last
        head = _run(first, np.where(several, next_, end_tick), first_sum, first_n)
        tail = _run(last, end_tick, last_sum, np.where(several, last_n, 0))
        whole = combine_lines(combine_lines(head, state[_OPEN_PARTS:]), tail)
        return line_through(whole, start // self.every, tick=self.every)


def _series_stored(state: State, nulls: Array | None) -> pa.Array:
    return as_struct(state, nulls, _SERIES)


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
