"""Late events count once, however many stores and queries they are late for."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

import panes as pn
from panes.queries.catalogue_entries import registration
from panes.spark.packing import PANES
from panes.state.stream_options import Mode, StreamOptions
from panes.state.tally import count_late, merged, tallied, tally_of
from panes.timeline import Edges
from tests.state.in_memory import Stream, over_time

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.string()), ("x", pa.int64()), ("id", pa.int64())])
N = {"n": pn.count()}


def came(*rows: tuple[int | None, str, int]) -> pa.Table:
    columns = [
        pa.array([row[i] for row in rows], type_) for i, type_ in enumerate([pa.int64(), pa.string(), pa.int64()])
    ]
    return pa.table(
        [columns[0].cast(SCHEMA.types[0]), *columns[1:], pa.array(range(len(rows)), pa.int64())], schema=SCHEMA
    )


class Running:
    """A stream of some queries."""

    def __init__(self, *queries: pn.Query, **options: object) -> None:
        self.stream = Stream(over_time(pn.plan(queries), SCHEMA, StreamOptions(shards=2, **options)))
        self.details: list[str] = []

    def step(self, rows: pa.Table | None, watermark: int, *changes: str) -> Counter[str]:
        files = [(f"{i}.json", text) for i, text in enumerate(changes)]
        mail = self.stream.operator.packed([] if rows is None else [rows], files)
        answers, metrics = self.stream.step(mail, watermark)
        for batch in answers:
            if "__panes_kind" in batch.schema.names:
                self.details += [row["__panes_detail"] for row in batch.to_pylist() if row["__panes_kind"] == "late"]
        assert metrics is not None
        return metrics


def late_and_lost(metrics: Counter[str]) -> tuple[int, int, int]:
    return metrics["events"], metrics["late"], metrics["lost"]


def test_queries_with_different_keys_count_an_event_once() -> None:
    queries = [
        pn.query(name, by=by, at="ts", select={name: pn.count()}, over=pn.tumbling("10us"))
        for name, by in (("a", "k"), ("b", ()))
    ]
    running = Running(*queries, late="emit")
    running.step(came((55, "a", 1)), 0)
    running.step(None, 60)
    assert late_and_lost(running.step(came((52, "a", 1)), 60)) == (1, 1, 1)
    assert running.details == ["0"]


@pytest.mark.parametrize("mode", ["append", "update"])
def test_an_event_is_late_for_a_window_and_lost_for_all(mode: Mode) -> None:
    running = Running(
        pn.query("q", by="k", at="ts", select=N, over=[pn.tumbling("10us"), pn.tumbling("100us")]), mode=mode
    )
    running.step(came((55, "a", 1)), 0)
    running.step(None, 60)
    assert late_and_lost(running.step(came((52, "a", 1), (61, "a", 1)), 110)) == (2, 1, 0)
    assert late_and_lost(running.step(came((52, "b", 1)), 110)) == (1, 1, 1)


def test_an_event_is_late_for_queries_that_count_it() -> None:
    short = pn.query("short", by="k", at="ts", select=N, over=pn.tumbling("10us"), where="x > 0")
    long = pn.query("long", by="k", at="ts", select={"m": pn.count()}, over=pn.tumbling("100us"))
    wide = pn.query("wide", at="ts", select={"w": pn.count()}, over=pn.sliding("500us"), where="k = 'b'")
    running = Running(short, long, wide, late="emit")
    running.step(came((250, "a", 1)), 0)
    running.step(None, 250)
    # Too late for the short window, too late for none, too late for its own answer; and too late for two windows.
    rows = came((241, "a", 1), (242, "a", 0), (243, "b", 0), (150, "a", 1), (150, "b", 1), (None, "a", 1))
    assert late_and_lost(running.step(rows, 250)) == (6, 4, 1)
    assert sorted(running.details) == ["0", "2", "3", "4"]


def test_events_before_a_window_begins_are_not_late_for_it() -> None:
    nested = pn.nested(["40us", "10us"], ["20us", "10us"], since="1970-01-01 00:00:00.000100")
    running = Running(pn.query("q", at="ts", select=N, over=nested))
    running.step(came((300, "a", 1)), 0)
    running.step(None, 300)
    assert late_and_lost(running.step(came((99, "a", 1), (100, "a", 1)), 300)) == (2, 1, 1)


def test_registered_windows_count_from_the_micro_batch_that_registers_them() -> None:
    query = pn.query("q", by="k", at="ts", select=N, over=pn.tumbling("10us"))
    new = registration(pn.query("new", by="k", at="ts", select=N, over=pn.tumbling("50us"))).to_json()
    running = Running(query, catalogue="memory", late="emit")
    running.step(came((64, "a", 1)), 0)
    running.step(None, 64)
    assert late_and_lost(running.step(came((52, "a", 1)), 64)) == (1, 1, 1)
    assert late_and_lost(running.step(came((52, "a", 1), (61, "a", 1)), 64, new)) == (2, 1, 0)
    assert late_and_lost(running.step(came((49, "a", 1), (61, "a", 1)), 64)) == (2, 1, 1)
    assert running.details == ["0", "0", "0"]


def test_tallies_of_single_instants_are_not_grouped() -> None:
    assert len(tallied((Edges(1),), pa.array([5, 5]).to_numpy(), [])) == 2
    both = merged((Edges(10),), [tally_of(pa.array([0, 10]).to_numpy(), pa.array([1, 2]).to_numpy())] * 2)
    assert sorted(map(tuple, zip(*both.to_pydict().values(), strict=True))) == [(0, 2), (10, 4)]
    assert count_late([pn.tumbling("10us").windows], both, 10) == (2, 2)


def test_the_panes_of_a_single_store_are_its_tally() -> None:
    """Nothing else travels for it."""
    query = pn.query("q", by="k", at="ts", select=N, over=pn.tumbling("10us"), where="x > 0")
    one = over_time(pn.plan(query), SCHEMA, StreamOptions(shards=2))
    stores = {row.store for rows in one.packed([came((5, "a", 1))], []).values() for row in rows}
    assert stores == {0, None}
    assert one.columns == PANES
