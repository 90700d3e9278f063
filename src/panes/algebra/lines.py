"""The component behind ``trend``: how a value varies with time, and the line of least squares through it.

The sums of equations (6) and (7) of the multi-granular paper (Patroumpas and Sellis 2010, section IV-B), centred: times
are counted from an instant near the events, in whole µs, and the sums of squares and products from the means. A line
through µs of the year 9000 is as exact as one through the first second of 1970.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from panes.algebra.comoments import (
    mean_sql,
    mean_together_sql,
    merge_means,
    merge_products,
    no_spread,
    products_together_sql,
)
from panes.algebra.component import Component, Decoded, call, numbers, validity
from panes.algebra.operations import Array, Operations, State
from panes.algebra.structs import as_struct, fold_sql, parts_of, struct_sql
from panes.timeline import SECOND

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

_STORAGE = pa.struct(
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
        return _STORAGE

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
    return as_struct(state, nulls, _STORAGE)
