"""The component behind ``approx_count_distinct``: a CPC sketch of the values.

Measured from Python with ``lg_k=12`` (microseconds to combine two of 100,000 values, bytes, one standard error):

=======  =======  ======  =====
CPC      22 µs    2,500   1.1 %
HLL 8    41 µs    4,100   1.6 %
HLL 4    98 µs    2,100   1.6 %
theta    380 µs   32,800  1.6 %
=======  =======  ======  =====

A CPC sketch that came out of a union depends on nothing but the set of its values: not on their order, nor on how they
were split or how often they were seen. So panes go through a union of one; then every plan gives the same answer, and
partials may overlap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.algebra.operations import Array
from panes.algebra.ordering import as_integers, is_integer_like
from panes.algebra.sketch import Sketched, Spans, library
from panes.algebra.texts import to_texts


@dataclass(frozen=True, kw_only=True)
class Cardinality(Sketched):
    """How many distinct values there are, about."""

    lg_k: int

    kind: ClassVar[str] = "cardinality"

    @property
    def name(self) -> str:  # noqa: D102
        return f"{self.kind}({self.arguments[0]}, lg_k={self.lg_k})"

    @property
    def idempotent(self) -> bool:  # noqa: D102
        return True

    def open(self, data: Any) -> Any:  # noqa: D102
        return library().cpc_sketch.deserialize(data)

    def close(self, opened: Any) -> bytes:  # noqa: D102
        data: bytes = opened.serialize()
        return data

    def together(self, opened: Sequence[Any]) -> Any:  # noqa: D102
        union = library().cpc_union(self.lg_k)
        for sketch in opened:
            union.update(sketch)
        return union.get_result()

    def of_spans(self, lo: Array, hi: Array, values: pa.Array) -> Iterator[Any | None]:  # noqa: D102
        spans = Spans.of(lo, hi, values)
        items, which, make = _hashable(spans.distinct), spans.which.tolist(), library().cpc_sketch
        for begin, end in pairwise(spans.bounds.tolist()):
            if begin == end:
                yield None
                continue
            sketch = make(self.lg_k)
            update = sketch.update
            for item in which[begin:end]:
                update(items[item])
            yield self.together((sketch,))


def _hashable(values: pa.Array) -> list[Any]:
    """Values as the library hashes them, alike for integers of every width; it makes one of -0.0 and 0.0 itself."""
    if is_integer_like(values.type):
        return list(as_integers(values).to_numpy(zero_copy_only=False).astype(np.int64).tolist())
    if pa.types.is_floating(values.type):
        return list(values.to_numpy(zero_copy_only=False).astype(np.float64).tolist())
    # The library passes over empty text.
    return list(pc.binary_join_element_wise("'", to_texts(values), "").to_pylist())


def distinct_counts(sketches: Iterable[Any | None]) -> pa.Array:
    """The nearest whole number to each estimate, 0 where there was no value."""
    return pa.array([0 if sketch is None else round(sketch.get_estimate()) for sketch in sketches], pa.int64())
