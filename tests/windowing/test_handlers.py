"""What handlers may ask for: summarizers of windows without tuples."""

from __future__ import annotations

import pytest

import panes as pn
from panes.windowing import Event, EventClock, Summarizer, TumblingWindow

p = pn.policy


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
    window, log = noted(p.tumbling(p.time("10 us")), clock, heard)
    if at_once:
        window.insert_all(["a"], [0])
    else:
        window.insert("a")
    clock.advance(30)
    expected = ["open", 1, "close", "open", 0, "close", "open", 0, "close"]
    assert log == [each for each in expected if heard or isinstance(each, str)]


def test_a_punctuation_without_tuples_has_a_summarizer():
    window, log = noted(p.tumbling(p.punctuation()))
    window.punctuate()
    window.insert("a")
    window.punctuate()
    window.punctuate()
    assert log == ["open", 0, "close", "open", 1, "close", "open", 0, "close"]


def test_a_summarizer_is_there_before_the_first_tuple_of_a_later_window():
    window, log = noted(p.tumbling(p.count(1)))
    assert window.summarizer() is None
    window.insert("a")
    assert window.summarizer().n == 0
    window.insert("b")
    assert log == ["open", 1, "close"] * 2
