"""Components whose partials are sketches: bytes where they are stored, opened where they are combined.

The sketches are those of Apache DataSketches, in its own serial format, which newer versions of the library (and the
ones in other languages) read. A sketch is never changed once it was handed out, since kernels keep and combine partials
as they like: combining makes a new one.

A combine takes microseconds, not nanoseconds. So a sketch is made per pane out of all its events (``gather``), not per
event; many are combined at once where they lie side by side (``fold``); and one that is only passed on is not opened.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from operator import methodcaller
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.aggregates.bags import collected
from panes.aggregates.component import Component, Decoded, as_doubles, numbers
from panes.aggregates.operations import Array, Operations, State
from panes.aggregates.ordering import as_integers, codes, from_texts, is_integer_like, to_texts
from panes.errors import DeclarationError


def library() -> Any:
    """The package ``datasketches``, or an error that says how to get it."""
    try:
        import datasketches
    except ImportError as error:
        raise DeclarationError(
            "approx_count_distinct, approx_quantile and top need the package 'datasketches', which is not installed "
            "here. Run: pip install panes[sketches]"
        ) from error
    return datasketches


class Sketch:
    """A sketch in the form in which it came, and in the other one once needed."""

    __slots__ = ("_data", "_kind", "_opened")

    def __init__(self, kind: Sketched, *, data: bytes | None = None, opened: Any = None) -> None:
        self._kind, self._data, self._opened = kind, data, opened

    @property
    def opened(self) -> Any:
        """The library's object; not to be changed."""
        if self._opened is None:
            self._opened = self._kind.open(self._data)
        return self._opened

    @property
    def data(self) -> bytes:
        """What is stored."""
        if self._data is None:
            self._data = self._kind.close(self._opened)
        return self._data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sketch) and self.data == other.data

    def __hash__(self) -> int:
        return hash(self.data)


@dataclass(frozen=True)
class Sketched(Component):
    """Partials that are sketches of the values of one argument; null where there were none."""

    in_jvm: ClassVar[bool] = False

    @property
    def storage(self) -> pa.DataType:
        # Offsets of 32 bits would end at two gigabytes.
        return pa.large_binary()

    @abstractmethod
    def open(self, data: Any) -> Any:
        """The library's object out of what is stored."""

    def close(self, opened: Any) -> bytes:
        """What is stored of the library's object."""
        data: bytes = opened.serialize()
        return data

    def together(self, opened: Sequence[Any]) -> Any:
        """One new object for all that one or several have seen; they stay as they are."""
        first, *others = opened
        merged = copy(first)
        for sketch in others:
            merged.merge(sketch)
        return merged

    @abstractmethod
    def of_spans(self, lo: Array, hi: Array, values: pa.Array) -> Iterable[Any | None]:
        """The object of each span of values; None for a span without any."""

    def lift(self, *values: pa.Array) -> pa.Array:
        # Events with the same value have the same sketch.
        encoded = values[0].dictionary_encode()
        at = np.arange(len(encoded.dictionary))
        state = self.gather(at, at + 1, encoded.dictionary).state
        return self.restore(state, None).take(encoded.indices)

    def gather(self, lo: Array, hi: Array, *values: pa.Array) -> Decoded:
        return self._decoded(
            None if opened is None else Sketch(self, opened=opened) for opened in self.of_spans(lo, hi, values[0])
        )

    def decode(self, stored: pa.Array) -> Decoded:
        return self._decoded(None if data is None else Sketch(self, data=data) for data in stored.to_pylist())

    def restore(self, state: State, nulls: Array | None) -> pa.Array:
        """A state in the storage type; null where it is the identity."""
        return pa.array([None if sketch is None else sketch.data for sketch in state[0]], self.storage)

    @property
    def operations(self) -> Operations:
        """The algebra of arrays of sketches, with None as its identity."""
        return Operations((None,), self._combine, idempotent=self.idempotent, fold=self._fold)

    def _decoded(self, sketches: Iterable[Sketch | None]) -> Decoded:
        state = objects(sketches)
        valid = np.array([sketch is not None for sketch in state], dtype=np.bool_)
        return Decoded(self.operations, (state,), None if valid.all() else valid, self.restore)

    def _combine(self, a: State, b: State) -> State:
        return (objects(self._both(x, y) for x, y in zip(a[0], b[0], strict=True)),)

    def _both(self, x: Sketch | None, y: Sketch | None) -> Sketch | None:
        if x is None or y is None:
            return y if x is None else x
        if x is y and self.idempotent:
            return x
        return Sketch(self, opened=self.together((x.opened, y.opened)))

    def _fold(self, state: State, lo: Array, hi: Array) -> State:
        return (objects(self._all(state[0][i:j]) for i, j in zip(lo.tolist(), hi.tolist(), strict=True)),)

    def _all(self, sketches: Array) -> Sketch | None:
        some = [sketch for sketch in sketches if sketch is not None]
        if len(some) < 2:
            return some[0] if some else None
        return Sketch(self, opened=self.together([sketch.opened for sketch in some]))


def objects(values: Iterable[Any]) -> Array:
    """An array of objects, whatever they are."""
    listed = list(values)
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array


def opened(state: State) -> list[Any | None]:
    """The library's objects of a state."""
    return [None if sketch is None else sketch.opened for sketch in state[0]]


# The component behind ``approx_count_distinct``: a CPC sketch of the values.
#
# Measured from Python with ``lg_k=12`` (microseconds to combine two of 100,000 values, bytes, one standard error):
#
# =======  =======  ======  =====
# CPC      22 µs    2,500   1.1 %
# HLL 8    41 µs    4,100   1.6 %
# HLL 4    98 µs    2,100   1.6 %
# theta    380 µs   32,800  1.6 %
# =======  =======  ======  =====
#
# A CPC sketch that came out of a union depends on nothing but the set of its values: not on their order, nor on how
# they were split or how often they were seen. So panes go through a union of one; then every plan gives the same
# answer, and partials may overlap.


@dataclass(frozen=True, kw_only=True)
class Cardinality(Sketched):
    """Roughly how many distinct values there are."""

    lg_k: int

    kind: ClassVar[str] = "cardinality"

    @property
    def name(self) -> str:
        return f"{self.kind}({self.arguments[0]}, lg_k={self.lg_k})"

    @property
    def idempotent(self) -> bool:
        return True

    def open(self, data: Any) -> Any:
        return library().cpc_sketch.deserialize(data)

    def together(self, opened: Sequence[Any]) -> Any:
        union = library().cpc_union(self.lg_k)
        for sketch in opened:
            union.update(sketch)
        return union.get_result()

    def of_spans(self, lo: Array, hi: Array, values: pa.Array) -> Iterator[Any | None]:
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
    # The library skips empty text.
    texts = pc.binary_join_element_wise("'", to_texts(bags.domain), "").to_pylist()
    for begin, end in pairwise(bags.offsets.tolist()):
        yield [texts[which] for which in bags.code[begin:end].tolist()]


def distinct_counts(sketches: Iterable[Any | None]) -> pa.Array:
    """The nearest whole number to each estimate, 0 where there was no value."""
    return pa.array([0 if sketch is None else round(sketch.get_estimate()) for sketch in sketches], pa.int64())


# The component behind ``top``: a sketch of frequent items (Misra and Gries), with the items as text.
#
# Anderson, Bevin, Lang, Liberty, Rhodes, Thaler: A High-Performance Algorithm for Identifying Frequent Items in Data
# Streams (IMC 2017). It keeps up to 0.75 · 2**lg_k items; as long as there are no more, counts are exact. Beyond that,
# each count is too large by at most an error that the sketch knows, and that is below 3.5 / 2**lg_k of all events.


@dataclass(frozen=True, kw_only=True)
class Frequencies(Sketched):
    """Which values occur most, and roughly how often."""

    lg_k: int

    kind: ClassVar[str] = "frequencies"

    @property
    def name(self) -> str:
        return f"{self.kind}({self.arguments[0]}, lg_k={self.lg_k})"

    def open(self, data: Any) -> Any:
        return library().frequent_strings_sketch.deserialize(data)

    def of_spans(self, lo: Array, hi: Array, values: pa.Array) -> Iterator[Any | None]:
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
    # The estimate of a count is its upper bound; the lower bound follows.
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


# The component behind ``approx_quantile``: a KLL sketch of the values as doubles.
#
# Karnin, Lang, Liberty: Optimal Quantile Approximation in Streams (FOCS 2016). It throws coins that cannot be seeded,
# so that answers beyond some ``k`` values differ from run to run within the error. NaN has no rank and is skipped.


@dataclass(frozen=True, kw_only=True)
class SketchedRanks(Sketched):
    """Roughly which value has which rank."""

    k: int

    kind: ClassVar[str] = "ranks"

    @property
    def name(self) -> str:
        return f"{self.kind}({self.arguments[0]}, k={self.k})"

    def open(self, data: Any) -> Any:
        return library().kll_doubles_sketch.deserialize(data)

    def of_spans(self, lo: Array, hi: Array, values: pa.Array) -> Iterator[Any | None]:
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


def spans_of_kept(kept: Array, lo: Array, hi: Array) -> Iterator[tuple[int, int]]:
    """Where spans begin and end once only some rows are kept.

    Examples
    --------
    >>> list(spans_of_kept(np.array([True, False, True, False]), np.array([0, 1, 3]), np.array([3, 4, 4])))
    [(0, 2), (1, 2), (2, 2)]
    """
    before = np.concatenate([[0], np.cumsum(kept)])
    return zip(before[lo].tolist(), before[hi].tolist(), strict=True)
