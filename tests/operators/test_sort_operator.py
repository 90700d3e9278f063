"""Sort in every configuration, in batches and progressively.

The oracle is the operator's logic in plain Python over the contents that the reference window names.
"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.operators import PUNCTUATION, Aggregate, EventClock, Sort
from panes.operators.policies import SlidingPolicies, Time, TumblingPolicies
from panes.queries.measures import Rows
from tests.operators.configurations import SORT, name, window_of
from tests.operators.drawing import partitions, policies, tumbling
from tests.operators.playing import STREAM, answers, contents, events


def sorted_batches(declared, happened):
    for event, _, held in contents(declared, happened):
        batches = [held] if event == "before_flush" else [rows for _, rows in held] if "partition" in event else []
        for rows in batches:
            yield from sorted(rows, key=_by_value)
            yield PUNCTUATION


def _by_value(row):
    return (row["v"] is not None, row["v"] or 0)


def sorted_progressively(declared, happened):
    """As many tuples as the window holds are kept back; each that leaves it lets the first one out.

    What leaves a subwindow because of one tuple, or at one tick, ends with a punctuation.
    """
    kept, leaving = {}, None
    for event, partition, held in contents(declared, happened):
        if event == "after_eviction":
            continue
        by_time = isinstance(declared.evict, Time)
        over = (event, partition) != ("before_eviction", leaving) if by_time else event == "trigger"
        if leaving is not None and over:
            leaving = None
            yield PUNCTUATION
        if event == "after_insertion":
            kept.setdefault(partition, []).append(held)
        elif event == "before_eviction":
            leaving = partition
            first = min(kept[partition], key=_by_value)
            kept[partition].remove(first)
            yield first
        elif event == "partition_eviction":
            for gone, _ in held:
                yield from sorted(kept.pop(gone, []), key=_by_value)
                yield PUNCTUATION


@settings(max_examples=80)
@given(
    st.one_of(tumbling(("k",)), st.builds(SlidingPolicies, policies(), st.just(Rows(1)), partitions(("k",)))), events()
)
def test_sort(declared, happened):
    clock = EventClock(0)
    found = answers(Sort(declared, order="v", clock=clock), clock, happened)
    oracle = sorted_batches if isinstance(declared, TumblingPolicies) else sorted_progressively
    assert found == list(oracle(declared, happened))


def test_sort_has_28_configurations_by_the_text():
    """Four tumbling and three sliding windows, each with four ways to evict partitions. The paper counts 44."""
    assert len(set(SORT)) == len(SORT) == (4 + 3) * 4


@pytest.mark.parametrize("configuration", SORT, ids=name)
def test_every_configuration_of_sort(configuration):
    declared = window_of(configuration, every=1)
    clock = EventClock(0)
    found = answers(Sort(declared, order="v", clock=clock), clock, STREAM)
    oracle = sorted_batches if isinstance(declared, TumblingPolicies) else sorted_progressively
    assert found == list(oracle(declared, STREAM))
    assert any(row is not PUNCTUATION for row in found)


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 6))
def test_progressive_sort_orders_what_is_unordered_within_a_bound(steps, bound):
    late = sorted(range(len(steps)), key=lambda i: i + min(steps[i], bound - 1))
    sort = Sort(pn.sliding(pn.rows(bound)), order="ts")
    found = [row["ts"] for row in sort.run([{"ts": ts} for ts in late]) if row is not PUNCTUATION]
    assert found == list(range(max(len(steps) - bound, 0)))


def test_a_window_downstream_does_not_wait_for_another_tuple():
    clock, out = EventClock(0), []
    sort = Sort(pn.hopping("10 us", every=pn.rows(1), bounds="[]"), by="k", order="x", clock=clock)
    numbers = Aggregate(pn.tumbling(pn.punctuation()), {"xs": lambda rows: [row["x"] for row in rows]})
    sort.connect(numbers.receive)
    numbers.connect(out.append)
    for k, x in (("a", 2), ("a", 1), ("b", 9)):
        sort.process({"k": k, "x": x})
    clock.advance(100)
    assert [row["xs"] for row in out if row is not PUNCTUATION] == [[1, 2], [9]]


def test_sort_descending_with_nulls_and_nan():
    rows = [{"x": x, "y": y} for x, y in itertools.product([None, float("nan"), 1.0, 2.0], [1, 2])]
    down = Sort(pn.tumbling(pn.rows(8)), order=["x", "y"], descending=[True, False]).run(rows)
    assert [str(row["x"]) for row in down[:-1]] == ["nan", "nan", "2.0", "2.0", "1.0", "1.0", "None", "None"]
    assert [row["y"] for row in down[:-1]] == [1, 2] * 4
