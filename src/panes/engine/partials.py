"""A sorted column of partials, with its components ready for kernels; windows read it and become columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from panes.aggregates.bags import Bags, pack_bags
from panes.aggregates.component import Collected, Component, Decoded, any_valid
from panes.aggregates.operations import Array, State
from panes.frames import Frame, Positions
from panes.frames.positions import ranges
from panes.kernels import Reducer
from panes.kernels.distinct import Distinct
from panes.kernels.kernel import Pairs
from panes.kernels.order_statistics import Places
from panes.timeline import Edges

# Spans of a column of values: what exact distinct counts, quantiles and recurring items are read out of.
#
# A window over values is a pair of indices as everywhere, but nothing is combined: a span of a span is a span of the
# same column, and kernels answer from the column itself.


class CollectedColumn:
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

    column: CollectedColumn
    begin: Array
    end: Array

    @classmethod
    def of(cls, collected: Collected) -> Spans:
        """The stored bags themselves."""
        return cls(CollectedColumn(collected), collected.offsets[:-1], collected.offsets[1:])

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


@dataclass(frozen=True)
class Partials:
    """One component of a column."""

    decoded: Decoded
    kernel: str | None = None

    @cached_property
    def _reducer(self) -> Reducer:
        return Reducer(self.decoded.operations, self.decoded.state, kernel=self.kernel)

    @cached_property
    def _count_valid(self) -> Array | None:
        return None if self.decoded.valid is None else any_valid(self.decoded.valid)

    def reduce(self, frame: Frame, *, some_empty: bool = False, pairs: Pairs | None = None) -> Partials:
        """This component over every instance of a frame, of which some may hold no row.

        Parameters
        ----------
        pairs
            Those of the frame, where several components of a column share them.
        """
        state = self._reducer.reduce(frame.lo, frame.hi) if pairs is None else self._reducer.reduce_pairs(pairs)
        valid = frame.hi > frame.lo if some_empty else None
        if self._count_valid is not None:
            valid = self._count_valid[frame.hi] > self._count_valid[frame.lo]
        source = self.decoded
        return Partials(Decoded(source.operations, state, valid, source.restore), self.kernel)

    def stored(self) -> pa.Array:
        """Back in the storage type, nulls where no event had a value."""
        valid = self.decoded.valid
        return self.decoded.restore(self.decoded.state, None if valid is None else ~valid)

    def answers(self) -> pa.Array:
        """What aggregates are read out of."""
        return self.stored()


def partials_of(component: Component, stored: pa.Array, kernel: str | None = None) -> Partials | Spans:
    """A stored column made ready for windows."""
    collected = component.collect(stored)
    return Partials(component.decode(stored), kernel) if collected is None else Spans.of(collected)


def combine_stored(components: Sequence[Component], stored: Sequence[pa.Array], frame: Frame) -> list[pa.Array]:
    """Stored columns with a row per instance of a frame, which combines the rows that it holds."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return [partials_of(c, column).reduce(frame).stored() for c, column in zip(components, stored, strict=True)]


def sorted_column(components: Sequence[Component], stored: Sequence[pa.Array], positions: Positions) -> SortedColumn:
    """Stored columns ready for windows, at their positions."""
    columns = zip(components, stored, strict=True)
    return SortedColumn(positions, {i: partials_of(c, column) for i, (c, column) in enumerate(columns)})


def gathered_partials(gathered: Decoded | Collected, kernel: str | None = None) -> Partials | Spans:
    """Partials that a component has gathered itself."""
    return Partials(gathered, kernel) if isinstance(gathered, Decoded) else Spans.of(gathered)


def state_of(partials: Partials | Spans) -> State:
    """The state of partials that are combined."""
    assert isinstance(partials, Partials)
    return partials.decoded.state


_NOWHERE = 2**62


@dataclass(frozen=True)
class SortedColumn:
    """Positions, and the components that are known there."""

    positions: Positions
    partials: dict[int, Partials | Spans]

    def reduce(
        self, components: Iterable[int], frame: Frame, *, some_empty: bool = False
    ) -> dict[int, Partials | Spans]:
        """Some components over every instance of a frame."""
        return {i: self.partials[i].reduce(frame, some_empty=some_empty) for i in components}

    def span(self, component: int, since: int | None = None) -> tuple[Array, Array]:
        """Per key: where its first row with a positive count begins, and its last one ends; nowhere without any.

        Parameters
        ----------
        since
            Rows before this instant do not count.
        """
        some = positive(self.partials[component])
        if since is not None:
            some = some & (self.positions.start >= since)
        key = np.repeat(np.arange(self.positions.keys), np.diff(self.positions.key_starts))[some]
        first, last = (np.full(self.positions.keys, edge) for edge in (_NOWHERE, -_NOWHERE))
        np.minimum.at(first, key, self.positions.start[some])
        np.maximum.at(last, key, self.positions.end[some])
        return first, last


def positive(counts: Partials | Spans) -> Array:
    """Where a component that counts events has counted any."""
    some: Array = state_of(counts)[0] > 0
    return some


def panes_of(edges: tuple[Edges, ...], positions: Positions) -> Frame:
    """The panes between edges that hold at least one row: the finest column of a store."""
    start = floor_to_edges(edges, positions.start)
    change = np.ones(len(start), dtype=bool)
    change[1:] = start[1:] != start[:-1]
    occupied = positions.key_starts[:-1][np.diff(positions.key_starts) > 0]
    change[occupied] = True
    lo = np.flatnonzero(change)
    hi = np.append(lo[1:], len(start))[: len(lo)]
    key = np.searchsorted(positions.key_starts, lo, side="right") - 1
    return Frame(key, start[lo], lo, hi)


def floor_to_edges(edges: tuple[Edges, ...], instants: Array) -> Array:
    """The last edge at or before each instant."""
    floors = (instants - (instants - e.offset) % e.period for e in edges)
    latest: Array = next(floors)
    for other in floors:
        latest = np.maximum(latest, other)
    return latest


def next_edge(edges: tuple[Edges, ...], instants: Array) -> Array:
    """The first edge after each instant."""
    nexts = (instants - (instants - e.offset) % e.period + e.period for e in edges)
    soonest: Array = next(nexts)
    for other in nexts:
        soonest = np.minimum(soonest, other)
    return soonest


def key_starts_of(frame: Frame, keys: int) -> Array:
    """Where the instances of each key begin in a frame, and its length."""
    return np.searchsorted(frame.key, np.arange(keys + 1)).astype(np.int64, copy=False)
