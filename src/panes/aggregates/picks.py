"""``first``, ``last``, ``arg_min`` and ``arg_max``: the value of the event with the least or greatest order.

Between order and value may stand what a query declares as ``ties=``; what that leaves equal is decided by the value, so
that the answer never depends on how the data were split. Rows where order or value is null are skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.aggregates.accumulator import Start, order_key
from panes.aggregates.aggregate import Aggregate, Bound
from panes.aggregates.component import Component, Decoded, call, validity
from panes.aggregates.extrema import LARGEST, SMALLEST
from panes.aggregates.operations import Array, Operations, State
from panes.aggregates.ordering import codes, empty_of, is_ordered, lasting_codes
from panes.aggregates.registry import arguments_of, constructor
from panes.errors import DeclarationError

_OF_ROWS = (
    "it is an aggregate, one value of each window. For windows of the last rows write "
    "over=pn.hopping(pn.rows(100), every='1 min'), or over=pn.sliding(pn.rows(100)) for one up to each event."
)


@constructor("pn.first('temp')", f"pn.first: {_OF_ROWS}", sql="FIRST")
def first(value: str) -> Aggregate:
    """The earliest value by event time; of one instant the first by the query's ``ties=``, or else the smallest.

    Examples
    --------
    >>> print(first("temp"))
    first(temp)
    """
    return PickOf(_column("first", value), largest=False, timed=True)


@constructor("pn.last('temp')", f"pn.last: {_OF_ROWS}", sql="LAST")
def last(value: str) -> Aggregate:
    """The latest value by event time; of one instant the last by the query's ``ties=``, or else the largest.

    Examples
    --------
    >>> print(last("temp"))
    last(temp)
    """
    return PickOf(_column("last", value), largest=True, timed=True)


@constructor("pn.arg_min('city', 'amount')", sql="MIN_BY", ord="by", order_by="by")
def arg_min(value: str, by: str) -> Aggregate:
    """The value where ``by`` is smallest; the smallest of them if several are.

    Examples
    --------
    >>> print(arg_min("city", "amount"))
    arg_min(city, amount)
    """
    return PickOf(arguments_of(value, by), largest=False, timed=False)


@constructor("pn.arg_max('city', 'amount')", sql="MAX_BY", ord="by", order_by="by")
def arg_max(value: str, by: str) -> Aggregate:
    """The value where ``by`` is largest; the largest of them if several are.

    Examples
    --------
    >>> print(arg_max("city", "amount"))
    arg_max(city, amount)
    """
    return PickOf(arguments_of(value, by), largest=True, timed=False)


def _column(name: str, value: str) -> tuple[str, ...]:
    """The argument of an aggregate that is called as windows of rows are elsewhere."""
    if not isinstance(value, str):
        raise DeclarationError(f"pn.{name}({value!r}): {_OF_ROWS} Write pn.{name}('temp') for one value of a window.")
    return arguments_of(value)


# The aggregate


@dataclass(frozen=True)
class PickOf(Aggregate):
    """``first(x)``, ``last(x)`` by event time; ``arg_min(x, by)``, ``arg_max(x, by)`` by another value."""

    largest: bool = False
    timed: bool = True

    name: ClassVar[str] = "pick"

    @property
    def by_time(self) -> bool:  # type: ignore[override]
        return self.timed

    @property
    def idempotent(self) -> bool:
        return True

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:
        # Bound as (order, ties, value): event time stands first already, arg_min's arguments are the other way round.
        if not self.timed:
            arguments, types = arguments[::-1], types[::-1]
        for type_ in types:
            self._require(is_ordered(type_), type_, "types with an order (ties are broken by value)")
        component = (Greatest if self.largest else Least)(arguments, types)
        return Bound((component,), types[-1], lambda pair: pc.struct_field(pair, "value"), lambda pair: f"{pair}.value")

    def native(self, arguments: tuple[str, ...]) -> str:
        order, *ties, value = arguments if self.timed else arguments[::-1]
        parts = ", ".join([f"{order} AS o", *(f"{sql} AS t{i}" for i, sql in enumerate(ties))])
        pair = f"CASE WHEN {order} IS NOT NULL AND {value} IS NOT NULL THEN struct({parts}, {value} AS v) END"
        return f"{'max' if self.largest else 'min'}({pair}).v"

    def reference(self, rows: Sequence[Any], **window: Any) -> Any:
        # Timed rows begin with what orders them already; arg_min's arguments are the other way round.
        ranked = rows if self.timed else [(by, value) for value, by in rows]
        best = max if self.largest else min
        return best(ranked, key=lambda row: [order_key(x) for x in row], default=(None, None))[1]

    def accumulator(self, *attributes: Any) -> Start | None:
        if self.timed:
            return None
        value, by = attributes
        return partial(RunningPick, value, by, self.largest)

    def __str__(self) -> str:
        if self.timed:
            return f"{'last' if self.largest else 'first'}({self.arguments[0]})"
        return f"{'arg_max' if self.largest else 'arg_min'}({', '.join(self.arguments)})"


# What is stored


@dataclass(frozen=True)
class _Pick(Component):
    operations: ClassVar[Operations]

    @property
    def _ties(self) -> list[str]:
        return [f"tie{i}" for i in range(len(self.types) - 2)]

    @property
    def storage(self) -> pa.DataType:
        return pa.struct(list(zip(("order", *self._ties, "value"), self.types, strict=True)))

    def build(self, only: str | None = None) -> str:
        order, value = self.arguments[0], self.arguments[-1]
        named = zip(("order", *self._ties, "value"), self.arguments, strict=True)
        fields = ", ".join(f"'{name}', {sql}" for name, sql in named)
        pair = f"named_struct({fields})"
        return call(self._function, f"CASE WHEN {order} IS NOT NULL AND {value} IS NOT NULL THEN {pair} END", only)

    def merge(self, stored: str) -> str:
        return f"{self._function}({stored})"

    @property
    def _function(self) -> str:
        return "min" if self.operations is SMALLEST else "max"

    @property
    def idempotent(self) -> bool:
        return True

    def lift(self, *values: pa.Array) -> pa.Array:
        missing = pc.or_(values[0].is_null(), values[-1].is_null())
        return pa.StructArray.from_arrays(list(values), names=["order", *self._ties, "value"], mask=missing)

    def decode(self, stored: pa.Array) -> Decoded:
        # A pair becomes its rank among the pairs of the column; equal pairs are interchangeable.
        valid = validity(stored)
        keys = [codes(stored.field("value")).values]
        for name in reversed(self._ties):
            tie = stored.field(name)
            known = tie.is_valid().to_numpy(zero_copy_only=False)
            keys += [np.where(known, codes(tie).values, 0), known]
        by_rank = np.lexsort((*keys, codes(stored.field("order")).values))
        rank = np.empty(len(by_rank), dtype=np.int64)
        rank[by_rank] = np.arange(len(by_rank))
        if valid is not None:
            rank[~valid] = self.operations.identity[0]

        def restore(state: State, nulls: Array | None) -> pa.Array:
            if nulls is None:
                return stored.take(pa.array(by_rank[state[0]]))
            rows = np.zeros(len(nulls), np.int64)
            rows[~nulls] = by_rank[state[0][~nulls]]
            return stored.take(pa.array(rows, mask=nulls))

        return Decoded(self.operations, (rank,), valid, restore)

    def decode_lasting(self, stored: pa.Array) -> Decoded:
        # A pair as it is, and whether there is one: its rank would hold for one column only.
        valid = validity(stored)
        some = np.ones(len(stored), np.bool_) if valid is None else valid
        order, value = (lasting_codes(stored.field(part)) for part in ("order", "value"))
        ties = [lasting_codes(stored.field(name)) for name in self._ties]
        between, none = list[Array](), list[Any]()
        for name, coded, type_ in zip(self._ties, ties, self.types[1:-1], strict=True):
            known = stored.field(name).is_valid().to_numpy(zero_copy_only=False)
            between += [known, np.where(known, coded.values, empty_of(type_))]
            none += [False, empty_of(type_)]
        state = (some, order.values, *between, value.values)
        nothing = (False, empty_of(self.types[0]), *none, empty_of(self.types[-1]))

        def restore(found: State, nulls: Array | None) -> pa.Array:
            parts = [order.restore(found[1], nulls)]
            for coded, known, codes_ in zip(ties, found[2:-1:2], found[3:-1:2], strict=True):
                missing = ~known.astype(np.bool_, copy=False)
                parts.append(coded.restore(codes_, missing if nulls is None else missing | nulls))
            parts.append(value.restore(found[-1], nulls))
            mask = None if nulls is None else pa.array(nulls)
            return pa.StructArray.from_arrays(parts, fields=list(self.storage), mask=mask)

        before = np.less if self.operations is SMALLEST else np.greater
        operations = Operations(nothing, partial(_better, before), idempotent=True)
        return Decoded(operations, state, valid, restore)


@dataclass(frozen=True)
class Least(_Pick):
    """The pair with the least order, and the least value among those."""

    kind: ClassVar[str] = "least"
    operations: ClassVar[Operations] = SMALLEST


@dataclass(frozen=True)
class Greatest(_Pick):
    """The pair with the greatest order, and the greatest value among those."""

    kind: ClassVar[str] = "greatest"
    operations: ClassVar[Operations] = LARGEST


def _better(before: np.ufunc, left: State, right: State) -> State:
    """Of two pairs the one that comes before the other, or the only one."""
    (some, *parts), (some_right, *parts_right) = left, right
    first = before(parts_right[-1], parts[-1])
    for part, other in zip(reversed(parts[:-1]), reversed(parts_right[:-1]), strict=True):
        first = before(other, part) | ((other == part) & first)
    taken = some_right & (~some | first.astype(np.bool_, copy=False))
    return tuple(np.where(taken, b, a) for a, b in zip(left, right, strict=True))


# Tuple by tuple


class RunningPick:
    """The value where another one is smallest or largest; ties are broken by value."""

    __slots__ = ("attribute", "best", "by", "largest", "rank")

    def __init__(self, attribute: str, by: str, largest: bool) -> None:
        self.attribute, self.by, self.largest = attribute, by, largest
        self.rank: Any = None
        self.best: Any = None

    def insert(self, item: Any) -> None:
        """Compare."""
        value, order = item[self.attribute], item[self.by]
        if value is not None and order is not None:
            self._offer((order_key(order), order_key(value)), value)

    def insert_all(self, items: Sequence[Any]) -> None:
        """Compare."""
        for item in items:
            self.insert(item)

    def merge(self, other: RunningPick) -> None:
        """Compare."""
        if other.rank is not None:
            self._offer(other.rank, other.best)

    def _offer(self, rank: Any, value: Any) -> None:
        if self.rank is None or (rank > self.rank if self.largest else rank < self.rank):
            self.rank, self.best = rank, value

    def value(self) -> Any:
        """The value picked so far."""
        return self.best
