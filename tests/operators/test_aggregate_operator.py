"""Aggregate in every configuration, and its rewriting (section 4.1.8).

The oracle is the operator's logic in plain Python over the contents that the reference window names.
"""

from __future__ import annotations

import math
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.errors import StateError
from panes.operators import PUNCTUATION, Aggregate, EventClock
from panes.operators.policies import Partitions, SlidingPolicies, Time, operator_policies
from panes.queries.measures import Rows
from tests.operators.configurations import AGGREGATE, name, window_of
from tests.operators.drawing import windows
from tests.operators.playing import HOLISTIC, SELECT, STREAM, answers, contents, events


def aggregated(declared, happened, group_by, evicted, functions):
    full = set()
    for event, partition, held in contents(declared, happened):
        if event == "initial_full":
            full.add(partition)
        elif event == "partition_eviction":
            for gone, rows in held:
                full.discard(gone)
                if evicted:
                    yield from _rows(declared, gone, rows, group_by, functions)
        elif event == "before_flush" or (event == "trigger" and (declared.partial or partition in full)):
            yield from _rows(declared, partition, held, group_by, functions)


def _rows(declared, partition, held, group_by, functions):
    keys = {} if declared.partitioned is None else {"k": partition}
    groups = {}
    for row in held:
        groups.setdefault(row["g"] if group_by else (), []).append(row)
    for group, rows in groups.items():
        yield keys | ({"g": group} if group_by else {}) | {alias: f(rows) for alias, f in functions.items()}
    yield PUNCTUATION


def _values(rows):
    return [row["v"] for row in rows if row["v"] is not None]


def _median(rows):
    values = sorted(_values(rows))
    middle = len(values) // 2
    if not values:
        return None
    return float(values[middle] if len(values) % 2 else sum(values[middle - 1 : middle + 1]) / 2)


EXPECTED = {
    "n": len,
    "some": lambda rows: len(_values(rows)),
    "total": lambda rows: sum(_values(rows)) if _values(rows) else None,
    "mean": lambda rows: sum(_values(rows)) / len(_values(rows)) if _values(rows) else None,
    "least": lambda rows: min(_values(rows), default=None),
    "most": lambda rows: max(_values(rows), default=None),
    "at_most": lambda rows: max(((r["v"], r["number"]) for r in rows if r["v"] is not None), default=(0, None))[1],
}
EXPECTED_HOLISTIC = {
    "median": _median,
    "different": lambda rows: len(set(_values(rows))),
    "last": lambda rows: rows[-1]["v"],
}


@settings(max_examples=150)
@given(windows(("k",)), events(), st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_aggregate(declared, happened, group_by, evicted, rewrite, holistic):
    clock = EventClock(0)
    operator = Aggregate(
        declared,
        SELECT | (HOLISTIC if holistic else {}),
        groups="g" if group_by else (),
        evicted_partitions=evicted,
        rewrite=rewrite,
        clock=clock,
    )
    functions = EXPECTED | (EXPECTED_HOLISTIC if holistic else {})
    expected = list(aggregated(declared, happened, group_by, evicted, functions))
    assert answers(operator, clock, happened) == expected


def test_aggregate_has_52_configurations():
    assert len(set(AGGREGATE)) == len(AGGREGATE) == 13 * 4 == 52


@pytest.mark.parametrize("partitioned", [False, True], ids=["", "partitioned"])
@pytest.mark.parametrize("configuration", AGGREGATE, ids=name)
def test_every_configuration_of_aggregate(configuration, partitioned):
    declared = window_of(configuration, partitioned=partitioned)
    clock = EventClock(0)
    operator = Aggregate(declared, SELECT, groups="g", clock=clock)
    expected = list(aggregated(declared, STREAM, True, False, EXPECTED))
    assert expected.count(PUNCTUATION) > 3
    assert answers(operator, clock, STREAM) == expected


@pytest.mark.parametrize("evicted", [False, True], ids=["", "evicted too"])
@pytest.mark.parametrize("configuration", [each for each in AGGREGATE if each.trigger == "count"], ids=name)
def test_windows_that_are_followed(configuration, evicted):
    """Processed with every tuple: the summary goes up and down with the window, and away with its partition."""
    declared = window_of(configuration, every=1)
    clock = EventClock(0)
    operator = Aggregate(declared, SELECT, evicted_partitions=evicted, clock=clock)
    expected = list(aggregated(declared, STREAM, False, evicted, EXPECTED))
    assert operator._follows
    assert answers(operator, clock, STREAM) == expected
    assert operator._following.keys() == operator.windows[0].subwindows.keys()


def test_what_is_summarized_is_not_stored():
    declared = operator_policies(pn.tumbling(pn.rows(1000)), by="k")
    operator = Aggregate(declared, SELECT)
    for number in range(100):
        operator.process({"k": number % 3, "v": number, "number": number})
    assert [len(tuples) for _, tuples in operator.windows[0]] == [0, 0, 0]
    assert len(operator.windows[0]) == 100


# Rewriting (section 4.1.8)


@settings(max_examples=150)
@given(
    st.integers(1, 12),
    st.integers(1, 12),
    st.sampled_from(["count", "time", "clock"]),
    st.integers(0, 11),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    events(),
)
def test_a_rewritten_window_gives_the_same_answers(size, slide, kind, phase, partitioned, partial, group_by, happened):
    """Beside the window as it was declared, and beside the reference."""
    policy = Rows if kind == "count" else Time
    trigger = Time(slide, "epoch", phase) if kind == "clock" else policy(slide)
    declared = SlidingPolicies(policy(size), trigger, Partitions(("k",)) if partitioned else None, partial)

    def run(rewrite):
        clock = EventClock(0)
        options = {"groups": "g" if group_by else (), "clock": clock}
        operator = Aggregate(declared, SELECT, rewrite=rewrite, **options)
        return operator, answers(operator, clock, happened)

    direct, expected = run(False)
    rewritten, found = run(True)
    assert len(direct.stages) == 1
    pane = math.gcd(size, slide)
    gains = slide // pane <= (1 if kind == "clock" else 8) and (kind != "count" or pane > 1)
    gains = gains and (partial or kind != "clock")
    assert len(rewritten.stages) == (2 if gains else 1)
    assert found == expected == list(aggregated(declared, happened, group_by, False, EXPECTED))


def test_a_rewritten_window_holds_summaries_instead_of_tuples():
    clock = EventClock(0)
    hour = pn.hopping("1 hour", every="1 min", origin="first")
    operator = Aggregate(hour, {"mean": pn.mean("v")}, clock=clock)
    for second in range(2 * 3600):
        clock.advance(second * 1_000_000)
        operator.process({"v": second})
    assert [len(window) for window in operator.windows] == [60, 60]
    assert sum(len(tuples) for window in operator.windows for _, tuples in window) == 60


def test_pieces_without_tuples_are_one_object():
    """Many partitions that are quiet most of the time do not hold a summary for every pane of each."""
    hour = operator_policies(pn.hopping("1 hour", every="1 min", origin="first"), by="k")
    clock = EventClock(0)
    first = Aggregate(hour, {"mean": pn.mean("v")}, clock=clock)
    for k in range(3):
        first.process({"k": k, "v": k})
    clock.advance(3_600_000_000)
    second = Aggregate(hour, {"mean": pn.mean("v")}, clock=EventClock(clock.now()))
    second.load(pickle.loads(pickle.dumps(first.save())))
    for operator in (first, second):
        summaries = [summary for _, tuples in operator.windows[1] for summary in tuples]
        assert len(summaries) == 3 * 60
        assert len({id(summary) for summary in summaries}) == 3 + 1


def test_the_state_of_a_window_that_was_not_rewritten_is_refused():
    window = operator_policies(pn.hopping("10 s", every="5 s", origin="first"), by="k")
    before = Aggregate(window, {"n": pn.count()}, rewrite=False, clock=EventClock(0))
    with pytest.raises(StateError, match="state of Aggregate was saved by one that was declared with"):
        Aggregate(window, {"n": pn.count()}, clock=EventClock(0)).load(before.save())


@pytest.mark.parametrize(
    "window",
    [
        pn.hopping(pn.rows(10), every=pn.rows(3)),
        pn.hopping(pn.rows(10), every="1 s", origin="first"),
        pn.hopping("10 s", every="3001 ms", origin="first"),
        operator_policies(pn.hopping("10 s", every="5 s", origin="first"), by="k", evict=pn.evict(age="1 min")),
        pn.hopping(pn.delta("ts", 10), every=pn.delta("ts", 5)),
        operator_policies(pn.hopping(pn.rows(10), every=pn.rows(5)), by="k", evict=pn.evict(keys=2)),
    ],
    ids=str,
)
def test_windows_that_cannot_be_rewritten(window):
    assert Aggregate(window, {"n": pn.count()}, clock=EventClock(0)).stages == (operator_policies(window),)


def test_functions_that_cannot_be_merged_keep_the_window():
    window = pn.hopping(pn.rows(10), every=pn.rows(5))
    assert Aggregate(window, {"n": pn.count(), "m": pn.quantile("v", 0.5)}).stages == (operator_policies(window),)
