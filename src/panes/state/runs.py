"""The granules of one store in one shard, as runs: blobs that are written once and merged as they age.

Every micro-batch adds a run of what it touched and rewrites nothing. Runs of like size are merged, four at a time, so
that a row is written again only as often as the state has grown fourfold; a run whose rows may all be coarser by now
is rewritten once; a run that no window looks at any more is dropped without being read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from typing import Any

import numpy as np

from panes.aggregates.component import Component
from panes.frames.positions import Integers
from panes.planning.granularity import Tier
from panes.state.blob_store import CACHE, BlobStore, new_name
from panes.state.blobs import pack_granules, unpack_granules
from panes.state.granules import GranuleRows, settled

_TOGETHER = 4
_LARGE = 1 << 17
"""Rows from which on a run is not merged with others of its size: some megabytes."""
_HEAVY = 1 << 25
"""Bytes from which on it is not: sketches take kilobytes each, where numbers take a few bytes."""

_WORTH = 0.75
"""A run is rewritten for coarser granules where at most this part of its rows remains."""


@dataclass(frozen=True)
class Run:
    """One blob of granules.

    Parameters
    ----------
    first, last
        Where its first and its last granule start.
    tier
        The tier whose granules all of its rows have reached.
    """

    name: str
    rows: int
    size: int
    first: int
    last: int
    tier: int

    @property
    def size_class(self) -> int:
        """Runs of one class differ less than fourfold."""
        return (self.rows.bit_length() + 1) // 2


class Runs:
    """The runs of a store, from the oldest to the youngest."""

    def __init__(self, components: Sequence[Component], blob_store: BlobStore, listed: Iterable[Run] = ()) -> None:
        self._components, self._blob_store = components, blob_store
        self._mark = "/" + ", ".join(component.name for component in components)
        self.listed = list(listed)

    @classmethod
    def from_json(cls, components: Sequence[Component], blob_store: BlobStore, data: list[dict[str, Any]]) -> Runs:
        """The runs that a manifest lists."""
        return cls(components, blob_store, (Run(**run) for run in data))

    def to_json(self) -> list[dict[str, Any]]:
        """The runs as a manifest lists them."""
        return [asdict(run) for run in self.listed]

    @property
    def rows(self) -> int:
        """How many granules are held, counting those that several runs have."""
        return sum(run.rows for run in self.listed)

    @property
    def size(self) -> int:
        """How many bytes are held."""
        return sum(run.size for run in self.listed)

    def starting_from(self, instant: int) -> GranuleRows:
        """The granules of every run that has some from an instant on, one run after another."""
        found = [self._read(run) for run in self.listed if run.last >= instant]
        return reduce(GranuleRows.and_, found, GranuleRows.empty(self._components))

    def add(self, rows: GranuleRows) -> None:
        """Write what a micro-batch has touched."""
        if len(rows):
            self.listed.append(self._write(rows, tier=0))

    def age(self, tiers: Sequence[Tier], watermark: int, cuts: Sequence[int] = ()) -> None:
        """Drop what no window needs any more, make coarse what is old enough, merge what has like size."""
        for run in [run for run in self.listed if run.last + tiers[-1].reach <= watermark]:
            self._forget(run)
        for run in self.listed[:]:
            self._coarsen(run, tiers, watermark, cuts)
        while (chosen := self._alike()) is not None:
            rows = reduce(GranuleRows.and_, map(self._read, chosen))
            for run in chosen:
                self._forget(run)
            rows = settled(rows, self._components, tiers, watermark, cuts)
            if len(rows):
                self.listed.append(self._write(rows, min(run.tier for run in chosen)))
                self.listed.sort(key=lambda run: run.last)

    def renumber(self, keys: Integers) -> None:
        """Rewrite all runs with other ordinals for keys: ``keys[old]`` is the new one, or -1 for a key to forget."""
        for run in self.listed[:]:
            rows = self._read(run)
            self._forget(run)
            new = keys[rows.key]
            rows = GranuleRows(new, rows.start, rows.end, rows.stored).where(new >= 0)
            if len(rows):
                self.listed.append(self._write(rows, run.tier))

    def used_keys(self) -> Integers:
        """The ordinals of the keys that have granules."""
        found = [np.unique(self._read(run).key) for run in self.listed]
        return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)

    def latest(self, keys: int) -> tuple[Integers, Integers]:
        """Where the last granule of each key ends, and how many granules it has."""
        latest, count = np.full(keys, -(2**62)), np.zeros(keys, np.int64)
        for run in self.listed:
            rows = self._read(run)
            np.maximum.at(latest, rows.key, rows.end)
            count += np.bincount(rows.key, minlength=keys)
        return latest, count

    def _alike(self) -> list[Run] | None:
        by_class: dict[int, list[Run]] = {}
        for run in self.listed:
            if run.rows < _LARGE and run.size < _HEAVY:
                found = by_class.setdefault(run.size_class, [])
                found.append(run)
                if len(found) == _TOGETHER:
                    return found
        return None

    def _coarsen(self, run: Run, tiers: Sequence[Tier], watermark: int, cuts: Sequence[int]) -> None:
        tier = run.tier
        # A granule of the next tier may begin before the run's last row and end up to its period later.
        while tier + 1 < len(tiers) and run.last + _widest(tiers[tier + 1]) + tiers[tier].reach <= watermark:
            tier += 1
        if tier == run.tier:
            return
        before = self._read(run)
        after = settled(before, self._components, tiers, watermark, cuts)
        at = self.listed.index(run)
        if len(after) <= _WORTH * len(before):
            self._forget(run)
            if len(after):
                self.listed.insert(at, self._write(after, tier))
        else:
            self.listed[at] = Run(run.name, run.rows, run.size, run.first, run.last, tier)

    def _read(self, run: Run) -> GranuleRows:
        def load() -> tuple[GranuleRows, int]:
            return unpack_granules(self._blob_store.get(run.name), self._components), 3 * run.size

        return CACHE.get(run.name + self._mark, load)

    def _write(self, rows: GranuleRows, tier: int) -> Run:
        data, name = pack_granules(rows, self._components), new_name()
        self._blob_store.put(name, data)
        CACHE.put(name + self._mark, rows, 3 * len(data))
        return Run(name, len(rows), len(data), int(rows.start.min()), int(rows.start.max()), tier)

    def _forget(self, run: Run) -> None:
        self.listed.remove(run)
        self._blob_store.remove(run.name)
        CACHE.drop(run.name + self._mark)


def _widest(tier: Tier) -> int:
    return min(edge.period for edge in tier.edges)
