"""Damaged state is refused with a sentence that names the blob: never a wrong answer, never a crash."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pyarrow as pa
import pytest

import panes as pn
from panes.errors import StateError
from panes.state import blob_store
from panes.state.blob_store import BlobCache, CachedBlobs, unpack
from panes.state.manifest import decode_manifest
from tests.applying import test_operators_on_streams
from tests.applying.test_operators_on_tables import Changes
from tests.damage import assert_noticed, damaged
from tests.row_windows import test_rows_shard
from tests.state import test_views
from tests.state.memory_blob_store import MemoryBlobStore

ROWS = [{"ts": i, "k": "ab"[i % 2], "g": "u", "x": i, "y": i, "odometer": i} for i in range(12)]


class Nothing(BlobCache):
    """Every blob is read from its store."""

    def get(self, name: str) -> object | None:
        return None


@pytest.fixture(autouse=True)
def _nothing_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob_store, "CACHE", Nothing())


def over_time() -> Any:
    stream = test_views.Stream()
    stream.step([(0, 5, 1), (1, 7, 2)], 0, test_views.counted(pn.tumbling("20us")))
    stream.step([(0, 25, 1)], 5)
    return stream, ((), 60), {"keys", "runs"}


def by_rows() -> Any:
    stream = test_rows_shard.Stream(pn.sliding(pn.rows(3)), "k")
    stream.step(ROWS, 6)
    return stream, ((), 20), {"waiting", "keys", "rows", "lines"}


def sessions() -> Any:
    stream = test_rows_shard.Stream(pn.session("2 us"), "k", {"n": pn.count()})
    stream.step(ROWS[:4] + ROWS[8:], 7)
    return stream, ((), 20), {"keys", "rows", "done"}


def operators() -> Any:
    schema = test_operators_on_streams.OPERATORS[Changes]
    stream = test_operators_on_streams.Stream(test_operators_on_streams.EVERY, Changes, schema)
    stream.step(ROWS, 6)
    return stream, ((), 20), {"waiting", "keys", "saved"}


KINDS = (over_time, by_rows, sessions, operators)


def manifest_of(store: MemoryBlobStore) -> bytes:
    data = store.manifest()
    assert data is not None
    return data


def listed(value: Any) -> dict[str, list[str]]:
    """The names of blobs in a manifest, by what they hold."""
    found: dict[str, list[str]] = {}
    if isinstance(value, list):
        value = dict(enumerate(value))
    for name, inner in value.items() if isinstance(value, dict) else ():
        if name in ("waiting", "keys", "rows", "lines", "done", "saved", "runs") and isinstance(inner, list):
            blobs = [each["name"] if isinstance(each, dict) else each[0] for each in inner]
            found[name] = found.get(name, []) + blobs
        else:
            for what, blobs in listed(inner).items():
                found[what] = found.get(what, []) + blobs
    return found


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_damage_is_noticed(kind: Any) -> None:
    stream, _, kept = kind()
    manifest = manifest_of(stream.blob_store)
    held = listed(decode_manifest(manifest))
    assert {what for what, names in held.items() if names} == kept
    assert sorted(name for names in held.values() for name in names) == sorted(stream.blob_store.blobs)
    assert_noticed(manifest, decode_manifest, "^the manifest of the state is damaged: .* Restore the checkpoint from")
    for what in kept:
        name = held[what][0]
        store = MemoryBlobStore()
        blobs = CachedBlobs(store, bytes, unpack)
        store.put(name, stream.blob_store.blobs[name])
        assert len(blobs.read(name))

        def read(data: bytes, name: str = name, store: MemoryBlobStore = store, blobs: Any = blobs) -> object:
            store.blobs[name] = data
            return blobs.read(name)

        message = f"^the blob {name} of the state is damaged: .* Restore the checkpoint from a backup, or start"
        assert_noticed(stream.blob_store.blobs[name], read, message)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_shard_stops_at_damaged_state(kind: Any) -> None:
    stream, (rows, watermark), _ = kind()
    whole = stream.blob_store

    def go_on(store: MemoryBlobStore) -> int:
        stream.blob_store = store
        found = stream.step(list(rows), watermark)
        return len(found) if isinstance(found, list) else found.answers

    assert go_on(deepcopy(whole))
    for name, data in whole.blobs.items():
        for other in [*list(damaged(data))[:: len(data) // 4], None]:
            store = deepcopy(whole)
            if other is None:
                del store.blobs[name]
            else:
                store.blobs[name] = other
            with pytest.raises(StateError, match=f"the blob {name} of the state is (damaged|missing)"):
                go_on(store)
    manifest = manifest_of(whole)
    for other in list(damaged(manifest))[:: len(manifest) // 4]:
        store = deepcopy(whole)
        store.write_manifest(other)
        with pytest.raises(StateError, match="the manifest of the state is damaged"):
            go_on(store)


def test_two_blobs_that_were_swapped() -> None:
    stream, (rows, watermark), _ = by_rows()
    first, second, *_ = stream.blob_store.blobs
    blobs = stream.blob_store.blobs
    blobs[first], blobs[second] = blobs[second], blobs[first]
    with pytest.raises(StateError, match="of the state is damaged: its checksum is wrong"):
        stream.step(list(rows), watermark)


def test_what_travels_is_not_sealed() -> None:
    batch = pa.RecordBatch.from_pydict({"n": [1]})
    assert blob_store.pack(batch).startswith(b"\xff\xff\xff\xff")
