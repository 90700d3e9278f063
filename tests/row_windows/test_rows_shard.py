"""Shards of windows of rows: what they keep, write and count while rows come bit by bit.

Catches state that is forgotten or kept for too long, windows that are cut where micro-batches or pieces of time are,
and rows that arrive before the watermark says so.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.engine.bind_program import types_in
from panes.engine.keys import INSTANT
from panes.errors import OrderError, StateError
from panes.expressions.evaluate import evaluate, result_type
from panes.expressions.expression import expression
from panes.frames import row_sliding
from panes.queries.windows import RowWindow
from panes.row_windows import windows_shard
from panes.row_windows.arrival import tie_order
from panes.row_windows.bound_rows import bind_rows, labelled, needed
from panes.row_windows.key_set import KeySet, Own, SentColumns
from panes.row_windows.parts import over_rows
from panes.row_windows.rows_shard import RowsShard
from panes.state.held_rows import no_marks
from tests.applying.test_operators_on_streams import micro_batches
from tests.applying.test_operators_on_tables import MOVING, WINDOWS, table_of, tables
from tests.state.memory_blob_store import MemoryBlobStore

SELECT = {"n": pn.count(), "total": pn.sum("x"), "middle": pn.quantile("x", 0.5), "which": "number"}
OF_ROWS = [window for window in WINDOWS if isinstance(window, RowWindow)]


class Stream:
    """A shard that is opened again for every micro-batch, as Spark does it."""

    def __init__(self, window, by=(), select=SELECT):
        schema = table_of([]).schema
        (part,) = over_rows([pn.query(by=by, at="ts", select=select, over=window)])
        self.bound = bind_rows(part, schema, types_in(schema))
        arguments = self.bound.arguments
        ties = tie_order(part.input, schema, needed([part]))
        self.names = (*part.input.by, "ts", *arguments, *part.deltas, *ties)
        types = [tuple(schema.field(name).type for name in some) for some in (part.input.by, part.deltas, ties)]
        values = tuple(result_type(expression(sql), schema) for sql in arguments)
        sent = SentColumns(types[0], values, types[1], (), 0, types[2])
        self.keys = KeySet((self.bound,), (Own(tuple(range(len(arguments))), ()),), sent)
        self.declared = {"windows": [str(part.input.window)]}
        self.blob_store, self.found, self.late = MemoryBlobStore(), [], 0

    def step(self, rows, watermark):
        table = table_of(rows)
        columns = [evaluate(expression(name), table) for name in self.names]
        schema = self.keys.sent.schema
        columns = [
            column.cast(pa.int64()) if field.name == INSTANT else column
            for column, field in zip(columns, schema, strict=True)
        ]
        came = pa.Table.from_arrays(columns, schema=schema).combine_chunks().to_batches()
        shard = RowsShard(self.keys, self.declared, self.blob_store)
        for answers in shard.steps(came, no_marks(), watermark):
            for _, table in answers:
                self.found += labelled(self.bound, 0, table).to_pylist()
        self.late += shard.metrics.late
        return shard.metrics


def whole(rows, window, by=(), select=SELECT):
    """The same windows of a table."""
    return pn.plan(pn.query(by=by, at="ts", select=select, over=window)).run(table_of(rows)).to_pylist()


def shown(rows):
    return sorted(map(repr, rows))


@pytest.mark.parametrize("size", [pn.rows(3), pn.delta("odometer", 5)], ids=str)
def test_a_watermark_that_jumps_far_does_not_stop_a_stream(size, monkeypatch):
    """More moments than may be looked at together, here 64 instead of 2 ** 27."""
    monkeypatch.setattr(row_sliding, "MOST_ANSWERS", 64)
    monkeypatch.setattr(windows_shard, "_AT_ONCE", 32)
    stream = Stream(pn.hopping(size, every="1 us", origin="first"), "k")
    now = 10**15
    rows = [{**row, "ts": now + row["ts"]} for row in ROWS[:3]]
    stream.step(rows, now + 3)
    assert stream.step([], now + 1_000).answers == 2 * (1_000 - 3)
    assert {row["n"] for row in stream.found if row["k"] == "a"} == {1, 2}
    numbers = [row["which"] for row in stream.found if row["k"] == "b"]
    assert sorted(numbers) == list(range(1_000 - 1))


TIMED = [window for window in MOVING if isinstance(getattr(window, "every", None), int)]


@pytest.mark.parametrize("window", TIMED, ids=str)
@settings(max_examples=15)
@given(data=st.data(), by=st.sampled_from(["k", ()]), at_once=st.integers(0, 5))
def test_a_watermark_that_jumps_is_passed_in_pieces(window, data, by, at_once):
    """Wherever time is cut, the windows are the same."""
    rows = sorted(data.draw(tables()), key=lambda row: row["ts"] // 4)
    stream = Stream(window, by)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows_shard, "_AT_ONCE", at_once)
        for part, watermark in data.draw(micro_batches(rows)):
            stream.step(part, watermark)
    assert shown(stream.found) == shown(whole(rows, window, by))
    assert stream.late == 0


ROWS = [{"ts": t, "k": "ab"[t % 2], "g": "u", "odometer": t, "x": t, "y": 0} for t in range(2_000)]


def test_rows_that_come_too_late_are_counted():
    stream = Stream(pn.tumbling(pn.rows(2)), "k")
    stream.step(ROWS[:10], 8)
    stream.step(ROWS[6:12], 10)
    assert stream.late == 2
    assert [row["n"] for row in stream.found] == [2] * 6  # 8 and 9 came twice, and in time


@pytest.mark.parametrize("size", ["1 us", pn.rows(1), pn.delta("odometer", 0)], ids=str)
def test_an_attribute_that_falls_after_its_row_was_evicted(size):
    """The last value stays known, even where the window is empty."""
    stream = Stream(pn.hopping(size, every=pn.delta("odometer", 10)), "k")
    row = {"k": "a", "g": "u", "x": 1, "y": 0}
    stream.step([{"ts": 1, "odometer": 100, **row}, {"ts": 2, "odometer": 105, **row}], 50)
    with pytest.raises(OrderError, match="'odometer' fell from 105 to 102"):
        stream.step([{"ts": 60, "odometer": 102, **row}], 100)


@pytest.mark.parametrize("window", OF_ROWS[::3], ids=str)
def test_state_does_not_grow(window, monkeypatch):
    """Neither with the number of rows nor with that of micro-batches."""
    monkeypatch.setattr("panes.state.held_rows._FEW", 20)
    stream = Stream(window, "k")
    held = [stream.step(ROWS[i : i + 20], i + 15) for i in range(0, 2_000, 20)]
    assert max(counted.granules for counted in held) <= 100
    assert len(stream.blob_store.blobs) < 40
    assert stream.found


def test_a_micro_batch_writes_what_it_touches():
    """Not a line for every key there is."""
    stream = Stream(pn.tumbling(pn.rows(3)), "k")
    everyone = [{"ts": t, "k": f"k{t}", "g": "u", "odometer": t, "x": t, "y": 0} for t in range(20_000)]
    stream.step(everyone, 20_000)
    before = stream.blob_store.written
    for i in range(20):
        stream.step([{**everyone[i], "ts": 20_000 + i}], 20_001 + i)
    assert (stream.blob_store.written - before) / 20 < 10_000


def test_rows_that_wait_are_not_written_again_and_again():
    """A long delay, and many micro-batches while it lasts."""
    stream = Stream(pn.tumbling(pn.rows(2)), "k", select={"n": pn.count()})
    rows = [{**ROWS[0], "ts": t, "x": t} for t in range(12_000)]
    for i in range(0, 12_000, 40):
        counted = stream.step(rows[i : i + 40], max(i - 8_000, 0))
    assert counted.granules <= 8_100
    assert len(stream.found) == 1_980
    assert stream.blob_store.written < 2_000_000


def test_compacting_rows_loses_none(monkeypatch):
    monkeypatch.setattr("panes.state.held_rows._FEW", 0)
    window = pn.hopping(pn.rows(5), every=pn.rows(3))
    stream = Stream(window, "k")
    for i in range(0, 600, 20):
        counted = stream.step(ROWS[i : i + 20], i + 15)
        assert counted.granules <= 2 * 10 + 20
    stream.step([], 600)
    assert shown(stream.found) == shown(whole(ROWS[:600], window, "k"))


def test_another_window_cannot_go_on():
    one, other = Stream(pn.tumbling(pn.rows(2))), Stream(pn.tumbling(pn.rows(3)))
    one.step(ROWS[:3], 2)
    other.blob_store = one.blob_store
    with pytest.raises(StateError, match=r"written with windows=\['pn.tumbling\(pn.rows\(2\)\)'\], and this run has"):
        other.step(ROWS[3:6], 5)
