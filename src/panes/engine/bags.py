"""Spans of a column of values: what exact distinct counts, quantiles and recurring items are read out of.

A window over values is a pair of indices as everywhere, but nothing is combined: a span of a span is a span of the
same column, and kernels answer from the column itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from panes.algebra.component import Collected
from panes.algebra.operations import Array
from panes.algebra.values import Bags, pack_bags
from panes.frames import Frame
from panes.frames.ranges import ranges
from panes.kernels.distinct import Distinct
from panes.kernels.pairs import Pairs
from panes.kernels.places import Places


class Column:
    """Collected values, with the kernels that have been built over them."""

    def __init__(self, collected: Collected) -> None:
        self.collected = collected
        self.n = collected.n

    @property
    def code(self) -> Array:
        """Of each value its place in the domain."""
        return self.collected.code

    @property
    def domain(self) -> pa.Array:
        """The different values, in order."""
        return self.collected.domain

    @cached_property
    def weight(self) -> Array:
        """How many values there are before each row, repetitions counted."""
        return np.concatenate([[0], np.cumsum(self.n)])

    @cached_property
    def distinct(self) -> Distinct:
        """Which rows are the first of their value."""
        return Distinct(self.code)

    @cached_property
    def places(self) -> Places:
        """Values by their place."""
        held = self.collected
        return Places(held.numbers, lambda: held.coded, held.n if held.repeats else None)

    @cached_property
    def by_value(self) -> tuple[Array, Array]:
        """All rows as code and row in one rising number, and how many values there are before each."""
        order = np.argsort(self.code, kind="stable")
        return self.code[order] * self._rows + order, np.concatenate([[0], np.cumsum(self.n[order])])

    def occurrences(self, code: Array, lo: Array, hi: Array) -> Array:
        """How often a value occurs in each pair ``[lo, hi)`` of rows."""
        places, before = self.by_value
        first, last = (np.searchsorted(places, code * self._rows + row) for row in (lo, hi))
        found: Array = before[last] - before[first]
        return found

    @property
    def _rows(self) -> int:
        return len(self.code) + 1


@dataclass(frozen=True, eq=False)
class Spans(Bags):
    """Pairs of rows of a column of values, in order; each is a bag.

    Parameters
    ----------
    begin, end
        The rows of each bag, half-open.
    """

    column: Column
    begin: Array
    end: Array

    @classmethod
    def of(cls, collected: Collected) -> Spans:
        """The stored bags themselves."""
        return cls(Column(collected), collected.offsets[:-1], collected.offsets[1:])

    def reduce(self, frame: Frame, *, some_empty: bool = False, pairs: Pairs | None = None) -> Spans:
        """The bags of every instance of a frame; the bags of an instance follow one another."""
        if not len(self.begin):
            return Spans(self.column, frame.lo, frame.lo)
        rows = np.append(self.begin, self.end[-1])
        begin = rows[frame.lo]
        return Spans(self.column, begin, np.where(frame.hi > frame.lo, self.end[frame.hi - 1], begin))

    def stored(self) -> pa.Array:
        """Back in the storage type."""
        bag, row = self._expanded()
        width = max(len(self.column.domain), 1)
        found, place = np.unique(bag * width + self.column.code[row], return_inverse=True)
        n = np.zeros(len(found), np.int64)
        np.add.at(n, place, self.column.n[row])
        return pack_bags(found // width, found % width, n, len(self.begin), self.column.domain)

    def answers(self) -> Spans:
        """What aggregates are read out of: the spans themselves."""
        return self

    def sizes(self) -> Array:  # noqa: D102
        sizes: Array = self.column.weight[self.end] - self.column.weight[self.begin]
        return sizes

    def distinct_counts(self) -> Array:  # noqa: D102
        return self.column.distinct.counts(self.begin, self.end)

    def distinct(self) -> pa.Array:  # noqa: D102
        bag, row = self.column.distinct.rows(self.begin, self.end)
        code = self.column.code[row]
        order = np.lexsort((code, bag))
        length = np.bincount(bag, minlength=len(self.begin))
        offsets = np.concatenate([[0], np.cumsum(length)]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), self.values_of(code[order]))

    def at(self, *ranks: Array) -> tuple[pa.Array, ...]:  # noqa: D102
        places, restore = self.column.places, self.column.collected.restore
        some = self.end > self.begin
        if some.all():
            return tuple(restore(found, None) for found in places.at(self.begin, self.end, *ranks))
        found = places.at(self.begin[some], self.end[some], *(rank[some] for rank in ranks))
        place = pa.array(np.cumsum(some) - 1, mask=~some)
        return tuple(restore(numbers, None).take(place) for numbers in found)

    def in_all(self, others: tuple[Bags, ...]) -> tuple[Array, Array, Array]:  # noqa: D102
        bag, row = self.column.distinct.rows(self.begin, self.end)
        order = np.lexsort((self.column.code[row], bag))
        bag, code = bag[order], self.column.code[row[order]]
        total = self.column.occurrences(code, self.begin[bag], self.end[bag])
        for other in others:
            assert isinstance(other, Spans)
            assert other.column is self.column
            n = self.column.occurrences(code, other.begin[bag], other.end[bag])
            some = n > 0
            bag, code, total = bag[some], code[some], (total + n)[some]
        return bag, code, total

    def values_of(self, code: Array) -> pa.Array:  # noqa: D102
        return self.column.domain.take(pa.array(code))

    def _expanded(self) -> tuple[Array, Array]:
        """Every row of every bag: the bag and the row."""
        width = self.end - self.begin
        bag = np.repeat(np.arange(len(width)), width)
        return bag, ranges(self.begin, width)
