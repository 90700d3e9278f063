"""``empty=True``: instances without events are answered too."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.engine.program import emitting_all
from panes.errors import DeclarationError, PlanError
from panes.queries.windows import Window
from panes.testing import assert_same_answers, events
from tests.state.simulation import windows
from tests.state.test_shard import Stream

EVENTS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(-100, 300), st.none() | st.integers(-3, 3)), max_size=12)

COLUMNS = ("n", "total", "mean", "last", "low")


def queries(over: list[Window]) -> list[pn.Query]:
    select = {"n": pn.count(), "total": pn.sum("x"), "mean": pn.mean("x"), "last": pn.last("x"), "low": pn.min("x")}
    everything = pn.query("all", by="k", at="ts", select=select, over=over)
    some = pn.query("some", by="k", at="ts", select={"n": pn.count("x")}, over=over, where="x > 0")
    return [everything, some]


def expected(over: list[Window], rows: list[tuple[str, int, int | None]]) -> dict[Any, tuple[Any, ...]]:
    found: dict[Any, tuple[Any, ...]] = {}
    for name, kept in (("all", rows), ("some", [row for row in rows if row[2] is not None and row[2] > 0])):
        for window in over:
            g = window.geometry
            for key in "ab":
                mine = [(t, x) for k, t, x in kept if k == key and (window.since is None or t >= window.since)]
                first, last = min((t for t, _ in mine), default=0), max((t for t, _ in mine), default=-(10**6))
                for m in range((first - g.offset - g.range) // g.slide + 1, (last - g.offset) // g.slide + 1):
                    start = g.offset + m * g.slide
                    inside = sorted((t, x) for t, x in mine if start <= t < start + g.range and x is not None)
                    n = sum(start <= t < start + g.range for t, _ in mine)
                    values = [x for _, x in inside]
                    total = sum(values) if values else None
                    answer = (n, total, total / len(values), values[-1], min(values)) if values else (n, *[None] * 4)
                    shown = start + g.range - window.shift
                    found[name, window.name, shown, key] = answer if name == "all" else (len(values), *[None] * 4)
    return found


@settings(max_examples=150)
@given(st.lists(windows, min_size=1, max_size=3, unique_by=lambda w: w.name), EVENTS)
def test_between_a_key_s_first_and_last_event(over: list[Window], rows: list[tuple[str, int, int | None]]) -> None:
    columns = {"k": pa.string(), "ts": pa.timestamp("us"), "x": pa.int64()}
    table = pa.table({name: pa.array([row[i] for row in rows], t) for i, (name, t) in enumerate(columns.items())})
    answers = pn.plan(queries(over)).run(table, empty=True)
    ends = pa.compute.struct_field(answers["window"], "end").cast(pa.int64()).to_pylist()
    found = {
        (row["query"], row["window_name"], end, row["k"]): tuple(row[column] for column in COLUMNS)
        for end, row in zip(ends, answers.to_pylist(), strict=True)
    }
    assert found == expected(over, rows)
    assert len(found) == len(answers)


def test_on_spark(spark):
    table = events(80, keys={"k": pa.string()}, values={"x": pa.int64()}, seed=3)
    over = [pn.tumbling("3s"), pn.hopping("10s", every="4s"), pn.hopping("2s", every="5s")]
    plan = pn.plan(queries(over))
    answers = plan.run(spark.createDataFrame(table), empty=True)
    assert_same_answers(answers, plan.run(table, empty=True))
    assert answers.where("n = 0").count() > 0


def test_a_stream_answers_for_the_keys_it_holds() -> None:
    """A key is held as long as its last event is no older than the widest window."""
    stream = Stream([pn.tumbling("10us"), pn.tumbling("30us")], "append")
    stream.stores = [type(store)(emitting_all(store.program), store.keys, store.offer) for store in stream.stores]
    stream.step([[(0, 5, 1), (2, 15, -1)]], 0)
    found = stream.step([], 100)
    ends = {(view, key, start): values[0] for (view, key, start), values in found.items() if view < 2}
    assert {at: n for at, n in ends.items() if at[0] == 0} == {
        **{(0, 0, start): int(start == 0) for start in range(0, 100, 10)},
        **{(0, 2, start): int(start == 10) for start in range(10, 100, 10)},
    }
    # The query with a condition of its own knows nothing of the key without such events.
    assert {key for view, key, _ in found if view >= 2} == {0}
    assert not stream.step([], 200)


def test_windows_that_are_answered_with_events_are_as_they_are() -> None:
    table = events(60, keys={"k": pa.string()}, values={"x": pa.int64()}, seed=4)
    clock = [pn.tumbling("3s"), pn.hopping("2s", every="5s")]
    others = [pn.sliding("3s"), pn.sliding(pn.rows(3)), pn.hopping(pn.rows(4), every="2s"), pn.session("1s")]
    mixed = pn.plan(queries([*clock, *others]))
    found = mixed.run(table, empty=True)
    of_clock = pc.is_in(found["window_name"], pa.array([str(window) for window in clock]))
    assert_same_answers(found.filter(of_clock), pn.plan(queries(clock)).run(table, empty=True))
    assert_same_answers(found.filter(pc.invert(of_clock)), pn.plan(queries(others)).run(table))
    assert pc.sum(pc.equal(found.filter(of_clock)["n"], 0)).as_py() > 0


def test_what_cannot_be() -> None:
    plan = pn.plan(queries([pn.tumbling("3s")]))
    with pytest.raises(DeclarationError, match=r"no emit=: write empty=True"):
        plan.run(pa.table({}), emit="all")  # type: ignore[call-arg]
    with pytest.raises(PlanError, match="empty='all': write True"):
        plan.run(pa.table({}), empty="all")  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="empty=True runs in columns"):
        plan.run(pa.table({}), empty=True, strategy="native")
    with pytest.raises(PlanError, match="3s/event is answered with events, as all windows here are"):
        pn.plan(queries([pn.sliding("3s"), pn.sliding(pn.rows(3))])).run(pa.table({}), empty=True)
