"""Join in every configuration.

The oracle is the operator's logic in plain Python over the contents that the reference window names.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.operators import PUNCTUATION, EventClock, Join
from panes.queries.measures import Rows
from panes.testing.operators_reference import ReferenceWindow
from tests.operators.configurations import JOIN, window_of
from tests.operators.playing import STREAM, events, numbers_of, play, two_windows


class JoinOracle:
    """Nested loops over two reference windows."""

    def __init__(self, left, right, outer, condition):
        self.out, self.outer, self.condition, self.matched = [], outer, condition, set()
        self.windows = [
            ReferenceWindow(declared, lambda *event, port=port: self.hear(port, *event))
            for port, declared in enumerate((left, right))
        ]
        self.partitioned = left.partitioned is not None

    def hear(self, port, event, partition, held):
        if event == "trigger":
            self.match(port, held[-1], self.windows[1 - port].contents(partition))
        elif event == "before_eviction":
            self.leave(port, held)
        elif event == "partition_eviction":
            for _, rows in held:
                for row in rows:
                    self.leave(port, row)

    def match(self, port, row, others):
        matches = []
        for other in others:
            pair = (row, other) if port == 0 else (other, row)
            if self.condition(*pair):
                self.matched |= {row["number"], other["number"]}
                matches.append((pair[0]["number"], pair[1]["number"]))
        self.out += [*matches, PUNCTUATION] if matches else []

    def leave(self, port, row):
        if self.outer in ("full", ("left", "right")[port]) and row["number"] not in self.matched:
            self.out += [(row["number"], None) if port == 0 else (None, row["number"]), PUNCTUATION]

    def insert(self, row, port):
        partition = row["k"] if self.partitioned else ()
        window = self.windows[port]
        if window.declared.evict == Rows(0):
            self.match(port, row, self.windows[1 - port].contents(partition))
            self.leave(port, row)
        else:
            window.insert(row, partition)

    def advance(self, by):
        for _ in range(by):
            for window in self.windows:
                if window.declared.evict != Rows(0):
                    window.tick()


def _in_order(stream):
    """Two windows may let tuples go at one instant; which first is of no importance to anybody."""
    return sorted(stream, key=repr)


def check_join(left, right, happened, outer, on):
    clock = EventClock(0)
    options = {"on": "v"} if on else {"match": lambda one, other: (one["v"] or 0) <= (other["v"] or 0)}
    condition = (lambda one, other: one["v"] is not None and one["v"] == other["v"]) if on else options["match"]
    operator = Join(left, right, outer=outer, select=numbers_of, clock=clock, **options)
    oracle = JoinOracle(left, right, outer, condition)
    out, steps = [], []
    operator.connect(out.append)

    def step(both):
        both()
        steps.append(len(out))
        assert _in_order(out) == _in_order(oracle.out)
        if len(steps) < 2 or happened[len(steps) - 1][0] == "insert":
            assert out[steps[-2] if len(steps) > 1 else 0 :] == oracle.out[steps[-2] if len(steps) > 1 else 0 :]

    play(
        happened,
        lambda row, port: step(lambda: (operator.process(row, port), oracle.insert(row, port))),
        lambda by: step(lambda: (clock.advance(clock.now() + by), oracle.advance(by))),
        lambda: step(operator.punctuate),
    )
    return out


@settings(max_examples=150)
@given(two_windows(), events(), st.sampled_from([None, "left", "right", "full"]), st.booleans())
def test_join(both, happened, outer, on):
    check_join(*both, happened, outer, on)


def test_join_has_90_configurations():
    assert len(set(JOIN)) == len(JOIN) == 9 * 10 == 90


@pytest.mark.parametrize(
    "configuration", JOIN, ids=lambda pair: "/".join(f"{c.evict} {c.partition_eviction or '-'}" for c in pair)
)
def test_every_configuration_of_join(configuration):
    left, right = (window_of(each, every=1) for each in configuration)
    out = check_join(left, right, STREAM, "full", on=False)
    assert sum(row is not PUNCTUATION and None not in row for row in out) > 3
    assert sum(row is not PUNCTUATION and None in row for row in out) > 3


def test_unmatched_tuples_on_ports_of_their_own():
    last, none = pn.sliding(pn.rows(1)), pn.sliding(pn.rows(0))
    join = Join(last, none, on="x", outer="full", unmatched_ports=True)
    out = [[], [], []]
    for port in range(3):
        join.connect(out[port].append, port)
    for port, x in ((0, 1), (1, 1), (0, 2), (1, 9), (0, 3)):
        join.process({"x": x}, port)
    assert out == [
        [{"x": 1}, PUNCTUATION],
        [{"x": 2}, PUNCTUATION],
        [{"x": 9}, PUNCTUATION],
    ]


def test_a_one_sided_partitioned_join_looks_up_the_last_row_of_each_key():
    join = Join(pn.sliding(pn.rows(1)), pn.sliding(pn.rows(0)), by="k")
    for k, price in (("a", 1), ("b", 2), ("a", 3)):
        join.process({"k": k, "price": price})
    assert join.run([{"k": "a", "asks": 1}, {"k": "c", "asks": 2}], port=1) == [
        {"k": "a", "price": 3, "asks": 1},
        PUNCTUATION,
    ]


def test_nulls_match_nothing_and_nan_matches_itself():
    last = pn.sliding(pn.rows(5))
    join = Join(last, last, on={"x": "y"})
    for x in (None, float("nan"), 1.0):
        join.process({"x": x})
    out = [row for y in (None, float("nan"), 1.0) for row in join.run([{"y": y}], port=1)]
    assert [str(row) for row in out] == ["{'x': nan, 'y': nan}", "PUNCTUATION", "{'x': 1.0, 'y': 1.0}", "PUNCTUATION"]
