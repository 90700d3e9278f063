"""Shards in memory, opened anew in every micro-batch, give the answers of every query alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.engine.bind_program import bind_store, types_in
from panes.engine.program import Program, cut_into_ticks
from panes.queries.windows import Window
from panes.state.granules import pack_panes, unpack_panes
from panes.state.job import JobStore, ShardMetrics
from panes.state.registered_queries import Offer
from panes.state.shard import Shard
from panes.state.stream_options import Mode, StreamOptions
from panes.state.watermark import EPOCH
from tests.state.memory_blob_store import MemoryBlobStore
from tests.state.simulation import KEYS, SCHEMA, Event, Found, Simulation, arguments_of, events, program_of, windows

SHARDS = 2
AT_LAST = 10**6


class Stream:
    """A stream in one process: events in parts, panes by shard, a blob store per shard."""

    def __init__(self, over: list[Window], mode: Mode, program: Program | None = None) -> None:
        self.program, self.mode = program or program_of(over), mode
        offer = Offer((), ("key",), self.program.edges, "ts")
        self.stores = [JobStore(self.program, pa.schema([("key", pa.int64())]), offer)]
        self.blob_stores = [MemoryBlobStore() for _ in range(SHARDS)]
        self.metrics: list[ShardMetrics] = []

    def step(self, parts: list[list[Event]], watermark: int) -> Found:
        mail: list[list[tuple[int, object]]] = [[] for _ in range(SHARDS)]
        for part in parts:
            key = np.array([event[0] for event in part], np.int64)
            keys = pa.RecordBatch.from_pydict({"key": pa.array(key)})
            instants = np.array([event[1] for event in part], np.int64)
            for packed in pack_panes(self.program, keys, key % SHARDS, instants, arguments_of(self.program, part)):
                mail[packed.shard].append((packed.keys, packed.panes))
        found: Found = {}
        for blob_store, letters in zip(self.blob_stores, mail, strict=True):
            shard = Shard(
                self.stores,
                blob_store,
                StreamOptions(self.mode, shards=SHARDS),
                lambda _, keys: np.ones(len(keys), dtype=bool),
            )
            program = self.program
            news = [(0, unpack_panes(*letter, program.components, program.edges)) for letter in letters]
            for answered in shard.step(news, watermark):
                answers = answered.answers
                assert answered.number == answers.view
                assert (answered.coverage == 1).all()
                key = answered.dictionary.keys.column(0).take(pa.array(answers.key)).to_pylist()
                columns = zip(*(column.to_pylist() for column in answers.columns), strict=True)
                for name, start, values in zip(key, answers.start.tolist(), columns, strict=True):
                    assert (answers.view, name, start) not in found
                    found[answers.view, name, start] = values
            self.metrics.append(shard.metrics)
        return found


@settings(max_examples=80)
@given(
    over=st.lists(windows, min_size=1, max_size=4, unique_by=lambda w: w.name),
    batches=st.lists(st.lists(events(0, 300), max_size=3), min_size=1, max_size=8),
    delay=st.integers(0, 60),
    mode=st.sampled_from(["append", "update"]),
)
def test_shards_answer_as_every_query_alone(
    over: list[Window], batches: list[list[list[Event]]], delay: int, mode: Mode
) -> None:
    stream = Stream(over, mode)
    simulation = Simulation(stream.program, EPOCH)
    watermark = EPOCH
    for parts in [*batches, []]:
        together = [event for part in parts for event in part]
        due, changed = simulation.step(together, watermark)
        assert stream.step(parts, watermark) == (due if mode == "append" else changed)
        watermark = max([watermark, *(instant - delay for _, instant, _ in together)])
    due, _ = simulation.step([], AT_LAST)
    assert stream.step([], AT_LAST) == (due if mode == "append" else {})
    assert all(not figures.granules for figures in stream.metrics[-SHARDS:])
    assert sum(len(blob_store.blobs) for blob_store in stream.blob_stores) <= KEYS


def test_a_micro_batch_writes_only_what_it_touched() -> None:
    stream = Stream([pn.hopping("100000us", every="50us")], "append")
    written = []
    for batch in range(60):
        before = sum(blob_store.written for blob_store in stream.blob_stores)
        stream.step([[(k, batch * 100 + 50 * i, 1) for i in range(2) for k in range(500)]], batch * 100)
        written.append(sum(blob_store.written for blob_store in stream.blob_stores) - before)
    held = sum(len(data) for blob_store in stream.blob_stores for data in blob_store.blobs.values())
    assert sum(written[30:]) / 30 < held / 5
    assert all(len(blob_store.blobs) < 30 for blob_store in stream.blob_stores)


@settings(max_examples=70)
@given(batches=st.lists(st.lists(events(0, 300), max_size=3), min_size=1, max_size=6), seed=st.integers(0, 99))
def test_regular_series_of_events_in_any_order(batches: list[list[list[Event]]], seed: int) -> None:
    """Within one micro-batch and between them, as long as no window has been answered, order does not matter."""
    tick = [2, 5, 10][seed % 3]
    over = [pn.tumbling(f"{4 * tick}ms"), pn.hopping(f"{30 * tick}ms", every=f"{10 * tick}ms"), pn.tumbling("1s")]
    select = {"line": pn.trend("x", every=f"{tick}ms"), "n": pn.count()}
    query = pn.query("q", at="ts", by="key", select=select, over=over)
    store = pn.plan(query, strategy="columnar").physical_plan().stores[0]
    stream = Stream(over, "append", cut_into_ticks(bind_store(store, types_in(SCHEMA))))
    for number, parts in enumerate(batches):
        # The watermark moves, so that granules would grow coarser if they could; later events are later than it.
        shifted = [[(key, 1000 * (instant % 100 + 100 * number), x) for key, instant, x in part] for part in parts]
        assert not {at[0] for at in stream.step(shifted, 0 if number < 2 else 50_000 * number)} & {2}
        batches[number] = shifted
    everything = [event for parts in batches for part in parts for event in part]
    columns = ([event[i] for event in everything] for i in range(3))
    table = pa.table([pa.array(c, t.type) for c, t in zip(columns, SCHEMA, strict=True)], SCHEMA)
    expected = {
        (row["key"], row["window"]["start"].microsecond): (row["line"], row["n"])
        for row in pn.plan(query).run(table).to_pylist()
        if row["window_name"] == "1s"
    }
    found = {(key, start): values for (view, key, start), values in stream.step([], 10 * AT_LAST).items() if view == 2}
    assert found.keys() == expected.keys()
    for at, (line, n) in found.items():
        assert n == expected[at][1]
        assert line == (None if expected[at][0] is None else pytest.approx(expected[at][0], rel=1e-9, abs=1e-9))
