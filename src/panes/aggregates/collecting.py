"""Aggregates that look at the values themselves: distinct ones, quantiles, items that recur."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pyarrow as pa

from panes.aggregates.aggregates import Aggregate, Bound, brief, is_number
from panes.aggregates.component import as_doubles, numbers
from panes.aggregates.operations import Array
from panes.aggregates.ordering import is_ordered
from panes.aggregates.values import Bags, SortedBags, Values

_SIDES = ("numerator", "denominator")
_ORDER = "a type with an order (number, string, date, timestamp, ...)"


@dataclass(frozen=True)
class _Collecting(Aggregate):
    """An aggregate over the values of one argument."""

    collects: ClassVar[bool] = True

    @property
    def in_jvm(self) -> bool:
        return False

    @property
    def in_spark(self) -> bool:
        # Asked for by name only: nothing is known about what it costs there.
        return False

    def _values(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> tuple[Values]:
        self._require(is_ordered(types[0]), types[0], _ORDER)
        return (Values(arguments, types),)


@dataclass(frozen=True)
class CountDistinctOf(_Collecting):
    """``count_distinct(x)``: how many different values, exactly."""

    name: ClassVar[str] = "count_distinct"

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:  # noqa: D102
        return Bound(self._values(arguments, types), pa.int64(), lambda bags: pa.array(bags.distinct_counts()))

    def native(self, arguments: tuple[str, ...]) -> str:  # noqa: D102
        return f"count(DISTINCT {arguments[0]})"


@dataclass(frozen=True)
class DistinctOf(_Collecting):
    """``distinct(x)``: the different values, in order."""

    name: ClassVar[str] = "distinct"

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:  # noqa: D102
        type_ = pa.list_(types[0])
        return Bound(self._values(arguments, types), type_, lambda bags: bags.distinct().cast(type_))

    def native(self, arguments: tuple[str, ...]) -> str:  # noqa: D102
        return f"array_sort(collect_set({arguments[0]}))"


@dataclass(frozen=True)
class QuantileOf(_Collecting):
    """``quantile(x, q)``: between the two nearest values as Spark's ``percentile``, or one of the values."""

    q: float = 0.5
    element: bool = False

    name: ClassVar[str] = "quantile"

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:  # noqa: D102
        if not self.element:
            self._require(is_number(types[0]), types[0], "a number (method='element' takes every type with an order)")
        type_ = types[0] if self.element else pa.float64()
        return Bound(self._values(arguments, types), type_, lambda bags: self.read(bags, self.q))

    def read(self, bags: SortedBags, q: Array | float) -> pa.Array:
        """The quantiles of some bags: the same part of the whole for all, or one for each."""
        return self._element(bags, q) if self.element else self._between(bags, q)

    def native(self, arguments: tuple[str, ...]) -> str | None:  # noqa: D102
        return None if self.element else f"percentile({arguments[0]}, {self.q!r})"

    def _element(self, bags: SortedBags, q: Array | float) -> pa.Array:
        # The place ⌊φN⌋, counted from 1; by whole numbers, since 0.29 · 100 is 28.999999999999996 otherwise.
        sizes = bags.sizes()
        different, which = np.unique(np.broadcast_to(q, sizes.shape), return_inverse=True)
        parts = [Fraction(repr(part)) for part in different.tolist()]
        most = max((part.numerator for part in parts), default=0)
        kind = object if int(sizes.max(initial=0)) * most >= 2**63 else np.int64
        above, below = (np.array([getattr(part, side) for part in parts], kind)[which] for side in _SIDES)
        place = (sizes * above // below).astype(np.int64)
        (found,) = bags.at(np.maximum(place, 1) - 1)
        return found

    def _between(self, bags: SortedBags, q: Array | float) -> pa.Array:
        sizes = bags.sizes()
        place = (sizes - 1).clip(0) * q
        low, high = np.floor(place), np.ceil(place)
        nearest = bags.at(low.astype(np.int64), high.astype(np.int64))
        below, above = (numbers(as_doubles(values), 0.0) for values in nearest)
        missing = sizes == 0
        with np.errstate(invalid="ignore"):
            between = (high - place) * below + (place - low) * above
        return pa.array(np.where((low == high) | (below == above), below, between), mask=missing)

    def __str__(self) -> str:
        return f"quantile({self.arguments[0]}, {brief(self.q)}{', element' if self.element else ''})"


@dataclass(frozen=True)
class RecurringOf(_Collecting):
    """``recurring(x)``: the values that occur in every level of a nested window, each without the levels below it."""

    ranked: bool = False

    name: ClassVar[str] = "recurring"
    levels: ClassVar[bool] = True

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:  # noqa: D102
        item = pa.struct([("item", types[0]), ("n", pa.int64())]) if self.ranked else types[0]
        return Bound(
            self._values(arguments, types), pa.list_(item), lambda levels: self._lower(levels, item), by_level=True
        )

    def native(self, arguments: tuple[str, ...]) -> None:  # noqa: D102
        return None

    def _lower(self, levels: list[Bags], item: pa.DataType) -> pa.Array:
        finest, *coarser = levels
        bag, code, n = finest.in_all(tuple(coarser))
        if self.ranked:
            order = np.lexsort((code, -n, bag))
            bag, code, n = bag[order], code[order], n[order]
        values = finest.values_of(code).cast(item.field("item").type if self.ranked else item)
        if self.ranked:
            values = pa.StructArray.from_arrays([values, pa.array(n)], fields=list(item))
        offsets = np.zeros(len(finest.sizes()) + 1, np.int32)
        np.cumsum(np.bincount(bag, minlength=len(offsets) - 1), out=offsets[1:])
        return pa.ListArray.from_arrays(pa.array(offsets), values, type=pa.list_(item))

    def __str__(self) -> str:
        return f"recurring({self.arguments[0]}{', ranked' if self.ranked else ''})"
