"""The components behind ``first``, ``last``, ``arg_min`` and ``arg_max``: the least or greatest pair (order, value).

Ties of the order are broken by the value, so that the answer never depends on how the data were split; rows
where either is null are passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.algebra.component import Component, Decoded, call, validity
from panes.algebra.extrema import LARGEST, SMALLEST
from panes.algebra.operations import Array, Operations, State
from panes.algebra.ordering import codes, empty_of, lasting_codes


@dataclass(frozen=True)
class _Pick(Component):
    operations: ClassVar[Operations]

    @property
    def storage(self) -> pa.DataType:
        return pa.struct([("order", self.types[0]), ("value", self.types[1])])

    def build(self, only: str | None = None) -> str:
        order, value = self.arguments
        pair = f"named_struct('order', {order}, 'value', {value})"
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
        order, value = values
        missing = pc.or_(order.is_null(), value.is_null())
        return pa.StructArray.from_arrays([order, value], names=["order", "value"], mask=missing)

    def decode(self, stored: pa.Array) -> Decoded:
        # A pair becomes its rank among the pairs of the column; equal pairs are interchangeable.
        valid = validity(stored)
        by_rank = np.lexsort((codes(stored.field("value")).values, codes(stored.field("order")).values))
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
        state = (some, order.values, value.values)
        nothing = (False, *(empty_of(type_) for type_ in self.types))

        def restore(found: State, nulls: Array | None) -> pa.Array:
            parts = [coded.restore(part, nulls) for coded, part in zip((order, value), found[1:], strict=True)]
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
    (some, order, value), (some_right, order_right, value_right) = left, right
    first = before(order_right, order) | ((order_right == order) & before(value_right, value))
    taken = some_right & (~some | first.astype(np.bool_, copy=False))
    return tuple(np.where(taken, b, a) for a, b in zip(left, right, strict=True))
