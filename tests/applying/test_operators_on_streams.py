"""Operators over rows that come bit by bit, against the same operators over a table of all rows.

Catches operators that forget what they kept, clocks that stand still between micro-batches, and state of partitions
that nobody needs any more.
"""

from __future__ import annotations

import itertools
import random
import threading
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.applying.operator_shard import OperatedShard
from panes.applying.user_operators import input_of, operator_of
from panes.engine.keys import INSTANT
from panes.errors import SchemaError, StateError
from panes.operators import (
    EVERY_TUPLE,
    FREE,
    Aggregate,
    InputPort,
    Join,
    Operator,
    OperatorModel,
    SlidingWindow,
    Sort,
)
from panes.operators.policies import policies_of
from panes.state.held_rows import MEASURE
from tests.applying.test_operators_on_tables import (
    LIMITS,
    MOVING,
    TIME,
    TUMBLING,
    WINDOWS,
    Changes,
    joined_with,
    table_of,
    tables,
)
from tests.state.memory_blob_store import MemoryBlobStore

EVERY = pn.sliding(pn.rows(2))


def totals(window, clock):
    return Aggregate(window, {"n": pn.count(), "total": pn.sum("x")}, clock=clock)


def sorted_by_y(window, clock):
    return Sort(window, order="y", clock=clock)


OPERATORS = {
    Changes: pa.schema({"k": pa.string(), "x": pa.int64(), "held": pa.int64()}),
    totals: pa.schema({"k": pa.string(), "n": pa.int64(), "total": pa.int64()}),
    sorted_by_y: table_of([]).schema,
}


class Stream:
    """A shard that is opened again for every micro-batch."""

    def __init__(self, window, operator, schema, by="k", evict=None, port=None):
        arriving = input_of(window, by, "ts", evict=evict, port=port)
        self.declared = operator_of(arriving, operator, schema)
        self.blob_store, self.found = MemoryBlobStore(), []

    def step(self, rows, watermark):
        table = rows if isinstance(rows, pa.Table) else table_of(rows)
        shard = OperatedShard(self.declared, table.schema, {}, self.blob_store)
        came = table.add_column(0, INSTANT, table.column("ts").cast(pa.int64())).combine_chunks()
        # Marks for all keys come beside the rows.
        mark, marks = self.declared.input.mark, pa.array([], pa.int64())
        if mark is not None and mark.scope == "stream":
            marks = came.filter(came.column(mark.column).fill_null(False)).column(INSTANT).combine_chunks()
        which = pa.array(np.zeros(len(marks), np.int64))
        ((_, found),) = next(
            shard.steps(came.to_batches(), pa.record_batch({INSTANT: marks, MEASURE: which}), watermark)
        )
        self.found += found.to_pylist()
        return shard.metrics


@st.composite
def micro_batches(draw, rows):
    """Rows as they come, each batch with a watermark that no later row has fallen behind."""
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=5)))
    parts = [rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    batches = []
    for i, part in enumerate(parts):
        later = [row["ts"] for rest in parts[i + 1 :] for row in rest]
        last = max((row["ts"] for row in rows), default=0) + 1
        batches.append((part, min([*later, last]) if draw(st.booleans()) or not later else 0))
    return batches


@settings(max_examples=100)
@given(st.data(), st.sampled_from(list(OPERATORS)), st.sampled_from(WINDOWS), st.sampled_from(LIMITS))
def test_operators(data, operator, window, limit):
    if operator is Changes and window in TUMBLING:
        window = MOVING[-1]
    if operator is sorted_by_y and window in MOVING:
        window = TUMBLING[0]
    rows = sorted(data.draw(tables()), key=lambda row: row["ts"] // 4)
    stream = Stream(window, operator, OPERATORS[operator], evict=limit)
    for part, watermark in data.draw(micro_batches(rows)):
        stream.step(part, watermark)
    asked = {"over": window, "by": "k", "at": "ts", "evict": limit}
    whole = pn.apply(table_of(rows), operator=operator, schema=OPERATORS[operator], **asked)
    assert sorted(map(repr, stream.found)) == sorted(map(repr, whole.to_pylist()))


@settings(max_examples=60)
@given(
    st.data(),
    st.sampled_from([w for w in MOVING if getattr(w, "every", None) == pn.rows(1)]),
    st.sampled_from(LIMITS),
)
def test_joins_by_two_windows(data, right, limit):
    """The second window has a clock and partitions of its own; rows with y=1 are for it."""
    rows = sorted(data.draw(tables()), key=lambda row: row["ts"] // 4)
    rows = [row | {"y": min(row["y"], 1)} for row in rows]
    join = joined_with(policies_of(right, ["k"], limit), outer="right")
    schema = pa.schema({"left": pa.int64(), "right": pa.int64()})
    stream = Stream(EVERY, join, schema, port="y")
    for part, watermark in data.draw(micro_batches(rows)):
        stream.step(part, watermark)
    asked = {"over": EVERY, "by": "k", "at": "ts", "operator": join, "schema": schema, "port": "y"}
    whole = pn.apply(table_of(rows), **asked)
    assert sorted(map(repr, stream.found)) == sorted(map(repr, whole.to_pylist()))


def row(at, key="a"):
    return {"ts": at, "k": key, "g": "u", "odometer": at, "x": 1, "y": 0}


@pytest.mark.parametrize("window", [pn.tumbling(pn.rows(1)), pn.tumbling("5 us", origin="row")], ids=str)
def test_partitions_that_are_done_are_forgotten(window):
    """Each key comes once, and leaves nothing behind."""
    stream = Stream(window, totals, OPERATORS[totals])
    for i in range(0, 8_000, 400):
        counted = stream.step([row(at, f"k{at}") for at in range(i, i + 400)], i + 400)
        assert counted.keys < 3_000
    assert len(stream.found) > 7_990


def test_another_operator_does_not_go_on():
    schema, window = pa.schema({"k": pa.string(), "total": pa.int64()}), pn.tumbling(pn.rows(4))

    def summing(name):
        return lambda window, clock: Aggregate(window, {"total": pn.sum(name)}, clock=clock)

    one, other = (Stream(window, summing(name), schema) for name in ("x", "odometer"))
    assert one.declared.declaration.startswith("Aggregate: total=sum(x), groups=[], ")
    assert one.declared.declaration.endswith("pn.tumbling(pn.rows(4)) by ['k']")
    one.step([row(1)], 2)
    other.blob_store = one.blob_store
    with pytest.raises(StateError, match=r"\[total=sum\(x\).*\[total=sum\(odometer\)"):
        other.step([row(2)], 3)
    custom = Stream(pn.sliding(pn.rows(2)), Changes, OPERATORS[Changes])
    assert custom.declared.declaration == "Changes: pn.sliding(pn.rows(2)) by ['k']"


def by_level(window, clock):
    return Aggregate(window, {"n": pn.count()}, groups="level", clock=clock)


def sorted_by_level(window, clock):
    return Sort(window, order="level", clock=clock)


@pytest.mark.parametrize(
    ("operator", "by"), [(totals, "level"), (totals, ["k", "level"]), (sorted_by_level, "level"), (by_level, ())]
)
def test_keys_that_are_no_numbers(operator, by):
    """NaN are one key, in a micro-batch and from one to the next."""
    nan = float("nan")
    rows = [{"ts": at, "k": "a", "level": level, "x": at} for at, level in enumerate([nan, 1.0, nan, nan, 1.0, nan])]
    columns = pa.schema({"ts": TIME, "k": pa.string(), "level": pa.float64(), "x": pa.int64()})
    submitted = {
        totals: pa.schema({"k": pa.string(), "level": pa.float64(), "n": pa.int64(), "total": pa.int64()}),
        sorted_by_level: columns,
        by_level: pa.schema({"level": pa.float64(), "n": pa.int64()}),
    }[operator]
    table, window = pa.Table.from_pylist(rows, schema=columns), pn.tumbling(pn.rows(2))
    stream = Stream(window, operator, submitted, by)
    for at in range(len(rows)):
        stream.step(table.slice(at, 1), at + 1)
    whole = pn.apply(table, over=window, by=by, at="ts", operator=operator, schema=submitted).to_pylist()
    assert sorted(map(repr, stream.found)) == sorted(map(repr, whole))
    assert "nan" in repr(whole)


class Numbered(Operator):
    """Keeps a number beside its window."""

    model = OperatorModel("Numbered", (InputPort((EVERY_TUPLE,)),), (FREE,))

    def __init__(self, window, clock=None):
        super().__init__(window, clock=clock)
        self.ports = [self.window(window)]
        self.number = 0

    def process(self, item, port=0):
        self.number += 1
        self.submit({"number": self.number} if self.number == 1 else {"number": self.number, "more": True})


class Kept(Numbered):
    """Says how."""

    def save(self):
        return [super().save(), self.number]

    def load(self, state):
        super().load(state[0])
        self.number = state[1]


def test_what_is_kept_beside_windows():
    schema = pa.schema({"number": pa.int64(), "more": pa.bool_()})
    with pytest.raises(StateError, match=r"Numbered keeps number=1 beside its windows.* save and load"):
        Stream(pn.sliding(pn.rows(1)), Numbered, schema).step([row(1)], 2)
    stream = Stream(pn.sliding(pn.rows(1)), Kept, schema)
    for at in (1, 2, 3):
        stream.step([row(at)], at + 1)
    assert [each["number"] for each in stream.found] == [1, 2, 3]


class Beside(Operator):
    """Keeps something beside its window, that ``change`` changes."""

    model = OperatorModel("Beside", (InputPort((EVERY_TUPLE,)),), (FREE,))

    def __init__(self, window, clock=None):
        super().__init__(window, clock=clock)
        self.seen = self.window(window)
        self.windows_by_name = {"seen": self.seen}
        self.names_by_window = {self.seen: "seen"}
        self.all_windows = {self.seen}
        self.me = [self, clock, threading.Lock(), len, partial(len), self.process]
        self.nothing = float("nan")
        self.begin()

    def begin(self):
        """Whatever a subclass keeps."""

    def change(self):
        """For every tuple."""

    def process(self, item, port=0):
        self.seen.insert(item)
        self.change()


class Box:
    """An object of a user's own."""


class Slotted(list):
    """One that keeps its attributes elsewhere."""

    __slots__ = ("best", "other")


class Later(Beside):
    def change(self):
        self.kept = 1


class Arrays(Beside):
    def begin(self):
        self.kept = np.zeros(2)

    def change(self):
        self.kept[0] += 1


class Objects(Beside):
    def begin(self):
        self.kept = Box()

    def change(self):
        self.kept.best = 5


class Deep(Beside):
    def begin(self):
        self.kept = {"all": [Slotted([1])]}
        self.kept["all"][0].best = self.kept

    def change(self):
        self.kept["all"][0].other = 1


class Sets(Beside):
    def begin(self):
        self.kept = {1, 2}

    def change(self):
        self.kept ^= {2, 3}


class Windows(Beside):
    """One that nobody saves."""

    def begin(self):
        self.kept = SlidingWindow(pn.sliding(pn.rows(2)))

    def change(self):
        self.kept.insert(1)


class Random(Beside):
    """What cannot be noticed: see the documentation."""

    total = 0

    def begin(self):
        self.source, self.number = random.Random(5), itertools.count()
        self.table = {"a": np.arange(3), "b": [Box(), pa.array([1]), np.array([Box(), None])]}

    def change(self):
        assert self.source.random() + next(self.number) + self.follows >= 5
        type(self).total += 1

    @cached_property
    def follows(self):
        return 5


def counting(base):
    class Counting(base):
        """A subclass that forgets what its base could not know of."""

        kept = 0

        def process(self, item, port=0):
            self.kept += 1
            super().process(item, port)

    return Counting


@pytest.mark.parametrize("operator", [Later, Arrays, Objects, Deep, Sets, Windows], ids=lambda each: each.__name__)
def test_what_would_be_forgotten(operator):
    with pytest.raises(StateError, match=rf"{operator.__name__} keeps kept=.* beside its windows.* save and load"):
        Stream(pn.sliding(pn.rows(1)), operator, pa.schema({})).step([row(1)], 2)


@pytest.mark.parametrize(
    ("base", "options", "window"),
    [
        (Aggregate, {"select": {"n": pn.count()}}, pn.sliding(pn.rows(3))),
        (Aggregate, {"select": {"n": pn.count()}}, pn.hopping(pn.rows(4), every=pn.rows(2))),
        (Join, {"right": pn.sliding(pn.rows(2)), "outer": "full", "select": lambda *_: {}}, EVERY),
        (Sort, {"order": "x"}, EVERY),
        (Sort, {"order": "x"}, pn.tumbling(pn.rows(2))),
        (Beside, {}, EVERY),
        (Random, {}, EVERY),
    ],
)
def test_what_subclasses_would_forget(base, options, window):
    """They may have a method save from their base. What the base keeps itself is no mistake."""
    schema = pa.schema(
        {**dict(zip(table_of([]).schema.names, table_of([]).schema.types, strict=True)), "n": pa.int64()}
    )
    for made in (base, type("Same", (base,), {})):
        stream = Stream(window, partial(made, **options), schema)
        for at in (1, 2, 3):
            stream.step([row(at), row(at, "b")], at + 1)
    with pytest.raises(StateError, match="Counting keeps kept=1 beside its windows"):
        Stream(window, partial(counting(base), **options), schema).step([row(1)], 2)


def test_columns_that_come_later():
    """What is submitted is seen from all tuples, or is what was declared."""
    table, window = table_of([row(1), row(2)]), pn.sliding(pn.rows(1))
    found = pn.apply(table, over=window, at="ts", operator=Numbered)
    assert found.to_pylist() == [{"number": 1, "more": None}, {"number": 2, "more": True}]
    with pytest.raises(SchemaError, match=r"submitted a column 'more', which schema= does not have \(known"):
        pn.apply(table, over=window, at="ts", operator=Numbered, schema=pa.schema({"number": pa.int64()}))


@pytest.mark.parametrize(
    ("window", "by"), [(pn.tumbling(pn.rows(2)), "K"), (pn.tumbling(pn.delta("Odometer", 2)), ())], ids=str
)
def test_names_are_those_of_the_data(window, by):
    with pytest.raises(SchemaError, match=r"is spelled '(k|odometer)' in the data"):
        pn.apply(table_of([row(1)]), over=window, by=by, at="ts", operator=totals)
