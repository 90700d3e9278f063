"""What a shard writes about its state, and whether that state can serve a job."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeAlias

from panes.errors import StateError
from panes.state.blobs import FORMAT
from panes.state.job import JobOptions, Store

Manifest: TypeAlias = dict[str, Any]
Identity: TypeAlias = tuple[bool, tuple[str, ...]]


def read_manifest(data: bytes | None, stores: Sequence[Store], options: JobOptions) -> Manifest:
    """What was written last, or nothing before the first time; a manifest that cannot serve the job is refused."""
    if data is None:
        return {}
    manifest: Manifest = json.loads(data)
    if manifest["format"] != FORMAT:
        raise StateError(
            f"the checkpoint was written in format {manifest['format']}, and this version of Panes reads {FORMAT}. "
            "Start with a new checkpoint, or run the version that wrote it."
        )
    if "declared" in manifest:
        raise StateError(
            "the checkpoint was written by windows that go by policies or by events, and this run has windows over "
            "time. Start with a new checkpoint, or with the queries of before."
        )
    for name, now in (("shards", options.shards), ("mode", options.mode)):
        if manifest[name] != now:
            raise StateError(
                f"the checkpoint was written with {name}={manifest[name]!r}, and this run has {name}={now!r}. Give it "
                f"{name}={manifest[name]!r}, or a new checkpoint."
            )
    entries = entries_of(manifest)
    for store in stores:
        _check(entries.get(identity(store)), store)
    return manifest


def entries_of(manifest: Manifest) -> dict[Identity, Manifest]:
    """What is kept of each store, by its identity."""
    # Before there were answers per event, nobody noted that a store has none.
    return {_known_by(entry["by"], entry.get("per_event", False)): entry for entry in manifest.get("stores", [])}


def identity(store: Store) -> Identity:
    """What a store is known by."""
    return _known_by(store.keys.names, store.offer.per_event)


def _known_by(names: Sequence[str], per_event: bool) -> Identity:
    return per_event, tuple(name.lower() for name in names)


def _check(entry: Manifest | None, store: Store) -> None:
    if entry is None:
        raise StateError(
            f"the checkpoint keeps nothing{' for sliding windows' if store.offer.per_event else ''} by "
            f"({', '.join(store.offer.keys)}): it was written by other queries. Start with a new checkpoint, or leave "
            f"out the {'sliding windows' if store.offer.per_event else 'queries'} with these keys."
        )
    if entry["kept"] != store.kept:
        raise StateError(
            f"the checkpoint keeps {_events_with(entry['kept'])}, and the queries of this run ask for "
            f"{_events_with(store.kept)}. Start with a new checkpoint, or with the conditions of before."
        )
    for component in store.program.components:
        if component.name not in entry["components"]:
            raise StateError(
                f"the checkpoint has no {component.name}: it was written by other queries, which kept "
                f"{', '.join(entry['components'])}. Start with a new checkpoint, or leave out the queries that need it."
            )


def _events_with(condition: str | None) -> str:
    return "all events" if condition is None else f"events with {condition}"
