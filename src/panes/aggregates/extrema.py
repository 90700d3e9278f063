"""The components behind ``first``, ``last``, ``arg_min`` and ``arg_max``: the least or greatest pair (order, value).

Between the two may stand what a query declares as ``ties=``; what that leaves equal is decided by the value, so that
the answer never depends on how the data were split. Rows where order or value is null are passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.aggregates.component import Component, Decoded, call, validity
from panes.aggregates.operations import Array, Operations, State, from_ufunc
from panes.aggregates.ordering import GREATEST, LEAST, Codes, codes, empty_of, is_integer_like, lasting_codes

# The components ``min(x)`` and ``max(x)``, for every ordered type, in Spark's order (NaN is largest).


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
