"""``count_distinct``, ``distinct``, ``quantile`` and ``recurring``: exact, and so over the values themselves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from panes.aggregates.accumulator import holds_nan, order_key
from panes.aggregates.aggregate import Aggregate, Bound, brief, is_number
from panes.aggregates.bags import Bags, SortedBags, Values
from panes.aggregates.component import as_doubles, numbers
from panes.aggregates.operations import Array
from panes.aggregates.ordering import is_ordered
from panes.aggregates.registry import arguments_of, constructor
from panes.errors import DeclarationError

_SIDES = ("numerator", "denominator")
_ORDER = "a type with an order (number, string, date, timestamp, ...)"


@constructor("pn.count_distinct('user')", sql="COUNT DISTINCT")
def count_distinct(value: str) -> Aggregate:
    """How many different values there are, exactly, as Spark's ``count(DISTINCT ...)``.

    A stream keeps every different value of each granule; ``approx_count_distinct`` keeps a sketch.

    Examples
    --------
    >>> print(count_distinct("user"))
    count_distinct(user)
    """
    return CountDistinctOf(arguments_of(value))


@constructor("pn.distinct('user')", sql="COLLECT_SET")
def distinct(value: str) -> Aggregate:
    """The different values, in order: a list, empty where all are null.

    Examples
    --------
    >>> print(distinct("user"))
    distinct(user)
    """
    return DistinctOf(arguments_of(value))


@constructor(
    "pn.quantile('latency', 0.5)",
    sql={"PERCENTILE": {}, "MEDIAN": {"q": 0.5}},
    **dict.fromkeys(("p", "percentile", "percentage", "quantile"), "q"),
)
def quantile(value: str, q: float, *, method: Literal["interpolated", "element"] = "interpolated") -> Aggregate:
    """The value below which a part ``q`` of the values lies, exactly.

    Parameters
    ----------
    q
        From 0 (the smallest value) to 1 (the largest); 0.5 is the median.
    method
        ``interpolated``: between the two nearest values, a double, as Spark's ``percentile``. ``element``: the value
        at place ⌊q·N⌋ of the N sorted values, of any ordered type.

    Examples
    --------
    >>> print(quantile("price", 0.5), quantile("name", 0.9, method="element"))
    quantile(price, 0.5) quantile(name, 0.9, element)
    """
    if isinstance(q, bool) or not isinstance(q, (int, float)) or not 0 <= q <= 1:
        raise DeclarationError(f"q={q!r}: a quantile is a number from 0 to 1. Write 0.5 for the median.")
    if method not in ("interpolated", "element"):
        raise DeclarationError(f"method={method!r}: write 'interpolated' (as Spark's percentile) or 'element'.")
    return QuantileOf(arguments_of(value), q=float(q), element=method == "element")


@constructor("pn.recurring('protocol')")
def recurring(value: str, *, ranked: bool = False) -> Aggregate:
    """The values that come again and again: present in every level of a nested window, beyond the levels below it.

    Parameters
    ----------
    ranked
        Whether a value comes with how often it occurred, the most frequent first; otherwise values are in order.

    Examples
    --------
    >>> print(recurring("protocol"))
    recurring(protocol)
    """
    return RecurringOf(arguments_of(value), ranked=bool(ranked))


@dataclass(frozen=True)
class _Collecting(Aggregate):
    """An aggregate over the values of one argument."""

    collects: ClassVar[bool] = True

    @property
    def in_jvm(self) -> bool:
        return False

    @property
    def in_spark(self) -> bool:
        # Only by strategy="native": its cost there is unknown.
        return False

    def reference(self, rows: Sequence[Any], **window: Any) -> Any:
        return self.over_values([x for (x,) in rows])

    def _values(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> tuple[Values]:
        self._require(is_ordered(types[0]), types[0], _ORDER)
        return (Values(arguments, types),)


@dataclass(frozen=True)
class CountDistinctOf(_Collecting):
    """``count_distinct(x)``: how many different values, exactly."""

    name: ClassVar[str] = "count_distinct"

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:
        return Bound(self._values(arguments, types), pa.int64(), lambda bags: pa.array(bags.distinct_counts()))

    def native(self, arguments: tuple[str, ...]) -> str:
        return f"count(DISTINCT {arguments[0]})"

    def over_values(self, values: list[Any]) -> int:
        return len({order_key(x) for x in values})


@dataclass(frozen=True)
class DistinctOf(_Collecting):
    """``distinct(x)``: the different values, in order."""

    name: ClassVar[str] = "distinct"

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:
        type_ = pa.list_(types[0])
        return Bound(self._values(arguments, types), type_, lambda bags: bags.distinct().cast(type_))

    def native(self, arguments: tuple[str, ...]) -> str:
        return f"array_sort(collect_set({arguments[0]}))"

    def over_values(self, values: list[Any]) -> list[Any]:
        return _different(values)


@dataclass(frozen=True)
class QuantileOf(_Collecting):
    """``quantile(x, q)``: between the two nearest values as Spark's ``percentile``, or one of the values."""

    q: float = 0.5
    element: bool = False

    name: ClassVar[str] = "quantile"
    by_rank: ClassVar[bool] = True

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:
        if not self.element:
            self._require(is_number(types[0]), types[0], "a number (method='element' takes every type with an order)")
        type_ = types[0] if self.element else pa.float64()
        return Bound(self._values(arguments, types), type_, lambda bags: self.read(bags, self.q))

    def read(self, bags: SortedBags, q: Array | float) -> pa.Array:
        """The quantiles of some bags: the same part of the whole for all, or one for each."""
        return self._element(bags, q) if self.element else self._between(bags, q)

    def native(self, arguments: tuple[str, ...]) -> str | None:
        return None if self.element else f"percentile({arguments[0]}, {self.q!r})"

    def over_values(self, values: list[Any]) -> Any:
        if not values:
            return None
        ranked = sorted(values, key=order_key if holds_nan(values) else None)
        if self.element:
            return ranked[max(math.floor(Fraction(repr(self.q)) * len(ranked)), 1) - 1]
        place = (len(ranked) - 1) * self.q
        low, high = math.floor(place), math.ceil(place)
        below, above = float(ranked[low]), float(ranked[high])
        return below if below == above or low == high else (high - place) * below + (place - low) * above

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

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:
        item = pa.struct([("item", types[0]), ("n", pa.int64())]) if self.ranked else types[0]
        return Bound(
            self._values(arguments, types), pa.list_(item), lambda levels: self._lower(levels, item), by_level=True
        )

    def native(self, arguments: tuple[str, ...]) -> None:
        return None

    def reference(self, rows: Sequence[Any], **window: Any) -> list[Any]:
        levels = [[x for (x,) in level] for level in rows]
        common = set.intersection(*({order_key(x) for x in level} for level in levels))
        every = [x for level in levels for x in level if order_key(x) in common]
        items = _different(every)
        if not self.ranked:
            return items
        counted = [{"item": x, "n": sum(order_key(x) == order_key(y) for y in every)} for x in items]
        return sorted(counted, key=lambda entry: -entry["n"])

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


def _different(values: Iterable[Any]) -> list[Any]:
    """The different values in order, in plain Python; -0.0 is 0.0."""
    found = {order_key(x): x + 0.0 if isinstance(x, float) else x for x in values}
    return [value for _, value in sorted(found.items())]
