"""Tuples that come as a list: the same events, answers and state as one after another, to the last digit.

Catches partitions that are flushed in another order, windows that end a tuple too early or late, sums that round in
another way, deadlines that a list runs past, and errors that leave something else behind.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.errors import DeclarationError, PanesError
from panes.operators import PUNCTUATION, Aggregate, Event, EventClock, Sort, TumblingWindow, WallClock
from panes.operators.policies import Partitions, SlidingPolicies, TumblingPolicies
from panes.queries.measures import Delta, Rows
from tests.operators.drawing import Recorder, often, partitions, policies, tumbling, windows
from tests.operators.playing import HOLISTIC, SELECT

STATISTICS = {"spread": pn.std("v"), **SELECT}


def _values():
    return st.one_of(st.none(), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.sampled_from([float("nan"), 0, -0.0, 3]))


@st.composite
def streams(draw):
    """Lists of tuples with instants; punctuations lie between the lists."""
    arrival = st.tuples(
        st.sampled_from("xyz"), st.sampled_from("gh"), _values(), st.integers(0, 2), st.sampled_from([0, 0, 1, 1, 5])
    )
    lists, now, first, number = [], 0, 0, 0
    for drawn in draw(st.lists(often(arrival), max_size=3)):
        rows, instants = [], []
        for k, g, v, step, passed in drawn:
            first, now, number = first + step, now + passed, number + 1
            rows.append({"k": k, "g": g, "v": v, "number": number, 1: first, 2: 2 * first + number % 2})
            instants.append(now)
        lists.append((rows, instants))
    return lists


def run(make, lists, at_once, timed):
    """What comes out, what an error says, and what is left."""
    clock, out = EventClock(0), []
    operator = make(clock)
    operator.connect(lambda item: out.append((clock.now() if timed else 0, repr(item))))
    try:
        for rows, instants in lists:
            if at_once:
                operator.process_all(rows, at=instants if timed else None)
            else:
                for row, instant in zip(rows, instants, strict=True):
                    if timed:
                        clock.advance(instant)
                    operator.process(row)
            operator.punctuate()
    except (PanesError, KeyError, TypeError) as error:
        out.append(repr(error))
    if timed:
        clock.advance(clock.now() + 9)
    return out, repr(operator.save())


@settings(max_examples=120)
@given(windows(("k",)), streams(), st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_aggregate(declared, lists, timed, group_by, rewrite, holistic):
    select = STATISTICS | (HOLISTIC if holistic else {})
    options = {"groups": "g" if group_by else (), "rewrite": rewrite}

    def make(clock):
        return Aggregate(declared, select, clock=clock, **options)

    assert run(make, lists, True, timed) == run(make, lists, False, timed)


@settings(max_examples=100)
@given(
    st.one_of(
        st.builds(
            TumblingPolicies, st.one_of(policies()), partitions(("k",)).filter(lambda p: p is None or not p.evict)
        )
    ),
    streams(),
    st.booleans(),
    st.booleans(),
)
def test_tumbling_windows(declared, lists, timed, holistic):
    """Those that take lists at once."""
    test_aggregate.hypothesis.inner_test(declared, lists, timed, False, True, holistic)


@settings(max_examples=60)
@given(
    st.one_of(tumbling(("k",)), st.builds(SlidingPolicies, policies(), st.just(Rows(1)), partitions(("k",)))), streams()
)
def test_sort(declared, lists):
    def make(clock):
        return Sort(declared, order="v", clock=clock)

    assert run(make, lists, True, True) == run(make, lists, False, True)


@settings(max_examples=100)
@given(tumbling(("k",)), streams().filter(bool), st.sampled_from([None, float("nan"), -1, "gone"]), st.data())
def test_a_tuple_that_is_refused(declared, lists, wrong, data):
    """Those before it have come in, it has not, and the error is its own."""
    rows, _ = data.draw(st.sampled_from(lists))
    if rows:
        row = data.draw(st.sampled_from(rows))
        attribute = data.draw(st.sampled_from([1, 2, "k"]))
        row[attribute] = wrong
        if wrong == "gone":
            del row[attribute]

    def make(clock):
        return Aggregate(declared, SELECT, clock=clock)

    assert run(make, lists, True, True) == run(make, lists, False, True)


@settings(max_examples=60)
@given(
    st.sampled_from([Rows(3), Delta(1, 2)]),
    st.booleans(),
    streams().filter(lambda lists: any(rows for rows, _ in lists)),
    st.integers(0, 4),
)
def test_a_handler_that_fails(policy, partitioned, lists, after):
    """What came before the tuple that ended a window has come in, and no other."""

    def make(clock):
        flushes = []

        def fails(rows):
            flushes.append(rows)
            if len(flushes) == after:
                raise KeyError(after)
            return len(rows)

        window = TumblingPolicies(policy, Partitions(("k",)) if partitioned else None)
        return Aggregate(window, {"n": fails}, clock=clock)

    (found, state), (expected, same) = (run(make, lists, at_once, True) for at_once in (True, False))
    assert found == expected
    # But for the order of partitions, which is that of their first tuples where nothing failed.
    assert sorted(state) == sorted(same)


@pytest.mark.parametrize("apart", [False, True])
def test_handlers_that_look_at_other_partitions_see_what_single_tuples_would_leave(apart):
    """Only an operator that says that it looks at one partition is given lists at once."""
    seen = []

    class Looks:
        def before_flush(self, partition, window):
            seen.append([len(tuples) for _, tuples in window])

    window = TumblingWindow(pn.tumbling(pn.rows(4)), by="k")
    window.register(Looks(), Event.BEFORE_FLUSH)
    window.apart = apart
    window.insert_all([{"k": k} for k in "aabbbbaa"])
    assert seen == ([[4], [4]] if apart else [[2, 4], [4]])


def test_whoever_hears_insertions_hears_each_in_its_place():
    window = TumblingWindow(pn.tumbling(pn.rows(2)))
    recorder = Recorder()
    window.register(recorder, Event.AFTER_INSERTION, Event.BEFORE_FLUSH)
    window.insert_all([1, 2, 3])
    said = [event[0] for event in recorder.log]
    assert said == ["after_insertion", "after_insertion", "before_flush", "after_insertion"]


def test_a_stream_that_is_no_list_is_not_read_ahead():
    clock = EventClock(0)
    counts = Aggregate(pn.tumbling("5 us", origin="first"), {"n": pn.count()}, clock=clock)

    def rows():
        for instant in (1, 3, 7):
            clock.advance(instant)
            yield {}

    assert counts.run(rows()) == [{"n": 2}, PUNCTUATION]


def test_a_subclass_with_a_process_of_its_own_is_given_single_tuples():
    class Twice(Aggregate):
        def process(self, item, port=0):
            super().process(item, port)
            super().process(item, port)

    assert Twice(pn.tumbling(pn.rows(2)), {"n": pn.count()}).run([{}]) == [{"n": 2}, PUNCTUATION]


def test_instants_are_for_an_event_clock():
    with WallClock() as clock:
        counts = Aggregate(pn.tumbling(pn.rows(2)), {"n": pn.count()}, clock=clock)
        with pytest.raises(DeclarationError, match="event clock"):
            counts.process_all([{}], at=[1])


def test_windows_that_open_within_a_list_end_within_it():
    """What is due next on the clock, of another operator, lies far behind."""
    clock, out = EventClock(0), []
    far = Aggregate(pn.tumbling("1 s", origin="first"), {"n": pn.count()}, clock=clock)
    far.process({})
    near = Aggregate(pn.tumbling("5 us", origin="row"), {"n": pn.count()}, by="k", clock=clock)
    near.connect(out.append)
    near.process_all([{"k": "a"}] * 300, at=list(range(300)))
    assert out == [{"k": "a", "n": 5}, PUNCTUATION] * 59
