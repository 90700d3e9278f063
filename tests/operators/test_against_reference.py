"""The library against the reference interpreter: the same events, with the same contents, in the same order.

Catches a wrong order of insert, evict and trigger; state that survives an eviction; deadlines missed or doubled.
"""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.errors import DeclarationError
from panes.frames.order import EVICT, INSERT, ORDER, TRIGGER
from panes.operators import Event, SlidingWindow, TumblingWindow
from panes.operators.policies import Partitions, SlidingPolicies, TumblingPolicies
from panes.queries.measures import Delta, Rows
from panes.testing.operators_reference import TABLE_I, TABLE_II, ReferenceWindow
from tests.operators.drawing import happenings, make, play, policies, windows


def expected(declared, happened):
    log = []
    window = ReferenceWindow(declared, lambda *event: log.append(event))

    def advance(by):
        for _ in range(by):
            window.tick()

    play(happened, window.insert, advance, window.punctuate, declared.partitioned is not None)
    return log


def found(declared, happened, **options):
    window, recorder, clock = make(declared, **options)

    def punctuate():
        if isinstance(declared, TumblingPolicies):
            window.punctuate()

    def advance(by):
        clock.advance(clock.now() + by)

    play(happened, window.insert, advance, punctuate, declared.partitioned is not None)
    assert window.held == sum(len(tuples) for _, tuples in window)
    return recorder.log


@settings(max_examples=250)
@given(windows(), happenings())
def test_events(declared, happened):
    assert found(declared, happened) == expected(declared, happened)


@settings(max_examples=120)
@given(windows(), happenings(), st.data())
def test_a_window_continues_from_its_state(declared, happened, data):
    """Save in the middle, and load into a window on a new clock."""
    at = data.draw(st.integers(0, len(happened)))
    window, recorder, clock = make(declared)
    partitioned, state = declared.partitioned is not None, {}
    number = [0]

    def swap():
        nonlocal window, recorder, clock
        if number[0] == at:
            state["saved"] = pickle.loads(pickle.dumps(window.save()))
            log = recorder.log
            window, recorder, clock = make(declared, clock=type(clock)(clock.now()))
            window.load(copy.deepcopy(state["saved"]))
            recorder.log = log
        number[0] += 1

    def insert(item, partition):
        swap()
        window.insert(item, partition)

    def advance(by):
        swap()
        clock.advance(clock.now() + by)

    def punctuate():
        swap()
        if isinstance(declared, TumblingPolicies):
            window.punctuate()

    play(happened, insert, advance, punctuate, partitioned)
    assert recorder.log == expected(declared, happened)


def test_a_loaded_window_knows_which_tuple_triggered_last():
    declared = SlidingPolicies(Rows(3), Delta(0, 2))
    first, _, _ = make(declared)
    first.insert((0,))
    second, recorder, _ = make(declared)
    second.load(first.save())
    second.insert((3,))
    assert recorder.log[0] == ("trigger", (), ((0,),))


def test_the_tables_are_those_of_the_paper():
    paper = {(kind, None): order for kind, order in TABLE_I.items()} | TABLE_II
    ours = {kinds: " | ".join(map(" ".join, (o.arrival, *([s] for s in o.alone)))) for kinds, o in ORDER.items()}
    assert ours.pop(("gap", None)) == "insert | evict"
    assert ours == paper
    assert len(TABLE_I) == 4
    assert len(TABLE_II) == 9


def test_a_row_that_is_in_has_evicted_others():
    """What the vectorised frames rely on: a window holds what the last inserted row left."""
    for (evict, trigger), order in ORDER.items():
        if trigger is not None and TRIGGER in order.arrival and EVICT in order.arrival:
            before = order.arrival[: order.arrival.index(TRIGGER)]
            assert (INSERT in before) == (EVICT in before), (evict, trigger)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 40), st.booleans())
def test_figure_2(n, m, tuples, partial):
    """``sliding, count(n), count(m)`` is ``sliding, delta(id, n-1), delta(id, m-1)`` where ids go up by one.

    The windows that are processed are the same. The delta-based one processes each a tuple later, when it knows.
    """

    def processed(declared, upto):
        window, recorder, _ = make(declared)
        for number in range(upto):
            window.insert((number,))
        full = partial
        for event, _, contents in recorder.log:
            full = full or event == "initial_full"
            if event == "trigger" and full:
                yield contents

    by_count = processed(SlidingPolicies(Rows(n), Rows(m)), tuples)
    by_delta = processed(SlidingPolicies(Delta(0, n - 1), Delta(0, m - 1)), tuples + 1)
    assert list(by_count) == list(by_delta)


def test_figure_2_as_drawn():
    """count(2), count(1) without partial windows: the second tuple triggers first, by delta the third does.

    ::

        count   1 [1 2] [2 3]
        delta   1  2 [1 2] 3 [2 3]
    """
    window, recorder, _ = make(SlidingPolicies(Delta(0, 1), Delta(0, 0)))
    said = []
    for number in (1, 2, 3):
        window.insert((number,))
        said.append([event for event, *_ in recorder.log if event in ("initial_full", "trigger")])
        recorder.log.clear()
    assert said == [[], ["trigger"], ["initial_full", "trigger"]]


@given(policies(), happenings())
def test_unregistered_events_change_nothing(policy, happened):
    """A window without handlers ends up with the same contents."""
    declared = SlidingPolicies(policy, Rows(2), Partitions(()))
    heard, _, clock = make(declared)
    deaf = type(heard)(declared, clock=type(clock)(0))
    for window, its in ((heard, clock), (deaf, deaf.clock)):
        play(
            happened,
            window.insert,
            lambda by, its=its: its.advance(its.now() + by),
            lambda: None,
            True,
        )
    assert [(p, list(t)) for p, t in deaf] == [(p, list(t)) for p, t in heard]


@pytest.mark.parametrize("kind", ["tumbling", "sliding"])
def test_an_event_of_the_other_type_is_refused(kind):
    window = TumblingWindow(pn.tumbling(pn.rows(1))) if kind == "tumbling" else SlidingWindow(pn.sliding(pn.rows(1)))
    wrong = Event.TRIGGER if kind == "tumbling" else Event.BEFORE_FLUSH
    with pytest.raises(DeclarationError, match=f"a {kind} window has no event {wrong.value}. It has: after_"):
        window.register(object(), wrong)
