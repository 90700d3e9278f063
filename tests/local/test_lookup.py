"""Lookups in this process against brute force: ties, requests at event times, gaps, nulls, unknown keys."""

from __future__ import annotations

import random
from datetime import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.engine.input_columns import check_added
from panes.errors import SchemaError
from panes.queries.lookup_declarations import declare_lookup
from panes.testing import assert_same_answers, brute_force_lookup

TIME = pa.timestamp("us", "UTC")
POOLS = {
    pa.string(): ["a", "b", "", None],
    pa.float64(): [0.0, -0.0, float("nan"), 1.5, None],
    pa.struct([("x", pa.int32())]): [{"x": 1}, {"x": None}, None],
}
VALUES = {
    pa.int32(): [None, 0, 1, 2, -7, 2**31 - 1],
    pa.int64(): [None, 0, 5, -(2**62), 2**62],
    pa.float64(): [None, 0.0, -0.0, 0.5, -2.25, float("nan"), float("inf")],
    pa.decimal128(9, 2): [None, Decimal("0.01"), Decimal("-3.50")],
}
PRODUCT = pn.aggregate(
    "x",
    name="product",
    state={"p": np.float64},
    identity=(1.0,),
    lift=lambda x: (x.astype("float64"),),
    combine=lambda a, b: (a[0] * b[0],),
    lower=lambda p: p,
    output=np.float64,
)
OF_NUMBERS = {
    "n": pn.count(),
    "known": pn.count("x"),
    "mean": pn.mean("x"),
    "low": pn.min("x"),
    "high": pn.max("x"),
    "first": pn.first("x"),
    "last": pn.last("x"),
    "at_most": pn.arg_max("y", by="x"),
    "different": pn.count_distinct("x"),
    "median": pn.quantile("x", 0.5, method="element"),
}
OF_SMALL_NUMBERS = {"total": pn.sum("x"), "spread": pn.var("x"), "fitted": pn.corr("x", "y"), "line": pn.trend("y")}
OF_SMALL_NUMBERS |= {"fresh": pn.aged(pn.sum("y"), half_life="20us"), "all": pn.distinct("x"), "product": PRODUCT}


def draw_events(rng, rows, key, value):
    return pa.table(
        {
            "ts": pa.array([rng.choice([None, *[rng.randint(-40, 40)] * 12]) for _ in range(rows)], TIME),
            "k": pa.array([rng.choice(POOLS[key]) for _ in range(rows)], key),
            "x": pa.array([rng.choice(VALUES[value]) for _ in range(rows)], value),
            "y": pa.array([rng.choice([None, 1, 2, 3]) for _ in range(rows)], pa.int32()),
        }
    )


def draw_requests(rng, rows, key):
    return pa.table(
        {
            "label": pa.array([rng.choice([True, False, None]) for _ in range(rows)]),
            "k": pa.array([rng.choice(POOLS[key]) for _ in range(rows)], key),
            "asked": pa.array([rng.choice([None, *[rng.randint(-60, 60)] * 12]) for _ in range(rows)], TIME),
            "id": pa.array(range(rows), pa.int64()),
        }
    )


BOUNDS = ["(]", "[)", "[]", "()"]


def draw_windows(rng):
    bounds = rng.choice(BOUNDS)
    sizes = [rng.choice([2, 5, 13, 40, 500]) for _ in range(rng.randint(1, 2))]
    found = [pn.sliding(f"{size}us", bounds=bounds, name=f"w{i}") for i, size in enumerate(sizes)]
    ago = f"{rng.randint(1, 20)}us"
    return [*found, pn.sliding(f"{rng.choice([1, 7, 30])}us", ago=ago, bounds=rng.choice(BOUNDS[:3]), name="a")]


@given(st.integers(0, 2**32), st.integers(0, 14), st.integers(0, 8))
@settings(max_examples=150, deadline=None)
def test_equals_brute_force(seed, rows, asked):
    rng = random.Random(seed)
    key, value = rng.choice(list(POOLS)), rng.choice([pa.int32(), pa.float64(), pa.decimal128(9, 2), pa.int64()])
    events, requests = draw_events(rng, rows, key, value), draw_requests(rng, asked, key)
    pool = OF_NUMBERS if value != pa.int32() else OF_NUMBERS | OF_SMALL_NUMBERS
    select = {alias: pool[alias] for alias in rng.sample(list(pool), rng.randint(1, 4))}
    if value == pa.int64():
        select.pop("mean", None)  # doubles as large as these cancel
    select = select or {"n": pn.count()}
    query = pn.query(
        by=rng.choice(["k", ["k"], []]),
        at="ts",
        select=select,
        over=draw_windows(rng),
        where=rng.choice([None, "y > 1", "x IS NOT NULL OR y = 2"]),
    )
    found = pn.plan(query).lookup(events, requests, at="asked")
    assert_same_answers(found, brute_force_lookup(query, events, requests, at="asked"))
    assert found["id"].to_pylist() == list(range(asked))


@given(st.integers(0, 2**32), st.integers(0, 14), st.integers(0, 8))
@settings(max_examples=100, deadline=None)
def test_windows_that_count_events(seed, rows, asked):
    rng = random.Random(seed)
    events, requests = draw_events(rng, rows, pa.string(), pa.int32()), draw_requests(rng, asked, pa.string())
    last, ago = pn.rows(rng.randint(1, 6)), pn.rows(rng.randint(1, 4))
    query = pn.query(
        by=rng.choice(["k", []]),
        at="ts",
        select={"total": pn.sum("x"), "n": pn.count(), "high": pn.max("y"), "all": pn.distinct("x")},
        over=[
            pn.sliding(last),
            pn.sliding(pn.rows(rng.randint(1, 4)), ago=ago),
            pn.sliding("13us", bounds=rng.choice(["(]", "[)"])),
        ],
        where=rng.choice([None, "y > 1"]),
    )
    found = pn.plan(query).lookup(events, requests, at="asked")
    assert_same_answers(found, brute_force_lookup(query, events, requests, at="asked"))


def moments(*hours):
    return pa.array([None if h is None else datetime(2026, 1, 1, h) for h in hours], pa.timestamp("us"))


EVENTS = pa.table({"ts": moments(1, 3, 3, 6), "k": ["a", "a", "a", "b"], "x": [1, 10, 100, 7]})
REQUESTS = pa.table({"ts": moments(3, 0, 9, None), "k": ["a", "a", "nobody", "a"]})


def plan_of(**changed):
    terms = {"by": "k", "at": "ts", "select": {"n": pn.count()}, "over": pn.sliding("1h")} | changed
    return pn.plan(pn.query(**terms))


def test_a_layout_per_window():
    plan = plan_of(select={"n": pn.count(), "half": "n / 2"}, over=[pn.sliding("1h"), pn.sliding("3h")])
    found = plan.lookup(EVENTS, REQUESTS, layout="long")
    assert found.column_names == ["ts", "k", "query", "window_name", "n", "half"]
    assert found["window_name"].to_pylist() == ["1h/event"] * 4 + ["3h/event"] * 4
    assert found["n"].to_pylist() == [2, 0, 0, 0, 3, 0, 0, 0]
    assert found["half"].to_pylist() == [1.0, 0, 0, 0, 1.5, 0, 0, 0]


def test_what_is_before_a_request():
    # Without its right bound a window holds nothing of the instant of the request itself.
    over = [pn.sliding("2 hours", bounds=bounds) for bounds in BOUNDS]
    found = plan_of(select={"sum": pn.sum("x")}, over=over).lookup(EVENTS, REQUESTS)
    assert found["sum_2h"].to_pylist() == [110, None, None, None]
    assert found["sum_2h_before"].to_pylist() == [1, None, None, None]
    assert found["sum_2h_closed"].to_pylist() == [111, None, None, None]
    assert found["sum_2h_between"].to_pylist() == [None] * 4


@pytest.mark.parametrize("ago", [0, 1])
def test_a_label_does_not_see_its_own_instant(ago):
    """Whether its own payment is among the events, is not there yet, or has a tie at its instant."""
    window = pn.sliding(pn.rows(2), ago=pn.rows(ago), bounds="[)")
    query = pn.query(by="k", at="ts", select={"n": pn.count(), "sum": pn.sum("x"), "last": pn.last("x")}, over=window)
    earlier = {"ts": moments(1, 2, 2, 3), "k": ["a"] * 4, "x": [1, 10, 100, 1000]}
    own = {"not there yet": (), "there": (5,), "there with a tie": (5, 7)}
    wanted = {"n": 2, "sum": 1100, "last": 1000} if not ago else {"n": 2, "sum": 110, "last": 100}
    label = pa.table({"ts": moments(4), "k": ["a"]})
    for values in own.values():
        came = pa.table({"ts": moments(*[4] * len(values)), "k": ["a"] * len(values), "x": [*values]})
        events = pa.concat_tables([pa.table(earlier), came.cast(pa.table(earlier).schema)])
        found = pn.plan(query).lookup(events, label, layout="long")
        assert found.select(["n", "sum", "last"]).to_pylist() == [wanted]
        live = pn.plan(query).live()
        live.update(events)
        assert live.lookup(label, layout="long").select(["n", "sum", "last"]).to_pylist() == [wanted]
        rows = pn.plan(query).run(events).to_pylist()
        answers = [{c: row[c] for c in wanted} for row in rows if row["window"]["end"] == datetime(2026, 1, 1, 4)]
        assert answers == [wanted] * len(values)


def test_the_last_rows_before_an_instant_may_be_none():
    over = [pn.sliding(pn.rows(2), bounds="[)"), pn.sliding(pn.rows(1), partial=False, bounds="[)", name="full")]
    plan = plan_of(select={"n": pn.count(), "sum": pn.sum("x")}, over=over)
    found = [(r["window_name"], r["k"], r["n"], r["sum"]) for r in plan.run(EVENTS).to_pylist()]
    assert sorted(found, key=str) == [
        *[("2rows/event [)", "a", 0, None), ("2rows/event [)", "a", 1, 1), ("2rows/event [)", "a", 1, 1)],
        ("2rows/event [)", "b", 0, None),
        *[("full", "a", 1, 1)] * 2,
    ]
    assert plan.lookup(EVENTS, REQUESTS)["n_2rows_before"].to_pylist() == [1, 0, 0, 0]


def test_derived_columns_see_the_window():
    select = {"n": pn.count(), "since": "window.start", "label": "concat(window_name, k)"}
    plan = plan_of(select=select, over=[pn.sliding("2h"), pn.sliding(pn.rows(2))])
    found = plan.lookup(EVENTS, REQUESTS.slice(0, 1))
    assert found["since_2h"].to_pylist() == [datetime(2026, 1, 1, 1)]
    assert found["since_2rows"].to_pylist() == [datetime(2026, 1, 1, 3)]
    assert found["label_2h"].to_pylist() == ["2h/eventa"]


def test_names():
    windows = [
        *(pn.sliding("7 days"), pn.sliding("1 day", ago="7 days")),
        *(pn.sliding(pn.rows(3), ago=pn.rows(1)), pn.sliding("1h", name="recent")),
        *(pn.sliding(pn.rows(3), bounds="[)"), pn.sliding(pn.rows(3), ago=pn.rows(1), bounds="[)")),
    ]
    found = plan_of(select={"amount_sum": pn.sum("x")}, over=windows).lookup(EVENTS, REQUESTS)
    assert found.column_names[2:] == [
        *("amount_sum_7d", "amount_sum_1d_ago_7d", "amount_sum_3rows_ago_1row", "amount_sum_recent"),
        *("amount_sum_3rows_before", "amount_sum_3rows_ago_1row_before"),
    ]


def test_nothing_at_all():
    found = plan_of(over=[pn.sliding("1h"), pn.sliding(pn.rows(2))]).lookup(EVENTS.slice(0, 0), REQUESTS)
    assert found["n_1h"].to_pylist() == found["n_2rows"].to_pylist() == [0] * 4
    found = plan_of().lookup(EVENTS, REQUESTS.slice(0, 0))
    assert found.num_rows == 0
    assert found.schema.field("n_1h").type == pa.int64()


ERRORS = {
    "a wrong keyword": ({}, {"closed": "left"}, "belongs to the window"),
    "windows here": ({}, {"over": "1h"}, "belongs to the query"),
    "layout": ({}, {"layout": "tall"}, "write 'wide'"),
    "at": ({}, {"at": ("a", "b", "c")}, "the time column of the requests"),
    "a negative delay": ({}, {"delay": "-1 s"}, "is negative"),
    "no window": ({"over": []}, {}, "no window"),
    "one window twice": ({"over": [pn.sliding("60 min"), pn.sliding("1h")]}, {}, "two windows called '1h/event'"),
    "a session": ({"over": pn.session("1h")}, {}, "only when it has ended"),
    "a bare duration": ({"over": "1h"}, {}, "needs a pace"),
    "unknown key": ({"by": "kk"}, {}, "did you mean 'k'"),
    "unknown value": ({"select": {"s": pn.sum("xx")}}, {}, "did you mean 'x'"),
    "no aggregate": ({"select": {"s": "1 + 1"}}, {}, "selects no aggregate"),
    "unknown time": ({}, {"at": "when"}, "at='when' is not a column of the requests"),
    "levels": ({"select": {"r": pn.recurring("x")}}, {}, "compares the levels"),
    "ticks": ({"select": {"t": pn.trend("x", every="1 min")}}, {}, "value per tick"),
    "too old": ({"select": {"o": pn.aged(pn.sum("x"), half_life="1 min", power=2)}}, {}, "weighs nothing"),
    "of any age": (
        {"select": {"o": pn.aged(pn.count(), half_life="9 days", power=1)}, "over": pn.sliding(pn.rows(3))},
        {},
        "windows of rows have no fixed length",
    ),
    "expires": ({"select": {"n": pn.count(), "e": "expires"}}, {}, "refers to the instant when answers expire"),
    "twins": (
        {
            "select": {"n": pn.count(), "n_1h": pn.count()},
            "over": [pn.sliding("1h", name="1h"), pn.sliding("2h", name="1h_1h")],
        },
        {},
        "two columns",
    ),
    "having": ({"having": "n > 1"}, {}, "answers every request"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    declared, asked, message = ERRORS[name]
    with pytest.raises(pn.PanesError, match=message):
        plan_of(**declared).lookup(EVENTS, REQUESTS, **asked)


def test_errors_of_requests():
    plan = plan_of()
    with pytest.raises(pn.PanesError, match="by='k' is not a column of the requests"):
        plan.lookup(EVENTS, REQUESTS.drop_columns(["k"]))
    with pytest.raises(pn.PanesError, match="string in the events and int64 in the requests"):
        plan.lookup(EVENTS, REQUESTS.set_column(1, "k", pa.array([1, 2, 3, 4])))
    zoned = REQUESTS.column("ts").cast(pa.timestamp("us", "UTC"))
    with pytest.raises(pn.PanesError, match="in a zone and one without"):
        plan.lookup(EVENTS, REQUESTS.set_column(0, "ts", zoned))
    with pytest.raises(pn.PanesError, match="have a column 'n_1h'"):
        plan.lookup(EVENTS, REQUESTS.append_column("N_1H", REQUESTS.column("k")))
    with pytest.raises(pn.PanesError, match=r"cannot look up in a list \(the requests\)"):
        plan.lookup(EVENTS, [1])


@given(st.integers(0, 2**32), st.integers(0, 14))
@settings(max_examples=60, deadline=None)
def test_a_query_over_sliding_windows_is_the_lookup_of_its_own_events(seed, rows):
    rng = random.Random(seed)
    events = draw_events(rng, rows, pa.string(), pa.int32())
    timed = events.filter(events["ts"].is_valid())
    query = pn.query(
        "features",
        by="k",
        at="ts",
        select={"n": pn.count(), "total": pn.sum("x"), "different": pn.count_distinct("y"), "twice": "2 * n"},
        over=[
            pn.sliding("5us", name="short"),
            pn.sliding("40us", name="long"),
            pn.sliding("7us", ago="3us", name="ago"),
        ],
    )
    found = pn.plan(query).lookup(events, timed.select(["k", "ts"]), layout="long")
    answers = pn.plan(query).run(events)
    # The window of a request ends with it, or a while before.
    back = pa.array([3 if name == "ago" else 0 for name in answers["window_name"].to_pylist()], pa.duration("us"))
    ends = pc.add(pc.struct_field(answers["window"], "end"), back)
    answers = answers.drop_columns(["window"]).append_column("ts", ends)
    assert_same_answers(found, answers.select(found.column_names))


def test_requests_with_two_columns_of_one_name_are_refused():
    query = pn.query(by="k", at="ts", select={"n": pn.count()}, over=pn.sliding("1 h"))
    declared = declare_lookup([query])
    twins = pa.schema([("ts", TIME), ("k", pa.string()), ("x", pa.int64()), ("X", pa.string())])
    with pytest.raises(SchemaError, match="two columns of the requests are called 'x'"):
        check_added(declared, twins)
