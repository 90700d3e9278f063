"""The component behind exact distinct counts, quantiles and recurring items: the values themselves, with counts.

A partial is a bag: every value that occurred, once, in order, with how often it did. All aggregates over one column
read one such component, whatever they ask of it. Bags grow with what they hold, so kernels do not combine them:
:class:`Bags` answers for many spans of a column at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.aggregates.component import Collected, Component, Decoded, validity
from panes.aggregates.operations import Array, Operations, State
from panes.aggregates.ordering import Codes, codes


class SortedBags(ABC):
    """Many bags of values, of which sizes and places are known: all that quantiles need."""

    @abstractmethod
    def sizes(self) -> Array:
        """How many values each bag has, repetitions counted."""

    @abstractmethod
    def at(self, *ranks: Array) -> tuple[pa.Array, ...]:
        """The values at some places of each sorted bag, counted from 0; null where a bag is empty."""


class Bags(SortedBags):
    """Many bags of values, one per span of a column."""

    @abstractmethod
    def distinct_counts(self) -> Array:
        """How many different values each bag has."""

    @abstractmethod
    def distinct(self) -> pa.Array:
        """The different values of each bag, in order: a list each, empty where there are none."""

    @abstractmethod
    def in_all(self, others: tuple[Bags, ...]) -> tuple[Array, Array, Array]:
        """Which values are in a bag and in its counterparts: the bag, the value's code, how often in all together."""

    @abstractmethod
    def values_of(self, code: Array) -> pa.Array:
        """The values that codes stand for."""


def pack_bags(bag: Array, code: Array, n: Array, bags: int, domain: pa.Array) -> pa.Array:
    """Values by bag and code, in this order and each once, as stored bags; null where a bag has none."""
    offsets = _offsets(bag, bags).astype(np.int32)
    entries = pa.StructArray.from_arrays(
        [domain.take(pa.array(code)), pa.array(n, pa.int64())], fields=list(_entry(domain.type))
    )
    empty = offsets[1:] == offsets[:-1]
    return pa.ListArray.from_arrays(
        pa.array(offsets), entries, type=_storage(domain.type), mask=pa.array(empty) if empty.any() else None
    )


def ordered_codes(values: pa.Array) -> Codes:
    """Values as numbers in their order. -0.0 is 0.0, and NaN equals itself.

    Examples
    --------
    >>> ordered_codes(pa.array([-0.0, 2.5])).values, ordered_codes(pa.array(["b", "a", "b"])).values
    (array([0. , 2.5]), array([1, 0, 1]))
    """
    coded = codes(values)
    return replace(coded, values=coded.values + 0.0) if coded.values.dtype.kind == "f" else coded


def collected(lo: Array, hi: Array, values: pa.Array) -> Collected:
    """The bag of every span ``[lo, hi)`` of values: spans and values sorted together once, not span by span.

    Examples
    --------
    >>> bags = collected(np.array([0, 3]), np.array([3, 5]), pa.array(["b", "a", "b", None, "a"]))
    >>> bags.domain.to_pylist(), bags.offsets.tolist(), bags.code.tolist(), bags.n.tolist()
    (['a', 'b'], [0, 2, 3], [0, 1, 0], [1, 2, 1])
    """
    width = hi - lo
    if not values.null_count and len(lo) == len(values) and (lo == np.arange(len(lo))).all() and (width == 1).all():
        # Every value is a bag of its own: nothing to merge.
        coded = ordered_codes(values)
        return Collected(coded.values, np.ones(len(lo), np.int64), np.arange(len(lo) + 1), coded.restore)
    bag = np.repeat(np.arange(len(lo)), width)
    rows = np.arange(len(bag)) + np.repeat(lo - (np.cumsum(width) - width), width)
    present = values.is_valid().to_numpy(zero_copy_only=False)[rows]
    bag, coded = bag[present], ordered_codes(values.take(pa.array(rows[present])))
    each = Collected(coded.values, np.ones(len(bag), np.int64), _offsets(bag, len(lo)), coded.restore)
    if int(width.max(initial=0)) <= 1:
        return each
    distinct = max(len(each.domain), 1)
    found, n = np.unique(bag * distinct + each.code, return_counts=True)
    offsets = _offsets(found // distinct, len(lo))
    return Collected.ranked(found % distinct, n.astype(np.int64, copy=False), offsets, each.domain)


def _offsets(bag: Array, bags: int) -> Array:
    """Where each bag begins among values that are sorted by bag, and the end of the last."""
    offsets = np.zeros(bags + 1, np.int64)
    np.cumsum(np.bincount(bag, minlength=bags), out=offsets[1:])
    return offsets


@dataclass(frozen=True)
class Values(Component):
    """The values of an argument with their counts; null when there were none. Built in Python."""

    kind: ClassVar[str] = "values"
    in_jvm: ClassVar[bool] = False

    @property
    def storage(self) -> pa.DataType:
        return _storage(self.types[0])

    def lift(self, *values: pa.Array) -> pa.Array:
        rows = np.arange(len(values[0]))
        alone = self.gather(rows, rows + 1, *values)
        return pack_bags(np.repeat(rows, np.diff(alone.offsets)), alone.code, alone.n, len(rows), alone.domain)

    def gather(self, lo: Array, hi: Array, *values: pa.Array) -> Collected:
        return collected(lo, hi, values[0])

    def collect(self, stored: pa.Array) -> Collected:
        offsets = np.zeros(len(stored) + 1, np.int64)
        np.cumsum(pc.list_value_length(stored).fill_null(0).to_numpy(zero_copy_only=False), out=offsets[1:])
        entries = stored.flatten()
        coded = ordered_codes(entries.field("value"))
        return Collected(coded.values, entries.field("n").to_numpy(zero_copy_only=False), offsets, coded.restore)

    def decode(self, stored: pa.Array) -> Decoded:
        """Bags as Python counters: what any kernel can combine, and slow; engines collect instead."""
        column = self.collect(stored)
        bags = np.empty(len(stored), dtype=object)
        for i, (lo, hi) in enumerate(zip(column.offsets[:-1], column.offsets[1:], strict=True)):
            bags[i] = Counter(dict(zip(column.code[lo:hi].tolist(), column.n[lo:hi].tolist(), strict=True)))

        def restore(state: State, nulls: Array | None) -> pa.Array:
            flat = [(bag, code, n) for bag, found in enumerate(state[0]) for code, n in sorted(found.items())]
            parts = np.array(flat, np.int64).reshape(-1, 3).T
            return pack_bags(parts[0], parts[1], parts[2], len(state[0]), column.domain)

        return Decoded(Operations(identity=(_NOTHING,), combine=_together), (bags,), validity(stored), restore)

    def decode_lasting(self, stored: pa.Array) -> Decoded:
        raise NotImplementedError(f"{self.name} numbers the values of one column: collect them instead")


_NOTHING: Counter[int] = Counter()


def _together(a: State, b: State) -> State:
    both = np.empty(len(a[0]), dtype=object)
    for i, (left, right) in enumerate(zip(a[0], b[0], strict=True)):
        both[i] = left + right
    return (both,)


def _entry(type_: pa.DataType) -> pa.StructType:
    return pa.struct([("value", type_), ("n", pa.int64())])


def _storage(type_: pa.DataType) -> pa.DataType:
    return pa.list_(_entry(type_))
