"""Where a shard keeps its blobs, and how a batch becomes one.

In a stream the blob store is Spark's state store; in tests it is a dictionary. A call to Spark's state store costs
about a millisecond regardless of size, and reads cost most. So blobs are few and fairly large, and a process caches
those it has seen. A name is never used twice, even when a micro-batch runs again after a failure, so a cached name
always stands for the same bytes.

Blobs are sealed where they are kept (``CachedBlobs``). Batches that travel between steps of a job (``pack``) are not:
each is read once, right after it was written, and a seal would add 3% (10 rows) to 52% (100,000 rows) to the CPU time
of packing and unpacking it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, Protocol, TypeAlias, TypeVar, cast
from uuid import uuid4

import pyarrow as pa

from panes.errors import StateError
from panes.sealed import Damaged, OtherFormat, seal, unseal

T = TypeVar("T")
Buffer: TypeAlias = bytes | memoryview

FORMAT = 5
"""The format of all state. A checkpoint of another format is refused."""

RESTORE = "Restore the checkpoint from a backup, or start with a new one."
"""What to do about damaged state."""

_FORMAT = b"panes.format"
# Most blobs are small: handing their columns to threads takes several times as long as compressing them.
_WRITING = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_READING = pa.ipc.IpcReadOptions(use_threads=False)
_DECODED = 3
"""A decoded blob takes about as many times the memory of its bytes, which are compressed."""


class BlobStore(Protocol):
    """Named blobs, and a manifest that lists them."""

    def manifest(self) -> bytes | None:
        """Return the manifest, or None before the first write."""

    def write_manifest(self, data: bytes) -> None:
        """Replace the manifest."""

    def get(self, name: str) -> bytes | None:
        """Read a blob; None if there is none of this name."""

    def put(self, name: str, data: bytes) -> None:
        """Write a new blob."""

    def remove(self, name: str) -> None:
        """Delete a blob."""


def new_name() -> str:
    """Return a name that is unique for ever."""
    return uuid4().hex


class BlobCache:
    """Decoded blobs of this process, up to a number of bytes; the least recently used go first."""

    def __init__(self, limit: int = 512 << 20) -> None:
        self._limit, self._size = limit, 0
        self._values: OrderedDict[str, tuple[object, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, name: str) -> object | None:
        """Return the value of a name; None if it is not cached."""
        if name not in self._values:
            return None
        self._values.move_to_end(name)
        return self._values[name][0]

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


class CachedBlobs(Generic[T]):
    """Values of one kind in a blob store; those written or read last stay decoded in the process.

    Parameters
    ----------
    suffix
        What tells values apart that are decoded from the same blob in different ways.
    """

    def __init__(
        self, blob_store: BlobStore, encode: Callable[[T], bytes], decode: Callable[[Buffer], T], suffix: str = ""
    ) -> None:
        self._blob_store, self._encode, self._decode, self._suffix = blob_store, encode, decode, suffix

    def read(self, name: str) -> T:
        """Return the value under a name."""
        cached = CACHE.get(name + self._suffix)
        if cached is not None:
            return cast("T", cached)
        sealed = self._blob_store.get(name)
        if sealed is None:
            raise StateError(f"the blob {name} of the state is missing. {RESTORE}")
        try:
            data = unseal(sealed, FORMAT, name)
        except Damaged as error:
            raise StateError(f"the blob {name} of the state is damaged: {error}. {RESTORE}") from error
        except OtherFormat as error:
            raise other_format("state", error) from error
        value = self._decode(data)
        CACHE.put(name + self._suffix, value, _DECODED * len(data))
        return value

    def write(self, value: T) -> tuple[str, int]:
        """Write a value under a new name; return the name and the size."""
        name = new_name()
        data = seal(self._encode(value), FORMAT, name)
        self._blob_store.put(name, data)
        CACHE.put(name + self._suffix, value, _DECODED * len(data))
        return name, len(data)

    def remove(self, name: str) -> None:
        """Delete a value."""
        self._blob_store.remove(name)
        CACHE.drop(name + self._suffix)


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
    with pa.ipc.new_stream(sink, schema, options=_WRITING) as writer:
        writer.write_batch(batch.replace_schema_metadata(schema.metadata))
    data: bytes = sink.getvalue().to_pybytes()
    return data


def unpack(data: Buffer) -> pa.RecordBatch:
    """Decode a packed batch. Bytes of another format, or of another program, are refused."""
    try:
        with pa.ipc.open_stream(data, options=_READING) as reader:
            written = int((reader.schema.metadata or {})[_FORMAT])
            batch = reader.read_next_batch() if written == FORMAT else None
    except (pa.ArrowInvalid, KeyError, ValueError, StopIteration) as error:
        raise StateError(f"these bytes are not columns that Panes wrote: {error!r}.") from error
    if batch is None:
        raise other_format("state", f"written in format {written}")
    return batch


def other_format(what: str, how: object) -> StateError:
    """Return the error for state of another format.

    Parameters
    ----------
    how
        How it was written, in words.
    """
    return StateError(
        f"the {what} was {how}, and this version of Panes reads {FORMAT}. Start with a new checkpoint, or run the "
        "version that wrote it."
    )
