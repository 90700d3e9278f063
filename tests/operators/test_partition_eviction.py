"""Partition eviction: who goes, when, and that nothing of a subwindow stays behind.

The property test against the reference covers the combinations; here are the selections by themselves, the events, and
the memory.
"""

from __future__ import annotations

import gc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

import panes as pn
from panes.errors import DeclarationError
from panes.operators import Event, EventClock, SlidingWindow, TumblingWindow
from panes.operators.partition_eviction import BUILT_IN
from panes.operators.policies import operator_policies
from tests.operators.drawing import make


def model(name, touches):
    """Who goes first, by looking at all touches."""
    last = {partition: number for number, partition in enumerate(touches)}
    first = {partition: number for number, partition in reversed(list(enumerate(touches)))}
    rank = {
        "least recently updated": last.get,
        "least frequently updated": lambda partition: (touches.count(partition), last[partition]),
        "oldest": first.get,
    }[name]
    return min(last, key=rank)


@given(
    st.sampled_from(sorted(BUILT_IN)),
    st.lists(st.one_of(st.integers(0, 5), st.integers(0, 5), st.just("go"), st.just("reload")), min_size=10),
)
def test_selections(name, happened):
    """Touched, evicted, and built again from what was stored."""
    selection, touches = BUILT_IN[name](), []
    for what in happened:
        if what == "reload":
            order = selection.order()
            selection = BUILT_IN[name]()
            for partition in order:
                selection.touched(partition, touches.count(partition))
        elif what != "go":
            selection.touched(what)
            touches.append(what)
        elif touches:
            (gone,) = selection.choose()
            assert gone == model(name, touches)
            selection.forget(gone)
            touches = [partition for partition in touches if partition != gone]


def test_a_new_partition_is_the_least_frequently_updated():
    """Also where all others had more tuples when somebody had to go before."""
    selection = BUILT_IN["least frequently updated"]()
    for partition in "aabb":
        selection.touched(partition)
    assert selection.choose() == ("a",)
    selection.touched("c")
    assert selection.choose() == ("c",)


def test_partition_count_makes_room_before_a_subwindow_is_opened():
    declared = operator_policies(pn.sliding(pn.rows(9)), by=0, evict=pn.evict(keys=2))
    window, recorder, _ = make(declared)
    for item in (("a", 1), ("b", 2), ("a", 3), ("c", 4)):
        window.insert(item)
    assert [event[0] for event in recorder.log[-4:]] == [
        "partition_eviction",
        "before_insertion",
        "after_insertion",
        "trigger",
    ]
    assert recorder.log[-4][2] == (("b", (("b", 2),)),)
    assert [partition for partition, _ in window] == ["a", "c"]


def test_age_is_looked_at_when_a_tuple_arrives_and_counts_from_the_last_one():
    declared = operator_policies(pn.sliding(pn.rows(9)), by=0, evict=pn.evict(age="10 us"))
    window, recorder, clock = make(declared)
    window.insert(("a", 1))
    clock.advance(10)
    window.insert(("b", 2))
    assert [partition for partition, _ in window] == ["a", "b"]  # ten is not longer than ten
    clock.advance(500)
    assert len(window) == 2
    window.insert(("a", 3))
    assert [(partition, list(tuples)) for partition, tuples in window] == [("a", [("a", 3)])]
    assert [event[2] for event in recorder.log if event[0] == "partition_eviction"] == [
        (("a", (("a", 1),)), ("b", (("b", 2),)))
    ]


def test_the_operator_selects():
    class Selecting:
        seen = 0

        def partition_selection(self, candidates, window):
            Selecting.seen = len(candidates)
            candidates.mark(max(partition for partition, _ in candidates))

    policy = {"by": (), "evict": pn.evict(keys=2, choose="by operator")}
    window = SlidingWindow(pn.sliding(pn.rows(9)), **policy)
    window.register(Selecting(), Event.PARTITION_SELECTION)
    for partition in (5, 7, 6):
        window.insert("tuple", partition)
    assert [partition for partition, _ in window] == [5, 6]
    assert Selecting.seen == 2


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("by operator", "Register a handler of Event.PARTITION_SELECTION"),
        (lambda candidates: None, "marked no partition"),
        (lambda candidates: candidates.mark("nobody"), "there is no partition 'nobody'"),
    ],
)
def test_selections_that_select_nothing(select, message):
    policy = {"by": (), "evict": pn.evict(keys=1, choose=select)}
    window = TumblingWindow(pn.tumbling(pn.rows(9)), **policy)
    window.insert(1, "a")
    with pytest.raises(DeclarationError, match=message):
        window.insert(1, "b")


class Tuple:
    """Something that can be watched going away."""

    def __getitem__(self, _):
        return 0


@pytest.mark.parametrize("trigger", [pn.rows(2), pn.delta("x", 1), "1 day"], ids=str)
@pytest.mark.parametrize("evict", [pn.rows(9), pn.delta("x", 9), "1 day"], ids=str)
def test_nothing_of_an_evicted_subwindow_stays(evict, trigger):
    """Deadlines lie a day ahead; the tuples are gone at once, and the queue does not grow."""
    policy = {"by": (), "evict": pn.evict(keys=3)}
    clock = EventClock(0)
    origin = "first" if trigger == "1 day" else "epoch"
    window = SlidingWindow(pn.hopping(evict, every=trigger, origin=origin), **policy, clock=clock)
    watched = Tuple()
    gone = weakref.ref(watched)
    window.insert(watched, "first")
    del watched
    for partition in range(1000):
        window.insert(Tuple(), partition)
    gc.collect()
    assert gone() is None
    assert len(window) == 3
    assert len(clock.deadlines) <= 6
    assert len(clock.deadlines._queue) <= 14


def test_a_summarizer_is_closed_when_its_partition_goes():
    said = []

    class Summarizer:
        def open(self, partition):
            self.partition = partition
            said.append(("open", partition))

        def insert(self, item):
            said.append(("insert", item))

        def close(self):
            said.append(("close", self.partition))

    policy = {"by": (), "evict": pn.evict(keys=1)}
    window = TumblingWindow(pn.tumbling(pn.rows(2)), **policy, summarizer=Summarizer)
    for partition, item in (("a", 1), ("b", 2), ("b", 3)):
        window.insert(item, partition)
    assert said == [
        ("open", "a"),
        ("insert", 1),
        ("close", "a"),
        ("open", "b"),
        ("insert", 2),
        ("insert", 3),
        ("close", "b"),
    ]
    assert len(window) == 0
