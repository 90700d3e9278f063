"""Chunks hold whole keys, whatever the batches are."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from panes.spark.chunks import keys_of, whole_keys


@given(
    lengths=st.lists(st.integers(1, 9), max_size=8),
    cuts=st.lists(st.integers(0, 60), max_size=6),
    rows=st.integers(1, 30),
)
def test_no_key_is_split_and_no_row_is_lost(lengths: list[int], cuts: list[int], rows: int) -> None:
    keys = [None if number == 0 else number for number, length in enumerate(lengths) for _ in range(length)]
    batch = pa.record_batch({"key": pa.array(keys, pa.int64()), "row": pa.array(range(len(keys)), pa.int64())})
    edges = sorted({0, len(keys), *(cut for cut in cuts if cut < len(keys))})
    batches = [batch.slice(a, b - a) for a, b in pairwise(edges)]
    seen: list[int] = []
    owners: list[int | None] = []
    for chunk, starts in whole_keys(batches, 1, rows):
        own = chunk.column(0).to_pylist()
        assert [own[start] for start in starts[:-1]] == list(dict.fromkeys(own))
        assert starts[-1] == len(own)
        owners += list(dict.fromkeys(own))
        seen += chunk.column(1).to_pylist()
    assert seen == list(range(len(keys)))
    assert len(set(owners)) == len(owners)


def test_the_last_key_has_no_chunk_of_its_own() -> None:
    batch = pa.record_batch({"key": [1] * 10 + [2] * 10})
    assert [chunk.num_rows for chunk, _ in whole_keys([batch], 1, 10)] == [20]


def test_chunks_stay_small_while_keys_are() -> None:
    batches = [pa.record_batch({"key": [number] * 10}) for number in range(20)]
    assert max(chunk.num_rows for chunk, _ in whole_keys(batches, 1, 10)) <= 30


def test_keys_show_one_zero() -> None:
    chunk = pa.RecordBatch.from_pydict({"k": [-0.0, 0.0, 1.0]})
    assert [str(key) for key in keys_of(chunk, 1, np.array([0, 2, 3]))[0].to_pylist()] == ["0.0", "1.0"]
