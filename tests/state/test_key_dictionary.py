"""Keys and rows in a blob store are read back from what was written; those of a live plan are written nowhere."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import panes as pn
from panes.state.blob_store import CACHE
from panes.state.key_dictionary import KeyDictionary
from tests.state.memory_blob_store import MemoryBlobStore

SCHEMA = pa.schema({"key": pa.int64()})


@pytest.mark.parametrize("written", [True, False])
@given(batches=st.lists(st.lists(st.integers(0, 30), max_size=9), max_size=8), keep=st.sets(st.integers(0, 5)))
def test_keys_keep_their_ordinals(written: bool, batches: list[list[int]], keep: set[int]) -> None:
    blob_store = MemoryBlobStore() if written else None
    keys, first = KeyDictionary(SCHEMA, blob_store), dict[int, int]()
    for batch in batches:
        ordinals = keys.ordinals(pa.RecordBatch.from_pydict({"key": pa.array(batch, pa.int64())}))
        assert ordinals.tolist() == [first.setdefault(key, len(first)) for key in batch]
    chosen = np.array(sorted(ordinal for ordinal in keep if ordinal < len(keys)), np.int64)
    keys.keep(chosen)
    left = [list(first)[ordinal] for ordinal in chosen]
    assert keys.keys.column(0).to_pylist() == left
    if blob_store is not None:
        assert {name for name, _ in keys.listed} == blob_store.blobs.keys()
        for name, _ in keys.listed:
            CACHE.drop(name)
        assert KeyDictionary(SCHEMA, blob_store, keys.listed).keys.column(0).to_pylist() == left


def test_a_live_plan_leaves_nothing_in_the_cache_of_blobs() -> None:
    before = len(CACHE)
    for keep in (None, pn.nested(["1 min", "1 hour"], ["10 s", "1 min"])):
        live = pn.plan(pn.query(by="k", at="ts", select={"n": pn.count()}, over=pn.sliding("1 min"))).live(keep=keep)
        live.update(pa.table({"ts": pa.array([dt.datetime(2026, 1, 1)] * 1000), "k": pa.array(range(1000))}))
        assert len(CACHE) == before
