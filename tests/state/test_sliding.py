"""An answer per event, in streams: shards in memory, opened anew in every micro-batch, against the definition."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.engine.bind_program import bind_store, types_in
from panes.planning.plan_queries import plan_queries
from panes.planning.statistics import Statistics
from panes.queries.windows import Sliding, Window
from panes.state.granules import pack_panes, unpack_panes
from panes.state.job import JobStore, ShardMetrics
from panes.state.registered_queries import Offer
from panes.state.shard import Shard
from panes.state.stream_options import StreamOptions
from panes.state.watermark import EPOCH
from tests.state.memory_blob_store import MemoryBlobStore
from tests.state.simulation import SCHEMA, Event, PerEvent, Simulation, arguments_of, events, windows

SHARDS = 2
AT_LAST = 10**6

sliding = st.builds(
    lambda size, ago: pn.sliding(f"{size}us", ago=f"{ago}us"), st.integers(1, 60), st.just(0) | st.integers(0, 50)
)


class Stream:
    """A stream of several stores in one process."""

    def __init__(self, queries: list[pn.Query]) -> None:
        plan = plan_queries(queries, Statistics(), "columnar", factor_windows=False, feed=False)
        self.stores = []
        for store in plan.stores:
            program = bind_store(store, types_in(SCHEMA))
            offer = Offer((), store.keys, program.edges, "ts", store.per_event)
            keys = pa.schema([(name, pa.int64()) for name in store.keys])
            self.stores.append(JobStore(program, keys, offer))
        self.blob_stores = [MemoryBlobStore() for _ in range(SHARDS)]
        self.metrics: list[ShardMetrics] = []

    def step(self, parts: list[list[Event]], watermark: int) -> list[tuple[int, Any, Any, int, tuple[Any, ...]]]:
        """Of each answer: the number of its store, its view, its key, where its instance starts, its values."""
        mail: list[list[tuple[int, Any]]] = [[] for _ in range(SHARDS)]
        for part in parts:
            key = np.array([event[0] for event in part], np.int64)
            keys = pa.RecordBatch.from_pydict({"key": pa.array(key)})
            instants = np.array([event[1] for event in part], np.int64)
            for number, store in enumerate(self.stores):
                program = store.program
                for packed in pack_panes(program, keys, key % SHARDS, instants, arguments_of(program, part)):
                    news = unpack_panes(packed.keys, packed.panes, program.components, program.edges)
                    mail[packed.shard].append((number, news))
        found = []
        for blob_store, letters in zip(self.blob_stores, mail, strict=True):
            shard = Shard(
                self.stores, blob_store, StreamOptions(shards=SHARDS), lambda _, keys: np.ones(len(keys), dtype=bool)
            )
            for answered in shard.step(letters, watermark):
                answers = answered.answers
                assert (answered.coverage == 1).all()
                names = answered.dictionary.keys.column(0).take(pa.array(answers.key)).to_pylist()
                values = list(zip(*(column.to_pylist() for column in answers.columns), strict=True))
                rows = zip(names, answers.start.tolist(), values, strict=True)
                found += [(answered.store, answers.view, *row) for row in rows]
            self.metrics.append(shard.metrics)
        return found


def asked(over: list[Any], sides: list[Any]) -> list[pn.Query]:
    select = {"n": pn.count(), "total": pn.sum("x"), "top": pn.max("x")}
    everything = pn.query("all", at="ts", by="key", select=select, over=over)
    some = pn.query("some", at="ts", by="key", select={"m": pn.count(), "high": pn.max("x")}, over=over, where="x > 0")
    # As the simulation of other windows has it.
    select |= {"spread": pn.std("x")}
    others = [pn.query("sides", at="ts", by="key", select=select, over=sides)] if sides else []
    return [everything, some, *others]


def lowered(values: list[int | None]) -> tuple[Any, ...]:
    known = [value for value in values if value is not None]
    return (len(values), sum(known), max(known)) if known else (len(values), None, None)


@settings(max_examples=60)
@given(
    over=st.lists(sliding, min_size=1, max_size=3, unique_by=lambda w: w.name),
    sides=st.lists(windows, max_size=2, unique_by=lambda w: w.name),
    batches=st.lists(st.lists(events(0, 300), max_size=3), min_size=1, max_size=8),
    delay=st.integers(0, 60),
)
def test_an_event_is_answered_once_by_the_watermark_that_passes_it(
    over: list[Sliding], sides: list[Window], batches: list[list[list[Event]]], delay: int
) -> None:
    stream = Stream(asked(over, sides))
    program = stream.stores[-1].program
    models = [PerEvent(over, EPOCH), PerEvent(over, EPOCH)]
    simulation = Simulation(stream.stores[0].program, EPOCH)
    watermark = EPOCH

    def compare(parts: list[list[Event]]) -> None:
        together = [event for part in parts for event in part]
        positive = [event for event in together if event[2] is not None and event[2] > 0]
        found = stream.step(parts, watermark)
        expected = [(0, *row[:4], lowered(row[4])) for row in models[0].step(together, watermark)]
        for name, key, start, end, values in models[1].step(positive, watermark):
            expected.append((1, name, key, start, end, lowered(values)[::2]))
        shown = Counter()
        for store, number, key, start, values in found:
            if store == len(stream.stores) - 1:
                view = program.views[number]
                bounds = start - view.window.shift, start - view.window.shift + view.window.geometry.range
                shown[view.query, view.window.name, key, *bounds, values] += 1
        assert shown == Counter(expected)
        if sides:
            due, _ = simulation.step(together, watermark)
            assert {tuple(row[1:4]): row[4] for row in found if row[0] == 0} == due

    for parts in [*batches, []]:
        compare(parts)
        watermark = max([watermark, *(instant - delay for part in parts for _, instant, _ in part)])
    watermark = AT_LAST
    compare([])
    assert all(not figures.granules for figures in stream.metrics[-SHARDS:])


def test_late_events_still_count_for_later_ones() -> None:
    stream = Stream(asked([pn.sliding("10us")], []))
    stream.step([[(0, 50, 1)]], 0)
    assert [row[3:] for row in stream.step([[(0, 60, 2)]], 60)] == [(41, (1, 1, 1)), (41, (1, 1))]
    # Too late for an answer of its own, and in time for the one after it.
    found = stream.step([[(0, 55, 5)]], 61)
    assert sorted(row[3:] for row in found) == [(51, (2, 5)), (51, (2, 7, 5))]
    assert stream.step([[(0, 45, 5)]], 100) == []
    assert all(figures.open_windows == 0 for figures in stream.metrics)


def test_what_no_window_needs_is_not_kept() -> None:
    stream = Stream(asked([pn.sliding("10us"), pn.sliding("5us", ago="20us")], []))
    for instant in range(0, 2000, 5):
        stream.step([[(0, instant, 1), (1, instant, 1)]], max(0, instant - 5))
    # Seven instants of each key lie less than 25 µs before the watermark or after it; runs are dropped as a whole.
    held = sum(figures.granules for figures in stream.metrics[-SHARDS:])
    assert 14 <= held <= 4 * 14
