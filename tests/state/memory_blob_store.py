"""A blob store in this process, for shards without Spark."""

from __future__ import annotations


class MemoryBlobStore:
    """A blob store in a dictionary that counts the bytes written and read."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.written = self.read = 0
        self._manifest: bytes | None = None

    def manifest(self) -> bytes | None:
        return self._manifest

    def write_manifest(self, data: bytes) -> None:
        self._manifest = data
        self.written += len(data)

    def get(self, name: str) -> bytes | None:
        found = self.blobs.get(name)
        self.read += len(found or b"")
        return found

    def put(self, name: str, data: bytes) -> None:
        if name in self.blobs:
            raise KeyError(f"the blob {name} exists already")
        self.blobs[name] = data
        self.written += len(data)

    def remove(self, name: str) -> None:
        del self.blobs[name]
