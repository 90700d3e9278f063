"""The component behind ``top``: a sketch of frequent items (Misra and Gries), with the items as text.

Anderson, Bevin, Lang, Liberty, Rhodes, Thaler: A High-Performance Algorithm for Identifying Frequent Items in Data
Streams (IMC 2017). It keeps up to 0.75 · 2**lg_k items; as long as there are no more, counts are exact. Beyond that,
each count is too large by at most an error that the sketch knows, and that is below 3.5 / 2**lg_k of all events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from panes.algebra.operations import Array
from panes.algebra.ordering import codes
from panes.algebra.sketch import Sketched, library
from panes.algebra.texts import from_texts, to_texts
from panes.algebra.values import collected


@dataclass(frozen=True, kw_only=True)
class Frequencies(Sketched):
    """Which values occur most, and about how often."""

    lg_k: int

    kind: ClassVar[str] = "frequencies"

    @property
    def name(self) -> str:  # noqa: D102
        return f"{self.kind}({self.arguments[0]}, lg_k={self.lg_k})"

    def open(self, data: Any) -> Any:  # noqa: D102
        return library().frequent_strings_sketch.deserialize(data)

    def of_spans(self, lo: Array, hi: Array, values: pa.Array) -> Iterator[Any | None]:  # noqa: D102
        bags = collected(lo, hi, values)
        items, make = to_texts(bags.domain).to_pylist(), library().frequent_strings_sketch
        which, count = bags.code.tolist(), bags.n.tolist()
        for begin, end in pairwise(bags.offsets.tolist()):
            if begin == end:
                yield None
                continue
            sketch = make(self.lg_k)
            update = sketch.update
            for i in range(begin, end):
                update(items[which[i]], count[i])
            yield sketch


def top_type(type_: pa.DataType) -> pa.DataType:
    """The type of the most frequent values of a type.

    Examples
    --------
    >>> top_type(pa.string())
    ListType(list<item: struct<item: string, count: int64, error: int64>>)
    """
    return pa.list_(pa.struct([("item", type_), ("count", pa.int64()), ("error", pa.int64())]))


def most_frequent(sketches: Iterable[Any | None], n: int, type_: pa.DataType) -> pa.Array:
    """Up to n items of each sketch, the most frequent first, then by item; null where there was no value.

    Where no item stands out from the error, a sketch may have thrown away all of them.
    """
    every = library().frequent_items_error_type.NO_FALSE_NEGATIVES
    missing: list[bool] = []
    rows: list[int] = []
    found: list[tuple[str, int, int, int]] = []
    for row, sketch in enumerate(sketches):
        missing.append(sketch is None)
        if sketch is not None:
            items = sketch.get_frequent_items(every)  # The most frequent first.
            if len(items) > n:
                # With all that are tied with the last: among them the order of items decides, below.
                items = [item for item in items if item[1] >= items[n - 1][1]]
            found += items
            rows += [row] * len(items)
    # The estimate of a count is its upper bound; behind it stands the lower one.
    row_of, count, least_count = (np.array(part, np.int64) for part in (rows, *([f[i] for f in found] for i in (1, 2))))
    values = from_texts(pa.array([item[0] for item in found], pa.string()), type_)
    order = np.lexsort((codes(values).values, -count, row_of))
    # Rows were in order already, so that sorting within them leaves where each begins.
    chosen = order[np.arange(len(order)) - np.searchsorted(row_of, row_of) < n]
    answer = top_type(type_)
    parts = [values, pa.array(count), pa.array(count - least_count)]
    listed = pa.StructArray.from_arrays(parts, fields=list(answer.value_type)).take(pa.array(chosen))
    offsets = np.searchsorted(row_of[chosen], np.arange(len(missing) + 1)).astype(np.int32)
    mask = pa.array(missing, pa.bool_()) if any(missing) else None
    return pa.ListArray.from_arrays(pa.array(offsets), listed, type=answer, mask=mask)
