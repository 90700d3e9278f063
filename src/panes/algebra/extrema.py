"""The components ``min(x)`` and ``max(x)``, for every ordered type, in Spark's order (NaN is largest)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from panes.algebra.component import Component, Decoded, call, validity
from panes.algebra.operations import Operations, from_ufunc
from panes.algebra.ordering import codes

_INT64 = np.iinfo(np.int64)

SMALLEST: Operations = from_ufunc(np.minimum, _INT64.max, idempotent=True)
LARGEST: Operations = from_ufunc(np.maximum, _INT64.min, idempotent=True)
# fmin passes NaN over, maximum lets it through: both as in an order where NaN is largest.
SMALLEST_FLOAT: Operations = from_ufunc(np.fmin, np.nan, idempotent=True)
LARGEST_FLOAT: Operations = from_ufunc(np.maximum, -np.inf, idempotent=True)


@dataclass(frozen=True)
class _Extremum(Component):
    integers: ClassVar[Operations]
    floats: ClassVar[Operations]

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
        coded, valid = codes(stored), validity(stored)
        operations = self.floats if coded.values.dtype.kind == "f" else self.integers
        values = coded.values
        if valid is not None:
            values = np.where(valid, values, np.array(operations.identity[0], dtype=values.dtype))
        return Decoded(operations, (values,), valid, lambda state, nulls: coded.restore(state[0], nulls))


@dataclass(frozen=True)
class Min(_Extremum):
    """The smallest value; null when there were none."""

    kind: ClassVar[str] = "min"
    integers: ClassVar[Operations] = SMALLEST
    floats: ClassVar[Operations] = SMALLEST_FLOAT


@dataclass(frozen=True)
class Max(_Extremum):
    """The largest value; null when there were none."""

    kind: ClassVar[str] = "max"
    integers: ClassVar[Operations] = LARGEST
    floats: ClassVar[Operations] = LARGEST_FLOAT
