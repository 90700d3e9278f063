"""The component behind ``approx_quantile``: a KLL sketch of the values as doubles.

Karnin, Lang, Liberty: Optimal Quantile Approximation in Streams (FOCS 2016). It throws coins that cannot be seeded, so
that answers beyond some ``k`` values differ from run to run within the error. NaN has no rank and is passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import methodcaller
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from panes.algebra.component import as_doubles, numbers
from panes.algebra.operations import Array
from panes.algebra.sketch import Sketched, library
from panes.algebra.spans import spans_of_kept


@dataclass(frozen=True, kw_only=True)
class Ranks(Sketched):
    """Which values stand about where when all are sorted."""

    k: int

    kind: ClassVar[str] = "ranks"

    @property
    def name(self) -> str:  # noqa: D102
        return f"{self.kind}({self.arguments[0]}, k={self.k})"

    def open(self, data: Any) -> Any:  # noqa: D102
        return library().kll_doubles_sketch.deserialize(data)

    def of_spans(self, lo: Array, hi: Array, values: pa.Array) -> Iterator[Any | None]:  # noqa: D102
        doubles = numbers(as_doubles(values), np.nan)
        kept = ~np.isnan(doubles)
        doubles, make = doubles[kept], library().kll_doubles_sketch
        for begin, end in spans_of_kept(kept, lo, hi):
            if begin == end:
                yield None
                continue
            sketch = make(self.k)
            sketch.update(doubles[begin:end])
            yield sketch


def quantiles(sketches: Iterable[Any | None], q: float) -> pa.Array:
    """The smallest value that at least the part ``q`` of all values does not exceed; null where there was none."""
    # The sketch knows the least and the greatest value exactly, but finds its own about there.
    read = {0.0: methodcaller("get_min_value"), 1.0: methodcaller("get_max_value")}.get(
        q, methodcaller("get_quantile", q, True)
    )
    return pa.array([None if sketch is None else read(sketch) for sketch in sketches], pa.float64())
