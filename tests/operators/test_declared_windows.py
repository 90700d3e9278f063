"""The windows that users declare, as operators have them: keys and their eviction, and the grid of the clock."""

from __future__ import annotations

import datetime as dt
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.errors import DeclarationError
from panes.operators import (
    EVERY_TUPLE,
    FREE,
    PUNCTUATION,
    Aggregate,
    Event,
    EventClock,
    InputPort,
    Join,
    Operator,
    OperatorModel,
    SlidingWindow,
    Sort,
    TumblingWindow,
    WallClock,
    tuples_of,
)
from panes.operators.policies import operator_policies, policies_of

WINDOWS = [
    pn.tumbling("7 us"),
    pn.tumbling("7 us", offset="2 us"),
    pn.tumbling("7 us", origin="first"),
    pn.tumbling("7 us", origin="row"),
    pn.tumbling(pn.rows(3)),
    pn.tumbling(pn.delta("d", 4)),
    pn.hopping("7 us", every="3 us"),
    pn.hopping("6 us", every="3 us", offset="1 us"),
    pn.hopping("3 us", every="7 us"),
    pn.hopping("7 us", every="3 us", origin="first", partial=False),
    pn.hopping("7 us", every=pn.rows(2)),
    pn.hopping("7 us", every=pn.rows(2), bounds="[]"),
    pn.hopping("7 us", every=pn.delta("d", 3)),
    pn.hopping(pn.rows(4), every="3 us"),
    pn.hopping(pn.rows(4), every="3 us", bounds="(]"),
    pn.hopping(pn.rows(4), every="3 us", origin="first"),
    pn.hopping(pn.rows(4), every=pn.rows(3), partial=False),
    pn.hopping(pn.delta("d", 5), every="4 us", offset="1 us"),
    pn.sliding(pn.rows(3)),
    pn.sliding(pn.delta("d", 5)),
]


@pytest.mark.parametrize("by", [(), ("k",)], ids=["", "by k"])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@settings(max_examples=25)
@given(
    steps=st.lists(st.tuples(st.sampled_from([0, 0, 1, 2, 9]), st.sampled_from("ab"), st.integers(0, 3)), max_size=25)
)
def test_an_operator_answers_what_a_query_does(window, by, steps):
    """Tuple by tuple on an event clock, beside the same window over a table, answers as a bag."""
    rows, now, distance = [], 20, 0
    for step, key, more in steps:
        now, distance = now + step, distance + more
        rows.append({"ts": now, "k": key, "d": distance, "x": len(rows)})
    clock, found = EventClock(), []
    aggregate = Aggregate(window, {"n": pn.count(), "xs": pn.sum("x")}, by=by or None, clock=clock)
    aggregate.connect(found.append)
    for row in rows:
        clock.advance(row["ts"])
        aggregate.process(row)
    # As far as every window that a table completes.
    clock.advance(now + 100)
    query = pn.query(by=by, at="ts", ties="x", select={"n": pn.count(), "xs": pn.sum("x")}, over=window)
    schema = pa.schema({"ts": pa.timestamp("us"), "k": pa.string(), "d": pa.int64(), "x": pa.int64()})
    table = pn.plan(query).run(pa.Table.from_pylist(rows, schema=schema)).to_pylist()
    names = (*by, "n", "xs")
    here = Counter(tuple(row[name] for name in names) for row in tuples_of(found))
    there = Counter(tuple(row[name] for name in names) for row in table)
    # Windows of rows end with the table; what comes later on the clock is not in it.
    assert not there - here
    on_the_clock_alone = isinstance(window, type(pn.tumbling("1 s")))
    of_rows_alone = "us" not in str(window)
    if on_the_clock_alone or of_rows_alone:
        assert here == there


RECORDED = [
    *(each for each in WINDOWS if "/event" not in str(each) and not isinstance(each, type(pn.tumbling("1 s")))),
    pn.sliding(pn.rows(3), ago=pn.rows(2)),
    pn.tumbling(pn.punctuation("mark")),
    pn.tumbling(pn.punctuation("mark", scope="key")),
]


@pytest.mark.parametrize("window", RECORDED, ids=str)
@settings(max_examples=10)
@given(steps=st.lists(st.tuples(st.sampled_from([0, 1, 2, 9]), st.sampled_from("ab"), st.booleans()), max_size=25))
def test_eviction_that_never_evicts_changes_nothing(window, steps):
    """Queries whose keys are evicted run these windows tuple by tuple; others are computed at once."""
    rows, now = [], 20
    for step, key, mark in steps:
        now += step
        rows.append({"ts": now, "k": key, "d": now // 2, "x": len(rows), "mark": mark})
    schema = pa.schema(
        {"ts": pa.timestamp("us"), "k": pa.string(), "d": pa.int64(), "x": pa.int64(), "mark": pa.bool_()}
    )
    table = pa.Table.from_pylist(rows, schema=schema)

    def answers(evict):
        select = {"n": pn.count(), "xs": pn.sum("x")}
        query = pn.query(by="k", at="ts", ties="x", select=select, over=window, evict=evict)
        return Counter(map(str, pn.plan(query).run(table).to_pylist()))

    assert answers(pn.evict(keys=99)) == answers(None)


def test_one_sided_joins_evict_on_one_side():
    last, none = pn.sliding(pn.rows(1)), pn.sliding(pn.rows(0))
    join = Join(last, none, by="k", evict=[pn.evict(keys=1), None])
    for k, price in (("a", 1), ("b", 2)):
        join.process({"k": k, "price": price})
    assert list(tuples_of(join.run([{"k": "a"}, {"k": "b"}], port=1))) == [{"k": "b", "price": 2}]
    with pytest.raises(DeclarationError, match="evict= has 1 entries for 2 windows"):
        Join(last, none, by="k", evict=[None])


def test_a_window_beside_one_that_has_its_keys_gets_the_same():
    """As in pn.apply, which gives an operator a window of the keys of the table."""
    given_window = policies_of(pn.sliding(pn.rows(1)), ["k"])
    join = Join(given_window, pn.sliding(pn.rows(0)))
    join.process({"k": "a", "price": 1})
    assert list(tuples_of(join.run([{"k": "a"}, {"k": "b"}], port=1))) == [{"k": "a", "price": 1}]
    with pytest.raises(DeclarationError, match="has its keys already"):
        Join(given_window, pn.sliding(pn.rows(0)), by="k")


def test_windows_of_an_operators_own_have_its_keys():
    class Both(Operator):
        model = OperatorModel("Both", (InputPort((EVERY_TUPLE,)),), (FREE,))

        def __init__(self, window, **options):
            super().__init__(window, **options)
            self.near = self.window(window, Event.TRIGGER)
            self.far = self.window(pn.sliding(pn.rows(3)))

        def process(self, item, port=0):
            self.far.insert(item)
            self.near.insert(item)

        def trigger(self, partition, window):
            self.submit((partition, len(window.tuples(partition)), len(self.far.tuples(partition))))

    assert Both(pn.sliding(pn.rows(1)), by=0).run(["ax", "ay", "bz", "aw"])[-1] == ("a", 1, 3)
    assert Both(pn.sliding(pn.rows(1))).run(["ax", "bz"])[-1] == ((), 1, 2)


@pytest.mark.parametrize("operator", [lambda w: Sort(w, order="x"), lambda w: Join(w, w, on="x")])
def test_joins_and_sorts_do_not_wait_until_a_window_is_full(operator):
    with pytest.raises(DeclarationError, match="without partial=False"):
        operator(pn.sliding(pn.rows(3), partial=False))


def test_a_wall_clock_ends_windows_with_the_minutes_of_the_day():
    with WallClock() as clock:
        window = TumblingWindow(pn.tumbling("1 hour", offset="5 min"), by=(), clock=clock)
        before = dt.datetime.now(dt.UTC)
        window.insert("tuple", "key")
        due = window.subwindows["key"].due
        ends = before + dt.timedelta(microseconds=due - clock.now())
        off = (ends - ends.replace(minute=5, second=0, microsecond=0)).total_seconds()
        assert abs(off) < 1
        assert 0 < due - clock.now() <= 3_600_000_000


def test_a_state_on_a_wall_clock_goes_on_with_the_grid_of_its_own():
    """Ten seconds pass between two processes whose clocks count from elsewhere."""
    first = SlidingWindow(pn.hopping(pn.rows(2), every="10 s"), clock=EventClockAsWall(13_000_000))
    first.insert("a")
    assert first.subwindows[()].due == 20_000_000
    second = SlidingWindow(pn.hopping(pn.rows(2), every="10 s"), clock=EventClockAsWall(75_000_000))
    second.load(first.save())
    assert second.subwindows[()].due == 80_000_000
    relative = SlidingWindow(pn.hopping(pn.rows(2), every="10 s", origin="first"), clock=EventClockAsWall(13_000_000))
    relative.insert("a")
    later = SlidingWindow(pn.hopping(pn.rows(2), every="10 s", origin="first"), clock=EventClockAsWall(75_000_000))
    later.load(relative.save())
    assert later.subwindows[()].due == 85_000_000


class EventClockAsWall(EventClock):
    """An event clock whose instants mean nothing elsewhere, as those of a wall clock."""

    def origin(self):
        return self.now()


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_a_window_is_written_as_users_write_it(window):
    declared = operator_policies(window)
    again = eval(str(declared), {"pn": pn})
    assert operator_policies(again) == declared


def test_a_grid_without_keys_is_flushed_where_it_is_empty_and_one_that_tuples_open_is_not():
    def flushed(origin, by=None):
        clock = EventClock(0)
        counts = Aggregate(pn.tumbling("10 us", origin=origin), {"n": pn.count()}, by=by, clock=clock)
        out = []
        counts.connect(out.append)
        clock.advance(3)
        counts.process({"k": "a"})
        clock.advance(33)
        return out.count(PUNCTUATION), len(counts.windows[0].subwindows)

    assert flushed("epoch") == (3, 1)
    assert flushed("first") == (3, 1)
    assert flushed("row") == (1, 0)
    assert flushed("epoch", "k") == flushed("row", "k") == (1, 0)
    assert flushed("first", "k") == (3, 1)
