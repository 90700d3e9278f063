"""Sliding windows in this process: what they mean, what they stand beside, and what is refused."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.engine import answer as engine_answer
from panes.errors import DeclarationError, DurationError, PlanError
from panes.testing import assert_same_answers, brute_force

SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("k", pa.string()), ("x", pa.int64())])


def table(rows: list[tuple[int | None, str | None, int | None]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    return pa.table([pa.array(list(c), pa.int64()).cast(f.type) if f.name != "k" else pa.array(list(c), f.type)
                     for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)  # fmt: skip


def counted(over: Any, **changes: Any) -> pn.Query:
    asked = {"at": "ts", "by": "k", "select": {"n": pn.count(), "total": pn.sum("x")}, "over": over}
    return pn.query("q", **(asked | changes))


def shown(result: pa.Table) -> list[tuple[Any, ...]]:
    window = result.column("window").combine_chunks()
    bounds = [window.field(i).cast(pa.int64()).to_pylist() for i in range(2)]
    others = [result.column(name).to_pylist() for name in ("k", "n", "total")]
    return sorted(zip(*bounds, *others, strict=True), key=str)


def test_the_window_of_an_event_holds_it_and_not_its_start():
    events = table([(0, "a", 1), (4, "a", 2), (5, "a", 4), (9, "a", 8), (9, "a", 16), (9, "b", 32), (None, "a", 64)])
    found = pn.plan(counted(pn.sliding("5us"))).run(events)
    assert found["window_name"].unique().to_pylist() == ["5us/event"]
    # Two events at one instant have two equal answers, and each holds both.
    assert shown(found) == sorted(
        [(-5, 0, "a", 1, 1), (-1, 4, "a", 2, 3), (0, 5, "a", 2, 6), *[(4, 9, "a", 3, 28)] * 2, (4, 9, "b", 1, 32)],
        key=str,
    )


def test_a_window_that_ended_a_while_ago_may_be_empty():
    events = table([(0, "a", 1), (10, "a", 2), (15, "a", None)])
    found = pn.plan(counted(pn.sliding("5us", ago="10us"))).run(events)
    assert found["window_name"].unique().to_pylist() == ["5us/event-10us"]
    assert shown(found) == sorted([(-15, -10, "a", 0, None), (-5, 0, "a", 1, 1), (0, 5, "a", 0, None)], key=str)


def test_only_events_that_count_are_answered():
    events = table([(0, "a", 1), (1, "a", -1), (2, "a", 3), (2, "a", -3)])
    some, every = counted(pn.sliding("9us"), where="x > 0"), pn.query("all", at="ts", select={"m": pn.count()},
                                                                      by="k", over=pn.sliding("9us"))  # fmt: skip
    found = pn.plan([some, every]).run(events)
    assert found.filter(pa.compute.equal(found["query"], "q"))["n"].to_pylist() == [1, 2]
    assert found.filter(pa.compute.equal(found["query"], "all"))["m"].to_pylist() == [1, 2, 4, 4]


def test_no_events_no_answers():
    assert pn.plan(counted([pn.sliding("5us"), pn.tumbling("5us")])).run(table([])).num_rows == 0
    assert pn.plan(counted(pn.sliding("5us"))).run(table([(None, "a", 1)])).num_rows == 0
    assert pn.plan(counted(pn.sliding("5us"))).run(table([(7, None, None)])).to_pylist()[0]["n"] == 1


@settings(max_examples=60)
@given(
    rows=st.lists(
        st.tuples(
            st.none() | st.integers(-20, 40) | st.sampled_from([2**59, -(2**59)]),
            st.sampled_from(["a", "b", None]),
            st.none() | st.integers(-5, 5),
        ),
        max_size=25,
    ),
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=3, unique=True),
    ago=st.integers(0, 30),
)
def test_in_parts_and_beside_other_windows(rows, sizes, ago):
    over = [*(pn.sliding(f"{size}us") for size in sizes), pn.sliding("7us", ago=f"{ago}us", name="before")]
    queries = [
        counted([*over, pn.tumbling("10us"), pn.hopping("20us", every="3us")]),
        pn.query("some", at="ts", select={"n": pn.count(), "values": pn.distinct("x"), "mid": pn.quantile("x", 0.5)},
                 over=over, where="x >= 0", having="n > 1"),
    ]  # fmt: skip
    events = table(rows)
    at_once, engine_answer._AT_ONCE = engine_answer._AT_ONCE, 4
    try:
        found = pn.plan(queries).run(events)
    finally:
        engine_answer._AT_ONCE = at_once
    assert_same_answers(found, brute_force(queries, events))


def test_windows_of_any_length_and_times_of_any_age():
    far = 2**59
    events = table([(-far, "a", 1), (0, "a", 2), (far, "a", 4)])
    widest = dt.timedelta(microseconds=far)
    found = pn.plan(counted([pn.sliding(widest), pn.sliding(widest + dt.timedelta(microseconds=1), name="more")]))
    by_name = Counter((row["window_name"], row["total"]) for row in found.run(events).drop(["window"]).to_pylist())
    assert by_name == Counter([(pn.sliding(widest).name, total) for total in (1, 2, 4)]
                              + [("more", 1), ("more", 3), ("more", 6)])  # fmt: skip


def test_the_wide_form_has_a_row_per_key_and_instant():
    events = table([(0, "a", 1), (4, "a", 2), (4, "a", 3), (9, "b", 4)])
    found = pn.plan(counted([pn.sliding("5us"), pn.sliding("3us"), pn.tumbling("9us")])).run(events, layout="wide")
    rows = {(row["k"], row["window_end"].microsecond): row for row in found.to_pylist()}
    assert {at: row["total_5us"] for at, row in rows.items()} == {("a", 0): 1, ("a", 4): 6, ("a", 9): None,
                                                                        ("b", 9): 4, ("b", 18): None}  # fmt: skip
    assert [rows["a", 4]["n_3us"], rows["a", 9]["total_9us"], rows["b", 18]["total_9us"]] == [2, 6, 4]


def test_a_plan_shows_them_apart():
    over = [pn.sliding("5 min"), pn.sliding("1 day"), pn.sliding("5 min", ago="1 day"), pn.tumbling("1 min")]
    plan = pn.plan(counted(over), rate=1000, keys=10)
    assert [store.per_event for store in plan.physical_plan(strategy="columnar").stores] == [False, True]
    # Panes are as wide as they would be without sliding windows.
    alone = pn.plan(counted(pn.tumbling("1 min")), rate=1000, keys=10)
    edges = [p.physical_plan(strategy="columnar").stores[0].edges for p in (plan, alone)]
    assert edges[0] == edges[1]
    text = plan.explain()
    assert "an answer per event, every window from sorted columns" in text
    assert "5m/event, 5m/event-1d  (100 answers/s per key)" in text
    assert "1d/event  (100 answers/s per key)" in text
    assert "2 passes over the events" in str(plan)
    assert "events by (k)<br/>in the order of time" in plan.to_mermaid()
    assert "answers 100/s per key" in plan.to_svg()
    assert [store["per_event"] for store in plan.to_dict()["stores"]] == [False, True]


def test_sql_has_them_in_brackets():
    text = "SELECT k, COUNT(*) AS n, SUM(x) AS total FROM s TIMESTAMP BY ts [RANGE 5 MICROSECONDS] GROUP BY k"
    [query] = pn.sql(text)
    assert query.over == (pn.sliding("5us"),)
    assert pn.sql(pn.to_sql(query))[0] == query
    events = table([(0, "a", 1), (4, "a", 2), (5, "a", 4)])
    assert shown(pn.plan(query).run(events)) == shown(pn.plan(counted(pn.sliding("5us"))).run(events))
    own = counted(pn.sliding("5us", name="own"))
    assert pn.sql(pn.to_sql(own))[0] == own
    with pytest.raises(DeclarationError, match="SQL has no words for the window"):
        pn.to_sql(counted(pn.sliding("5us", ago="1us")))


def test_what_makes_no_sense_is_refused(tmp_path):
    with pytest.raises(DurationError, match="size='0s' is not positive"):
        pn.sliding("0s")
    with pytest.raises(DurationError, match="ago='-1s' is negative"):
        pn.sliding("5 min", ago="-1s")
    with pytest.raises(DeclarationError, match="cannot name a window"):
        pn.sliding("5 min", name=" ")
    with pytest.raises(DeclarationError, match="two windows called '5m/event'"):
        counted([pn.sliding("5 min"), pn.sliding("300 s")])
    with pytest.raises(DeclarationError, match="refers to the instant when answers expire"):
        counted(pn.sliding("5 min"), select={"n": pn.count(), "until": "expires"})
    with pytest.raises(DeclarationError, match="compares the levels"):
        counted(pn.sliding("5 min"), select={"again": pn.recurring("x")})
    with pytest.raises(DeclarationError, match="begins at any instant"):
        pn.plan(counted(pn.sliding("5 min"), select={"line": pn.trend("x", every="1 s")}))
    query = counted([pn.sliding("5 min"), pn.tumbling("1 min")])
    for strategy in ("native", "rewrite"):
        with pytest.raises(PlanError, match="leave strategy="):
            pn.plan(query, strategy=strategy)
    with pytest.raises(PlanError, match="5m/event is answered with events, as all windows here are"):
        pn.plan(counted(pn.sliding("5 min"))).run(table([]), empty=True)
    with pytest.raises(DeclarationError, match="Declare it when the stream starts"):
        pn.Catalogue(str(tmp_path)).register(query)
