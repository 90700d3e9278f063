"""The components ``min(x)`` and ``max(x)``, for every ordered type, in Spark's order (NaN is largest)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from panes.algebra.component import Component, Decoded, call, validity
from panes.algebra.operations import Operations, from_ufunc
from panes.algebra.ordering import GREATEST, LEAST, Codes, codes, is_integer_like, lasting_codes

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
