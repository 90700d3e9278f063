"""The component ``count(x)``: how many events had a value. It is never null."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from panes.algebra.component import Component, Decoded, call, numbers
from panes.algebra.integers import MACHINE
from panes.algebra.operations import Array, State


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
