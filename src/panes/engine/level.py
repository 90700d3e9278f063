"""A level: a sorted column of partials with its components ready for kernels; windows read it and become levels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from panes.algebra.component import Collected, Component, Decoded, any_valid
from panes.algebra.operations import Array, State
from panes.engine.bags import Spans
from panes.frames import Frame, Positions
from panes.kernels import Reducer
from panes.kernels.pairs import Pairs
from panes.timeline import Edges


@dataclass(frozen=True)
class Partials:
    """One component of a level."""

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
            Those of the frame, where several components of a level share them.
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


def gathered_partials(gathered: Decoded | Collected, kernel: str | None = None) -> Partials | Spans:
    """Partials that a component has gathered itself."""
    return Partials(gathered, kernel) if isinstance(gathered, Decoded) else Spans.of(gathered)


def state_of(partials: Partials | Spans) -> State:
    """The state of partials that are combined."""
    assert isinstance(partials, Partials)
    return partials.decoded.state


_NOWHERE = 2**62


@dataclass(frozen=True)
class Level:
    """Positions, and the components that are known there."""

    positions: Positions
    partials: dict[int, Partials | Spans]

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
