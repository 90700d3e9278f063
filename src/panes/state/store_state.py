"""What a shard keeps of one store between micro-batches, and how a manifest records it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from panes.aggregates.component import Component
from panes.aggregates.operations import Array
from panes.expressions.coercion import name_of
from panes.frames.positions import Integers
from panes.planning.granularity import Tier
from panes.state.blob_store import BlobStore
from panes.state.granules import DeliveredPanes, GranuleRows, settle
from panes.state.job import JobStore
from panes.state.key_dictionary import KeyDictionary
from panes.state.key_eviction import Evictions
from panes.state.runs import ALWAYS, History, Runs
from panes.state.stored_columns import Record, find_record, record_of
from panes.timeline import Edges, Geometry

_FEW_KEYS = 1024


@dataclass
class StoreState:
    """The keys and granules of one store in one shard, and what was lost of them.

    Parameters
    ----------
    since
        The instant since which each declared window sees everything, by its lifespan as text.
    checked
        The number of keys when keys without granules were last looked for.
    columns
        The record of each component, whose name is that of its column in blobs.
    """

    store: JobStore
    dictionary: KeyDictionary
    runs: Runs
    history: History
    since: dict[str, int]
    evictions: Evictions
    checked: int
    columns: list[Record]

    @classmethod
    def read(cls, store: JobStore, blob_store: BlobStore, entry: Mapping[str, Any]) -> StoreState:
        """Read the state that a manifest records; without an entry it is that before the first micro-batch."""
        components = store.program.components
        columns = [_column(component, entry.get("components", ())) for component in components]
        runs = Runs(components, [column["name"] for column in columns], blob_store, entry.get("runs", ()))
        history = History.from_json(entry["history"]) if entry else History()
        before = tuple(Edges(period, offset) for period, offset in entry.get("edges", ()))
        if before not in ((), store.program.edges):
            # The granules held have the edges of the earlier run, whatever the edges are from now on.
            upto = max((run.last for run in runs.listed), default=ALWAYS)
            history.coarse[before] = max(upto + max(e.period for e in before), history.coarse.get(before, ALWAYS))
        listed, checked = entry.get("evictions", ((), ALWAYS))
        evictions = Evictions([(ordinal, instant) for ordinal, instant in listed], checked)
        dictionary = KeyDictionary(store.keys, blob_store, entry.get("keys", ()))
        since, keys_checked = entry.get("since", {}), entry.get("checked", 0)
        return cls(store, dictionary, runs, history, since, evictions, keys_checked, columns)

    def to_json(self) -> dict[str, Any]:
        """Record the state for a manifest."""
        return {
            "by": self.store.keys.names,
            "per_event": self.store.offer.per_event,
            "kept": self.store.kept,
            "key_types": [name_of(type_) for type_ in self.store.keys.types],
            "components": self.columns,
            "edges": [[e.period, e.offset] for e in self.store.program.edges],
            "keys": self.dictionary.listed,
            "runs": self.runs.to_json(),
            "checked": self.checked,
            "evictions": [self.evictions.listed, self.evictions.checked],
            "since": {name: self.since[name] for name in self.store.window_names if name in self.since},
            "history": self.history.to_json(),
        }

    def sees_from(self, geometry: Geometry) -> int:
        """Return the instant since which a window declared now sees everything."""
        return self.history.sees_from(geometry, self.store.program.edges)

    def declared_since(self) -> list[int]:
        """Return the same for each declared view, as of the run that declared its window first."""
        names = self.store.window_names
        for name, lifespan in zip(names, self.store.lifespans, strict=True):
            if name not in self.since:
                self.since[name] = self.sees_from(lifespan)
        return [self.since[name] for name in names]

    def receive(self, delivered: Sequence[DeliveredPanes], later_than: int) -> list[GranuleRows]:
        """Return the delivered panes that start later than an instant, with ordinals of the dictionary as keys."""
        parts = []
        for delivery in delivered:
            panes = delivery.panes.where(delivery.panes.start > later_than)
            if len(panes):
                used, local = np.unique(panes.key, return_inverse=True)
                ordinals = self.dictionary.ordinals(delivery.keys.take(pa.array(used)))
                parts.append(GranuleRows(ordinals[local], panes.start, panes.end, panes.stored))
        return parts

    def add(self, rows: GranuleRows, tiers: Sequence[Tier], watermark: int, cuts: Sequence[int]) -> None:
        """Keep the rows of a micro-batch, and let everything age up to its watermark."""
        self.runs.add(settle(rows, self.store.program.components, tiers, watermark, cuts))
        self.runs.age(tiers, watermark, cuts)
        self.history.age(tiers, watermark)
        self.evictions.drop_before(watermark - tiers[-1].reach)

    def evict(self, evicted: Array) -> None:
        """Remove keys with all their granules; keys that appear from now on may lack what these had."""
        runs = self.runs.starting_from(ALWAYS)
        until = int(runs.end[evicted[runs.key]].max())
        self.keep_keys(np.flatnonzero(~evicted))
        self.evictions.listed.append((len(self.dictionary), until))

    def keep_keys(self, chosen: Integers) -> None:
        """Remove all other keys and their granules."""
        new = self.dictionary.keep(chosen)
        self.runs.renumber(new)
        self.evictions.renumber(new)

    def remove_unused_keys(self) -> None:
        """Remove keys without granules, once the number of keys has doubled."""
        if len(self.dictionary) <= 2 * self.checked + _FEW_KEYS:
            return
        used = self.runs.used_keys()
        if len(used) <= len(self.dictionary) // 2:
            self.keep_keys(used)
        self.checked = len(self.dictionary)


def _column(component: Component, records: Sequence[Record]) -> Record:
    """Return the record of a component: under the name that it has in blobs already, with the types that it has now."""
    now, before = record_of(component), find_record(component, records)
    return now if before is None else {**now, "name": before["name"], "arguments": before["arguments"]}


def blobs_of(data: dict[str, Any]) -> Iterator[str]:
    """Return the names of all blobs that a manifest lists for a store."""
    yield from (name for name, _ in data["keys"])
    yield from (run["name"] for run in data["runs"])
