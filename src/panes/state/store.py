"""What a shard keeps of one store between micro-batches, and how a manifest describes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from panes.frames.positions import Integers
from panes.state.blob_store import BlobStore
from panes.state.granules import GranuleRows
from panes.state.history import ALWAYS, History
from panes.state.job import Store
from panes.state.key_dictionary import KeyDictionary
from panes.state.limits import Evictions
from panes.state.packing import Delivered
from panes.state.runs import Runs
from panes.timeline import Edges, Geometry

_FEW_KEYS = 1024


@dataclass
class StoreState:
    """The keys and granules of one store in one shard, and what is known about them.

    Parameters
    ----------
    since
        Since when each declared window sees everything, by its lifespan as text.
    checked
        How many keys there were when the dictionary was last looked through for keys without granules.
    """

    store: Store
    dictionary: KeyDictionary
    runs: Runs
    history: History
    since: dict[str, int]
    evictions: Evictions
    checked: int = 0

    @classmethod
    def new(cls, store: Store, blob_store: BlobStore) -> StoreState:
        """Before the first micro-batch."""
        runs = Runs(store.program.components, blob_store)
        return cls(store, KeyDictionary(store.keys, blob_store), runs, History(), {}, Evictions())

    @classmethod
    def from_json(cls, store: Store, blob_store: BlobStore, data: dict[str, Any]) -> StoreState:
        """As a manifest has it."""
        history = History.from_json(data["history"])
        before = tuple(Edges(period, offset) for period, offset in data["edges"])
        if before != store.program.edges:
            # What is held has the panes of before, whatever the panes are from now on.
            upto = max((run["last"] for run in data["runs"]), default=ALWAYS)
            history.coarse[before] = max(upto + max(e.period for e in before), history.coarse.get(before, ALWAYS))
        evictions = Evictions([(ordinal, instant) for ordinal, instant in data["evictions"][0]], data["evictions"][1])
        runs = Runs.from_json(store.program.components, blob_store, data["runs"])
        dictionary = KeyDictionary(store.keys, blob_store, data["keys"])
        return cls(store, dictionary, runs, history, data["since"], evictions, data["checked"])

    def to_json(self) -> dict[str, Any]:
        """For a manifest."""
        windows = [str(view.window.lifespan) for view in self.store.program.views]
        return {
            "by": self.store.keys.names,
            "per_event": self.store.offer.per_event,
            "kept": self.store.kept,
            "components": [component.name for component in self.store.program.components],
            "edges": [[e.period, e.offset] for e in self.store.program.edges],
            "keys": self.dictionary.listed,
            "runs": self.runs.to_json(),
            "checked": self.checked,
            "evictions": [self.evictions.listed, self.evictions.looked],
            "since": {window: self.since[window] for window in windows if window in self.since},
            "history": self.history.to_json(),
        }

    def sees_from(self, geometry: Geometry) -> int:
        """Since when a window that comes now sees everything."""
        return self.history.sees_from(geometry, self.store.program.edges)

    def declared_since(self, geometry: Geometry) -> int:
        """Since when a declared window sees everything: from the start of the run that first declared it."""
        return self.since.setdefault(str(geometry), self.sees_from(geometry))

    def taken_in(self, delivered: Sequence[Delivered], later_than: int) -> GranuleRows:
        """Panes of a micro-batch that start later than an instant, under the ordinals of the dictionary."""
        parts = []
        for delivery in delivered:
            panes = delivery.panes.where(delivery.panes.start > later_than)
            if len(panes):
                used, local = np.unique(panes.key, return_inverse=True)
                ordinals = self.dictionary.ordinals(delivery.keys.take(pa.array(used)))
                parts.append(GranuleRows(ordinals[local], panes.start, panes.end, panes.stored))
        return reduce(GranuleRows.and_, parts, GranuleRows.empty(self.store.program.components))

    def keep_keys(self, chosen: Integers) -> None:
        """Forget all other keys, and their granules."""
        new = self.dictionary.keep(chosen)
        self.runs.renumber(new)
        self.evictions.renumber(new)

    def forget_unused_keys(self) -> None:
        """Forget keys without granules, looking only when their number has doubled."""
        if len(self.dictionary) <= 2 * self.checked + _FEW_KEYS:
            return
        used = self.runs.used_keys()
        if len(used) <= len(self.dictionary) // 2:
            self.keep_keys(used)
        self.checked = len(self.dictionary)


def blobs_of(data: dict[str, Any]) -> Iterator[str]:
    """The names of all blobs that a manifest lists for a store."""
    yield from (name for name, _ in data["keys"])
    yield from (run["name"] for run in data["runs"])
