"""The granules of one store in one shard, as sorted runs: blobs that are written once and merged as they age.

Every micro-batch adds a run of what it touched and rewrites nothing. Four runs of similar size are merged into one, so
a row is rewritten only each time the state has grown fourfold. A run whose rows may all be coarser by now is rewritten
once. A run that no window reads any more is dropped without being read. :class:`History` notes what aging has lost,
so that a window registered later knows since when it sees every event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from panes.aggregates.component import Component
from panes.engine.partials import next_edge
from panes.frames.positions import Integers
from panes.planning.granularity import Tier
from panes.state.blob_store import BlobStore, CachedBlobs
from panes.state.granules import GranuleRows, pack_granules, settle, unpack_granules
from panes.timeline import Edges, Geometry, all_within

ALWAYS = -(2**62)
"""Before all events."""

_TOGETHER = 4
_LARGE = 1 << 17
"""A run of this many rows (some megabytes) is not merged any more."""
_HEAVY = 1 << 25
"""Neither is a run of this many bytes: sketches take kilobytes each, numbers a few bytes."""

_WORTH = 0.75
"""A run is rewritten as coarser granules if at most this share of its rows remains."""


@dataclass(frozen=True)
class Run:
    """One blob of granules.

    Parameters
    ----------
    first, last
        The starts of its first and its last granule.
    tier
        The tier that all of its rows have reached.
    """

    name: str
    rows: int
    size: int
    first: int
    last: int
    tier: int

    @property
    def size_class(self) -> int:
        """Runs of one class differ in size by less than a factor of four."""
        return (self.rows.bit_length() + 1) // 2


class Runs:
    """The sorted runs of a store, from the oldest to the youngest.

    Parameters
    ----------
    components, names
        The stored columns, and what they are called in blobs.
    listed
        The runs as a manifest lists them.
    """

    def __init__(
        self,
        components: Sequence[Component],
        names: Sequence[str],
        blob_store: BlobStore,
        listed: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        self._components = components
        encode, decode = partial(pack_granules, names=names), partial(unpack_granules, names=names)
        self._blobs = CachedBlobs(blob_store, encode, decode, "/" + ", ".join(names))
        self.listed = [Run(**run) for run in listed]

    def to_json(self) -> list[dict[str, Any]]:
        """List the runs for a manifest."""
        return [asdict(run) for run in self.listed]

    @property
    def rows(self) -> int:
        """The number of granules held; one that is in several runs counts several times."""
        return sum(run.rows for run in self.listed)

    @property
    def size(self) -> int:
        """The number of bytes held."""
        return sum(run.size for run in self.listed)

    def starting_from(self, instant: int) -> GranuleRows:
        """Return the granules of every run that has some starting at an instant or later."""
        found = [self._blobs.read(run.name) for run in self.listed if run.last >= instant]
        return GranuleRows.concat(found, self._components)

    def add(self, rows: GranuleRows) -> None:
        """Write the rows of a micro-batch as a run."""
        if len(rows):
            self.listed.append(self._write(rows, tier=0))

    def age(self, tiers: Sequence[Tier], watermark: int, cuts: Sequence[int] = ()) -> None:
        """Drop runs that no window needs, coarsen those old enough, and merge those of similar size."""
        for run in [run for run in self.listed if run.last + tiers[-1].reach <= watermark]:
            self._remove(run)
        for run in self.listed[:]:
            self._coarsen(run, tiers, watermark, cuts)
        while (chosen := self._alike()) is not None:
            rows = GranuleRows.concat([self._blobs.read(run.name) for run in chosen], self._components)
            for run in chosen:
                self._remove(run)
            rows = settle(rows, self._components, tiers, watermark, cuts)
            if len(rows):
                self.listed.append(self._write(rows, min(run.tier for run in chosen)))
                self.listed.sort(key=lambda run: run.last)

    def renumber(self, keys: Integers) -> None:
        """Rewrite all runs with new key ordinals: ``keys[old]`` is the new one, or -1 for a key to remove."""
        for run in self.listed[:]:
            rows = self._blobs.read(run.name)
            self._remove(run)
            new = keys[rows.key]
            rows = GranuleRows(new, rows.start, rows.end, rows.stored).where(new >= 0)
            if len(rows):
                self.listed.append(self._write(rows, run.tier))

    def used_keys(self) -> Integers:
        """Return the ordinals of the keys that have granules."""
        found = [np.unique(self._blobs.read(run.name).key) for run in self.listed]
        return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)

    def latest(self, keys: int) -> tuple[Integers, Integers]:
        """Return the end of each key's last granule, and how many granules it has."""
        latest, count = np.full(keys, -(2**62)), np.zeros(keys, np.int64)
        for run in self.listed:
            rows = self._blobs.read(run.name)
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
        before = self._blobs.read(run.name)
        after = settle(before, self._components, tiers, watermark, cuts)
        at = self.listed.index(run)
        if len(after) <= _WORTH * len(before):
            self._remove(run)
            if len(after):
                self.listed.insert(at, self._write(after, tier))
        else:
            self.listed[at] = Run(run.name, run.rows, run.size, run.first, run.last, tier)

    def _write(self, rows: GranuleRows, tier: int) -> Run:
        name, size = self._blobs.write(rows)
        return Run(name, len(rows), size, int(rows.start.min()), int(rows.start.max()), tier)

    def _remove(self, run: Run) -> None:
        self.listed.remove(run)
        self._blobs.remove(run.name)


def _widest(tier: Tier) -> int:
    return min(edge.period for edge in tier.edges)


@dataclass
class History:
    """What aging has lost: how far back the granules of a store reach, and how fine they are.

    Parameters
    ----------
    dropped
        Granules that start before this instant may be gone.
    coarse
        For some edges an instant: granules that end no later may be no finer than these edges.
    """

    dropped: int = ALWAYS
    coarse: dict[tuple[Edges, ...], int] = field(default_factory=dict)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> History:
        """Read the history in a manifest."""
        return cls(data["dropped"], {tuple(Edges(*e) for e in edges): upto for edges, upto in data["coarse"]})

    def to_json(self) -> dict[str, Any]:
        """Write the history for a manifest."""
        coarse = [[[(e.period, e.offset) for e in edges], upto] for edges, upto in self.coarse.items()]
        return {"dropped": self.dropped, "coarse": coarse}

    def age(self, tiers: Sequence[Tier], watermark: int) -> None:
        """Note what a watermark has coarsened or dropped."""
        for younger, tier in pairwise(tiers):
            self.coarse[tier.edges] = max(self.coarse.get(tier.edges, ALWAYS), watermark - younger.reach)
        # Granules that start no later than this are gone.
        last = np.array([watermark - tiers[-1].reach])
        ends = [int(next_edge(tiers[0].edges, last)[0])]
        ends += [end for edges, upto in self.coarse.items() if (end := int(next_edge(edges, last)[0])) <= upto]
        self.dropped = max(self.dropped, *ends)
        # The coarseness of dropped granules does not matter.
        self.coarse = {edges: upto for edges, upto in self.coarse.items() if upto > self.dropped}

    def sees_from(self, geometry: Geometry, finest: tuple[Edges, ...]) -> int:
        """Return the instant since which a window sees every event; no granule spans it.

        Examples
        --------
        >>> history = History(dropped=100, coarse={(Edges(60),): 500})
        >>> history.sees_from(Geometry(600, 60), (Edges(10),)), history.sees_from(Geometry(20, 20), (Edges(10),))
        (120, 500)
        """
        instants = [self.dropped]
        for edges, upto in self.coarse.items():
            if not all_within(geometry.edges(), edges):
                instants.append(upto)
        since = max(instants)
        return since if since == ALWAYS else self._on_an_edge(since, finest)

    def _on_an_edge(self, instant: int, finest: tuple[Edges, ...]) -> int:
        """Return the first instant, from the given one on, that lies within no granule."""
        while True:
            edge = _first_edge(finest, instant)
            for edges, upto in self.coarse.items():
                if (coarse_edge := _first_edge(edges, edge)) <= upto:
                    edge = coarse_edge
            if edge == instant:
                return edge
            instant = edge


def _first_edge(edges: tuple[Edges, ...], instant: int) -> int:
    """Return the first edge at or after an instant."""
    return int(next_edge(edges, np.array([instant - 1]))[0])
