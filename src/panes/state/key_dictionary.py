"""The keys of one store in one shard, each with an ordinal that granules carry instead of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.engine.keys import key_ordinals
from panes.frames.positions import Integers
from panes.state.batch_log import BatchLog
from panes.state.blob_store import BlobStore

_PLAIN = (pa.types.is_integer, pa.types.is_string, pa.types.is_binary, pa.types.is_date, pa.types.is_timestamp)


class KeyDictionary:
    """Keys in the order of their first appearance, in a log: new keys are written alone.

    Parameters
    ----------
    schema
        The key columns, at least one.
    listed
        Names and lengths of the chunks, as a manifest lists them.
    """

    def __init__(self, schema: pa.Schema, blob_store: BlobStore, listed: Sequence[Sequence[Any]] = ()) -> None:
        self._schema, self._log = schema, BatchLog(schema, blob_store, listed)

    @property
    def listed(self) -> list[tuple[str, int]]:
        """Names and lengths of chunks, for a manifest."""
        return self._log.listed

    def __len__(self) -> int:
        return len(self._log)

    @cached_property
    def keys(self) -> pa.RecordBatch:
        """Every key; its row is its ordinal."""
        return self._log.all()

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
            self._log.append(new.take(pa.array(firsts)))
            self.__dict__.pop("keys", None)
        return found

    def keep(self, chosen: Integers) -> Integers:
        """Forget all other keys; the new ordinal of each old one, or -1."""
        kept = self.keys.take(pa.array(chosen))
        new = np.full(len(self), -1, np.int64)
        new[chosen] = np.arange(len(chosen))
        self._log.replace(kept)
        self.__dict__.pop("keys", None)
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
