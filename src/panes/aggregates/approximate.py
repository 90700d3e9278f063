"""``approx_count_distinct``, ``approx_quantile`` and ``top``: about right, in bounded memory, out of sketches.

Spark has functions of these names, too, over other sketches with other answers and errors: none of them stands in for
these.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa

from panes.aggregates.aggregate import Aggregate, Bound
from panes.aggregates.operations import State
from panes.aggregates.ordering import is_ordered
from panes.aggregates.registry import arguments_of, constructor
from panes.aggregates.sketches import (
    Cardinality,
    Frequencies,
    Sketched,
    SketchedRanks,
    distinct_counts,
    library,
    most_frequent,
    opened,
    quantiles,
    top_type,
)
from panes.errors import DeclarationError

Read: TypeAlias = Callable[[list[Any]], pa.Array]


# What a user writes


@constructor(
    "pn.approx_count_distinct('user')",
    sql="APPROX_COUNT_DISTINCT",
    rsd="the error is set by lg_k=, from 4 to 26: 1.1 % for 12, and two more halve it.",
)
def approx_count_distinct(value: str, *, lg_k: int = 12) -> Aggregate:
    """About how many distinct values there are, in a few kilobytes per window.

    Nulls do not count, NaN is one value, and -0.0 is 0.0, as in Spark. Needs ``panes[sketches]``.

    Parameters
    ----------
    value
        A column or expression: number, string, binary, boolean, date or timestamp.
    lg_k
        The sketch has 2**lg_k bits in its rows, 4 to 26. The relative standard error is 0.69 / sqrt(2**lg_k), 1.1 %
        for 12; two more halve it, for four times the memory (at most 2.5 KB for 12).

    Examples
    --------
    >>> print(approx_count_distinct("user"))
    approx_count_distinct(user, lg_k=12)
    """
    library()
    return ApproxCountDistinctOf(arguments_of(value), lg_k=_whole("lg_k", lg_k, 4, 26))


@constructor(
    "pn.approx_quantile('latency', 0.99)",
    sql="APPROX_PERCENTILE",
    **dict.fromkeys(("p", "percentile", "percentage", "quantile"), "q"),
    accuracy="the error is set by k=, the size of the sketch: 1.33 % for 200, and twice as much halves it.",
)
def approx_quantile(value: str, q: float, *, k: int = 200) -> Aggregate:
    """About the value that the part ``q`` of all values does not exceed: 0.5 for the median, 1 for the greatest.

    The answer is one of the values, as a double. Nulls and NaN are skipped. Needs ``panes[sketches]``.

    Parameters
    ----------
    value
        A column or expression: a number.
    q
        From 0 to 1.
    k
        The size of the sketch, 8 to 65535. With 99 % probability the rank of the answer is within 1.33 % of ``q`` for
        200; twice the ``k`` halves that. Up to about ``k`` values, the answer is exact.

    Examples
    --------
    >>> print(approx_quantile("latency", 0.99))
    approx_quantile(latency, 0.99, k=200)
    >>> approx_quantile("latency", 99)
    Traceback (most recent call last):
    ...
    panes.errors.DeclarationError: approx_quantile(latency, q=99): a quantile is a number from 0 to 1. ...
    """
    library()
    if not isinstance(q, Real) or isinstance(q, bool) or not 0 <= q <= 1:
        raise DeclarationError(
            f"approx_quantile({value}, q={q!r}): a quantile is a number from 0 to 1. Write 0.99 for the 99th "
            "percentile."
        )
    return ApproxQuantileOf(arguments_of(value), q=float(q), k=_whole("k", k, 8, 65535))


@constructor("pn.top('page', 10)", sql="APPROX_TOP_K", **dict.fromkeys(("k", "limit", "count"), "n"))
def top(value: str, n: int = 10, *, lg_k: int = 10) -> Aggregate:
    """The most frequent values, with about how often each occurs: a list of ``item``, ``count`` and ``error``.

    The true count of an item is at most ``count`` and at least ``count - error``. Items are sorted by count, the
    largest first, then by item. Nulls do not count. Needs ``panes[sketches]``.

    Parameters
    ----------
    value
        A column or expression: number, string, binary, boolean, date or timestamp.
    n
        How many items.
    lg_k
        The sketch keeps up to 0.75 · 2**lg_k items, 3 to 26. Counts are exact as long as there are no more distinct
        values; beyond that, the error is below 3.5 / 2**lg_k of all events, 0.34 % for 10.

    Examples
    --------
    >>> print(top("page", 3))
    top(page, 3, lg_k=10)
    """
    library()
    capacity = 3 * 2 ** _whole("lg_k", lg_k, 3, 26) // 4
    if _whole("n", n, 1) > capacity:
        raise DeclarationError(
            f"top({value}, n={n}): a sketch of lg_k={lg_k} keeps {capacity} items. Ask for fewer, or write a larger "
            "lg_k."
        )
    return TopOf(arguments_of(value), n=int(n), lg_k=int(lg_k))


def _whole(what: str, value: int, least: int, most: int | None = None) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least or (most and value > most):
        allowed = f"from {least} to {most}" if most else f"of at least {least}"
        raise DeclarationError(f"{what}={value!r}: write a whole number {allowed}.")
    return int(value)


# The aggregates


@dataclass(frozen=True)
class _Approximate(Aggregate):
    """An aggregate that is read out of a sketch of one argument."""

    @property
    def in_jvm(self) -> bool:
        return False

    def native(self, arguments: tuple[str, ...]) -> None:
        return None

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:
        component, type_, read = self._sketch(arguments, types)

        def answer(state: State) -> pa.Array:
            return read(opened(state))

        return Bound((component,), type_, lambda x: answer(component.decode(x).state), answer=answer)

    @abstractmethod
    def _sketch(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> tuple[Sketched, pa.DataType, Read]:
        """The component, the type of answers, and what reads them out of sketches."""

    def _require_ordered(self, type_: pa.DataType) -> None:
        self._require(is_ordered(type_), type_, "a number, string, binary, boolean, date or timestamp")


@dataclass(frozen=True)
class ApproxCountDistinctOf(_Approximate):
    """``approx_count_distinct(x)``."""

    lg_k: int = 12

    name: ClassVar[str] = "approx_count_distinct"

    @property
    def idempotent(self) -> bool:
        return True

    def _sketch(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> tuple[Sketched, pa.DataType, Read]:
        self._require_ordered(types[0])
        return Cardinality(arguments, types, lg_k=self.lg_k), pa.int64(), distinct_counts

    def __str__(self) -> str:
        return f"{self.name}({self.arguments[0]}, lg_k={self.lg_k})"


@dataclass(frozen=True)
class ApproxQuantileOf(_Approximate):
    """``approx_quantile(x, q)``. Several of one argument are read out of one sketch."""

    q: float = 0.5
    k: int = 200

    name: ClassVar[str] = "approx_quantile"

    def _sketch(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> tuple[Sketched, pa.DataType, Read]:
        self._require_number(types[0])
        return SketchedRanks(arguments, types, k=self.k), pa.float64(), lambda sketches: quantiles(sketches, self.q)

    def __str__(self) -> str:
        return f"{self.name}({self.arguments[0]}, {self.q!r}, k={self.k})"


@dataclass(frozen=True)
class TopOf(_Approximate):
    """``top(x, n)``. Several of one argument are read out of one sketch."""

    n: int = 10
    lg_k: int = 10

    name: ClassVar[str] = "top"

    def _sketch(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> tuple[Sketched, pa.DataType, Read]:
        (type_,) = types
        self._require_ordered(type_)
        component = Frequencies(arguments, types, lg_k=self.lg_k)
        return component, top_type(type_), lambda sketches: most_frequent(sketches, self.n, type_)

    def __str__(self) -> str:
        return f"{self.name}({self.arguments[0]}, {self.n}, lg_k={self.lg_k})"
