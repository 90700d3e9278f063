"""The component ``count(x)``: how many events had a value. It is never null."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from panes.aggregates.component import Component, Decoded, call, numbers, validity, with_nulls
from panes.aggregates.integers import MACHINE, decimals, exact_sums, unscaled, within_bigint
from panes.aggregates.operations import Array, State, from_ufunc

# The component ``sum(x)``: exact for integers and decimals, stable for floats.
#
# Integer and decimal sums are groups: a span is the difference of two running sums. Float sums are not, since a
# difference of running sums can cancel; they are only ever added.


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
    def storage(self) -> pa.DataType:  # noqa: D102
        return sum_type(self.types[0])

    def build(self, only: str | None = None) -> str:  # noqa: D102
        total = call("sum", self.arguments[0], only)
        if pa.types.is_decimal(self.storage):
            return _or_overflow(total, call("count", self.arguments[0], only))
        return total

    def merge(self, stored: str) -> str:  # noqa: D102
        if pa.types.is_decimal(self.storage):
            # Summing decimals widens them by ten digits each time; partials keep the width of the answer.
            total = f"CAST(sum({stored}) AS DECIMAL({self.storage.precision}, {self.storage.scale}))"
            return _or_overflow(total, f"count({stored})")
        return f"sum({stored})"

    def lift(self, *values: pa.Array) -> pa.Array:  # noqa: D102
        return values[0].cast(self.storage)

    def decode(self, stored: pa.Array) -> Decoded:  # noqa: D102
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
    def storage(self) -> pa.DataType:  # noqa: D102
        return pa.int64()

    def build(self, only: str | None = None) -> str:  # noqa: D102
        return call("count", self.arguments[0], only)

    def merge(self, stored: str) -> str:  # noqa: D102
        return f"sum({stored})"

    def lift(self, *values: pa.Array) -> pa.Array:  # noqa: D102
        return values[0].is_valid().cast(pa.int64())

    def decode(self, stored: pa.Array) -> Decoded:  # noqa: D102
        return Decoded(MACHINE, (numbers(stored).astype(np.int64, copy=False),), None, _restore)


def _restore(state: State, nulls: Array | None) -> pa.Array:
    # Where there was no event at all, there were none with a value.
    return pa.array(state[0], type=pa.int64())
