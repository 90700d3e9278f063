"""Append-only batches, and the dictionary of keys built on them.

Both write only new rows: a :class:`BatchLog` merges small batches into larger ones as it grows, and a
:class:`KeyDictionary` gives each key of a store an ordinal, which granules carry instead of the key.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.engine.keys import key_ordinals
from panes.frames.positions import Integers
from panes.state.blob_store import BlobStore, CachedBlobs, pack, unpack

_PLAIN = (pa.types.is_integer, pa.types.is_string, pa.types.is_binary, pa.types.is_date, pa.types.is_timestamp)


class KeyDictionary:
    """The distinct keys of one store, in order of first appearance: at least one column; written as in a log."""

    def __init__(
        self, schema: pa.Schema, blob_store: BlobStore | None = None, listed: Sequence[Sequence[Any]] = ()
    ) -> None:
        self._schema, self._log = schema, BatchLog(schema, blob_store, listed)

    @property
    def listed(self) -> list[tuple[str, int]]:
        """Names and lengths of the batches, for a manifest."""
        return self._log.listed

    def __len__(self) -> int:
        return len(self._log)

    @cached_property
    def keys(self) -> pa.RecordBatch:
        """All keys; the row number of a key is its ordinal."""
        return self._log.all()

    def ordinals(self, keys: pa.RecordBatch) -> Integers:
        """Return the ordinals of keys, and add the new ones."""
        ordinals = self.find(keys)
        unknown = ordinals < 0
        if unknown.any():
            new = keys.filter(pa.array(unknown))
            same = key_ordinals(new.columns, len(new))
            firsts = np.sort(np.unique(same, return_index=True)[1])
            number = np.empty(len(firsts), np.int64)
            number[same[firsts]] = len(self) + np.arange(len(firsts))
            ordinals[unknown] = number[same]
            self._log.append(new.take(pa.array(firsts)))
            self.__dict__.pop("keys", None)
        return ordinals

    def keep(self, chosen: Integers) -> Integers:
        """Remove all other keys, and return the new ordinal of each old one, or -1."""
        kept = self.keys.take(pa.array(chosen))
        new = np.full(len(self), -1, np.int64)
        new[chosen] = np.arange(len(chosen))
        self._log.replace(kept)
        self.__dict__.pop("keys", None)
        return new

    def find(self, keys: pa.RecordBatch) -> Integers:
        """Return the ordinals of keys; -1 for unknown ones."""
        known = self.keys
        if len(self._schema) == 1 and any(is_plain(self._schema.types[0]) for is_plain in _PLAIN):
            index = pc.index_in(keys.column(0), value_set=known.column(0))
            return np.array(index.fill_null(-1).to_numpy(), np.int64)
        columns = [pa.concat_arrays(pair) for pair in zip(known.columns, keys.columns, strict=True)]
        ordinals = key_ordinals(columns, len(known) + len(keys))
        old = np.full(int(ordinals.max(initial=-1)) + 1, -1, np.int64)
        old[ordinals[: len(known)]] = np.arange(len(known))
        return old[ordinals[len(known) :]]


class BatchLog:
    """Batches of one schema, in the order in which they were added.

    A row is rewritten only when the number of rows after it has doubled: O(log n) times.

    Parameters
    ----------
    blob_store
        Where the batches are written; without it they are held in this process only.
    listed
        Names and lengths of the batches, as listed in a manifest.

    Examples
    --------
    >>> log = BatchLog(pa.schema({"n": pa.int64()}))
    >>> for numbers in ([1, 2, 3, 4, 5], [6], [7]):
    ...     log.append(pa.record_batch({"n": numbers}))
    >>> [len(batch) for batch in log.batches], log.all().column("n").to_pylist()
    ([5, 2], [1, 2, 3, 4, 5, 6, 7])
    """

    def __init__(
        self, schema: pa.Schema, blob_store: BlobStore | None = None, listed: Sequence[Sequence[Any]] = ()
    ) -> None:
        self.schema = schema
        self._blobs = None if blob_store is None else CachedBlobs(blob_store, pack, unpack)
        self._names: list[str] = [name for name, _ in listed]
        self.batches = [] if self._blobs is None else [self._blobs.read(name) for name in self._names]

    @property
    def listed(self) -> list[tuple[str, int]]:
        """Names and lengths of the batches, for a manifest."""
        return list(zip(self._names, map(len, self.batches), strict=True))

    def __len__(self) -> int:
        return sum(map(len, self.batches))

    @property
    def bytes(self) -> int:
        """The size of all rows in memory."""
        return sum(batch.nbytes for batch in self.batches)

    def all(self) -> pa.RecordBatch:
        """Return all rows as one batch."""
        return _concat(self.schema, self.batches)

    def append(self, rows: pa.RecordBatch) -> None:
        """Add rows, merged with the batch before them unless that is more than twice as long."""
        if not len(rows):
            return
        while self.batches and len(self.batches[-1]) <= 2 * len(rows):
            rows = _concat(self.schema, [self._pop(), rows])
        self.batches.append(rows)
        if self._blobs is not None:
            self._names.append(self._blobs.write(rows)[0])

    def replace(self, rows: pa.RecordBatch) -> None:
        """Replace all rows."""
        while self.batches:
            self._pop()
        self.append(rows)

    def _pop(self) -> pa.RecordBatch:
        """Remove the last batch."""
        if self._blobs is not None:
            self._blobs.remove(self._names.pop())
        return self.batches.pop()


def _concat(schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    columns = [
        pa.concat_arrays([pa.array([], t), *(batch.column(i) for batch in batches)]) for i, t in enumerate(schema.types)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
