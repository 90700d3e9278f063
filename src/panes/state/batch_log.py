"""Rows that are only ever added, as few blobs of some size: what is new is written alone, small blobs are joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from panes.state.blob_store import CACHE, BlobStore, new_name
from panes.state.blobs import pack, unpack


class BatchLog:
    """Batches of one schema, in the order in which they were added.

    Every row is written again only when the number of rows after it has doubled: O(log) times.

    Parameters
    ----------
    listed
        Names and lengths of batches, as a manifest lists them.

    Examples
    --------
    >>> from panes.state.blob_store import MemoryBlobStore
    >>> log = BatchLog(pa.schema({"n": pa.int64()}), MemoryBlobStore())
    >>> for numbers in ([1, 2, 3, 4, 5], [6], [7]):
    ...     log.append(pa.record_batch({"n": numbers}))
    >>> [count for _, count in log.listed], log.all().column("n").to_pylist()
    ([5, 2], [1, 2, 3, 4, 5, 6, 7])
    """

    def __init__(self, schema: pa.Schema, blob_store: BlobStore, listed: Sequence[Sequence[Any]] = ()) -> None:
        self.schema, self._blob_store = schema, blob_store
        self.listed: list[tuple[str, int]] = [(name, count) for name, count in listed]
        self._batches = [self._read(name) for name, _ in self.listed]

    def __len__(self) -> int:
        return sum(count for _, count in self.listed)

    @property
    def bytes(self) -> int:
        """What all rows take in memory."""
        return sum(batch.nbytes for batch in self._batches)

    def all(self) -> pa.RecordBatch:
        """Every row."""
        return _together(self.schema, self._batches)

    def append(self, rows: pa.RecordBatch) -> None:
        """Add some rows: a batch joins the one before it unless that is more than twice as long."""
        if not len(rows):
            return
        while self.listed and self.listed[-1][1] <= 2 * len(rows):
            rows = _together(self.schema, [self._batches.pop(), rows])
            self._forget(self.listed.pop()[0])
        name, data = new_name(), pack(rows)
        self._blob_store.put(name, data)
        CACHE.put(name, rows, 2 * len(data))
        self.listed.append((name, len(rows)))
        self._batches.append(rows)

    def replace(self, rows: pa.RecordBatch) -> None:
        """Keep some rows instead of all."""
        for name, _ in self.listed:
            self._forget(name)
        self.listed, self._batches = [], []
        self.append(rows)

    def _read(self, name: str) -> pa.RecordBatch:
        def load() -> tuple[pa.RecordBatch, int]:
            data = self._blob_store.get(name)
            return unpack(data), 2 * len(data)

        return CACHE.get(name, load)

    def _forget(self, name: str) -> None:
        self._blob_store.remove(name)
        CACHE.drop(name)


def _together(schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    columns = [
        pa.concat_arrays([pa.array([], t), *(batch.column(i) for batch in batches)]) for i, t in enumerate(schema.types)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
