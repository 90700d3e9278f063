"""Windows by policy over rows that come bit by bit, against the same windows over a table of all rows.

Catches state that is forgotten or kept for too long, windows that are cut where micro-batches are, and rows that
arrive before the watermark says so.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from panes.local.windowed_aggregates import bind_aggregates, used_columns

import panes as pn
from panes.declare.expressions import expression
from panes.engine.cabinet import InMemory
from panes.errors import OrderError, StateError
from panes.frames import sliding_policies
from panes.local import windowed_stream
from panes.local.arriving import tie_order
from panes.local.evaluate import evaluate, result_type
from panes.local.windowed_stream import Shape, WindowedShard
from panes.operators.declarations import Sliding, Time
from panes.operators.over_tables import aggregates_of, stream_of
from tests.local.test_windowed import LIMITS, SELECT, WINDOWS, p, table_of, tables


class Stream:
    """A shard that is opened again for every micro-batch, as Spark does it."""

    def __init__(self, schema, window, by=(), group_by=(), partial=True, punctuations=None, select=SELECT):
        self._stream = stream_of(window, by, "ts", None, punctuations)
        declared = aggregates_of(self._stream, select, group_by, partial)
        self._bound = bind_aggregates(declared, schema, lambda sql: result_type(expression(sql), schema))
        self._ties = tie_order(self._stream, used_columns(declared), schema)
        self._parts = [self._stream.by, self._stream.deltas, self._bound.groups, self._ties]
        keys, deltas, groups, ties = (tuple(schema.field(name).type for name in names) for names in self._parts)
        arguments = tuple(result_type(expression(sql), schema) for sql in self._bound.arguments)
        self._shape = Shape(keys, arguments, deltas, groups, ties)
        self.cabinet = InMemory()
        self.found, self.late = [], 0
        self.schema = self._bound.schema

    def step(self, table, watermark):
        marks = np.zeros(0, np.int64)
        if self._stream.punctuations is not None:
            marked = table.column(self._stream.punctuations).combine_chunks().fill_null(False)
            marks = table.filter(marked).column("ts").cast(pa.int64()).to_numpy()
            table = table.filter(pa.compute.invert(marked))
        keys, deltas, groups, ties = self._parts
        columns = [
            *(table.column(name) for name in keys),
            table.column("ts").cast(pa.int64()),
            *(evaluate(expression(sql), table) for sql in self._bound.arguments),
            *(table.column(name) for name in (*deltas, *groups, *ties)),
        ]
        rows = pa.Table.from_arrays(columns, schema=self._shape.schema).to_batches()
        shard = WindowedShard([self._bound], self._shape, {"window": str(self._stream.window)}, self.cabinet)
        (found,) = shard.step(rows, marks, watermark)
        self.found += found.to_pylist()
        self.late += shard.counted.late
        return shard.counted


@st.composite
def micro_batches(draw, rows):
    """Rows as they come, each batch with a watermark that no later row has fallen behind."""
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=5)))
    parts = [rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    batches = []
    for i, part in enumerate(parts):
        later = [row["ts"] for rest in parts[i + 1 :] for row in rest]
        last = max((row["ts"] for row in rows), default=0) + 1
        batches.append((part, min([*later, last]) if draw(st.booleans()) or not later else 0))
    return batches


def sorted_rows(rows):
    return sorted(rows, key=lambda row: (str(row.get("k")), row["window"]["number"], str(row)))


def same(found, wanted):
    found, wanted = sorted_rows(found), sorted_rows(wanted)
    for row in (*found, *wanted):
        if row.get("spread") is not None:
            row["spread"] = round(row["spread"], 9)
    return found == wanted


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@settings(max_examples=15)
@given(data=st.data(), partial=st.booleans(), by=st.sampled_from(["k", ()]), group_by=st.sampled_from([(), "g"]))
def test_aggregates(window, data, partial, by, group_by):
    # In the order of time but for the tuples of a few µs: otherwise no watermark passes before the end.
    rows = sorted(data.draw(tables()), key=lambda row: row["ts"] // 4)
    table = table_of(rows)
    stream = Stream(table.schema, window, by, group_by, partial)
    for part, watermark in data.draw(micro_batches(rows)):
        stream.step(table_of(part), watermark)
    whole = pn.windowed(table, window=window, by=by, at="ts", select=SELECT, group_by=group_by, partial=partial)
    assert same(stream.found, whole.to_pylist())
    assert stream.late == 0


@pytest.mark.parametrize("evict", [p.count(3), p.delta("odometer", 5)], ids=str)
def test_a_watermark_that_jumps_far_does_not_stop_a_stream(evict, monkeypatch):
    """More moments than may be looked at together, here 64 instead of 2 ** 27."""
    monkeypatch.setattr(sliding_policies, "_MOST", 64)
    monkeypatch.setattr(windowed_stream, "_AT_ONCE", 32)
    stream = Stream(table_of([]).schema, p.sliding(evict, p.time("1 us")), "k")
    now = 10**15
    rows = [{**row, "ts": now + row["ts"]} for row in ROWS[:3]]
    stream.step(table_of(rows), now + 3)
    assert stream.step(table_of([]), now + 1_000).answers == 2 * (1_000 - 3)
    assert {row["n"] for row in stream.found if row["k"] == "a"} == {1, 2}
    numbers = [row["window"]["number"] for row in stream.found if row["k"] == "b"]
    assert sorted(numbers) == list(range(1_000 - 1))


TIMED = [window for window in WINDOWS if isinstance(window, Sliding) and isinstance(window.trigger, Time)]


@pytest.mark.parametrize("window", TIMED, ids=str)
@settings(max_examples=15)
@given(data=st.data(), partial=st.booleans(), by=st.sampled_from(["k", ()]), at_once=st.integers(0, 5))
def test_a_watermark_that_jumps_is_passed_in_pieces(window, data, partial, by, at_once):
    """Wherever time is cut, the windows are the same."""
    rows = sorted(data.draw(tables()), key=lambda row: row["ts"] // 4)
    table = table_of(rows)
    stream = Stream(table.schema, window, by, (), partial)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windowed_stream, "_AT_ONCE", at_once)
        for part, watermark in data.draw(micro_batches(rows)):
            stream.step(table_of(part), watermark)
    whole = pn.windowed(table, window=window, by=by, at="ts", select=SELECT, partial=partial)
    assert same(stream.found, whole.to_pylist())


@settings(max_examples=100)
@given(st.data(), st.sampled_from(WINDOWS), st.sampled_from(LIMITS[1:]), st.booleans())
def test_evicted_partitions(data, window, limit, partial):
    rows = sorted(data.draw(tables()), key=lambda row: row["ts"] // 4)
    table, declared = table_of(rows), replace(window, partitioned=p.partitions("k", **limit))
    stream = Stream(table.schema, declared, partial=partial)
    for part, watermark in data.draw(micro_batches(rows)):
        stream.step(table_of(part), watermark)
    whole = pn.windowed(table, window=declared, at="ts", select=SELECT, partial=partial)
    assert same(stream.found, whole.to_pylist())


@settings(max_examples=50)
@given(st.data(), st.sampled_from(["k", ()]))
def test_punctuations(data, by):
    rows = sorted(data.draw(tables()), key=lambda row: row["ts"] // 4)

    def punctuated(some):
        stops = pa.array([None if r["x"] is None else r["x"] == 3 for r in some], pa.bool_())
        return table_of(some).append_column("stop", stops)

    window, table = p.tumbling(p.punctuation()), punctuated(rows)
    stream = Stream(table.schema, window, by, punctuations="stop")
    for part, watermark in data.draw(micro_batches(rows)):
        stream.step(punctuated(part), watermark)
    whole = pn.windowed(table, window=window, by=by, at="ts", select=SELECT, punctuations="stop").to_pylist()
    # A table knows of punctuations after its last tuple; a stream does not, before the watermark has passed them.
    assert same(stream.found, whole)


ROWS = [{"ts": t, "k": "ab"[t % 2], "g": "u", "odometer": t, "x": t, "y": 0} for t in range(2_000)]


def test_rows_that_come_too_late_are_counted():
    stream = Stream(table_of([]).schema, p.tumbling(p.count(2)), "k")
    stream.step(table_of(ROWS[:10]), 8)
    stream.step(table_of(ROWS[6:12]), 10)
    assert stream.late == 2
    assert [row["n"] for row in stream.found] == [2] * 6  # 8 and 9 came twice, and in time


@pytest.mark.parametrize("evict", [p.time("1 us"), p.count(1), p.delta("odometer", 0)], ids=str)
def test_an_attribute_that_falls_after_its_row_was_evicted(evict):
    """The last value stays known, even where the window is empty."""
    stream = Stream(table_of([]).schema, p.sliding(evict, p.delta("odometer", 10)), "k")
    row = {"k": "a", "g": "u", "x": 1, "y": 0}
    stream.step(table_of([{"ts": 1, "odometer": 100, **row}, {"ts": 2, "odometer": 105, **row}]), 50)
    with pytest.raises(OrderError, match="'odometer' fell from 105 to 102"):
        stream.step(table_of([{"ts": 60, "odometer": 102, **row}]), 100)


@pytest.mark.parametrize("window", WINDOWS[::4], ids=str)
def test_state_does_not_grow(window, monkeypatch):
    """Neither with the number of rows nor with that of micro-batches."""
    monkeypatch.setattr("panes.local.keyed_rows._FEW", 20)
    stream = Stream(table_of([]).schema, window, "k")
    held = [stream.step(table_of(ROWS[i : i + 20]), i + 15) for i in range(0, 2_000, 20)]
    assert max(counted.rows for counted in held) <= 100
    assert len(stream.cabinet.blobs) < 40
    assert stream.found


def test_a_micro_batch_writes_what_it_touches():
    """Not a line for every partition there is."""
    window, schema = p.tumbling(p.count(3)), table_of([]).schema
    stream = Stream(schema, window, "k")
    everyone = [{"ts": t, "k": f"k{t}", "g": "u", "odometer": t, "x": t, "y": 0} for t in range(20_000)]
    stream.step(table_of(everyone), 20_000)
    before = stream.cabinet.written
    for i in range(20):
        stream.step(table_of([{**everyone[i], "ts": 20_000 + i}]), 20_001 + i)
    assert (stream.cabinet.written - before) / 20 < 10_000


def test_rows_that_wait_are_not_written_again_and_again():
    """A long delay, and many micro-batches while it lasts."""
    stream = Stream(table_of([]).schema, p.tumbling(p.count(2)), "k", select={"n": pn.count()})
    rows = [{**ROWS[0], "ts": t, "x": t} for t in range(12_000)]
    for i in range(0, 12_000, 40):
        counted = stream.step(table_of(rows[i : i + 40]), max(i - 8_000, 0))
    assert counted.rows <= 8_100
    assert len(stream.found) == 1_980
    assert stream.cabinet.written < 2_000_000


def test_compacting_rows_loses_none(monkeypatch):
    monkeypatch.setattr("panes.local.keyed_rows._FEW", 0)
    window = p.sliding(p.count(5), p.count(3))
    stream = Stream(table_of([]).schema, window, "k")
    for i in range(0, 600, 20):
        counted = stream.step(table_of(ROWS[i : i + 20]), i + 15)
        assert counted.rows <= 2 * 10 + 20
    stream.step(table_of([]), 600)
    whole = pn.windowed(table_of(ROWS[:600]), window=window, by="k", at="ts", select=SELECT)
    assert same(stream.found, whole.to_pylist())


def test_another_window_cannot_go_on():
    schema = table_of([]).schema
    one, other = Stream(schema, p.tumbling(p.count(2))), Stream(schema, p.tumbling(p.count(3)))
    one.step(table_of(ROWS[:3]), 2)
    other.cabinet = one.cabinet
    with pytest.raises(StateError, match=r"written with window='tumbling, count\(2\)', and this run has"):
        other.step(table_of(ROWS[3:6]), 5)
