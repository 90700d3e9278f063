"""What a checkpoint holds of each shard: a JSON manifest, and the blobs that it lists.

A manifest records the mode, the number of shards, the last watermark, the registered queries and for each store its
keys, conditions, components, edges, the names of its blobs (keys and runs of granules), and what aging and eviction
have lost. :func:`read_manifest` rejects one that cannot serve the present job. Blobs are Arrow IPC
(``blob_store.pack``). What operators save is JSON, too (:func:`to_text`). Manifests and blobs are sealed
(``panes.sealed``): one that is damaged is refused.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa

from panes.engine.keys import NAN, NotANumber
from panes.errors import StateError
from panes.expressions.coercion import name_of
from panes.expressions.expression import column
from panes.expressions.stored import same_meaning
from panes.sealed import Damaged, OtherFormat, seal, unseal
from panes.state.blob_store import FORMAT, RESTORE, BlobStore, other_format
from panes.state.job import JobStore
from panes.state.stored_columns import changed_type, check_types, find_record
from panes.state.stream_options import StreamOptions

Manifest: TypeAlias = dict[str, Any]
Identity: TypeAlias = tuple[bool, tuple[str, ...]]

_MANIFEST: Final = "manifest"


def read_manifest(data: bytes | None, stores: Sequence[JobStore], options: StreamOptions) -> Manifest:
    """Decode the manifest of a shard, empty before the first write; one that cannot serve the job is refused."""
    if data is None:
        return {}
    manifest = decode_manifest(data)
    if "declared" in manifest:
        raise StateError(
            "the checkpoint was written by windows of rows or by operators, and this run has windows over time. Start "
            "with a new checkpoint, or with the earlier queries."
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


def read_state(blob_store: BlobStore, declared: Manifest) -> Manifest:
    """Decode the manifest of a shard with windows of rows or an operator, empty before the first write."""
    data = blob_store.manifest()
    return {} if data is None else check_state(data, declared)


def check_state(data: bytes, declared: Manifest) -> Manifest:
    """Decode such a manifest; one that was written for another declaration is refused."""
    state = decode_manifest(data)
    for name, now in declared.items():
        was = state.get("declared", {}).get(name)
        if name == "columns":
            _check_same_types(was, now)
        if not _same(name, was, now):
            raise StateError(
                f"the checkpoint was written with {name}={was!r}, and this run has {name}={now!r}. Start with a new "
                "checkpoint, or with what was declared before."
            )
    return state


def column_entries(columns: Iterable[tuple[str, pa.DataType]]) -> list[list[str]]:
    """Return columns with their SQL and types as a declaration records them, under the name ``columns``."""
    return [[sql, name_of(type_)] for sql, type_ in columns]


def _same(name: str, was: Any, now: Any) -> bool:
    """Return whether an entry of a declaration means what it meant."""
    if was == now:
        return True
    if name == "columns" and was is not None:
        was, now = ([sql for sql, _ in columns] for columns in (was, now))
    elif name != "where":
        return False
    if isinstance(was, list) and isinstance(now, list):
        return len(was) == len(now) and all(map(same_meaning, was, now))
    return isinstance(was, str) and isinstance(now, str) and same_meaning(was, now)


def _check_same_types(was: Sequence[Sequence[str]] | None, now: Sequence[Sequence[str]]) -> None:
    """Reject columns of other types. Rows are kept as they came, so not even wider ones would fit."""
    for (old, before), (new, type_) in zip(was or (), now, strict=False):
        if before != type_ and same_meaning(old, new):
            raise changed_type(new, before, type_, "rows are kept as they came")


def write_state(blob_store: BlobStore, declared: Manifest, **state: Any) -> None:
    """Write the manifest that ``read_state`` reads."""
    blob_store.write_manifest(encode_manifest({"declared": declared, **state}))


def decode_manifest(data: bytes) -> Manifest:
    """Decode a manifest; one that is damaged, or of another format, is refused."""
    try:
        manifest: Manifest = json.loads(bytes(unseal(data, FORMAT, _MANIFEST)))
    except Damaged as error:
        raise StateError(f"the manifest of the state is damaged: {error}. {RESTORE}") from error
    except OtherFormat as error:
        raise other_format("checkpoint", error) from error
    return manifest


def encode_manifest(manifest: Manifest) -> bytes:
    """Encode a manifest, with the present format number and a checksum."""
    return seal(json.dumps(manifest, separators=(",", ":")).encode(), FORMAT, _MANIFEST)


def entries_of(manifest: Manifest) -> dict[Identity, Manifest]:
    """Return the entry of each store in a manifest, by the identity of the store."""
    return {_identity(entry["by"], entry["per_event"]): entry for entry in manifest.get("stores", [])}


def identity(store: JobStore) -> Identity:
    """Return what identifies a store: whether it answers per event, and its keys."""
    return _identity(store.keys.names, store.offer.per_event)


def _identity(names: Sequence[str], per_event: bool) -> Identity:
    return per_event, tuple(name.lower() for name in names)


def _check(entry: Manifest | None, store: JobStore) -> None:
    if entry is None:
        raise StateError(
            f"the checkpoint keeps nothing{' for sliding windows' if store.offer.per_event else ''} by "
            f"({', '.join(store.offer.keys)}): it was written by other queries. Start with a new checkpoint, or leave "
            f"out the {'sliding windows' if store.offer.per_event else 'queries'} with these keys."
        )
    if not same_meaning(entry["kept"], store.kept):
        raise StateError(
            f"the checkpoint keeps {_events_with(entry['kept'])}, and the queries of this run need "
            f"{_events_with(store.kept)}. Start with a new checkpoint, or with the earlier conditions."
        )
    for field, was in zip(store.keys, entry["key_types"], strict=True):
        # Not even wider ones: Spark's hash of a key, which chooses its shard, depends on the type.
        if (now := name_of(field.type)) != was:
            raise changed_type(column(field.name).sql, was, now, "keys of different types are different keys")
    for component in store.program.components:
        record = find_record(component, entry["components"])
        if record is None:
            raise StateError(
                f"the checkpoint has no {component.name}: it was written by other queries, which kept "
                f"{', '.join(each['name'] for each in entry['components'])}. Start with a new checkpoint, or leave out "
                "the queries that need it."
            )
        check_types(component, record)


def _events_with(condition: str | None) -> str:
    return "all events" if condition is None else f"events with {condition}"


_ENCODERS: Final[tuple[tuple[type, str, Callable[[Any], Any]], ...]] = (
    # Before dates: a datetime is a date, too.
    (dt.datetime, "time", lambda value: value.isoformat()),
    (dt.date, "date", lambda value: value.isoformat()),
    (dt.time, "clock", lambda value: value.isoformat()),
    (dt.timedelta, "span", lambda value: value // dt.timedelta(microseconds=1)),
    (Decimal, "decimal", str),
    (NotANumber, "nan", lambda value: None),
    (bytes, "bytes", lambda value: base64.b64encode(value).decode()),
    (tuple, "tuple", lambda value: [_encode(each) for each in value]),
    (frozenset, "frozenset", lambda value: [_encode(each) for each in value]),
    (set, "set", lambda value: [_encode(each) for each in value]),
    (dict, "dict", lambda value: [[_encode(key), _encode(each)] for key, each in value.items()]),
)
_DECODERS: Final[dict[str, Callable[[Any], Any]]] = {
    "time": dt.datetime.fromisoformat,
    "date": dt.date.fromisoformat,
    "clock": dt.time.fromisoformat,
    "span": lambda micros: dt.timedelta(microseconds=micros),
    "decimal": Decimal,
    "nan": lambda _: NAN,
    "bytes": base64.b64decode,
    "tuple": lambda values: tuple(_decode(each) for each in values),
    "frozenset": lambda values: frozenset(_decode(each) for each in values),
    "set": lambda values: {_decode(each) for each in values},
    "dict": lambda pairs: {_decode(key): _decode(value) for key, value in pairs},
}


def to_text(value: Any) -> str:
    """Encode a plain value as JSON: data, never code.

    Examples
    --------
    >>> from_text(to_text({("a", None): [1, 2.5, float("inf"), b"x"], "at": dt.date(2026, 1, 1)}))
    {('a', None): [1, 2.5, inf, b'x'], 'at': datetime.date(2026, 1, 1)}
    >>> from_text(to_text((NAN, "a"))) == (NAN, "a")
    True
    """
    return json.dumps(_encode(value), separators=(",", ":"))


def from_text(text: str) -> Any:
    """Decode a plain value."""
    return _decode(json.loads(text))


def _encode(value: Any) -> Any:
    if value is None or (isinstance(value, (bool, int, float, str)) and type(value).__module__ == "builtins"):
        return value
    if type(value) is list:
        return [_encode(each) for each in value]
    for type_, name, write in _ENCODERS:
        if isinstance(value, type_):
            return {name: write(value)}
    raise StateError(
        f"an operator keeps {value!r} of type {type(value).__name__}, which a state store cannot hold. Write methods "
        "save and load that turn it into plain values: numbers, strings, times, lists and dicts."
    )


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(each) for each in value]
    if isinstance(value, dict):
        ((name, inner),) = value.items()
        return _DECODERS[name](inner)
    return value
