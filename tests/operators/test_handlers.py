"""What handlers may ask for and do: summarizers of windows without tuples, and insertions while something happens."""

from __future__ import annotations

import pytest

import panes as pn
from panes.operators import Event, EventClock, SlidingWindow, Summarizer, TumblingWindow


class Noted(Summarizer):
    """Counts tuples, and notes when it is opened and closed."""

    log: list

    def open(self, partition):
        self.n = 0
        self.log.append("open")

    def insert(self, item):
        self.n += 1

    def close(self):
        self.log.append("close")


class Flushes:
    def __init__(self, log):
        self.log = log

    def before_flush(self, partition, window):
        self.log.append(window.summarizer(partition).n)


def noted(declared, clock=None, heard=True):
    log = []
    window = TumblingWindow(declared, clock=clock, summarizer=type("Summarizer", (Noted,), {"log": log}))
    if heard:
        window.register(Flushes(log), Event.BEFORE_FLUSH)
    return window, log


@pytest.mark.parametrize("heard", [True, False])
@pytest.mark.parametrize("at_once", [True, False])
def test_an_empty_period_has_a_summarizer(heard, at_once):
    clock = EventClock(0)
    window, log = noted(pn.tumbling("10 us", origin="first"), clock, heard)
    if at_once:
        window.insert_all(["a"], [0])
    else:
        window.insert("a")
    clock.advance(30)
    expected = ["open", 1, "close", "open", 0, "close", "open", 0, "close"]
    assert log == [each for each in expected if heard or isinstance(each, str)]


def test_a_punctuation_without_tuples_has_a_summarizer():
    window, log = noted(pn.tumbling(pn.punctuation()))
    window.punctuate()
    window.insert("a")
    window.punctuate()
    window.punctuate()
    assert log == ["open", 0, "close", "open", 1, "close", "open", 0, "close"]


def test_a_summarizer_is_there_before_the_first_tuple_of_a_later_window():
    window, log = noted(pn.tumbling(pn.rows(1)))
    assert window.summarizer() is None
    window.insert("a")
    assert window.summarizer().n == 0
    window.insert("b")
    assert log == ["open", 1, "close"] * 2


class Again:
    """Inserts again what leaves the window, until it has done so as often as it may."""

    def __init__(self, times):
        self.times, self.seen = times, []

    def after_eviction(self, item, partition, window):
        if self.times:
            self.times -= 1
            window.insert(item)

    def trigger(self, partition, window):
        self.seen.append(list(window.tuples(partition)))


def test_what_leaves_on_the_clock_may_come_in_again():
    clock = EventClock(0)
    again = Again(9)
    window = SlidingWindow(pn.hopping("10 us", every=pn.rows(1), bounds="[]"), clock=clock)
    window.register(again, Event.AFTER_EVICTION)
    window.insert("a")
    clock.advance(98)
    # It leaves every 11 µs, which is when it is older than 10.
    assert (again.times, list(window.tuples())) == (1, ["a"])
    clock.advance(200)
    assert (again.times, len(window), len(clock.deadlines)) == (0, 0, 0)


def test_what_leaves_a_full_window_may_come_in_again():
    window, again = SlidingWindow(pn.sliding(pn.rows(2))), Again(1)
    window.register(again, Event.AFTER_EVICTION, Event.TRIGGER)
    for item in "abcde":
        window.insert(item)
    # To make room for c, a leaves and comes back, so b has to leave as well.
    assert again.seen == [["a"], ["a", "b"], ["b", "a"], ["a", "c"], ["c", "d"], ["d", "e"]]


def test_a_subwindow_that_goes_while_it_is_evicted_from_is_left_alone():
    clock = EventClock(0)
    partitioned = {"by": "k", "evict": pn.evict(keys=1)}
    window = SlidingWindow(pn.hopping("10 us", every=pn.rows(1), bounds="[]"), **partitioned, clock=clock)

    class Elsewhere:
        def after_eviction(self, item, partition, window):
            if item["k"] == "a":
                window.insert({"k": "b"})

    window.register(Elsewhere(), Event.AFTER_EVICTION)
    window.insert({"k": "a"})
    window.insert({"k": "a"})
    clock.advance(11)
    assert [(k, len(tuples)) for k, tuples in window] == [("b", 1)]
    assert (len(window), len(clock.deadlines)) == (1, 1)
