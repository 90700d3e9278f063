"""Operators whose windows end with punctuations: tables against the library, streams against tables.

Catches punctuations that come before the first tuple and are lost, and answers that depend on how a stream was cut.
"""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.operators import (
    FREE,
    PUNCTUATION,
    TUMBLING_WINDOWS,
    Aggregate,
    Event,
    EventClock,
    InputMode,
    InputPort,
    Operator,
    OperatorModel,
    Sort,
)
from panes.operators.policies import policies_of
from tests.applying.test_operators_on_streams import Stream
from tests.applying.test_operators_on_tables import TIME

COLUMNS = pa.schema({"ts": TIME, "k": pa.string(), "stop": pa.bool_(), "x": pa.int64()})


class Counts(Operator):
    """Lets out how many tuples each window has, also where it has none."""

    model = OperatorModel("Counts", (InputPort((TUMBLING_WINDOWS,), InputMode.WINDOW_BOUND),), (FREE,))

    def __init__(self, window, clock=None):
        super().__init__(window, clock=clock)
        self.counted = self.window(window, Event.BEFORE_FLUSH)

    def process(self, item, port=0):
        self.counted.insert(item)

    def punctuate(self, port=0):
        self.counted.punctuate()

    def before_flush(self, partition, window):
        self.submit({"k": partition or None, "n": len(window.tuples(partition))})


def totals(window, clock):
    return Aggregate(window, {"n": pn.count(), "total": pn.sum("x")}, clock=clock)


def sorted_by_x(window, clock):
    return Sort(window, order="x", clock=clock)


OPERATORS = {
    Counts: pa.schema({"k": pa.string(), "n": pa.int64()}),
    totals: pa.schema({"k": pa.string(), "n": pa.int64(), "total": pa.int64()}),
    sorted_by_x: COLUMNS,
}
STOP = pn.tumbling(pn.punctuation("stop"))
KEYS = [((), None), ("k", None), ("k", pn.evict(keys=1))]


@st.composite
def happenings(draw):
    """Tuples and punctuations, in the order of time."""
    one = st.tuples(st.integers(0, 2), st.sampled_from("ab"), st.booleans())
    now, rows = 0, []
    for waited, k, stop in draw(st.lists(one, max_size=6)):
        now += waited
        rows.append({"ts": now, "k": k, "stop": stop, "x": len(rows) * 3 % 5})
    # Those of one instant come in the order of keys and values, punctuations last.
    return sorted(rows, key=lambda row: (row["ts"], row["stop"], row["k"], row["x"]))


def through_library(rows, by, evict, operator, schema):
    clock, out = EventClock(), []
    running = operator(policies_of(STOP, [by] if by else None, evict), clock=clock)
    running.connect(out.append)
    table = pa.Table.from_pylist(rows, schema=COLUMNS)
    for row, at in zip(table.to_pylist(), [row["ts"] for row in rows], strict=True):
        clock.advance(at)
        running.receive(PUNCTUATION if row["stop"] else row)
    return pa.Table.from_pylist([item for item in out if item is not PUNCTUATION], schema=schema)


def over_table(rows, by, evict, operator, schema):
    table = pa.Table.from_pylist(rows, schema=COLUMNS)
    return pn.apply(table, operator=operator, over=STOP, by=by, at="ts", evict=evict, schema=schema)


def cut(rows, by, evict, operator, schema, cuts):
    """The same as a stream, cut before some of the rows."""
    stream = Stream(STOP, operator, schema, by, evict)
    edges = [0, *cuts, len(rows)]
    for lo, hi in pairwise(edges):
        part = pa.Table.from_pylist(rows[lo:hi], schema=COLUMNS)
        watermark = rows[hi]["ts"] if hi < len(rows) else rows[-1]["ts"] + 1
        stream.step(part, watermark)
    return stream.found


def shown(rows):
    return sorted(map(repr, rows))


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.__name__)
@settings(max_examples=25)
@given(rows=happenings(), keys=st.sampled_from(KEYS))
def test_tables_and_streams(operator, rows, keys):
    asked = (*keys, operator, OPERATORS[operator])
    wanted = shown(through_library(rows, *asked).to_pylist())
    assert shown(over_table(rows, *asked).to_pylist()) == wanted
    for chosen in range(2 ** max(len(rows) - 1, 0) if rows else 0):
        cuts = [at for at in range(1, len(rows)) if chosen >> at - 1 & 1]
        assert shown(cut(rows, *asked, cuts)) == wanted


class Told(Counts):
    """Lets out every punctuation that it is given."""

    def punctuate(self, port=0):
        self.submit({"k": None, "n": -1})


@pytest.mark.parametrize(("by", "wanted"), [((), 3), ("k", 2)])
def test_who_is_told(by, wanted):
    """The operator of a partition is there from its first tuple on, the one of all tuples from the beginning."""
    rows = [{"ts": at, "k": "a", "stop": at != 2, "x": 0} for at in (1, 2, 3, 4)]
    asked = by, None, Told, OPERATORS[Counts]
    for found in (
        over_table(rows, *asked).to_pylist(),
        *(cut(rows, *asked, cuts) for cuts in ([], [1], [2], [1, 2, 3])),
    ):
        assert [row["n"] for row in found] == [-1] * wanted


@settings(max_examples=15)
@given(rows=happenings())
def test_marks_of_a_key(rows):
    """Of one key it is the same whether marks are for all keys; of several, each has its own."""
    window, schema = pn.tumbling(pn.punctuation("stop", scope="key")), OPERATORS[totals]
    table = pa.Table.from_pylist(rows, schema=COLUMNS)
    asked = {"operator": totals, "over": window, "by": "k", "at": "ts", "schema": schema}
    wanted = [
        row for k in "ab" for row in over_table([r for r in rows if r["k"] == k], "k", None, totals, schema).to_pylist()
    ]
    assert shown(pn.apply(table, **asked).to_pylist()) == shown(wanted)
    for chosen in range(2 ** max(len(rows) - 1, 0) if rows else 0):
        stream = Stream(window, totals, schema)
        cuts = [at for at in range(1, len(rows)) if chosen >> at - 1 & 1]
        for lo, hi in pairwise([0, *cuts, len(rows)]):
            stream.step(table.slice(lo, hi - lo), rows[hi]["ts"] if hi < len(rows) else rows[-1]["ts"] + 1)
        assert shown(stream.found) == shown(wanted)


def test_nothing_but_punctuations():
    rows = [{"ts": 1, "k": None, "stop": True, "x": None}]
    found = over_table(rows, (), None, Counts, OPERATORS[Counts])
    assert found.to_pylist() == [{"k": None, "n": 0}]
