"""``pn.apply`` with operators in this process, against the same operators given one tuple after another.

Catches a wrong order of arrival, keys that are mixed up, and windows that nobody asked for.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import panes as pn
from panes.applying.user_operators import input_of, operator_of
from panes.errors import DeclarationError, OrderError, PlanError, SchemaError
from panes.operators import (
    FREE,
    PUNCTUATION,
    SLIDING_WINDOWS,
    Aggregate,
    Event,
    EventClock,
    InputPort,
    Join,
    Operator,
    OperatorModel,
)
from panes.operators.policies import policies_of
from tests.operators.test_golden import CASES, FUNCTIONS

TIME = pa.timestamp("us")
SIZES = [pn.rows(3), pn.delta("odometer", 5), pn.delta("ts", "4 us")]
PACES = [pn.rows(1), pn.rows(2), pn.delta("odometer", 3), "4 us", "3 us"]
TUMBLING = [*map(pn.tumbling, SIZES), *(pn.tumbling("6 us", origin=origin) for origin in ("epoch", "first", "row"))]
MOVING = [
    *(pn.hopping(size, every=pace) for size in SIZES for pace in PACES),
    pn.hopping("6 us", every=pn.rows(1), bounds="[]"),
    *(pn.hopping("6 us", every=pace) for pace in PACES),
    pn.hopping("6 us", every="4 us", origin="first"),
    pn.hopping(pn.rows(3), every="4 us", origin="first"),
]
WINDOWS = [*TUMBLING, *MOVING]
LIMITS = [None, pn.evict(keys=2), pn.evict(rows=5), pn.evict(age="5 us")]


@st.composite
def tables(draw):
    """Rows in any order, with ties in time, nulls, and an odometer that never goes back."""
    rows, now, odometer = [], 0, 0
    steps = st.tuples(
        st.sampled_from([0, 0, 1, 1, 2, 7]),
        st.integers(0, 3),
        st.sampled_from(["a", "b", None]),
        st.sampled_from(["u", "v", None]),
        st.one_of(st.none(), st.integers(-3, 3)),
        st.integers(0, 2),
    )
    for waited, driven, k, g, x, y in draw(st.lists(steps, min_size=draw(st.sampled_from([0, 12])), max_size=30)):
        now, odometer = now + waited, odometer + driven
        rows.append({"ts": now, "k": k, "g": g, "odometer": odometer, "x": x, "y": y})
    return draw(st.permutations(rows))


def table_of(rows):
    names = ("ts", "k", "g", "odometer", "x", "y")
    types = (TIME, pa.string(), pa.string(), pa.int64(), pa.int64(), pa.int64())
    return pa.table({name: pa.array([r[name] for r in rows], type_) for name, type_ in zip(names, types, strict=True)})


def _nulls_first(value):
    return (value is not None, value if value is not None else 0)


def in_order(rows, window):
    """By time; those of one instant by the columns that never decrease, then by all columns in the order of names."""
    deltas = [each.column for each in getattr(window, "deltas", ())]
    names = ["ts", *deltas, *(name for name in ("g", "odometer", "x", "y") if name not in deltas)]
    return sorted(rows, key=lambda row: tuple(_nulls_first(row[name]) for name in names))


class Changes(Operator):
    """Lets out every tuple that differs from the one before it in the window."""

    model = OperatorModel("Changes", (InputPort((SLIDING_WINDOWS,)),), (FREE,))

    def __init__(self, window, clock=None):
        super().__init__(window, clock=clock)
        self.last = self.window(window, Event.BEFORE_INSERTION)

    def process(self, item, port=0):
        self.last.insert(item)

    def before_insertion(self, item, partition, window):
        before = window.tuples(partition)
        if not before or before[-1]["x"] != item["x"]:
            self.submit({"k": item["k"], "x": item["x"], "held": len(before)})


@given(tables(), st.sampled_from(MOVING), st.sampled_from(LIMITS))
def test_an_operator(rows, window, evict):
    """Every partition has an operator of its own; one that keeps partitions apart does not notice."""
    found = pn.apply(table_of(rows), operator=Changes, over=window, by="k", at="ts", evict=evict)
    clock, out = EventClock(), []
    operator = Changes(policies_of(window, ["k"], evict), clock=clock)
    operator.connect(out.append)
    for row in sorted(in_order(rows, window), key=lambda row: (row["ts"], _nulls_first(row["k"]))):
        clock.advance(row["ts"])
        operator.process(row)
    assert sorted(found.to_pylist(), key=str) == sorted(out, key=str)
    if evict is None:
        assert [row["k"] for row in found.to_pylist()] == sorted((row["k"] for row in out), key=_nulls_first)


SIDES = pa.schema({"ts": TIME, "k": pa.string(), "other": pa.string(), "side": pa.int32(), "x": pa.int64()})


def sides(rows):
    """Rows of two streams: when, key, side."""
    made = [{"ts": at, "k": k, "other": k, "side": side, "x": at} for at, k, side in rows]
    return pa.Table.from_pylist(made, schema=SIDES)


def joined_with(right, **options):
    def join(window, clock):
        return Join(window, right, select=pair, clock=clock, **options)

    def pair(left, right):
        return {"left": left and left["x"], "right": right and right["x"]}

    return join


FIVE = pn.sliding(pn.rows(5))


@pytest.mark.parametrize(
    ("right", "wanted"),
    [
        (policies_of(FIVE, ["k"], pn.evict(keys=1)), []),
        (policies_of(FIVE, ["k"], pn.evict(keys=2)), [{"left": 3, "right": 1}]),
        (policies_of(FIVE, ["other"]), [{"left": 3, "right": 1}]),
    ],
    ids=["one key", "two keys", "other keys"],
)
def test_a_second_window_evicts_its_keys(right, wanted):
    """As in the library: it has one operator for all keys."""
    table = sides([(1, "a", 1), (2, "b", 1), (3, "a", 0)])
    join = joined_with(right)
    found = pn.apply(table, operator=join, over=FIVE, by="k", at="ts", port="side").to_pylist()
    operator, out = join(policies_of(FIVE, ["k"]), EventClock(0)), []
    operator.connect(out.append)
    for row in table.to_pylist():
        operator.process(row, row["side"])
    assert found == [item for item in out if item is not PUNCTUATION] == wanted


def test_a_second_window_has_other_keys():
    """Rows of two keys may meet in it."""
    table = sides([(1, "a", 1), (2, "b", 0)])
    table = table.set_column(2, "other", pa.array(["b", "?"]))
    join = joined_with(policies_of(FIVE, ["other"]))
    found = pn.apply(table, operator=join, over=FIVE, by="k", at="ts", port="side")
    assert found.to_pylist() == [{"left": 2, "right": 1}]


class Remembers(Changes):
    """Has a second window, which alone has keys."""

    def __init__(self, window, clock=None):
        super().__init__(window, clock=clock)
        self.known = self.window(policies_of(pn.sliding(pn.rows(1)), ["k"], pn.evict(keys=1)))


@pytest.mark.parametrize(("by", "together"), [((), False), ("k", True)])
def test_a_second_window_alone_has_keys(by, together):
    """Rows that have no keys are in one operator anyway."""
    stream = operator_of(input_of(pn.sliding(pn.rows(2)), by, "ts"), Remembers).input
    assert (stream.together, stream.alone) == (together, True)


def test_a_second_window_goes_by_an_attribute():
    """Rows of one instant arrive in its order, whatever the columns before it say."""
    table = sides([(1, "b", 1), (1, "a", 1), (2, "c", 0)]).set_column(4, "x", pa.array([1, 2, 3]))
    join = joined_with(pn.sliding(pn.delta("x", 5)), match=lambda left, right: True)
    found = pn.apply(table, operator=join, over=FIVE, at="ts", port="side")
    assert found.to_pylist() == [{"left": 3, "right": 1}, {"left": 3, "right": 2}]


NINE = pn.hopping("9 us", every=pn.rows(1), bounds="[]")


def test_a_second_window_goes_by_time():
    join = joined_with(NINE, outer="right")
    stream = input_of(FIVE, "k", "ts", port="side")
    assert not stream.timed
    assert operator_of(stream, join).input.timed
    table = sides([(0, "a", 1), (100, "b", 1)])
    found = pn.apply(table, operator=join, over=FIVE, by="k", at="ts", port="side")
    assert found.to_pylist() == [{"left": None, "right": 0}]


@pytest.mark.skipif(not CASES, reason="../shared/golden is not there")
@pytest.mark.parametrize("name", CASES)
def test_golden(name):
    """Count windows of other systems, over tables; answers of one key in their order."""
    case = CASES[name]
    size, every = pn.rows(case["window"]["n"]), pn.rows(case["window"]["every"])
    rows = [dict(zip(case["columns"], row, strict=True)) for row in case["input"]]
    select = {f"agg{number}": FUNCTIONS[kind](column) for number, (kind, column) in enumerate(case["aggs"])}
    table, over = pa.Table.from_pylist(rows), pn.hopping(size, every=every)
    if all(isinstance(each, pn.Aggregate) for each in select.values()):
        found = pn.plan(pn.query(by=case["key"], select=select, over=over)).run(table)
    else:
        found = pn.apply(
            table, operator=lambda window, clock: Aggregate(window, select, clock=clock), over=over, by=case["key"]
        )
    answers = [[row[name] for name in (*case["key"], *select)] for row in found.to_pylist()]
    keys = len(case["key"])
    assert answers == sorted(case["expected"], key=lambda row: row[:keys])


STOPS = pa.schema({"ts": TIME, "k": pa.string(), "x": pa.int64(), "stop": pa.bool_()})


@given(tables(), st.sampled_from(["stream", "key"]), st.sampled_from(["k", ()]))
def test_marks_of_a_key_end_windows_of_that_key(rows, scope, by):
    """The same windows as those of a query, summed by an operator."""
    table = table_of(rows)
    table = table.append_column("stop", pa.array([None if r["x"] is None else r["x"] == 3 for r in rows], pa.bool_()))
    window, select = pn.tumbling(pn.punctuation("stop", scope=scope)), {"n": pn.count(), "low": pn.min("y")}
    found = pn.apply(table, operator=lambda w, clock: Aggregate(w, select, clock=clock), over=window, by=by, at="ts")
    wanted = pn.plan(pn.query(by=by, at="ts", select=select, over=window)).run(table)
    names = [*([by] if by else []), *select]
    assert [[r[name] for name in names] for r in found.to_pylist()] == [
        [r[name] for name in names] for r in wanted.select(names).to_pylist()
    ]


def test_times_of_one_instant_are_ordered_by_ties():
    table = pa.table({"ts": pa.array([1, 1, 1], TIME), "k": ["a"] * 3, "a": [1, 2, 3], "x": [3, 1, 2]})
    for ties, wanted in (((), [3, 1, 2]), ("x", [1, 2, 3])):
        found = pn.apply(table, operator=Changes, over=pn.sliding(pn.rows(1)), at="ts", ties=ties)
        assert found.column("x").to_pylist() == wanted


TABLE = pa.table({"ts": pa.array([1, 2], TIME), "k": ["a", "b"], "x": [2, 1], "d": [None, 1.0], "s": ["u", "v"]})
AGED = pn.evict(age="1 s")


@pytest.mark.parametrize(
    ("error", "says", "options"),
    [
        (DeclarationError, "5 is not a window", {"over": 5}),
        (DeclarationError, "over= has 2 windows, and this takes one", {"over": [FIVE, NINE]}),
        (DeclarationError, "a function or an operator=, one of them", {"operator": None}),
        (
            DeclarationError,
            "is measured in time, and rows have none. Write at=",
            {"over": pn.tumbling("1 s"), "at": None},
        ),
        (DeclarationError, "is measured in time, and rows have none", {"by": "k", "evict": AGED, "at": None}),
        (DeclarationError, "evict= limits keys, and there are none", {"evict": AGED}),
        (DeclarationError, "evict=5 is not an eviction", {"evict": 5}),
        (
            DeclarationError,
            "'pn.hopping..9us., every=pn.rows.1., bounds=.....' is measured in time, and rows have none",
            {"operator": joined_with(NINE, on="k"), "at": None},
        ),
        (DeclarationError, "is a session, which operators do not support", {"over": pn.session("1 s")}),
        (DeclarationError, "leaves out its latest rows", {"over": pn.sliding(pn.rows(5), ago=pn.rows(1))}),
        (DeclarationError, "leaves out its latest rows", {"over": pn.sliding(pn.rows(5), bounds="[)")}),
        (DeclarationError, "is several windows at once", {"over": pn.cumulate("1 s", upto="2 s")}),
        (DeclarationError, "names a column twice", {"by": ["k", "k"]}),
        (DeclarationError, "at=5 is not the name of a column", {"at": 5}),
        (DeclarationError, "Changes does not support the window pn.tumbling", {"over": pn.tumbling(pn.rows(2))}),
        (DeclarationError, "schema=5 is not a pyarrow Schema", {"schema": 5}),
        (DeclarationError, "operator=5 cannot be called", {"operator": 5}),
        (DeclarationError, "clock=: .*'select'. Write a function", {"operator": Aggregate}),
        (DeclarationError, "which is not an operator", {"operator": lambda window, clock: 5}),
        (SchemaError, "by='kk' is not a column of the data .did you mean 'k'", {"by": "kk"}),
        (SchemaError, r"delta\('odd'\) is not a column", {"over": pn.sliding(pn.delta("odd", 1))}),
        (SchemaError, "at='x' is of type int64, and time must be a timestamp", {"at": "x"}),
        (SchemaError, "port='s' is of type string, and ports are numbers", {"port": "s"}),
        (
            SchemaError,
            "is measured in numbers, and the column is of type timestamp",
            {"over": pn.sliding(pn.delta("ts", 1))},
        ),
        (SchemaError, "needs a column of numbers or timestamps", {"over": pn.sliding(pn.delta("s", 1))}),
        (SchemaError, "1 rows have no value for 'd'", {"over": pn.sliding(pn.delta("d", 1))}),
        (
            SchemaError,
            "must be boolean",
            {
                "over": pn.tumbling(pn.punctuation("x")),
                "operator": lambda window, clock: Aggregate(window, {"n": pn.count()}, clock=clock),
            },
        ),
        (OrderError, "'x' fell from 2 to 1", {"over": pn.sliding(pn.delta("x", 1))}),
        (PlanError, "cannot apply a function to a list", {"data": [1]}),
        (PlanError, "checkpoint= is for streams", {"checkpoint": "/tmp/place"}),
        (
            SchemaError,
            "does not make a table",
            {"schema": pa.schema({"k": pa.string(), "x": pa.binary(), "held": pa.int64()})},
        ),
    ],
)
def test_mistakes(error, says, options):
    given_ = {"data": TABLE, "operator": Changes, "over": pn.sliding(pn.rows(2)), "at": "ts", **options}
    with pytest.raises(error, match=says):
        pn.apply(given_.pop("data"), **given_)


def test_rows_that_do_not_pass_move_the_clock():
    table = pa.table({"ts": pa.array([0, 1, 2, 9], TIME), "x": [1, 1, 1, -1]})
    window = pn.tumbling("2 us", origin="first")
    found = pn.sort(table, order="x", at="ts", over=window, where="x > 0")
    query = pn.query(at="ts", select={"n": pn.count()}, over=window, where="x > 0")
    assert pn.plan(query).run(table)["n"].to_pylist() == [2, 1]
    assert found["ts"].cast(pa.int64()).to_pylist() == [0, 1, 2]
