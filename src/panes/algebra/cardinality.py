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
from panes.algebra.sketch import Sketched, library
from panes.algebra.spans import spans_of_kept
from panes.algebra.texts import to_texts
from panes.algebra.values import collected


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

    def together(self, opened: Sequence[Any]) -> Any:  # noqa: D102
        union = library().cpc_union(self.lg_k)
        for sketch in opened:
            union.update(sketch)
        return union.get_result()

    def of_spans(self, lo: Array, hi: Array, values: pa.Array) -> Iterator[Any | None]:  # noqa: D102
        make = library().cpc_sketch
        for items in _numbers_of(lo, hi, values) if _is_number(values.type) else _texts_of(lo, hi, values):
            if not items:
                yield None
                continue
            sketch = make(self.lg_k)
            update = sketch.update
            for item in items:
                update(item)
            yield self.together((sketch,))


_MANY = 64
"""Values from which on sorting out those that occur again takes less time than hashing them again."""


def _is_number(type_: pa.DataType) -> bool:
    return is_integer_like(type_) or bool(pa.types.is_floating(type_))


def _numbers_of(lo: Array, hi: Array, values: pa.Array) -> Iterator[list[Any]]:
    """Integers of every width alike; the library itself makes one of -0.0 and 0.0, and one of all NaN."""
    kept = values.is_valid().to_numpy(zero_copy_only=False)
    known, wide = values.drop_null(), np.float64 if pa.types.is_floating(values.type) else np.int64
    plain = as_integers(known).to_numpy(zero_copy_only=False).astype(wide)
    for begin, end in spans_of_kept(kept, lo, hi):
        part = plain[begin:end]
        if len(part) > _MANY:
            part = np.sort(part)  # np.unique takes ten times as long.
            part = part[np.append(True, part[1:] != part[:-1])]
        items: list[Any] = part.tolist()
        yield items


def _texts_of(lo: Array, hi: Array, values: pa.Array) -> Iterator[list[Any]]:
    bags = collected(lo, hi, values)
    # The library passes over empty text.
    texts = pc.binary_join_element_wise("'", to_texts(bags.domain), "").to_pylist()
    for begin, end in pairwise(bags.offsets.tolist()):
        yield [texts[which] for which in bags.code[begin:end].tolist()]


def distinct_counts(sketches: Iterable[Any | None]) -> pa.Array:
    """The nearest whole number to each estimate, 0 where there was no value."""
    return pa.array([0 if sketch is None else round(sketch.get_estimate()) for sketch in sketches], pa.int64())
