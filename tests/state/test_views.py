"""Queries that are registered while a stream runs answer as a fresh run over what they cover."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.errors import DeclarationError, StateError
from panes.expressions.evaluate import evaluate, require_boolean
from panes.queries.catalogue_entries import Entry, name_in, read_entry, registration
from panes.queries.windows import Window
from panes.state.granules import pack_panes, unpack_panes
from panes.state.job import JobStore
from panes.state.registered_queries import Offer
from panes.state.runs import History
from panes.state.shard import Shard
from panes.state.stream_options import Mode, StreamOptions
from panes.timeline import Edges, Geometry
from tests.state.memory_blob_store import MemoryBlobStore
from tests.state.simulation import Event, arguments_of, events, program_of, queries, starts_of

DECLARED = [pn.tumbling("10us"), pn.hopping("40us", every="20us")]
AT_LAST = 10**6


class Stream:
    """One shard in memory, with panes of ten microseconds."""

    def __init__(self, mode: Mode = "append", history: int = 0) -> None:
        self.program, self.options = program_of(DECLARED), StreamOptions(mode, catalogue="folder")
        read = {view.query: (view.readings, view.exists) for view in self.program.views}
        offer = Offer([(q, *read[i]) for i, q in enumerate(queries(DECLARED))], ("key",), self.program.edges, "ts")
        self.stores = [JobStore(self.program, pa.schema([("key", pa.int64())]), offer, history)]
        self.blob_store = MemoryBlobStore()
        self.refused: list[str] = []
        self.names: list[str | None] = []

    def step(self, batch: list[Event], watermark: int, *changes: Entry | str) -> list[dict[str, Any]]:
        key, instants = (np.array([event[i] for event in batch], np.int64) for i in range(2))
        keys = pa.RecordBatch.from_pydict({"key": pa.array(key)})
        arguments = arguments_of(self.program, batch)
        packed = pack_panes(self.program, keys, np.zeros(len(key), np.int64), instants, arguments)
        program = self.program
        news = [(0, unpack_panes(p.keys, p.panes, program.components, program.edges)) for p in packed]
        shard = Shard(self.stores, self.blob_store, self.options, self._filter)
        texts = [change if isinstance(change, str) else change.to_json() for change in changes]
        found = []
        for answered in shard.step(news, watermark, texts):
            names = answered.dictionary.keys.column(0).take(pa.array(answered.answers.key)).to_pylist()
            columns = [column.to_pylist() for column in answered.answers.columns]
            for i, name in enumerate(names):
                row = dict(zip((r.alias for r in answered.view.readings), (c[i] for c in columns), strict=True))
                start = int(answered.answers.start[i])
                found.append(
                    {"query": answered.name, "window": answered.view.window, "start": start, "key": name}
                    | row
                    | {"coverage": float(answered.coverage[i])}
                )
        self.refused += [refusal.reason for refusal in shard.refused]
        self.names += [refusal.name for refusal in shard.refused]
        return found

    def _filter(self, condition: Any, keys: pa.RecordBatch) -> Any:
        require_boolean(condition, keys.schema)
        return evaluate(condition, pa.Table.from_batches([keys])).to_numpy()


def counted(*over: Window, name: str = "new", where: str | None = None) -> Entry:
    select = {"n": pn.count(), "total": pn.sum("x")}
    return registration(pn.query(name, at="ts", by="key", select=select, over=over, where=where))


def by_hand(entry: Entry, name: str, value: Any) -> str:
    """An entry with one field changed, and without a checksum."""
    data = {**json.loads(entry.to_json()), name: value}
    del data["checksum"]
    return json.dumps(data)


new_windows = st.builds(
    lambda size, slide, offset: pn.hopping(f"{size}0us", every=f"{slide}0us", offset=f"{offset}0us"),
    st.integers(1, 9),
    st.integers(1, 5),
    st.integers(0, 3),
)


@settings(max_examples=100)
@given(
    window=new_windows,
    batches=st.lists(events(0, 300), min_size=2, max_size=8),
    at=st.integers(0, 7),
    delay=st.integers(0, 40),
    history=st.sampled_from([0, 50, 1000]),
)
def test_a_new_window_answers_as_a_fresh_run_over_what_it_covers(
    window: Window, batches: list[list[Event]], at: int, delay: int, history: int
) -> None:
    stream = Stream(history=history)
    watermark, seen, registered = 0, list[Event](), None
    geometry = window.geometry
    for number, batch in enumerate([*batches, []]):
        changes = [counted(window)] if number == at else []
        last = watermark if number < len(batches) else AT_LAST
        before = getattr(stream, "watermark", 0)
        found = [row for row in stream.step(batch, last, *changes) if row["query"] == "new"]
        stream.watermark = last
        seen += batch
        registered = before if number == at else registered
        if registered is None:
            assert not found
            continue
        answered = {(row["key"], row["start"]): row for row in found}
        assert len(answered) == len(found)
        expected: dict[tuple[int, int], list[int | None]] = {}
        for key, instant, value in seen:
            for start in starts_of(geometry, instant):
                if before < start + geometry.range <= last:
                    expected.setdefault((key, start), []).append(value)
        assert answered.keys() <= expected.keys()
        for at_, row in answered.items():
            end = at_[1] + geometry.range
            since = end - round(row["coverage"] * geometry.range)
            values = [value for key, instant, value in seen if key == at_[0] and max(at_[1], since) <= instant < end]
            assert row["n"] == len(values)
            known = [value for value in values if value is not None]
            assert row["total"] == (sum(known) if known else None)
        if history == 1000:
            assert answered.keys() == expected.keys()
            assert all(row["coverage"] == 1 for row in found)
        watermark = max([watermark, *(instant - delay for _, instant, _ in batch)])


def test_coverage_grows_until_the_window_has_seen_its_range() -> None:
    stream = Stream()
    ticks = [(0, t, 1) for t in range(0, 400, 10)]
    for t in range(0, 200, 10):
        stream.step([e for e in ticks if t <= e[1] < t + 10], t)
    window = pn.hopping("100us", every="50us")
    found = stream.step([], 200, counted(window))
    for t in range(200, 400, 10):
        found += stream.step([e for e in ticks if t <= e[1] < t + 10], t)
    mine = [(row["start"], row["coverage"], row["n"]) for row in found if row["query"] == "new"]
    # Before 180, ten under the watermark of then, there were only granules of 20 µs, which would cut a window's start.
    assert mine == [(100, 0.2, 2), (150, 0.7, 7), (200, 1.0, 10), (250, 1.0, 10)]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (counted(pn.tumbling("15us")), "begins or ends within a pane"),
        (registration(pn.query("q", at="ts", select={"n": pn.count()}, over=pn.tumbling("20us"))), "nothing by ()"),
        (
            registration(pn.query("q", at="ts", by="key", select={"n": pn.min("x")}, over=pn.tumbling("20us"))),
            r"no column n = min\('x'\)",
        ),
        (counted(pn.tumbling("20us"), where="x > 3"), "no declared query of the job counts the events with x > 3"),
        (counted(pn.tumbling("20us"), name="all"), "a query 'all' exists already"),
        (
            registration(pn.query("q", at="t2", by="key", select={"n": pn.count()}, over=pn.tumbling("20us"))),
            "the job's event time is ts",
        ),
        (Entry("suspend", "nobody"), "'nobody' is not registered"),
        ("not json", "not a catalogue entry"),
        ('{"format": 9}', "it is not of format 1"),
        ('{"format": 1, "action": "run", "name": "q"}', "the action 'run' is not one of"),
        (by_hand(counted(pn.tumbling("20us")), "where", "rand() > 0.5"), "rand"),
        (by_hand(counted(pn.tumbling("20us")), "over", [{"range": "1"}]), "microseconds"),
        (counted(pn.tumbling("20us"), where="key"), "must be BOOLEAN"),
        ("[" * 100_000, "not a catalogue entry"),
        (by_hand(counted(pn.tumbling("20us")), "name", "\ud800"), "surrogates"),
        (by_hand(counted(pn.tumbling("20us")), "by", "key"), "by must be a list"),
    ],
)
def test_what_cannot_be_served_is_refused_with_the_reason_and_the_job_goes_on(change: Entry | str, reason: str) -> None:
    stream = Stream()
    stream.step([(0, 5, 1)], 0, change)
    assert len(stream.refused) == 1
    assert re.search(reason, stream.refused[0]), stream.refused
    assert stream.names == [name_in(change if isinstance(change, str) else change.to_json())]
    assert [row["n"] for row in stream.step([], 15) if row["window"].name == "10us" and "n" in row] == [1]


def test_suspended_queries_are_silent_and_resumed_ones_say_what_they_saw() -> None:
    stream = Stream()
    window = pn.tumbling("20us")
    silent = stream.step([(0, t, 1) for t in range(0, 100, 10)], 0, counted(window), Entry("suspend", "new"))
    silent += stream.step([], 50)
    assert not [row for row in silent if row["query"] == "new"]
    found = stream.step([], 100, Entry("resume", "new"))
    assert [(row["start"], row["n"], row["coverage"]) for row in found if row["query"] == "new"] == [
        (40, 2, 1.0),
        (60, 2, 1.0),
        (80, 2, 1.0),
    ]
    stream.step([], 100, Entry("drop", "new"), counted(window))
    assert not stream.refused


def test_a_condition_on_keys_chooses_among_them() -> None:
    stream = Stream()
    stream.step([(k, 5, 1) for k in range(3)], 0, counted(pn.tumbling("20us"), where="key > 0"))
    assert sorted(row["key"] for row in stream.step([], 20) if row["query"] == "new") == [1, 2]


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> Any:
    def windows(*over: Window) -> None:
        monkeypatch.setattr("tests.state.test_views.DECLARED", list(over))

    return windows


def test_a_late_event_joins_a_granule_of_before_other_windows_came(declared: Any) -> None:
    declared(pn.tumbling("10us"), pn.hopping("100us", every="20us"))
    stream = Stream()
    for t in range(0, 220, 10):
        stream.step([(0, t, 1)], max(t - 10, 0))
    stream.step([], 200, counted(pn.hopping("90us", every="30us")))
    stream.step([(0, 135, 1)], 200)
    found = [row for row in stream.step([], 260) if row["window"].geometry.range == 100 and "n" in row]
    assert [(row["start"], row["n"]) for row in found] == [(120, 11), (140, 8), (160, 6)]


def test_coverage_leaves_out_what_a_dropped_granule_held(declared: Any) -> None:
    declared(pn.tumbling("10us"), pn.hopping("600us", every="300us"))
    stream = Stream()
    for t in range(0, 2000, 50):
        stream.step([(0, u, 1) for u in range(t, t + 50)], t)
    stream.step([], 1950, counted(pn.hopping("1200us", every="300us")))
    found = [(row["start"], row["n"], row["coverage"]) for row in stream.step([], 5000) if row["query"] == "new"]
    assert found == [(900, 500, 0.5), (1200, 500, 0.75), (1500, 500, 1.0), (1800, 200, 1.0)]


def test_a_restart_with_finer_panes_does_not_take_old_panes_for_new_ones(declared: Any) -> None:
    declared(pn.tumbling("10us"))
    before = Stream()
    before.step([(0, t, 1) for t in range(50)], 0)
    before.step([], 39)
    declared(pn.tumbling("10us"), pn.tumbling("5us"))
    after = Stream()
    after.blob_store, after.options = before.blob_store, StreamOptions()
    after.step([(0, 46, 1), (0, 57, 1)], 39)
    found = [(row["window"].name, row["start"], row["n"]) for row in after.step([], 80) if "n" in row]
    assert found == [("10us", 30, 10), ("10us", 40, 11), ("10us", 50, 1), ("5us", 55, 1)]


def test_a_checkpoint_of_other_events_or_keys_is_refused() -> None:
    before = Stream()
    before.step([(0, 5, 1)], 0)
    for other, reason in (
        ({"kept": "x > 5"}, "keeps all events, and the queries of this run need events with x > 5"),
        ({"keys": pa.schema([("other", pa.int64())])}, "keeps nothing by"),
    ):
        after = Stream()
        after.blob_store, after.stores = before.blob_store, [replace(after.stores[0], **other)]
        with pytest.raises(StateError, match=reason):
            after.step([], 10)


def test_coverage_begins_where_a_granule_does(declared: Any) -> None:
    declared(pn.tumbling("10us"), pn.hopping("600us", every="300us"))
    stream = Stream()
    for t in range(0, 1950, 50):
        stream.step([(0, u, 1) for u in range(t, t + 50)], t)
    stream.step([], 1945, counted(pn.hopping("70us", every="10us")))
    found = [row for row in stream.step([], 1960) if row["query"] == "new"]
    for row in found:
        since = row["start"] + 70 - round(row["coverage"] * 70)
        assert row["n"] == len([u for u in range(1950) if max(since, row["start"]) <= u < row["start"] + 70])


def test_a_condition_that_fails_for_one_key_leaves_that_key_out(declared: Any) -> None:
    stream = Stream()
    stream.step([(k, 5, 1) for k in range(3)], 0, counted(pn.tumbling("20us"), where="10 / key > 0"))
    assert sorted(row["key"] for row in stream.step([], 20) if row["query"] == "new") == [1, 2]


def test_entries_survive_as_text() -> None:
    entry = counted(pn.hopping("40us", every="20us", offset="10us"), where="key > 0")
    assert read_entry(entry.to_json()) == entry
    with pytest.raises(DeclarationError, match="derived columns or having"):
        registration(pn.query("q", at="ts", select={"n": pn.count(), "m": "n + 1"}, over=pn.tumbling("1s")))


def test_history_remembers_what_was_made_coarse() -> None:
    history = History()
    assert history.sees_from(Geometry(100, 10), (Edges(10),)) < -(2**61)
    history = History.from_json(json.loads(json.dumps(History(5, {(Edges(60, 3),): 70}).to_json())))
    assert history == History(5, {(Edges(60, 3),): 70})
