"""``pn.windowed`` in this process against the library's own operators, one tuple after another.

Catches a wrong order of arrival, pairs that belong to other rows, groups mixed up with partitions, and answers of
columns that differ from those of tuples.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
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
from panes.operators.over_tables import operator_of, stream_of
from tests.operators.test_golden import CASES, FUNCTIONS

p = pn.policy
SELECT = {
    "n": pn.count(),
    "total": pn.sum("x"),
    "low": pn.min("x"),
    "mean": pn.mean("x"),
    "middle": pn.quantile("x", 0.5),
    "different": pn.count_distinct("x"),
    "spread": pn.var("x"),
    "picked": pn.arg_max("y", "x"),
}
EPOCH = dt.datetime(1970, 1, 1)
TIME = pa.timestamp("us")
EVICT = [p.count(3), p.delta("odometer", 5), p.delta("ts", "4 us"), p.time("6 us")]
TRIGGER = [p.count(1), p.count(2), p.delta("odometer", 3), p.time("4 us"), p.time("3 us")]
WINDOWS = [*map(p.tumbling, EVICT), *(p.sliding(e, t) for e in EVICT for t in TRIGGER)]
LIMITS = [{}, {"count": 2}, {"tuples": 5}, {"age": "5 us"}]


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


def in_order(rows, window, used):
    """By time; those of one instant by the attributes of deltas, then by the other columns that are used."""
    policies = [each for each in (window.evict, getattr(window, "trigger", None)) if each is not None]
    deltas = [each.attribute for each in policies if each.kind == "delta"]
    names = ["ts", *deltas, *used]
    return sorted(rows, key=lambda row: tuple(_nulls_first(row[name]) for name in names))


def through_library(rows, window, group_by, partial):
    """The windows of each partition, as the Aggregate operator lets them out."""
    clock, out = EventClock(), []
    aggregate = Aggregate(window, SELECT, group_by=group_by, partial_windows=partial, clock=clock)
    aggregate.connect(out.append)
    ordered = in_order(rows, window, (*group_by, "x", "y"))
    if window.partitioned is None:
        by = ()
    else:
        by = window.partitioned.by
        # Of one instant, partitions come one after another.
        ordered = sorted(ordered, key=lambda row: (row["ts"], _nulls_first(row["k"])))
    for row in ordered:
        clock.advance(row["ts"])
        aggregate.process(row)
    if rows:
        clock.advance(max(row["ts"] for row in rows) + 1)
    found, number = defaultdict(list), defaultdict(int)
    held = []
    for item in out:
        if item is not PUNCTUATION:
            held.append(item)
            continue
        if held:
            key = tuple(held[0][name] for name in by)
            found[key] += [(number[key], row) for row in held]
            number[key] += 1
            held = []
    return dict(found)


def of_table(table, by):
    found = defaultdict(list)
    for row in table.to_pylist():
        window = row.pop("window")
        row["spread"] = None if row["spread"] is None else pytest.approx(row["spread"])
        found[tuple(row[name] for name in by)].append((window["number"], row))
    return dict(found)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@settings(max_examples=20)
@given(rows=tables(), partial=st.booleans(), by=st.sampled_from(["k", ()]), group_by=st.sampled_from([(), "g"]))
def test_aggregates(window, rows, partial, by, group_by):
    found = pn.windowed(
        table_of(rows), window=window, by=by, at="ts", select=SELECT, group_by=group_by, partial=partial
    )
    declared = replace(window, partitioned=p.partitions(by) if by else None)
    assert of_table(found, by) == through_library(rows, declared, group_by, partial)


@settings(max_examples=150)
@given(tables(), st.sampled_from(WINDOWS), st.sampled_from(LIMITS), st.booleans())
def test_evicted_partitions(rows, window, limit, partial):
    partitions = p.partitions("k", **limit)
    declared = replace(window, partitioned=partitions)
    found = of_table(pn.windowed(table_of(rows), window=declared, at="ts", select=SELECT, partial=partial), "k")
    wanted = through_library(rows, declared, (), partial)
    if not limit:
        assert found == wanted
    # Partitions that come back are numbered from 0 again.
    assert {key: [row for _, row in some] for key, some in found.items()} == {
        key: [row for _, row in some] for key, some in wanted.items()
    }


def test_partitions_that_come_back_are_numbered_again():
    rows = [{"ts": t, "k": k, "g": None, "odometer": t, "x": t, "y": 0} for t, k in enumerate("aaabaab")]
    window = p.sliding(p.count(2), partitioned=p.partitions("k", count=1))
    found = pn.windowed(table_of(rows), window=window, at="ts", select={"n": pn.count()}).to_pylist()
    assert [(row["k"], row["window"]["number"], row["n"]) for row in found] == [
        *(("a", 0, 1), ("a", 1, 2), ("a", 2, 2), ("a", 0, 1), ("a", 1, 2)),
        *(("b", 0, 1), ("b", 0, 1)),
    ]


@pytest.mark.parametrize(
    ("evict", "numbers"),
    [(p.count(2), [0, 0, 0]), (p.time("2 us"), [0, 0, 0]), (p.delta("odometer", 1), [0, 1]), (None, [0, 1, 2])],
)
def test_tumbling_windows_that_were_flushed_are_forgotten(evict, numbers):
    """Where partitions are evicted, nothing is kept of those that the window does not hold, evicted or not."""
    rows = [{"ts": t, "k": "a", "g": None, "odometer": t, "x": t, "y": 0} for t in range(6)]
    limit = {} if evict is None else {"count": 1000}
    window = p.tumbling(p.count(2) if evict is None else evict, partitioned=p.partitions("k", **limit))
    found = pn.windowed(table_of(rows), window=window, at="ts", select={"n": pn.count()}).to_pylist()
    assert [row["window"]["number"] for row in found] == numbers


def test_columns_derived_from_windows():
    rows = [{"ts": t, "k": "a", "g": None, "odometer": t, "x": t, "y": 0} for t in range(5)]
    select = {"n": pn.count(), "late": "window.processed > window.end", "which": "window.number * 10 + n"}
    found = pn.windowed(table_of(rows), window=p.tumbling(p.delta("ts", "1 us")), at="ts", select=select)
    assert [(row["late"], row["which"]) for row in found.to_pylist()] == [(True, 2), (True, 12)]


@given(tables(), st.sampled_from(WINDOWS), st.sampled_from(["k", ()]))
def test_bounds_are_times_of_tuples(rows, window, by):
    found = pn.windowed(table_of(rows), window=window, by=by, at="ts", select={"a": pn.min("ts"), "b": pn.max("ts")})
    for row in found.to_pylist():
        bounds = row["window"]
        assert (bounds["start"], bounds["end"]) == (row["a"], row["b"])
        assert bounds["processed"] >= bounds["end"]


@given(tables(), st.booleans())
def test_punctuations(rows, partitioned):
    """A row is a punctuation where it says so: it ends windows of all partitions, after the tuples of its instant."""
    table = table_of(rows)
    table = table.append_column("stop", pa.array([None if r["x"] is None else r["x"] == 3 for r in rows], pa.bool_()))
    window = p.tumbling(p.punctuation())
    found = pn.windowed(
        table, window=window, by="k" if partitioned else (), at="ts", select={"n": pn.count()}, punctuations="stop"
    )
    stops = sorted(r["ts"] for r in rows if r["x"] == 3)
    wanted = defaultdict(int)
    for row in rows:
        after = [stop for stop in stops if stop >= row["ts"]]
        if row["x"] != 3 and after:
            wanted[row["k"] if partitioned else None, after[0]] += 1
    counted = {
        (row.get("k"), (row["window"]["processed"] - EPOCH) // dt.timedelta(microseconds=1)): row["n"]
        for row in found.to_pylist()
    }
    assert counted == dict(wanted)


def test_rows_come_as_they_stand_without_a_time():
    table = pa.table({"x": [3, 1, 2, 9, 5], "k": list("aabab")})
    found = pn.windowed(table, window=p.tumbling(p.count(2)), by="k", select={"f": pn.first("x"), "s": pn.sum("x")})
    assert found.to_pylist() == [
        {"k": "a", "window": {"number": 0}, "f": 3, "s": 4},
        {"k": "b", "window": {"number": 0}, "f": 2, "s": 7},
    ]


def test_schema_and_derived_columns():
    table = pa.table(
        {"TS": pa.array([1, 2, 3], TIME), "K": pa.array([1.5, -0.0, 0.0]), "x": pa.array([1, 2, 3], pa.int8())}
    )
    found = pn.windowed(
        table,
        window=p.tumbling(p.count(1)),
        by="k",
        at="ts",
        select={"low": pn.min("x"), "twice": "low * 2", "began": "window.start"},
        where="x > 1",
    )
    assert found.schema == pa.schema(
        [
            ("k", pa.float64()),
            ("window", pa.struct([("start", TIME), ("end", TIME), ("processed", TIME), ("number", pa.int64())])),
            ("low", pa.int8()),
            ("twice", pa.int32()),
            ("began", TIME),
        ]
    )
    assert [(str(r["k"]), r["low"], r["twice"], r["window"]["number"]) for r in found.to_pylist()] == [
        ("0.0", 2, 4, 0),
        ("0.0", 3, 6, 1),
    ]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("by", ["k", ()])
def test_no_rows_and_one_row(window, by):
    empty = table_of([])
    assert pn.windowed(empty, window=window, by=by, at="ts", select=SELECT).num_rows == 0
    one = table_of([{"ts": 5, "k": "a", "g": "u", "odometer": 1, "x": 2, "y": 1}])
    found = pn.windowed(one, window=window, by=by, at="ts", select={"n": pn.count()})
    every = getattr(window, "trigger", None) == p.count(1)
    assert found.column("n").to_pylist() == [1] * every


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


@given(tables(), st.sampled_from([w for w in WINDOWS if w.kind == "sliding"]), st.sampled_from(LIMITS))
def test_an_operator(rows, window, limit):
    """Every partition has an operator of its own; one that keeps partitions apart does not notice."""
    declared = replace(window, partitioned=p.partitions("k", **limit))
    found = pn.windowed(table_of(rows), window=declared, at="ts", operator=Changes)
    clock, out = EventClock(), []
    operator = Changes(declared, clock=clock)
    operator.connect(out.append)
    for row in sorted(
        in_order(rows, window, ("g", "odometer", "x", "y")), key=lambda row: (row["ts"], _nulls_first(row["k"]))
    ):
        clock.advance(row["ts"])
        operator.process(row)
    assert sorted(found.to_pylist(), key=str) == sorted(out, key=str)
    if not limit:
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


@pytest.mark.parametrize(
    ("right", "wanted"),
    [
        (p.sliding(p.count(5), partitioned=p.partitions("k", count=1)), []),
        (p.sliding(p.count(5), partitioned=p.partitions("k", count=2)), [{"left": 3, "right": 1}]),
        (p.sliding(p.count(5), partitioned="other"), [{"left": 3, "right": 1}]),
    ],
)
def test_a_second_window_evicts_its_partitions(right, wanted):
    """As in the library: it has one operator for all partitions."""
    table = sides([(1, "a", 1), (2, "b", 1), (3, "a", 0)])
    join, left = joined_with(right), p.sliding(p.count(5), partitioned="k")
    found = pn.windowed(table, window=left, at="ts", operator=join, port="side").to_pylist()
    operator, out = join(left, EventClock(0)), []
    operator.connect(out.append)
    for row in table.to_pylist():
        operator.process(row, row["side"])
    assert found == [item for item in out if item is not PUNCTUATION] == wanted


def test_a_second_window_is_partitioned_by_something_else():
    """Tuples of two partitions may meet in it."""
    table = sides([(1, "a", 1), (2, "b", 0)])
    table = table.set_column(2, "other", pa.array(["b", "?"]))
    join = joined_with(p.sliding(p.count(5), partitioned="other"))
    found = pn.windowed(table, window=p.sliding(p.count(5)), by="k", at="ts", operator=join, port="side")
    assert found.to_pylist() == [{"left": 2, "right": 1}]


class Remembers(Changes):
    """Has a second window, which alone is partitioned."""

    def __init__(self, window, clock=None):
        super().__init__(window, clock=clock)
        self.known = self.window(p.sliding(p.count(1), partitioned=p.partitions("k", count=1)))


@pytest.mark.parametrize(("by", "together"), [((), False), ("k", True)])
def test_a_second_window_alone_is_partitioned(by, together):
    """Rows that have no partitions are in one operator anyway."""
    stream = operator_of(stream_of(p.sliding(p.count(2)), by, "ts"), Remembers).stream
    assert (stream.together, stream.alone) == (together, True)


def test_a_second_window_goes_by_an_attribute():
    """Rows of one instant arrive in its order, whatever the columns before it say."""
    table = sides([(1, "b", 1), (1, "a", 1), (2, "c", 0)]).set_column(4, "x", pa.array([1, 2, 3]))
    join = joined_with(p.sliding(p.delta("x", 5)), match=lambda left, right: True)
    found = pn.windowed(table, window=p.sliding(p.count(5)), at="ts", operator=join, port="side")
    assert found.to_pylist() == [{"left": 3, "right": 1}, {"left": 3, "right": 2}]


def test_a_second_window_goes_by_time():
    join = joined_with(p.sliding(p.time("9 us"), partitioned="k"), outer="right")
    stream = stream_of(p.sliding(p.count(5)), "k", "ts", port="side")
    assert not stream.timed
    assert operator_of(stream, join).stream.timed
    table = sides([(0, "a", 1), (100, "b", 1)])
    found = pn.windowed(table, window=p.sliding(p.count(5)), by="k", at="ts", operator=join, port="side")
    assert found.to_pylist() == [{"left": None, "right": 0}]


@pytest.mark.skipif(not CASES, reason="../shared/golden is not there")
@pytest.mark.parametrize("name", CASES)
def test_golden(name):
    """Count windows of other systems, over tables; answers of one partition in their order."""
    case = CASES[name]
    window = p.sliding(p.count(case["window"]["n"]), p.count(case["window"]["every"]))
    rows = [dict(zip(case["columns"], row, strict=True)) for row in case["input"]]
    select = {f"agg{number}": FUNCTIONS[kind](column) for number, (kind, column) in enumerate(case["aggs"])}
    how = {"select": select}
    if not all(isinstance(each, pn.Aggregate) for each in select.values()):
        how = {"operator": lambda window, clock: Aggregate(window, select, clock=clock)}
    found = pn.windowed(pa.Table.from_pylist(rows), window=window, by=case["key"], **how).to_pylist()
    answers = [[row[name] for name in (*case["key"], *select)] for row in found]
    keys = len(case["key"])
    assert answers == sorted(case["expected"], key=lambda row: row[:keys])


TABLE = pa.table({"ts": pa.array([1, 2], TIME), "k": ["a", "b"], "x": [2, 1], "d": [None, 1.0], "s": ["u", "v"]})


def test_aggregates_over_columns_that_rows_arrive_by():
    """Keys, times, deltas and groups are sorted with their rows where an aggregate reads them, however spelt."""
    table = pa.table(
        {
            "TS": pa.array([5, 1, 3, 2, 4], pa.timestamp("us")),
            "Key": [2, 1, None, 2, 1],
            "Odometer": [50, 10, 30, 20, 40],
            "Unused": list("abcde"),
        }
    )
    chunked = pa.concat_tables([table.slice(0, 2), table.slice(2)])
    found = pn.windowed(
        chunked,
        window=p.tumbling(p.delta("odometer", 0)),
        by="key",
        at="ts",
        group_by="odometer",
        select={"k": pn.sum("key"), "t": pn.max("ts"), "o": pn.max("ODOMETER + key"), "n": pn.count()},
    )
    rows = [(row["key"], row["odometer"], row["k"], row["t"].microsecond, row["o"]) for row in found.to_pylist()]
    # The last window of each partition is not full.
    assert rows == [(1, 10, 1, 1, 11), (2, 20, 2, 2, 22)]


@pytest.mark.parametrize(
    ("error", "says", "options"),
    [
        (DeclarationError, "window=5 is not a window by policy. Write for example pn.policy", {"window": 5}),
        (DeclarationError, "computed over by select= or by operator=", {"select": None}),
        (DeclarationError, "computed over by select= or by operator=", {"operator": Changes}),
        (
            DeclarationError,
            "goes by time, and rows have none. Write at=",
            {"window": p.tumbling(p.time("1 s")), "at": None},
        ),
        (
            DeclarationError,
            "goes by time, and rows have none",
            {"window": p.tumbling(p.count(1), partitioned=p.partitions("k", age="1 s")), "at": None},
        ),
        (
            DeclarationError,
            "'sliding, time.1s., count.1.' goes by time, and rows have none",
            {
                "window": p.sliding(p.count(5)),
                "operator": joined_with(p.sliding(p.time("1 s")), on="k"),
                "select": None,
                "at": None,
            },
        ),
        (DeclarationError, "Write punctuations= with a boolean", {"window": p.tumbling(p.punctuation())}),
        (DeclarationError, "is for windows that end with them, and 'tumbling, count", {"punctuations": "x"}),
        (DeclarationError, "0 is not the name of a column", {"window": p.tumbling(p.delta(0, 1))}),
        (
            DeclarationError,
            "Write the columns in one place",
            {"window": p.tumbling(p.count(1), partitioned="s"), "by": "k"},
        ),
        (DeclarationError, "names an attribute twice", {"by": ["k", "k"]}),
        (
            DeclarationError,
            "Aggregate does not support the window 'sliding, count.0",
            {"window": p.sliding(p.count(0))},
        ),
        (DeclarationError, "'n' is computed by a function, .* Write operator=", {"select": {"n": len}}),
        (DeclarationError, "goes by the length", {"select": {"n": pn.aged(pn.count(), half_life="1 s", power=2)}}),
        (DeclarationError, "'n' is recurring.x., which goes by", {"select": {"n": pn.recurring("x")}}),
        (DeclarationError, "schema= is for operator=", {"schema": pa.schema({})}),
        (DeclarationError, "are for select=", {"select": None, "operator": Changes, "group_by": "k"}),
        (DeclarationError, "makes no operator", {"select": None, "operator": 5}),
        (DeclarationError, "and that failed: .*'select'. Write a function", {"select": None, "operator": Aggregate}),
        (DeclarationError, "which is no operator", {"select": None, "operator": lambda window, clock: 5}),
        (SchemaError, "by='kk' is not a column of the data .did you mean 'k'", {"by": "kk"}),
        (SchemaError, "'xx' is not a column|xx", {"select": {"n": pn.sum("xx")}}),
        (SchemaError, "delta='odd' is not a column", {"window": p.tumbling(p.delta("odd", 1))}),
        (SchemaError, "at='x' is of type int64, and time has to be a timestamp", {"at": "x"}),
        (
            SchemaError,
            "goes by a number, and the column is of type timestamp",
            {"window": p.tumbling(p.delta("ts", 1))},
        ),
        (SchemaError, "needs a number or a timestamp", {"window": p.tumbling(p.delta("s", 1))}),
        (SchemaError, "1 rows have no value for 'd'", {"window": p.tumbling(p.delta("d", 1))}),
        (SchemaError, "has to say true or false", {"window": p.tumbling(p.punctuation()), "punctuations": "x"}),
        (OrderError, "'x' fell from 2 to 1 in the order of time", {"window": p.tumbling(p.delta("x", 1))}),
        (PlanError, "cannot window a list", {"data": [1]}),
        (
            SchemaError,
            "is no table",
            {
                "select": None,
                "operator": Changes,
                "schema": pa.schema({"k": pa.string(), "x": pa.binary(), "held": pa.int64()}),
                "window": p.sliding(p.count(2)),
            },
        ),
    ],
)
def test_mistakes(error, says, options):
    given_ = {"data": TABLE, "window": p.tumbling(p.count(1)), "at": "ts", "select": {"n": pn.count()}, **options}
    with pytest.raises(error, match=says):
        pn.windowed(given_.pop("data"), **given_)
