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
from tests.local.test_operated_stream import Stream
from tests.local.test_windowed import TIME, p

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
    return Sort(window, by="x", clock=clock)


OPERATORS = {
    Counts: pa.schema({"k": pa.string(), "n": pa.int64()}),
    totals: pa.schema({"k": pa.string(), "n": pa.int64(), "total": pa.int64()}),
    sorted_by_x: COLUMNS,
}
PARTITIONED = [None, p.partitions("k"), p.partitions("k", count=1)]


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


def through_library(rows, window, operator, schema):
    clock, out = EventClock(), []
    running = operator(window, clock=clock)
    running.connect(out.append)
    table = pa.Table.from_pylist(rows, schema=COLUMNS)
    for row, at in zip(table.to_pylist(), [row["ts"] for row in rows], strict=True):
        clock.advance(at)
        running.receive(PUNCTUATION if row["stop"] else row)
    return pa.Table.from_pylist([item for item in out if item is not PUNCTUATION], schema=schema)


def over_table(rows, window, operator, schema):
    table = pa.Table.from_pylist(rows, schema=COLUMNS)
    return pn.windowed(table, window=window, at="ts", operator=operator, schema=schema, punctuations="stop")


def cut(rows, window, operator, schema, cuts):
    """The same as a stream, cut before some of the rows."""
    stream = Stream(window, operator, schema, (), "stop")
    edges = [0, *cuts, len(rows)]
    for lo, hi in pairwise(edges):
        part = pa.Table.from_pylist([row for row in rows[lo:hi] if not row["stop"]], schema=COLUMNS)
        watermark = rows[hi]["ts"] if hi < len(rows) else rows[-1]["ts"] + 1
        stream.step(part, watermark, [row["ts"] for row in rows[lo:hi] if row["stop"]])
    return stream.found


def shown(rows):
    return sorted(map(repr, rows))


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.__name__)
@settings(max_examples=25)
@given(rows=happenings(), partitioned=st.sampled_from(PARTITIONED))
def test_tables_and_streams(operator, rows, partitioned):
    window, schema = p.tumbling(p.punctuation(), partitioned=partitioned), OPERATORS[operator]
    wanted = shown(through_library(rows, window, operator, schema).to_pylist())
    assert shown(over_table(rows, window, operator, schema).to_pylist()) == wanted
    for chosen in range(2 ** max(len(rows) - 1, 0) if rows else 0):
        cuts = [at for at in range(1, len(rows)) if chosen >> at - 1 & 1]
        assert shown(cut(rows, window, operator, schema, cuts)) == wanted


class Told(Counts):
    """Lets out every punctuation that it is given."""

    def punctuate(self, port=0):
        self.submit({"k": None, "n": -1})


@pytest.mark.parametrize(("by", "wanted"), [((), 3), ("k", 2)])
def test_who_is_told(by, wanted):
    """The operator of a partition is there from its first tuple on, the one of all tuples from the beginning."""
    rows = [{"ts": at, "k": "a", "stop": at != 2, "x": 0} for at in (1, 2, 3, 4)]
    window = p.tumbling(p.punctuation(), partitioned=by or None)
    for found in (
        over_table(rows, window, Told, OPERATORS[Counts]).to_pylist(),
        *(cut(rows, window, Told, OPERATORS[Counts], cuts) for cuts in ([], [1], [2], [1, 2, 3])),
    ):
        assert [row["n"] for row in found] == [-1] * wanted


def test_nothing_but_punctuations():
    rows = [{"ts": 1, "k": None, "stop": True, "x": None}]
    found = over_table(rows, p.tumbling(p.punctuation()), Counts, OPERATORS[Counts])
    assert found.to_pylist() == [{"k": None, "n": 0}]
