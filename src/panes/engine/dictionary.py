"""The keys of one store in one shard, each with an ordinal that granules carry instead of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.engine.blobs import pack, unpack
from panes.engine.cabinet import RECENT, Cabinet, new_name
from panes.engine.keys import key_ordinals
from panes.frames.positions import Integers

_PLAIN = (pa.types.is_integer, pa.types.is_string, pa.types.is_binary, pa.types.is_date, pa.types.is_timestamp)


class Dictionary:
    """Keys in the order of their first appearance, in chunks: new keys are written alone, small chunks are merged.

    Parameters
    ----------
    schema
        The key columns, at least one.
    listed
        Names and lengths of the chunks, as a manifest lists them.
    """

    def __init__(self, schema: pa.Schema, cabinet: Cabinet, listed: Sequence[Sequence[Any]] = ()) -> None:
        self._schema, self._cabinet = schema, cabinet
        self.listed: list[tuple[str, int]] = [(name, count) for name, count in listed]
        self._chunks = [self._read(name) for name, _ in self.listed]

    def __len__(self) -> int:
        return sum(count for _, count in self.listed)

    @cached_property
    def keys(self) -> pa.RecordBatch:
        """Every key; its row is its ordinal."""
        return _together(self._schema, self._chunks)

    def ordinals(self, keys: pa.RecordBatch) -> Integers:
        """The ordinals of some keys; those that were never seen get new ones, and are written."""
        found = self.find(keys)
        unknown = found < 0
        if unknown.any():
            new = keys.filter(pa.array(unknown))
            same = key_ordinals(new.columns, len(new))
            firsts = np.sort(np.unique(same, return_index=True)[1])
            number = np.empty(len(firsts), np.int64)
            number[same[firsts]] = len(self) + np.arange(len(firsts))
            found[unknown] = number[same]
            self._append(new.take(pa.array(firsts)))
        return found

    def keep(self, chosen: Integers) -> Integers:
        """Forget all other keys; the new ordinal of each old one, or -1."""
        kept = self.keys.take(pa.array(chosen))
        new = np.full(len(self), -1, np.int64)
        new[chosen] = np.arange(len(chosen))
        for name, _ in self.listed:
            self._forget(name)
        self.listed, self._chunks = [], []
        self._append(kept)
        return new

    def find(self, keys: pa.RecordBatch) -> Integers:
        """The ordinals of some keys; -1 for those that were never seen."""
        known = self.keys
        if len(self._schema) == 1 and any(is_plain(self._schema.types[0]) for is_plain in _PLAIN):
            index = pc.index_in(keys.column(0), value_set=known.column(0))
            return np.array(index.fill_null(-1).to_numpy(), np.int64)
        columns = [pa.concat_arrays(pair) for pair in zip(known.columns, keys.columns, strict=True)]
        ordinals = key_ordinals(columns, len(known) + len(keys))
        old = np.full(int(ordinals.max(initial=-1)) + 1, -1, np.int64)
        old[ordinals[: len(known)]] = np.arange(len(known))
        return old[ordinals[len(known) :]]

    def _append(self, keys: pa.RecordBatch) -> None:
        # Doubling: a chunk joins the one before it unless that is more than twice as long.
        while self.listed and self.listed[-1][1] <= 2 * len(keys):
            keys = _together(self._schema, [self._chunks.pop(), keys])
            self._forget(self.listed.pop()[0])
        name, data = new_name(), pack(keys)
        self._cabinet.put(name, data)
        RECENT.put(name, keys, 2 * len(data))
        self.listed.append((name, len(keys)))
        self._chunks.append(keys)
        self.__dict__.pop("keys", None)

    def _read(self, name: str) -> pa.RecordBatch:
        def load() -> tuple[pa.RecordBatch, int]:
            data = self._cabinet.get(name)
            return unpack(data), 2 * len(data)

        return RECENT.get(name, load)

    def _forget(self, name: str) -> None:
        self._cabinet.remove(name)
        RECENT.drop(name)


def _together(schema: pa.Schema, chunks: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    columns = [
        pa.concat_arrays([pa.array([], t), *(chunk.column(i) for chunk in chunks)]) for i, t in enumerate(schema.types)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
