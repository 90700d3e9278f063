"""Time: the wall clock with its thread, event time, and tuples that come out of order.

Catches deadlines that are lost when nobody inserts, triggers that do not catch up, races between the thread and whoever
inserts, and errors that vanish in the thread.
"""

from __future__ import annotations

import datetime as dt
import random
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import panes as pn
from panes.errors import DeclarationError, OrderError, SchemaError
from panes.operators import (
    PUNCTUATION,
    Aggregate,
    Event,
    EventClock,
    Graph,
    Join,
    Replay,
    SlidingWindow,
    TumblingWindow,
    WallClock,
    tuples_of,
)
from panes.operators.join_operator import Side
from panes.operators.policies import operator_policies


def until(condition, seconds=10.0):
    """Wait until something holds; generous, since the machine may be busy."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.002)


class Heard:
    def __init__(self):
        self.triggers, self.flushes, self.evicted = [], [], []

    def trigger(self, partition, window):
        self.triggers.append(list(window.tuples(partition)))

    def before_flush(self, partition, window):
        self.flushes.append(list(window.tuples(partition)))

    def before_eviction(self, item, partition, window):
        self.evicted.append(item)


def test_the_thread_evicts_triggers_and_flushes_when_no_tuple_comes():
    with WallClock() as clock:
        heard = Heard()
        slides = SlidingWindow(pn.hopping("30 ms", every="20 ms", origin="first"), clock=clock)
        slides.register(heard, Event.TRIGGER, Event.BEFORE_EVICTION)
        tumbles = TumblingWindow(pn.tumbling("20 ms", origin="first"), clock=clock)
        tumbles.register(heard, Event.BEFORE_FLUSH)
        slides.insert("a")
        tumbles.insert("b")
        until(lambda: len(heard.triggers) >= 3 and len(heard.flushes) >= 2 and heard.evicted)
    assert heard.triggers[0] == ["a"]
    assert heard.triggers[2] == []
    assert heard.flushes[:2] == [["b"], []]
    assert heard.evicted == ["a"]
    assert not clock._thread.is_alive()


def test_triggers_catch_up():
    """The processing of the first trigger takes as long as thirty periods: the others follow without waiting."""
    seen = []

    class Slow:
        def trigger(self, partition, window):
            seen.append(clock.now())
            if len(seen) == 1:
                time.sleep(0.3)

    with WallClock() as clock:
        window = SlidingWindow(pn.hopping(pn.rows(5), every="10 ms", origin="first"), clock=clock)
        window.register(Slow(), Event.TRIGGER)
        window.insert("a")
        begun = clock.now()
        until(lambda: len(seen) >= 31)
    # The thirtieth is due 300 ms after the tuple, and no earlier; those before it did not wait for one another.
    assert seen[30] - begun >= 300_000
    assert seen[28] - seen[1] < seen[1] - seen[0]


def test_locks_cost_nothing_without_a_thread():
    window = SlidingWindow(pn.sliding(pn.rows(5)), clock=WallClock())
    with window.lock() as held:
        assert held is None
    timed = SlidingWindow(pn.hopping("1 s", every=pn.rows(1), bounds="[]"), clock=EventClock(0))
    with timed.lock() as held:
        assert held is None
    assert window.clock._thread is None


def test_whoever_looks_from_outside_holds_the_lock():
    with WallClock() as clock:
        window = SlidingWindow(pn.hopping("1 ms", every=pn.rows(1), bounds="[]"), by=(), clock=clock)
        stop = threading.Event()
        wrong = []

        def look():
            while not stop.is_set():
                with window.lock():
                    if len(window) != sum(len(list(tuples)) for _, tuples in window):
                        wrong.append(len(window))

        looking = threading.Thread(target=look)
        looking.start()
        for number in range(3000):
            window.insert(number, number % 7)
        stop.set()
        looking.join()
        until(lambda: len(window) == 0)
    assert not wrong


def test_an_error_in_the_thread_is_raised_where_the_next_tuple_comes_in():
    class Broken:
        def trigger(self, partition, window):
            raise ZeroDivisionError("in a handler")

    clock = WallClock()
    window = SlidingWindow(pn.hopping(pn.rows(5), every="1 ms", origin="first"), clock=clock)
    window.register(Broken(), Event.TRIGGER)
    window.insert("a")
    until(lambda: clock._failure is not None)
    with pytest.raises(ZeroDivisionError, match="in a handler"):
        window.insert("b")
    until(lambda: clock._failure is not None)
    with pytest.raises(ZeroDivisionError):
        clock.close()


def test_a_join_sees_no_tuple_that_is_too_old():
    """One window is timed and the other is not: the thread may be late, the answer must not be."""
    now = [0]
    with WallClock(lambda: now[0]) as clock:
        join = Join(pn.hopping("10 us", every=pn.rows(1), bounds="[]"), pn.sliding(pn.rows(0)), on="k", clock=clock)
        join.process({"k": 1, "x": 1})
        now[0] = 10
        assert join.run([{"k": 1, "y": 1}], port=1) == [{"k": 1, "x": 1, "y": 1}, PUNCTUATION]
        now[0] = 11
        assert join.run([{"k": 1, "y": 2}], port=1) == []


def test_operators_make_a_clock_of_their_own():
    counts = Aggregate(pn.tumbling("10 ms", origin="first"), {"n": pn.count()})
    out = []
    counts.connect(out.append)
    counts.process({})
    until(lambda: PUNCTUATION in out)
    counts.close()
    assert out[0] == {"n": 1}


def test_event_time_stands_still_until_it_is_advanced():
    window = TumblingWindow(pn.tumbling("5 us", origin="first"), clock=EventClock())
    with pytest.raises(OrderError, match="the clock has not begun"):
        window.insert(1)


def test_a_handler_cannot_advance_its_clock():
    clock = EventClock(0)

    class Advancing:
        def before_flush(self, partition, window):
            clock.advance(99)

    window = TumblingWindow(pn.tumbling("5 us", origin="first"), clock=clock)
    window.register(Advancing(), Event.BEFORE_FLUSH)
    window.insert(1)
    with pytest.raises(OrderError, match="a handler cannot advance"):
        clock.advance(5)


def test_periods_are_half_open():
    """A tuple that arrives when a period ends belongs to the next one; one exactly as old as the period is still there.

    ::

        time      0    5    10
        tuples    a    b
        windows  [a   )[b   )
    """
    clock, heard = EventClock(0), Heard()
    tumbles = TumblingWindow(pn.tumbling("5 us", origin="first"), clock=clock)
    tumbles.register(heard, Event.BEFORE_FLUSH)
    slides = SlidingWindow(pn.hopping("5 us", every="5 us", origin="first"), clock=clock)
    slides.register(heard, Event.TRIGGER, Event.BEFORE_EVICTION)
    for instant, item in ((0, "a"), (5, "b")):
        clock.advance(instant)
        tumbles.insert(item)
        slides.insert(item)
    assert heard.evicted == []
    clock.advance(6)
    assert heard.evicted == ["a"]
    clock.advance(10)
    assert heard.flushes == heard.triggers == [["a"], ["b"]]


def replayed(rows, watermarks, **options):
    clock, out = EventClock(), []
    window = pn.hopping("7 us", every=pn.rows(2), bounds="[]")
    operator = Aggregate(window, {"total": pn.sum("x"), "n": pn.count()}, clock=clock)
    operator.connect(out.append)
    replay = Replay(operator, clock, at="ts", **options)
    for batch, watermark in zip(rows, watermarks, strict=True):
        replay.add(batch)
        replay.advance(watermark)
    replay.finish()
    return out, replay.late


@given(st.lists(st.integers(0, 30), unique=True, min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_a_replay_does_not_depend_on_the_order_of_arrival(instants, shuffled):
    rows = [{"ts": instant, "x": number} for number, instant in enumerate(instants)]
    whole, _ = replayed([rows], [max(instants) + 1])
    again = list(rows)
    shuffled.shuffle(again)
    early, late = [row for row in again if row["ts"] < 15], [row for row in again if row["ts"] >= 15]
    assert replayed([early, late], [15, max(max(instants) + 1, 15)])[0] == whole


def test_ties_by_value_and_late_tuples():
    rows = [{"ts": 5, "x": x} for x in (3, 1, 2)]
    random.Random(1).shuffle(rows)
    clock, out = EventClock(), []
    order = Aggregate(pn.tumbling(pn.rows(3)), {"xs": lambda rows: [r["x"] for r in rows]}, clock=clock)
    order.connect(out.append)
    replay = Replay(order, clock, at="ts", ties=lambda row: row["x"])
    replay.add(rows)
    replay.advance(6)
    replay.add([{"ts": 5, "x": 9}])
    assert out == [{"xs": [1, 2, 3]}, PUNCTUATION]
    assert replay.late == 1


def test_timestamps_are_instants():
    clock = EventClock()
    counts = Aggregate(pn.tumbling(pn.rows(1)), {"n": pn.count()}, clock=clock)
    replay = Replay(counts, clock, at="ts")
    replay.add([{"ts": dt.datetime(1970, 1, 1, 0, 0, 1)}])
    replay.finish()
    assert clock.now() == 1_000_001
    with pytest.raises(SchemaError, match="whole µs"):
        replay.add([{"ts": 1.5}])


def test_the_operators_of_a_graph_share_a_wall_clock():
    second = pn.tumbling("1 s", origin="first")
    graph = Graph()
    graph.source("rows")
    with WallClock() as clock, WallClock() as other:
        graph.add(Aggregate(second, {"n": pn.count()}, clock=clock), reads=["rows"], writes=["a"])
        graph.add(Aggregate(second, {"n": pn.count()}, clock=clock), reads=["rows"], writes=["b"])
        with pytest.raises(DeclarationError, match=r"Make one WallClock\(\)"):
            graph.add(Aggregate(second, {"n": pn.count()}, clock=other), reads=["rows"], writes=["c"])


def test_a_thread_and_a_source_send_through_one_graph():
    """The first operator is flushed by the thread while tuples come in; the second counts every one of them once."""
    with WallClock() as clock:
        graph = Graph()
        graph.source("rows")
        writer = Aggregate(pn.tumbling("1 ms", origin="first"), {"n": pn.count()}, clock=clock)
        graph.add(writer, reads=["rows"], writes=["parts"])
        totals = []
        summing = Aggregate(pn.tumbling(pn.punctuation()), {"n": pn.sum("n")}, clock=clock)
        graph.add(summing, reads=["parts"], writes=["totals"])
        summing.connect(totals.append)
        for _ in range(5000):
            graph.send("rows", {})
        until(lambda: sum(row["n"] for row in tuples_of(list(totals))) == 5000)


def test_a_graph_is_replayed():
    clock = EventClock()
    graph = Graph()
    graph.source("left")
    graph.source("right")
    join = Join(
        pn.hopping("5 us", every=pn.rows(1), bounds="[]"),
        pn.sliding(pn.rows(0)),
        on="k",
        select=lambda left, right: (left["x"], right["y"]),
        clock=clock,
    )
    out = []
    join.connect(out.append)
    graph.add(join, reads=["left", "right"])
    replay = Replay(graph, clock, at="ts")
    replay.add([{"ts": ts, "k": 1, "y": ts} for ts in (6, 2)], "right")
    replay.add([{"ts": 1, "k": 1, "x": 1}, {"ts": 0, "k": 1, "x": 0}], "left")
    replay.finish()
    assert out == [(0, 2), (1, 2), PUNCTUATION, (1, 6), PUNCTUATION]


@pytest.mark.parametrize(("by", "origin"), [(None, "first"), ("k", "row"), ("k", "epoch"), (None, "epoch")])
def test_a_flush_that_fails_is_tried_again_a_period_later(by, origin):
    clock, flushed = EventClock(0), []

    class FailsOnce:
        failed = False

        def before_flush(self, partition, window):
            if not self.failed:
                self.failed = True
                raise ZeroDivisionError
            flushed.append(list(window.tuples(partition)))

    window = TumblingWindow(pn.tumbling("5 us", origin=origin), by=by, clock=clock)
    window.register(FailsOnce(), Event.BEFORE_FLUSH)
    window.insert({"k": 1})
    with pytest.raises(ZeroDivisionError):
        clock.advance(5)
    clock.advance(10)
    assert flushed == [[{"k": 1}]]


def test_a_handler_that_fails_does_not_stop_the_clock():
    clock = EventClock(0)

    class FailsOnce:
        failed = False

        def before_eviction(self, item, partition, window):
            if not self.failed:
                self.failed = True
                raise ZeroDivisionError

    window = SlidingWindow(pn.hopping("5 us", every=pn.rows(1), bounds="[]"), clock=clock)
    window.register(FailsOnce(), Event.BEFORE_EVICTION)
    window.insert("a")
    with pytest.raises(ZeroDivisionError):
        clock.advance(20)
    clock.advance(21)
    assert len(window) == 0


def test_a_clock_from_outside_is_not_closed():
    with WallClock() as clock:
        Aggregate(pn.tumbling("1 s", origin="first"), {"n": pn.count()}, clock=clock).close()
        assert not clock._closed


def in_time(act, seconds=20.0):
    """Do something on a thread, and fail where it never ends."""
    ended = threading.Thread(target=act, daemon=True)
    ended.start()
    ended.join(seconds)
    assert not ended.is_alive(), "it hangs"


def test_a_handler_may_close_the_clock():
    """It holds the lock that the thread needs to end."""
    counts = Aggregate(pn.hopping("1 s", every=pn.rows(1), bounds="[]"), {"n": pn.count()})
    counts.connect(lambda _: counts.close())
    in_time(lambda: counts.process({}))
    assert not counts.clock._thread.is_alive()


def test_triggers_that_never_catch_up_keep_nobody_out():
    """Processing takes longer than the period, each time."""

    class Slow:
        def trigger(self, partition, window):
            time.sleep(0.003)

    clock = WallClock()
    window = SlidingWindow(pn.hopping(pn.rows(5), every="1 ms", origin="first"), clock=clock)
    window.register(Slow(), Event.TRIGGER)

    def insert_and_close():
        for number in range(3):
            window.insert(number)
            time.sleep(0.01)
        clock.close()

    in_time(insert_and_close)
    assert list(window.tuples()) == [0, 1, 2]


def test_a_handler_that_always_fails_keeps_nobody_out():
    class Broken:
        def before_eviction(self, item, partition, window):
            raise ZeroDivisionError

    clock, raised = WallClock(), []
    window = SlidingWindow(pn.hopping("1 ms", every=pn.rows(1), bounds="[]"), clock=clock)
    window.register(Broken(), Event.BEFORE_EVICTION)

    def insert_and_close():
        window.insert("a")
        until(lambda: clock._failure is not None)
        for act in (lambda: window.insert("b"), clock.close):
            try:
                act()
            except ZeroDivisionError:
                raised.append(act)

    in_time(insert_and_close)
    assert raised


def test_a_tuple_arrives_at_the_instant_up_to_which_everything_happened():
    """The clock goes on while it settles: a tuple must not come into a period that ended before it arrived."""
    reads = iter([0, 4, 6, 8, 10, 12])
    clock = WallClock(lambda: next(reads))
    clock.close()  # no thread: it would read too
    window = SlidingWindow(pn.hopping("9 us", every="5 us", origin="first"), clock=clock)
    heard = Heard()
    window.register(heard, Event.TRIGGER)
    for item in "abc":
        window.insert(item)
    assert list(window.subwindows[()].arrivals) == [0, 4, 6]
    assert heard.triggers == [["a", "b"]]


def test_a_state_is_loaded_as_a_whole(monkeypatch):
    """What falls due meanwhile must not happen before the operator has made its index again."""
    now = [0]
    window, empty = pn.hopping("10 us", every=pn.rows(1), bounds="[]"), pn.sliding(pn.rows(0))
    with WallClock(lambda: now[0]) as clock:
        first = Join(window, empty, on="k", clock=clock)
        first.process({"k": 1})
        saved = first.save()
    index_again = Side.index_again

    def slowly(side):
        now[0] = 100
        time.sleep(0.05)
        index_again(side)

    monkeypatch.setattr(Side, "index_again", slowly)
    with WallClock(lambda: now[0]) as clock:
        second = Join(window, empty, on="k", clock=clock)
        second.load(saved)
        until(lambda: len(second.windows[0]) == 0)


def test_partition_ages_alone_need_no_thread_and_no_clock_in_common():
    aged = operator_policies(pn.tumbling(pn.rows(2)), by="k", evict=pn.evict(age="1 s"))
    graph, threads = Graph(), set(threading.enumerate())
    graph.source("rows")
    for _ in range(2):
        graph.add(Aggregate(aged, {"n": pn.count()}), reads=["rows"])
    assert set(threading.enumerate()) <= threads


def test_late_triggers_follow_each_other():
    """Ten periods passed unnoticed: each is made up for, and the next is due where it always was."""
    now, heard = [0], Heard()
    clock = WallClock(lambda: now[0])
    clock.close()  # no thread: the tuples let things happen
    window = SlidingWindow(pn.hopping(pn.rows(5), every="10 us", origin="first"), clock=clock)
    window.register(heard, Event.TRIGGER)
    for instant, item in ((0, "a"), (105, "b"), (110, "c")):
        now[0] = instant
        window.insert(item)
    assert heard.triggers == [["a"]] * 10 + [["a", "b"]]
