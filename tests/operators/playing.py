"""Streams played to operators: what happens, and what comes out."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

import panes as pn
from panes.operators.policies import SlidingPolicies
from panes.queries.measures import Rows
from panes.testing.operators_reference import ReferenceWindow
from tests.operators.drawing import often, partitions, policies

SELECT = {
    "n": pn.count(),
    "some": pn.count("v"),
    "total": pn.sum("v"),
    "mean": pn.mean("v"),
    "least": pn.min("v"),
    "most": pn.max("v"),
    "at_most": pn.arg_max("number", "v"),
}
HOLISTIC = {"median": pn.quantile("v", 0.5), "different": pn.count_distinct("v"), "last": lambda rows: rows[-1]["v"]}


def events():
    """Tuples with a group, a value that may be missing, and a port; time that passes; punctuations."""
    values = st.one_of(st.none(), st.integers(-3, 9))
    arrival = st.tuples(
        st.just("insert"), st.sampled_from("xyz"), st.sampled_from("gh"), values, st.integers(0, 2), st.integers(0, 1)
    )
    passing = st.tuples(st.just("advance"), st.integers(1, 9))
    return often(arrival, arrival, arrival, passing, st.just(("punctuate",)))


# Long enough that partitions of all kinds come, go and come back.
STREAM = [
    ("insert", "xyz"[(i * i) % 7 % 3], "gh"[i % 5 % 2], None if i % 6 == 4 else (i * 7) % 10, i % 3, i % 5 % 2)
    if i % 4
    else (("punctuate",) if i % 16 == 8 else ("advance", 1 + i % 5))
    for i in range(120)
]


def play(happened, insert, advance, punctuate):
    first = second = 0
    for number, (what, *how) in enumerate(happened):
        if what == "insert":
            k, g, v, step, port = how
            first, second = first + step, second + (step + number) % 3
            insert({"k": k, "g": g, "v": v, "number": number, 1: first, 2: second}, port)
        elif what == "advance":
            advance(how[0])
        else:
            punctuate()


def answers(operator, clock, happened, ports=False, outputs=1):
    out = [[] for _ in range(outputs)]
    for port in range(outputs):
        operator.connect(out[port].append, port)
    play(
        happened,
        lambda item, port: operator.process(item, port if ports else 0),
        lambda by: clock.advance(clock.now() + by),
        operator.punctuate,
    )
    return out[0] if outputs == 1 else out


def contents(declared, happened):
    """What the reference window fires."""
    log = []
    window = ReferenceWindow(declared, lambda *event: log.append(event))

    def advance(by):
        for _ in range(by):
            window.tick()
            log.append(("ticked", None, None))

    partitioned = declared.partitioned is not None
    play(happened, lambda item, _: window.insert(item, item["k"] if partitioned else ()), advance, window.punctuate)
    return log


def numbers_of(left, right):
    return (left and left["number"], right and right["number"])


@st.composite
def two_windows(draw):
    """Both partitioned or neither; one may be empty."""
    both = draw(st.booleans())

    def one():
        partitioned = draw(partitions(("k",)).filter(lambda p: (p is not None) == both))
        return SlidingPolicies(draw(st.one_of(policies(), policies(), st.just(Rows(0)))), Rows(1), partitioned)

    left, right = one(), one()
    if left.evict == right.evict == Rows(0):
        right = replace(right, evict=Rows(2))
    return left, right
