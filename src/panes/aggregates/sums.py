"""``count``, ``sum`` and ``mean``.

Integer and decimal sums are exact, and groups: a span is the difference of two running sums. Float sums are only ever
added, since a difference of running sums can cancel.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, reduce
from operator import add
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from panes.aggregates.accumulator import Start, values_of
from panes.aggregates.aggregate import Aggregate, Bound
from panes.aggregates.component import Component, Decoded, call, numbers, validity, with_nulls
from panes.aggregates.integers import MACHINE, decimals, divide_half_up, exact_sums, unscaled, within_bigint
from panes.aggregates.operations import Array, State, from_ufunc
from panes.aggregates.registry import arguments_of, constructor
from panes.errors import AnswerOverflowError, DeclarationError

# What a user writes


@constructor("pn.count(), or pn.count('temp')", sql="COUNT")
def count(value: str | None = None) -> Aggregate:
    """How many events, or how many where ``value`` is not null.

    Examples
    --------
    >>> print(count(), count("temp"))
    count() count(temp)
    """
    if value == "*":
        raise DeclarationError("pn.count('*') is written pn.count() here: how many events there are.")
    return CountOf(("1",) if value is None else arguments_of(value))


@constructor("pn.sum('amount')", sql="SUM")
def sum(value: str) -> Aggregate:
    """The sum of a column or expression, with the type of Spark's ``sum``.

    Examples
    --------
    >>> print(sum("amount"), sum("price * qty"))
    sum(amount) sum(price * qty)
    """
    return SumOf(arguments_of(value))


@constructor("pn.mean('temp')", sql="AVG")
def mean(value: str) -> Aggregate:
    """The arithmetic mean, with the type of Spark's ``avg``.

    Examples
    --------
    >>> print(mean("temp"))
    mean(temp)
    """
    return MeanOf(arguments_of(value))


# The aggregates


@dataclass(frozen=True)
class CountOf(Aggregate):
    """``count()`` of events, or of the events where an argument is not null."""

    name: ClassVar[str] = "count"
    ages: ClassVar[bool] = True
    indexed: ClassVar[Literal["count"]] = "count"

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:
        return Bound((Count(arguments, types),), pa.int64(), lambda n: n, lambda n: n)

    def native(self, arguments: tuple[str, ...]) -> str:
        return f"count({arguments[0]})"

    def reference(self, rows: Sequence[Any], **window: Any) -> int:
        return len(rows)

    def accumulator(self, *attributes: Any) -> Start:
        return partial(RunningCount, *attributes) if attributes else RunningTupleCount

    def __str__(self) -> str:
        return "count()" if self.arguments == ("1",) else super().__str__()


@dataclass(frozen=True)
class SumOf(Aggregate):
    """``sum(x)``."""

    name: ClassVar[str] = "sum"
    ages: ClassVar[bool] = True
    indexed: ClassVar[Literal["sum"]] = "sum"

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:
        self._require_number(types[0])
        component = Sum(arguments, types)
        return Bound((component,), component.storage, lambda total: total, lambda total: total)

    def native(self, arguments: tuple[str, ...]) -> str:
        return f"sum({arguments[0]})"

    def reference(self, rows: Sequence[Any], **window: Any) -> Fraction | float | None:
        return _exact_sum([x for (x,) in rows]) if rows else None

    def accumulator(self, *attributes: Any) -> Start:
        return partial(RunningSum, *attributes)


@dataclass(frozen=True)
class MeanOf(Aggregate):
    """``mean(x)``: a double, or for decimals Spark's wider decimal."""

    name: ClassVar[str] = "mean"
    weight: ClassVar[int] = 2
    ages: ClassVar[bool] = True

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:
        (argument,), (type_,) = arguments, types
        self._require_number(type_)
        count = Count(arguments, types)
        if pa.types.is_decimal(type_):
            answer = mean_type(type_)
            return Bound(
                (Sum(arguments, types), count),
                answer,
                lambda total, n: _decimal_mean(total, n, answer, str(self)),
                _decimal_mean_sql(type_, answer),
            )
        if type_ in (pa.int64(), pa.uint64()):
            # Spark averages BIGINT in doubles, so its mean has no overflow; nor has ours.
            argument, type_ = f"CAST({argument} AS DOUBLE)", pa.float64()
        return Bound((Sum((argument,), (type_,)), count), pa.float64(), _mean, _mean_sql)

    def native(self, arguments: tuple[str, ...]) -> str:
        return f"avg({arguments[0]})"

    def reference(self, rows: Sequence[Any], **window: Any) -> Fraction | float | None:
        return exact_mean([x for (x,) in rows]) if rows else None

    def accumulator(self, *attributes: Any) -> Start:
        return partial(RunningMean, *attributes)


def mean_type(type_: pa.DataType) -> pa.DataType:
    """The type of Spark's ``avg`` over a decimal.

    Examples
    --------
    >>> mean_type(pa.decimal128(10, 2)), mean_type(pa.decimal128(38, 10))
    (Decimal128Type(decimal128(14, 6)), Decimal128Type(decimal128(38, 14)))
    """
    return pa.decimal128(min(38, type_.precision + 4), min(38, type_.scale + 4))


def _mean(total: pa.Array, count: pa.Array) -> pa.Array:
    n = numbers(count)
    with np.errstate(divide="ignore", invalid="ignore"):
        return pa.array(numbers(total) / n, mask=n == 0)


def _mean_sql(total: str, count: str) -> str:
    return f"CASE WHEN {count} > 0 THEN CAST({total} AS DOUBLE) / {count} END"


def _decimal_mean(total: pa.Array, count: pa.Array, answer: pa.DataType, what: str) -> pa.Array:
    n = numbers(count)
    shift = 10 ** (answer.scale - total.type.scale)
    values = divide_half_up(unscaled(total).astype(object) * shift, np.where(n == 0, 1, n))
    return decimals(values, n == 0, answer, what)


def _decimal_mean_sql(type_: pa.DataType, answer: pa.DataType) -> Callable[[str, str], str] | None:
    """The same in Spark SQL, where its division of a sum by a count keeps digits enough.

    Spark cuts the scale of a quotient where 38 digits do not hold all of it. What is left is rounded again to the scale
    of the answer, which is the same as rounding once if it has twelve digits more: for fewer than 10¹² values.
    """
    whole = min(38, type_.precision + 10) - type_.scale
    scale = type_.scale + 21
    if whole + scale > 38:
        scale = max(38 - whole, 6)
    if scale < answer.scale + 12:
        return None
    return lambda total, n: (
        f"CASE WHEN {n} > 0 THEN CAST({total} / {n} AS DECIMAL({answer.precision}, {answer.scale})) END"
    )


# What is stored


_OVERFLOW = "a sum of decimals does not fit its type; cast the argument to fewer digits, or to DOUBLE"

FLOATING = from_ufunc(np.add, 0.0)


def sum_type(type_: pa.DataType) -> pa.DataType:
    """The type of Spark's ``sum`` over a type.

    Examples
    --------
    >>> sum_type(pa.int32()), sum_type(pa.float32()), sum_type(pa.decimal128(10, 2))
    (DataType(int64), DataType(double), Decimal128Type(decimal128(20, 2)))
    """
    if pa.types.is_decimal(type_):
        return pa.decimal128(min(38, type_.precision + 10), type_.scale)
    return pa.int64() if pa.types.is_integer(type_) else pa.float64()


@dataclass(frozen=True)
class Sum(Component):
    """The sum of the values; null when there were none."""

    kind: ClassVar[str] = "sum"

    @property
    def storage(self) -> pa.DataType:
        return sum_type(self.types[0])

    def build(self, only: str | None = None) -> str:
        total = call("sum", self.arguments[0], only)
        if pa.types.is_decimal(self.storage):
            return _or_overflow(total, call("count", self.arguments[0], only))
        return total

    def merge(self, stored: str) -> str:
        if pa.types.is_decimal(self.storage):
            # Summing decimals widens them by ten digits each time; partials keep the width of the answer.
            total = f"CAST(sum({stored}) AS DECIMAL({self.storage.precision}, {self.storage.scale}))"
            return _or_overflow(total, f"count({stored})")
        return f"sum({stored})"

    def lift(self, *values: pa.Array) -> pa.Array:
        return values[0].cast(self.storage)

    def decode(self, stored: pa.Array) -> Decoded:
        if pa.types.is_floating(self.storage):
            return Decoded(FLOATING, (numbers(stored, 0.0),), validity(stored), self._restore_float)
        whole = unscaled(stored) if pa.types.is_decimal(self.storage) else numbers(stored)
        return Decoded(MACHINE, (exact_sums(whole),), validity(stored), self._restore_exact)

    def _restore_float(self, state: State, nulls: Array | None) -> pa.Array:
        return with_nulls(state[0], nulls, self.storage)

    def _restore_exact(self, state: State, nulls: Array | None) -> pa.Array:
        if pa.types.is_decimal(self.storage):
            return decimals(state[0], nulls, self.storage, self.name)
        return with_nulls(within_bigint(state[0], self.name), nulls, self.storage)


def _or_overflow(total: str, count: str) -> str:
    """A sum of decimals, or an error: without ANSI mode an overflow is null, which passes for a pane without values."""
    return f"CASE WHEN {count} > 0 AND {total} IS NULL THEN raise_error('{_OVERFLOW}') ELSE {total} END"


@dataclass(frozen=True)
class Count(Component):
    """How many events had a value. No column is long enough for a count to overflow 64 bits."""

    kind: ClassVar[str] = "count"

    @property
    def storage(self) -> pa.DataType:
        return pa.int64()

    def build(self, only: str | None = None) -> str:
        return call("count", self.arguments[0], only)

    def merge(self, stored: str) -> str:
        return f"sum({stored})"

    def lift(self, *values: pa.Array) -> pa.Array:
        return values[0].is_valid().cast(pa.int64())

    def decode(self, stored: pa.Array) -> Decoded:
        return Decoded(MACHINE, (numbers(stored).astype(np.int64, copy=False),), None, _restore)


def _restore(state: State, nulls: Array | None) -> pa.Array:
    # Where there was no event at all, there were none with a value.
    return pa.array(state[0], type=pa.int64())


# Tuple by tuple


class RunningTupleCount:
    """How many tuples."""

    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0

    def insert(self, item: Any) -> None:
        """Count it."""
        self.n += 1

    def insert_all(self, items: Sequence[Any]) -> None:
        """Count them."""
        self.n += len(items)

    def merge(self, other: RunningTupleCount) -> None:
        """Add."""
        self.n += other.n

    def value(self) -> int:
        """The count."""
        return self.n


class RunningCount(RunningTupleCount):
    """How many tuples have a value."""

    __slots__ = ("attribute",)

    def __init__(self, attribute: str) -> None:
        super().__init__()
        self.attribute = attribute

    def insert(self, item: Any) -> None:
        """Count it, unless it has none."""
        if item[self.attribute] is not None:
            self.n += 1

    def insert_all(self, items: Sequence[Any]) -> None:
        """Count those that have one."""
        self.n += len(values_of(self.attribute, items))


class RunningSum:
    """The sum of values and how many there are."""

    __slots__ = ("attribute", "n", "total")

    def __init__(self, attribute: str) -> None:
        self.attribute = attribute
        self.n = 0
        self.total: Any = 0

    def insert(self, item: Any) -> None:
        """Add."""
        value = item[self.attribute]
        if value is not None:
            self.total += value
            self.n += 1

    def insert_all(self, items: Sequence[Any]) -> None:
        """Add them, one after another: ``sum`` may round floats in another way."""
        values = values_of(self.attribute, items)
        self.total = reduce(add, values, self.total)
        self.n += len(values)

    def merge(self, other: RunningSum) -> None:
        """Add."""
        self.total += other.total
        self.n += other.n

    def value(self) -> Any:
        """The sum; None of nothing."""
        if not self.n:
            return None
        if isinstance(self.total, int) and not -(2**63) <= self.total < 2**63:
            raise AnswerOverflowError(
                f"sum({self.attribute}) is {self.total}, more than 64 bits hold. Sum it as a float or a Decimal."
            )
        return self.total


class RunningMean(RunningSum):
    """The arithmetic mean."""

    __slots__ = ()

    def value(self) -> Any:
        """The mean; None of nothing."""
        return self.total / self.n if self.n else None


# The reference


def _exact_sum(values: list[Any]) -> Fraction | float:
    """The sum, in plain Python."""
    if isinstance(values[0], float):
        return float_sum(values)
    return builtins.sum(map(Fraction, values), Fraction(0))


def exact_mean(values: list[Any]) -> Fraction | float:
    """The mean, in plain Python."""
    if not all(map(math.isfinite, values)):
        return float_sum(values)
    return builtins.sum(map(Fraction, values), Fraction(0)) / len(values)


def float_sum(values: list[float]) -> float:
    """The sum of floats, rounded once."""
    if all(map(math.isfinite, values)):
        return math.fsum(values)
    infinities = {x for x in values if not math.isfinite(x)}
    return infinities.pop() if len(infinities) == 1 else math.nan
