"""A stream whose state is sketches: packed, merged, made coarser and read again, they answer as one alone would."""

from __future__ import annotations

from collections import Counter
from math import ceil
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.engine.bind_program import bind_store, types_in
from panes.queries.windows import Window
from panes.state.job import JobStore
from panes.state.registered_queries import Offer
from panes.state.stream_options import Mode
from panes.state.watermark import EPOCH
from tests.state.memory_blob_store import MemoryBlobStore
from tests.state.simulation import SCHEMA, Event, Simulation, events, windows
from tests.state.test_shard import AT_LAST, SHARDS, Stream

pytest.importorskip("datasketches")


class Sketches(Stream):
    """A stream of sketches."""

    def __init__(self, over: list[Window], mode: Mode) -> None:
        select = {"d": pn.approx_count_distinct("x"), "m": pn.approx_quantile("x", 0.5), "t": pn.top("x", 2)}
        query = pn.query("q", at="ts", by="key", select=select, over=over)
        self.program, self.mode = (
            bind_store(pn.plan(query).physical_plan(strategy="columnar").stores[0], types_in(SCHEMA)),
            mode,
        )
        offer = Offer((), ("key",), self.program.edges, "ts")
        self.stores = [JobStore(self.program, pa.schema([("key", pa.int64())]), offer)]
        self.blob_stores = [MemoryBlobStore() for _ in range(SHARDS)]
        self.metrics = []


class Exactly(Simulation):
    """So few values that every sketch is exact."""

    def lower(self, at: tuple[int, int, int]) -> tuple[Any, ...]:
        known = sorted(value for value in self.open[at] if value is not None)
        if not known:
            return (0, None, None)
        often = sorted(Counter(known).items(), key=lambda pair: (-pair[1], pair[0]))[:2]
        top = [{"item": item, "count": count, "error": 0} for item, count in often]
        return (len(set(known)), float(known[ceil(len(known) / 2) - 1]), top)


@settings(max_examples=40)
@given(
    over=st.lists(windows, min_size=1, max_size=3, unique_by=lambda w: w.name),
    batches=st.lists(st.lists(events(0, 300), max_size=3), min_size=1, max_size=6),
    delay=st.integers(0, 60),
    mode=st.sampled_from(["append", "update"]),
)
def test_shards_of_sketches_answer_as_every_query_alone(
    over: list[Window], batches: list[list[list[Event]]], delay: int, mode: Mode
) -> None:
    stream = Sketches(over, mode)
    simulation = Exactly(stream.program, EPOCH)
    watermark = EPOCH
    for parts in [*batches, []]:
        together = [event for part in parts for event in part]
        due, changed = simulation.step(together, watermark)
        assert stream.step(parts, watermark) == (due if mode == "append" else changed)
        watermark = max([watermark, *(instant - delay for _, instant, _ in together)])
    due, _ = simulation.step([], AT_LAST)
    assert stream.step([], AT_LAST) == (due if mode == "append" else {})


def test_what_is_kept_does_not_grow_with_the_number_of_values() -> None:
    """A hundred thousand values in one window of one key: some kilobytes."""
    stream = Sketches([pn.tumbling("100000us")], "append")
    for batch in range(20):
        stream.step([[(0, batch, batch * 5000 + i) for i in range(5000)]], 0)
    held = sum(len(data) for blob_store in stream.blob_stores for data in blob_store.blobs.values())
    assert held < 200_000
    ((distinct, median, _),) = stream.step([], AT_LAST).values()
    assert distinct == pytest.approx(100_000, rel=0.033)
    assert median == pytest.approx(50_000, rel=0.08)
