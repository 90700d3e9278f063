"""``var``, ``std`` and ``corr``: how values vary, each and together.

Stored are counts, means (or sums), and sums of squares and products of distances from the means. They are merged
pairwise (Chan, Golub and LeVeque 1979; Schubert and Gertz 2018), never from sums of squares, which would lose every
digit where the mean is large.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from panes.aggregates.accumulator import Start, order_key, values_of
from panes.aggregates.aggregate import Aggregate, Bound
from panes.aggregates.component import StructComponent, call, fold_sql, numbers, struct_sql
from panes.aggregates.operations import Array, Operations, State
from panes.aggregates.registry import arguments_of, constructor
from panes.aggregates.sums import exact_mean
from panes.errors import DeclarationError

# What a user writes


@constructor("pn.var('temp')", sql={"VAR_SAMP": {}, "VAR_POP": {"ddof": 0}})
def var(value: str, *, ddof: int = 1) -> Aggregate:
    """The variance: of the sample (``ddof=1``, Spark's ``variance``) or of the population (``ddof=0``).

    Examples
    --------
    >>> print(var("temp"), var("temp", ddof=0))
    var(temp) var_pop(temp)
    """
    return VarianceOf(arguments_of(value), root=False, ddof=_ddof(ddof))


@constructor("pn.std('temp')", sql={"STDDEV_SAMP": {}, "STDDEV": {}, "STDDEV_POP": {"ddof": 0}})
def std(value: str, *, ddof: int = 1) -> Aggregate:
    """The standard deviation: of the sample (``ddof=1``, Spark's ``stddev``) or of the population.

    Examples
    --------
    >>> print(std("temp"), std("temp", ddof=0))
    std(temp) std_pop(temp)
    """
    return VarianceOf(arguments_of(value), root=True, ddof=_ddof(ddof))


@constructor("pn.corr('price', 'volume')", sql="CORR", col1="x", col2="y")
def corr(x: str, y: str) -> Aggregate:
    """Pearson's correlation of two columns or expressions, as Spark's ``corr``; pairs with a null are skipped.

    Examples
    --------
    >>> print(corr("price", "volume"))
    corr(price, volume)
    """
    return CorrelationOf(arguments_of(x, y))


def _ddof(ddof: int) -> int:
    if ddof not in (0, 1):
        raise DeclarationError(f"ddof={ddof!r}: write 1 for the sample or 0 for the population.")
    return ddof


# The aggregates


@dataclass(frozen=True)
class VarianceOf(Aggregate):
    """``var(x)`` and ``std(x)``, of the sample (``ddof=1``) or of the population (``ddof=0``)."""

    root: bool = False
    ddof: int = 1

    name: ClassVar[str] = "var"
    weight: ClassVar[int] = 3

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:
        self._require_number(types[0])
        return Bound((Moments(arguments, types),), pa.float64(), self._lower, self._read)

    def native(self, arguments: tuple[str, ...]) -> str:
        return f"{'stddev' if self.root else 'var'}_{'samp' if self.ddof else 'pop'}({arguments[0]})"

    def _lower(self, moments: pa.Array) -> pa.Array:
        n, m2 = numbers(moments.field("n")), numbers(moments.field("m2"))
        missing = moments.is_null().to_numpy(zero_copy_only=False) | (n <= self.ddof)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = m2 / (n - self.ddof)
            values = np.sqrt(variance) if self.root else variance
        return pa.array(values, mask=missing)

    def _read(self, moments: str) -> str:
        variance = f"{moments}.m2 / ({moments}.n - {self.ddof})"
        return f"CASE WHEN {moments}.n > {self.ddof} THEN {f'sqrt({variance})' if self.root else variance} END"

    def reference(self, rows: Sequence[Any], **window: Any) -> Fraction | float | None:
        values = [float(x) for (x,) in rows]  # Spark computes in doubles, so a decimal or a BIGINT is rounded first.
        if len(values) <= self.ddof:
            return None
        if not all(map(math.isfinite, values)):
            return math.nan
        mean = Fraction(exact_mean(values))
        variance = sum(((Fraction(x) - mean) ** 2 for x in values), Fraction(0)) / (len(values) - self.ddof)
        return math.sqrt(variance) if self.root else variance

    def accumulator(self, *attributes: Any) -> Start:
        (value,) = attributes
        return partial(RunningVariance, value, self.ddof, self.root)

    def __str__(self) -> str:
        kind = ("std" if self.root else "var") + ("" if self.ddof else "_pop")
        return f"{kind}({self.arguments[0]})"


@dataclass(frozen=True)
class CorrelationOf(Aggregate):
    """``corr(x, y)``: Pearson's correlation of the pairs in which neither is null."""

    name: ClassVar[str] = "corr"
    weight: ClassVar[int] = 8

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:
        for type_ in types:
            self._require_number(type_)
        component = CoMoments(arguments, types)
        return Bound((component,), pa.float64(), lambda x: _correlation(component.state_of(x)), _correlation_sql)

    def native(self, arguments: tuple[str, ...]) -> str:
        return f"corr({', '.join(arguments)})"

    def reference(self, rows: Sequence[Any], **window: Any) -> float | None:
        pairs = [(float(x), float(y)) for x, y in rows]
        constant = any(len({order_key(pair[i]) for pair in pairs}) == 1 and math.isfinite(pairs[0][i]) for i in (0, 1))
        if len(pairs) < 2 or constant:
            return None
        if not all(math.isfinite(value) for pair in pairs for value in pair):
            return math.nan
        _, _, xx, yy, xy = exact_products(pairs)
        return math.sqrt(xy * xy / (xx * yy)) * (1 if xy > 0 else -1)


def _correlation(state: State) -> pa.Array:
    n, _, _, xx, yy, xy = state
    # As in Spark, what does not vary correlates with nothing. Roots before the product: it could be out of range.
    missing = (n < 2) | (xx == 0) | (yy == 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return pa.array(xy / (np.sqrt(xx) * np.sqrt(yy)), mask=missing)


def _correlation_sql(stored: str) -> str:
    varies = f"{stored}.n > 1 AND {stored}.xx <> 0D AND {stored}.yy <> 0D"
    return f"CASE WHEN {varies} THEN {stored}.xy / (sqrt({stored}.xx) * sqrt({stored}.yy)) END"


# The law of moments: how two bags are taken together, as arrays and as plain numbers


def movement(n_left: Any, n_right: Any, distance: Any) -> Any:
    """How far a mean moves towards that of a second bag, where neither bag is empty.

    Examples
    --------
    >>> movement(3, 1, 8.0)
    2.0
    """
    return distance * (n_right / (n_left + n_right))


def products_between(n_left: Any, n_right: Any, dx: Any, dy: Any) -> Any:
    """What two bags, whose means lie ``dx`` and ``dy`` apart, add to the sum of products of distances from the mean.

    Examples
    --------
    >>> products_between(1, 1, 4.0, 4.0)
    8.0
    """
    return dx * dy * (n_left * (n_right / (n_left + n_right)))


# What is stored for var and std


def combine_moments(left: State, right: State) -> State:
    """Moments of two disjoint bags taken together."""
    n_left, sum_left, m2_left = left
    n_right, sum_right, m2_right = right
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = sum_right / n_right - sum_left / n_left
    m2 = merge_products(n_left, m2_left, n_right, m2_right, distance, distance)
    return n_left + n_right, sum_left + sum_right, m2


MOMENTS = Operations(identity=(0, 0.0, 0.0), combine=combine_moments)

_MOMENTS = pa.struct([("n", pa.int64()), ("sum", pa.float64()), ("m2", pa.float64())])


@dataclass(frozen=True)
class Moments(StructComponent):
    """Count, sum and M2 as doubles; null when there were no values."""

    kind: ClassVar[str] = "moments"
    operations: ClassVar[Operations] = MOMENTS

    @property
    def storage(self) -> pa.DataType:
        return _MOMENTS

    def build(self, only: str | None = None) -> str:
        x = f"CAST({self.arguments[0]} AS DOUBLE)"
        n, total, variance = (call(function, x, only) for function in ("count", "sum", "var_pop"))
        return f"CASE WHEN {n} > 0 THEN {struct_sql({'n': n, 'sum': total, 'm2': f'{variance} * {n}'})} END"

    def merge(self, stored: str) -> str:
        distance, weight = "b.sum / b.n - a.sum / a.n", "CAST(a.n AS DOUBLE) * (CAST(b.n AS DOUBLE) / (a.n + b.n))"
        m2 = f"a.m2 + b.m2 + power({distance}, 2) * ({weight})"
        return fold_sql(stored, struct_sql({"n": "a.n + b.n", "sum": "a.sum + b.sum", "m2": m2}))

    def lift(self, *values: pa.Array) -> pa.Array:
        x = values[0].cast(pa.float64(), safe=False)  # a BIGINT beyond 2**53 is rounded, as in Spark
        one = pa.array(np.ones(len(x), dtype=np.int64))
        # NaN and infinity are infinitely far from any mean, their own included: Spark's variance is NaN then.
        spread = numbers(x, 0.0)
        with np.errstate(invalid="ignore"):
            zero = pa.array(spread - spread)
        return pa.StructArray.from_arrays([one, x, zero], fields=list(_MOMENTS), mask=x.is_null())


# What is stored for corr: means and not sums, since pieces of a constant then have exactly the same mean, so that a
# constant has no variance, as in Spark.


def merge_means(n_left: Array, mean_left: Array, n_right: Array, distance: Array) -> Array:
    """The mean of two bags, where that of the right one lies at a distance from that of the left one."""
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = mean_left + movement(n_left, n_right, distance)
    merged: Array = np.where(n_right == 0, mean_left, np.where(n_left == 0, mean_left + distance, moved))
    return merged


def merge_products(n_left: Array, left: Array, n_right: Array, right: Array, dx: Array, dy: Array) -> Array:
    """The sum of products of distances from the means, for two bags whose means lie ``dx`` and ``dy`` apart."""
    with np.errstate(divide="ignore", invalid="ignore"):
        between = products_between(n_left, n_right, dx, dy)
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
class CoMoments(StructComponent):
    """Co-moments of the pairs in which neither value is null; null when there were none."""

    kind: ClassVar[str] = "comoments"
    operations: ClassVar[Operations] = COMOMENTS

    @property
    def storage(self) -> pa.DataType:
        return _COMOMENTS

    def build(self, only: str | None = None) -> str:
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

    def merge(self, stored: str) -> str:
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

    def lift(self, *values: pa.Array) -> pa.Array:
        x, y = (array.cast(pa.float64(), safe=False) for array in values)  # as Spark rounds a BIGINT beyond 2**53
        missing = ~(x.is_valid().to_numpy(zero_copy_only=False) & y.is_valid().to_numpy(zero_copy_only=False))
        means = numbers(x, 0.0), numbers(y, 0.0)
        dx, dy = (no_spread(mean) for mean in means)
        one = np.ones(len(x), dtype=np.int64)
        return self.stored((one, *means, dx, dy, dx + dy), missing)


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


# Tuple by tuple


class RunningVariance:
    """The variance or its root, by Welford's and Chan's methods."""

    __slots__ = ("attribute", "ddof", "m2", "mean", "n", "root")

    def __init__(self, attribute: str, ddof: int, root: bool) -> None:
        self.attribute, self.ddof, self.root = attribute, ddof, root
        self.n, self.mean, self.m2 = 0, 0.0, 0.0

    def insert(self, item: Any) -> None:
        """Move the mean towards the value."""
        value = item[self.attribute]
        if value is not None:
            self.n += 1
            away = float(value) - self.mean
            self.mean += away / self.n
            self.m2 += away * (float(value) - self.mean)

    def insert_all(self, items: Sequence[Any]) -> None:
        """Move the mean towards each of the values."""
        n, mean, m2 = self.n, self.mean, self.m2
        for value in map(float, values_of(self.attribute, items)):
            n += 1
            away = value - mean
            mean += away / n
            m2 += away * (value - mean)
        self.n, self.mean, self.m2 = n, mean, m2

    def merge(self, other: RunningVariance) -> None:
        """Weigh both means."""
        if not other.n:
            return
        away = other.mean - self.mean
        self.m2 += other.m2 + products_between(self.n, other.n, away, away)
        self.mean += movement(self.n, other.n, away)
        self.n += other.n

    def value(self) -> float | None:
        """The variance; None of too few values."""
        if self.n <= self.ddof:
            return None
        variance = self.m2 / (self.n - self.ddof)
        return math.sqrt(variance) if self.root else variance


# The reference


def exact_products(pairs: Sequence[tuple[Any, Any]]) -> tuple[Fraction, ...]:
    """Means, and sums of squares and products of distances from them, in plain Python."""
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
