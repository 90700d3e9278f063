"""``min`` and ``max`` of every ordered type, in Spark's order: NaN is largest."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from panes.aggregates.accumulator import Accumulator, Start, holds_nan, order_key, values_of
from panes.aggregates.aggregate import Aggregate, Bound
from panes.aggregates.component import Component, Decoded, call, validity
from panes.aggregates.operations import Operations, from_ufunc
from panes.aggregates.ordering import GREATEST, LEAST, Codes, codes, is_integer_like, is_ordered, lasting_codes
from panes.aggregates.registry import arguments_of, constructor

# What a user writes


@constructor("pn.min('temp')", sql="MIN")
def min(value: str) -> Aggregate:
    """The smallest value, of any ordered type; NaN is larger than every number, as in Spark.

    Examples
    --------
    >>> print(min("temp"))
    min(temp)
    """
    return MinOf(arguments_of(value))


@constructor("pn.max('temp')", sql="MAX")
def max(value: str) -> Aggregate:
    """The largest value, of any ordered type; NaN is larger than every number, as in Spark.

    Examples
    --------
    >>> print(max("temp"))
    max(temp)
    """
    return MaxOf(arguments_of(value))


# What is stored


_INT64 = np.iinfo(np.int64)

SMALLEST: Operations = from_ufunc(np.minimum, _INT64.max, idempotent=True)
LARGEST: Operations = from_ufunc(np.maximum, _INT64.min, idempotent=True)
# fmin passes NaN over, maximum lets it through: both as in an order where NaN is largest.
SMALLEST_FLOAT: Operations = from_ufunc(np.fmin, np.nan, idempotent=True)
LARGEST_FLOAT: Operations = from_ufunc(np.maximum, -np.inf, idempotent=True)
SMALLEST_OBJECT: Operations = from_ufunc(np.minimum, GREATEST, idempotent=True)
LARGEST_OBJECT: Operations = from_ufunc(np.maximum, LEAST, idempotent=True)


@dataclass(frozen=True)
class _Extremum(Component):
    integers: ClassVar[Operations]
    floats: ClassVar[Operations]
    objects: ClassVar[Operations]

    @property
    def storage(self) -> pa.DataType:
        return self.types[0]

    def build(self, only: str | None = None) -> str:
        return call(self.kind, self.arguments[0], only)

    def merge(self, stored: str) -> str:
        return f"{self.kind}({stored})"

    @property
    def idempotent(self) -> bool:
        return True

    def lift(self, *values: pa.Array) -> pa.Array:
        return values[0]

    def decode(self, stored: pa.Array) -> Decoded:
        coded = codes(stored)
        return self._decoded(stored, coded, self.floats if coded.values.dtype.kind == "f" else self.integers)

    def decode_lasting(self, stored: pa.Array) -> Decoded:
        if pa.types.is_floating(stored.type) or is_integer_like(stored.type):
            return self.decode(stored)
        return self._decoded(stored, lasting_codes(stored), self.objects)

    def _decoded(self, stored: pa.Array, coded: Codes, operations: Operations) -> Decoded:
        values, valid = coded.values, validity(stored)
        if valid is not None:
            values = np.where(valid, values, np.array(operations.identity[0], dtype=values.dtype))
        return Decoded(operations, (values,), valid, lambda state, nulls: coded.restore(state[0], nulls))


@dataclass(frozen=True)
class Min(_Extremum):
    """The smallest value; null when there were none."""

    kind: ClassVar[str] = "min"
    integers: ClassVar[Operations] = SMALLEST
    floats: ClassVar[Operations] = SMALLEST_FLOAT
    objects: ClassVar[Operations] = SMALLEST_OBJECT


@dataclass(frozen=True)
class Max(_Extremum):
    """The largest value; null when there were none."""

    kind: ClassVar[str] = "max"
    integers: ClassVar[Operations] = LARGEST
    floats: ClassVar[Operations] = LARGEST_FLOAT
    objects: ClassVar[Operations] = LARGEST_OBJECT


# Tuple by tuple


class RunningMin:
    """The smallest value."""

    __slots__ = ("attribute", "best")

    def __init__(self, attribute: str) -> None:
        self.attribute = attribute
        self.best: Any = None

    def insert(self, item: Any) -> None:
        """Compare."""
        self._offer(item[self.attribute])

    def insert_all(self, items: Sequence[Any]) -> None:
        """Compare with the best of them."""
        values = values_of(self.attribute, items)
        if values:
            self._offer(self._best(values))

    def _best(self, values: list[Any]) -> Any:
        # NaN is smaller than nothing, so it stays only where it is the first.
        smallest = builtins.min(values)
        return smallest if smallest == smallest else builtins.min(values, key=order_key)

    def merge(self, other: RunningMin) -> None:
        """Compare."""
        self._offer(other.best)

    def _offer(self, value: Any) -> None:
        if value is not None and (self.best is None or value < self.best or self.best != self.best):
            self.best = value

    def value(self) -> Any:
        """The smallest so far."""
        return self.best


class RunningMax(RunningMin):
    """The largest value."""

    __slots__ = ()

    def _best(self, values: list[Any]) -> Any:
        return builtins.max(values, key=order_key) if holds_nan(values) else builtins.max(values)

    def _offer(self, value: Any) -> None:
        if value is not None and (self.best is None or value > self.best or value != value):
            self.best = value


# The aggregates


@dataclass(frozen=True)
class _ExtremumOf(Aggregate):
    component: ClassVar[type[Component]]
    running: ClassVar[type[Accumulator]]
    least_or_greatest: ClassVar[Callable[..., Any]]

    @property
    def idempotent(self) -> bool:
        return True

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:
        self._require(is_ordered(types[0]), types[0], "a type with an order (number, string, date, timestamp, ...)")
        return Bound((self.component(arguments, types),), types[0], lambda x: x, lambda x: x)

    def native(self, arguments: tuple[str, ...]) -> str:
        return f"{self.name}({arguments[0]})"

    def reference(self, rows: Sequence[Any], **window: Any) -> Any:
        return self.least_or_greatest((x for (x,) in rows), key=order_key, default=None)

    def accumulator(self, *attributes: Any) -> Start:
        return partial(self.running, *attributes)


@dataclass(frozen=True)
class MinOf(_ExtremumOf):
    """``min(x)``."""

    name: ClassVar[str] = "min"
    component: ClassVar[type[Component]] = Min
    running: ClassVar[type[Accumulator]] = RunningMin
    least_or_greatest: ClassVar[Callable[..., Any]] = staticmethod(builtins.min)
    indexed: ClassVar[Literal["min"]] = "min"


@dataclass(frozen=True)
class MaxOf(_ExtremumOf):
    """``max(x)``."""

    name: ClassVar[str] = "max"
    component: ClassVar[type[Component]] = Max
    running: ClassVar[type[Accumulator]] = RunningMax
    least_or_greatest: ClassVar[Callable[..., Any]] = staticmethod(builtins.max)
    indexed: ClassVar[Literal["max"]] = "max"
