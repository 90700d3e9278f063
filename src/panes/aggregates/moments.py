"""The component behind ``corr``: how two values vary, each and together.

Count, means, the sums of squared distances from the means, and the sum of products of distances, merged pairwise
(Chan, Golub and LeVeque 1979; Schubert and Gertz 2018), never from sums of squares and products. Means are kept and
not sums: pieces of a constant then have exactly the same mean, so that a constant has no variance, as in Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

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
from panes.aggregates.operations import Array, Operations, State

# The component behind ``var`` and ``std``: count, sum and M2, the sum of squared distances from the mean.
#
# Merged by the update of Chan, Golub and LeVeque (1979), which never subtracts large from large; a sum of squares
# would lose every digit when the mean is large.


def combine_moments(left: State, right: State) -> State:
    """Moments of two disjoint bags taken together."""
    n_left, sum_left, m2_left = left
    n_right, sum_right, m2_right = right
    n = n_left + n_right
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = sum_right / n_right - sum_left / n_left
        between = distance * distance * (n_left * (n_right / n))
    m2 = m2_left + m2_right + np.where((n_left == 0) | (n_right == 0), 0.0, between)
    return n, sum_left + sum_right, m2


MOMENTS = Operations(identity=(0, 0.0, 0.0), combine=combine_moments)

_MOMENTS = pa.struct([("n", pa.int64()), ("sum", pa.float64()), ("m2", pa.float64())])


@dataclass(frozen=True)
class Moments(Component):
    """Count, sum and M2 as doubles; null when there were no values."""

    kind: ClassVar[str] = "moments"

    @property
    def storage(self) -> pa.DataType:  # noqa: D102
        return _MOMENTS

    def build(self, only: str | None = None) -> str:  # noqa: D102
        x = f"CAST({self.arguments[0]} AS DOUBLE)"
        n, total, variance = (call(function, x, only) for function in ("count", "sum", "var_pop"))
        return f"CASE WHEN {n} > 0 THEN {struct_sql({'n': n, 'sum': total, 'm2': f'{variance} * {n}'})} END"

    def merge(self, stored: str) -> str:  # noqa: D102
        distance, weight = "b.sum / b.n - a.sum / a.n", "CAST(a.n AS DOUBLE) * (CAST(b.n AS DOUBLE) / (a.n + b.n))"
        m2 = f"a.m2 + b.m2 + power({distance}, 2) * ({weight})"
        return fold_sql(stored, struct_sql({"n": "a.n + b.n", "sum": "a.sum + b.sum", "m2": m2}))

    def lift(self, *values: pa.Array) -> pa.Array:  # noqa: D102
        x = values[0].cast(pa.float64(), safe=False)  # a BIGINT beyond 2**53 is rounded, as in Spark
        one = pa.array(np.ones(len(x), dtype=np.int64))
        # NaN and infinity are infinitely far from any mean, their own included: Spark's variance is NaN then.
        spread = numbers(x, 0.0)
        with np.errstate(invalid="ignore"):
            zero = pa.array(spread - spread)
        return pa.StructArray.from_arrays([one, x, zero], fields=list(_MOMENTS), mask=x.is_null())

    def decode(self, stored: pa.Array) -> Decoded:  # noqa: D102
        valid = validity(stored)
        return Decoded(MOMENTS, parts_of(stored, valid, MOMENTS.identity), valid, _restore)


def _restore(state: State, nulls: Array | None) -> pa.Array:
    return as_struct(state, nulls, _MOMENTS)


def merge_means(n_left: Array, mean_left: Array, n_right: Array, distance: Array) -> Array:
    """The mean of two bags, where that of the right one lies at a distance from that of the left one."""
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = mean_left + distance * (n_right / (n_left + n_right))
    merged: Array = np.where(n_right == 0, mean_left, np.where(n_left == 0, mean_left + distance, moved))
    return merged


def merge_products(n_left: Array, left: Array, n_right: Array, right: Array, dx: Array, dy: Array) -> Array:
    """The sum of products of distances from the means, for two bags whose means lie ``dx`` and ``dy`` apart."""
    with np.errstate(divide="ignore", invalid="ignore"):
        between = dx * dy * (n_left * (n_right / (n_left + n_right)))
    merged: Array = left + right + np.where((n_left == 0) | (n_right == 0), 0.0, between)
    return merged


def combine_comoments(left: State, right: State) -> State:
    """Co-moments of two disjoint bags of pairs taken together."""
    n_left, x_left, y_left, xx_left, yy_left, xy_left = left
    n_right, x_right, y_right, xx_right, yy_right, xy_right = right
    with np.errstate(invalid="ignore"):
        dx, dy = x_right - x_left, y_right - y_left
    return (
        n_left + n_right,
        merge_means(n_left, x_left, n_right, dx),
        merge_means(n_left, y_left, n_right, dy),
        merge_products(n_left, xx_left, n_right, xx_right, dx, dx),
        merge_products(n_left, yy_left, n_right, yy_right, dy, dy),
        merge_products(n_left, xy_left, n_right, xy_right, dx, dy),
    )


COMOMENTS = Operations(identity=(0, 0.0, 0.0, 0.0, 0.0, 0.0), combine=combine_comoments)

_COMOMENTS = pa.struct([("n", pa.int64()), *((name, pa.float64()) for name in ("mean_x", "mean_y", "xx", "yy", "xy"))])


@dataclass(frozen=True)
class CoMoments(Component):
    """Co-moments of the pairs in which neither value is null; null when there were none."""

    kind: ClassVar[str] = "comoments"

    @property
    def storage(self) -> pa.DataType:  # noqa: D102
        return _COMOMENTS

    def build(self, only: str | None = None) -> str:  # noqa: D102
        x, y = (f"CAST({argument} AS DOUBLE)" for argument in self.arguments)
        pairs = both_present(x, y, only)
        n = call("count", "1", pairs)
        parts = {
            "n": n,
            "mean_x": mean_sql(x, pairs),
            "mean_y": mean_sql(y, pairs),
            "xx": f"{call('var_pop', x, pairs)} * {n}",
            "yy": f"{call('var_pop', y, pairs)} * {n}",
            "xy": f"{call('covar_pop', f'{x}, {y}', pairs)} * {n}",
        }
        return f"CASE WHEN {n} > 0 THEN {struct_sql(parts)} END"

    def merge(self, stored: str) -> str:  # noqa: D102
        dx, dy = "(b.mean_x - a.mean_x)", "(b.mean_y - a.mean_y)"
        together = {
            "n": "a.n + b.n",
            "mean_x": mean_together_sql("mean_x", dx),
            "mean_y": mean_together_sql("mean_y", dy),
            "xx": products_together_sql("xx", dx, dx),
            "yy": products_together_sql("yy", dy, dy),
            "xy": products_together_sql("xy", dx, dy),
        }
        return fold_sql(stored, struct_sql(together))

    def lift(self, *values: pa.Array) -> pa.Array:  # noqa: D102
        x, y = (array.cast(pa.float64(), safe=False) for array in values)  # as Spark rounds a BIGINT beyond 2**53
        missing = ~(x.is_valid().to_numpy(zero_copy_only=False) & y.is_valid().to_numpy(zero_copy_only=False))
        means = numbers(x, 0.0), numbers(y, 0.0)
        dx, dy = (no_spread(mean) for mean in means)
        one = np.ones(len(x), dtype=np.int64)
        return _comoments_stored((one, *means, dx, dy, dx + dy), missing)

    def decode(self, stored: pa.Array) -> Decoded:  # noqa: D102
        valid = validity(stored)
        return Decoded(COMOMENTS, parts_of(stored, valid, COMOMENTS.identity), valid, _comoments_stored)


def _comoments_stored(state: State, nulls: Array | None) -> pa.Array:
    return as_struct(state, nulls, _COMOMENTS)


def no_spread(values: Array) -> Array:
    """How far single values lie from their own mean: NaN and infinity are infinitely far from any, as in Spark."""
    with np.errstate(invalid="ignore"):
        spread: Array = values - values
    return spread


def both_present(x: str, y: str, only: str | None) -> str:
    """SQL for the events in which neither of two values is null, among those that fulfil a condition."""
    pairs = f"{x} IS NOT NULL AND {y} IS NOT NULL"
    return pairs if only is None else f"{pairs} AND {only}"


def mean_sql(x: str, only: str) -> str:
    """SQL for a mean that is exact for a constant, which Spark's quotient of sum and count need not be."""
    return f"CASE WHEN {call('var_pop', x, only)} = 0D THEN {call('max', x, only)} ELSE {call('avg', x, only)} END"


def mean_together_sql(mean: str, distance: str) -> str:
    """SQL for the mean of two partials ``a`` and ``b``."""
    return f"a.{mean} + {distance} * (CAST(b.n AS DOUBLE) / (a.n + b.n))"


def products_together_sql(name: str, dx: str, dy: str) -> str:
    """SQL for the sum of products of two partials ``a`` and ``b``."""
    return f"a.{name} + b.{name} + {dx} * {dy} * (CAST(a.n AS DOUBLE) * (CAST(b.n AS DOUBLE) / (a.n + b.n)))"
