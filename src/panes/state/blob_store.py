"""Where the blobs of one shard lie: a state store in a stream, a dictionary in a test.

A call to a state store costs about a millisecond whatever it carries, and reading costs most, so blobs are few and of
some size, and those that a process has seen are kept. Names are never used twice, even when a micro-batch is run
again after a failure; so a name that is known stands for bytes that are known.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol, TypeVar
from uuid import uuid4

T = TypeVar("T")


class BlobStore(Protocol):
    """Named blobs, and one more that lists them."""

    def manifest(self) -> bytes | None:
        """What was written last, or None before the first time."""

    def write_manifest(self, data: bytes) -> None:
        """Replace it."""

    def get(self, name: str) -> bytes:
        """A blob that is there."""

    def put(self, name: str, data: bytes) -> None:
        """A new blob."""

    def remove(self, name: str) -> None:
        """Forget a blob."""


class MemoryBlobStore:
    """A blob store in this process, which counts what is written to it and read from it."""

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
            raise KeyError(f"{name} is there already")
        self.blobs[name] = data
        self.written += len(data)

    def remove(self, name: str) -> None:  # noqa: D102
        del self.blobs[name]


def new_name() -> str:
    """A name that nobody has used, or will."""
    return uuid4().hex


class BlobCache:
    """What a process has seen of blobs, up to a number of bytes; the least recently used goes first."""

    def __init__(self, limit: int = 512 << 20) -> None:
        self._limit, self._size = limit, 0
        self._kept: OrderedDict[str, tuple[object, int]] = OrderedDict()

    def get(self, name: str, make: Callable[[], tuple[T, int]]) -> T:
        """What a name stands for; made, with its size, where it is not known."""
        if name in self._kept:
            self._kept.move_to_end(name)
            return self._kept[name][0]  # type: ignore[return-value]
        value, size = make()
        self.put(name, value, size)
        return value

    def put(self, name: str, value: object, size: int) -> None:
        """Keep what a name stands for."""
        self._kept[name] = (value, size)
        self._size += size
        while self._size > self._limit and len(self._kept) > 1:
            self._size -= self._kept.popitem(last=False)[1][1]

    def drop(self, name: str) -> None:
        """Forget a name, known or not."""
        if name in self._kept:
            self._size -= self._kept.pop(name)[1]


CACHE = BlobCache()
"""Shared by all shards that a process works for."""
