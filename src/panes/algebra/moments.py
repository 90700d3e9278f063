"""The component behind ``var`` and ``std``: count, sum and M2, the sum of squared distances from the mean.

Merged by the update of Chan, Golub and LeVeque (1979), which never subtracts large from large; a sum of squares
would lose every digit when the mean is large.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from panes.algebra.component import Component, Decoded, call, numbers, validity
from panes.algebra.operations import Array, Operations, State
from panes.algebra.structs import as_struct, fold_sql, parts_of, struct_sql


def combine_moments(left: State, right: State) -> State:
    """Moments of two disjoint bags taken together."""
    n_left, sum_left, m2_left = left
    n_right, sum_right, m2_right = right
    n = n_left + n_right
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = sum_right / n_right - sum_left / n_left
        between = distance * distance * (n_left * (n_right / n))
    m2 = m2_left + m2_right + np.where((n_left == 0) | (n_right == 0), 0.0, between)
    return n, sum_left + sum_right, m2


MOMENTS = Operations(identity=(0, 0.0, 0.0), combine=combine_moments)

_STORAGE = pa.struct([("n", pa.int64()), ("sum", pa.float64()), ("m2", pa.float64())])


@dataclass(frozen=True)
class Moments(Component):
    """Count, sum and M2 as doubles; null when there were no values."""

    kind: ClassVar[str] = "moments"

    @property
    def storage(self) -> pa.DataType:  # noqa: D102
        return _STORAGE

    def build(self, only: str | None = None) -> str:  # noqa: D102
        x = f"CAST({self.arguments[0]} AS DOUBLE)"
        n, total, variance = (call(function, x, only) for function in ("count", "sum", "var_pop"))
        return f"CASE WHEN {n} > 0 THEN {struct_sql({'n': n, 'sum': total, 'm2': f'{variance} * {n}'})} END"

    def merge(self, stored: str) -> str:  # noqa: D102
        distance, weight = "b.sum / b.n - a.sum / a.n", "CAST(a.n AS DOUBLE) * (CAST(b.n AS DOUBLE) / (a.n + b.n))"
        m2 = f"a.m2 + b.m2 + power({distance}, 2) * ({weight})"
        return fold_sql(stored, struct_sql({"n": "a.n + b.n", "sum": "a.sum + b.sum", "m2": m2}))

    def lift(self, *values: pa.Array) -> pa.Array:  # noqa: D102
        x = values[0].cast(pa.float64(), safe=False)  # a BIGINT beyond 2**53 is rounded, as in Spark
        one = pa.array(np.ones(len(x), dtype=np.int64))
        # NaN and infinity are infinitely far from any mean, their own included: Spark's variance is NaN then.
        spread = numbers(x, 0.0)
        with np.errstate(invalid="ignore"):
            zero = pa.array(spread - spread)
        return pa.StructArray.from_arrays([one, x, zero], fields=list(_STORAGE), mask=x.is_null())

    def decode(self, stored: pa.Array) -> Decoded:  # noqa: D102
        valid = validity(stored)
        return Decoded(MOMENTS, parts_of(stored, valid, MOMENTS.identity), valid, _restore)


def _restore(state: State, nulls: Array | None) -> pa.Array:
    return as_struct(state, nulls, _STORAGE)
