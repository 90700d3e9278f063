"""Where a shard keeps its blobs, and how a batch becomes one.

In a stream the blob store is Spark's state store; in tests and live plans it is a dictionary. A call to Spark's state
store costs about a millisecond regardless of size, and reads cost most. So blobs are few and fairly large, and a
process caches those it has seen. A name is never used twice, even when a micro-batch runs again after a failure, so a
cached name always stands for the same bytes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol, TypeVar
from uuid import uuid4

import pyarrow as pa

from panes.errors import StateError

T = TypeVar("T")

FORMAT = 4
"""The format of all state. A checkpoint of another format is refused."""

_FORMAT = b"panes.format"


class BlobStore(Protocol):
    """Named blobs, and a manifest that lists them."""

    def manifest(self) -> bytes | None:
        """Return the manifest, or None before the first write."""

    def write_manifest(self, data: bytes) -> None:
        """Replace the manifest."""

    def get(self, name: str) -> bytes:
        """Read a blob that exists."""

    def put(self, name: str, data: bytes) -> None:
        """Write a new blob."""

    def remove(self, name: str) -> None:
        """Delete a blob."""


class MemoryBlobStore:
    """A blob store in this process that counts the bytes written and read."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.written = self.read = 0
        self._manifest: bytes | None = None

    def manifest(self) -> bytes | None:  # noqa: D102
        return self._manifest

    def write_manifest(self, data: bytes) -> None:  # noqa: D102
        self._manifest = data
        self.written += len(data)

    def get(self, name: str) -> bytes:  # noqa: D102
        self.read += len(self.blobs[name])
        return self.blobs[name]

    def put(self, name: str, data: bytes) -> None:  # noqa: D102
        if name in self.blobs:
            raise KeyError(f"the blob {name} exists already")
        self.blobs[name] = data
        self.written += len(data)

    def remove(self, name: str) -> None:  # noqa: D102
        del self.blobs[name]


def new_name() -> str:
    """Return a name that is unique for ever."""
    return uuid4().hex


class BlobCache:
    """Decoded blobs of this process, up to a number of bytes; the least recently used go first."""

    def __init__(self, limit: int = 512 << 20) -> None:
        self._limit, self._size = limit, 0
        self._values: OrderedDict[str, tuple[object, int]] = OrderedDict()

    def get(self, name: str, load: Callable[[], tuple[T, int]]) -> T:
        """Return the value of a name, loading it (with its size) on a miss."""
        if name in self._values:
            self._values.move_to_end(name)
            return self._values[name][0]  # type: ignore[return-value]
        value, size = load()
        self.put(name, value, size)
        return value

    def put(self, name: str, value: object, size: int) -> None:
        """Remember the value of a name."""
        self._values[name] = (value, size)
        self._size += size
        while self._size > self._limit and len(self._values) > 1:
            self._size -= self._values.popitem(last=False)[1][1]

    def drop(self, name: str) -> None:
        """Remove a name if it is cached."""
        if name in self._values:
            self._size -= self._values.pop(name)[1]


CACHE = BlobCache()
"""Shared by all shards of a process."""


def pack(batch: pa.RecordBatch) -> bytes:
    """Encode a batch as Arrow IPC with a format number: data, never code.

    Examples
    --------
    >>> batch = pa.RecordBatch.from_pydict({"n": [1, 2, 3]})
    >>> unpack(pack(batch)).to_pydict()
    {'n': [1, 2, 3]}
    """
    sink = pa.BufferOutputStream()
    schema = batch.schema.with_metadata({_FORMAT: str(FORMAT).encode()})
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_batch(batch.replace_schema_metadata(schema.metadata))
    data: bytes = sink.getvalue().to_pybytes()
    return data


def unpack(data: bytes) -> pa.RecordBatch:
    """Decode a packed batch. Bytes of another format, or of another program, are refused."""
    try:
        with pa.ipc.open_stream(data) as reader:
            written = int((reader.schema.metadata or {})[_FORMAT])
            batch = reader.read_next_batch() if written == FORMAT else None
    except (pa.ArrowInvalid, KeyError, ValueError, StopIteration) as error:
        raise StateError(f"these bytes are not columns that Panes wrote: {error!r}.") from error
    if batch is None:
        raise other_format("state", written)
    return batch


def other_format(what: str, written: object) -> StateError:
    """Return the error for state of another format."""
    return StateError(
        f"the {what} was written in format {written}, and this version of Panes reads {FORMAT}. Start with a new "
        "checkpoint, or run the version that wrote it."
    )
