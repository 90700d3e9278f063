"""State that is saved on a wall clock and loaded where the clock shows something else: another host, or a reboot.

Catches instants that are stored as the clock of one process shows them: windows that stall where the other clock is
behind, and that lose everything at once, or catch up with triggers that were never missed, where it is ahead.
"""

from __future__ import annotations

import pickle

import pytest

import panes as pn
from panes.errors import StateError
from panes.operators import PUNCTUATION, Aggregate, Event, EventClock, SlidingWindow, TumblingWindow, WallClock
from panes.operators.policies import operator_policies

SECOND = 1_000_000
STARTS = [0, 500 * SECOND, 10**12]
"""What the clock shows when a state is loaded; it is saved at 500 s."""


class Stopped(WallClock):
    """A wall clock that is set by hand, and has no thread: what is due happens when somebody settles it."""

    def __init__(self, at):
        self.at = at
        super().__init__(lambda: self.at)
        self.close()

    def passes(self, period):
        self.at += period
        self.settle()


class Heard:
    def __init__(self, log):
        self.log = log

    def trigger(self, partition, window):
        self.log.append(("trigger", list(window.tuples(partition))))

    def before_flush(self, partition, window):
        self.log.append(("flush", list(window.tuples(partition))))

    def before_eviction(self, item, partition, window):
        self.log.append(("evict", item))

    def initial_full(self, partition, window):
        self.log.append(("full", list(window.tuples(partition))))

    def partition_eviction(self, evicted, window):
        self.log.extend(("gone", partition) for partition, _ in evicted)


def made(declared, clock, log):
    tumbles = declared.kind == "tumbling"
    window = (TumblingWindow if tumbles else SlidingWindow)(declared, clock=clock)
    events = (Event.BEFORE_FLUSH,) if tumbles else (Event.TRIGGER, Event.BEFORE_EVICTION, Event.INITIAL_FULL)
    window.register(Heard(log), *events, Event.PARTITION_EVICTION)
    return window


@pytest.mark.parametrize(
    "declared",
    [
        pn.tumbling("3 s", origin="first"),
        operator_policies(pn.tumbling("3 s", origin="row"), by=0),
        pn.hopping("3 s", every=pn.rows(1), bounds="[]"),
        pn.hopping("3 s", every="2 s", origin="first"),
        pn.hopping(pn.rows(5), every="1 s", origin="first"),
        operator_policies(pn.sliding(pn.rows(5)), by=0, evict=pn.evict(age="3 s")),
        operator_policies(pn.tumbling(pn.rows(5)), by=0, evict=pn.evict(age="3 s")),
    ],
    ids=str,
)
@pytest.mark.parametrize("start", STARTS)
def test_a_window_goes_on_as_if_nothing_had_happened(declared, start):
    def play(swapped):
        log, clock = [], Stopped(500 * SECOND)
        window = made(declared, clock, log)
        window.insert("a")
        clock.passes(SECOND)
        window.insert("b")
        if swapped:
            saved = pickle.loads(pickle.dumps(window.save()))
            clock = Stopped(start)
            window = made(declared, clock, log)
            window.load(saved)
            clock.settle()
        for _ in range(6):
            clock.passes(SECOND + 1)
            log.append("passed")
        window.insert("c")
        return log

    assert play(swapped=True) == play(swapped=False)


@pytest.mark.parametrize("start", STARTS)
def test_an_aggregate_fires_no_trigger_for_the_time_between(start):
    def counts(clock, out):
        made = Aggregate(pn.hopping(pn.rows(5), every="1 s", origin="first"), {"n": pn.count()}, clock=clock)
        made.connect(out.append)
        return made

    clock, out = Stopped(500 * SECOND), []
    first = counts(clock, out)
    first.process({})
    clock.passes(1_500_000)
    saved, clock = first.save(), Stopped(start)
    second = counts(clock, out)
    second.load(saved)
    assert out == [{"n": 1}, PUNCTUATION]
    clock.passes(500_000)
    assert out == [{"n": 1}, PUNCTUATION] * 2


def test_a_state_of_a_wall_clock_is_refused_by_an_event_clock():
    window = made(pn.hopping("3 s", every=pn.rows(1), bounds="[]"), Stopped(7), [])
    window.insert("a")
    with pytest.raises(StateError, match="saved on a wall clock"):
        made(pn.hopping("3 s", every=pn.rows(1), bounds="[]"), EventClock(0), []).load(window.save())


def test_states_of_event_clocks_have_the_instants_of_the_data():
    window = made(pn.hopping("3 s", every=pn.rows(1), bounds="[]"), EventClock(7), [])
    window.insert("a")
    state = window.save()
    assert "origin" not in state
    assert state["subwindows"][0]["arrivals"] == [7]
