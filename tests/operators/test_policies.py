"""Declarations: what is refused, and that the data are refused before anything changes."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal

import pytest

import panes as pn
from panes import operators
from panes.errors import DeclarationError, OrderError, PanesError, SchemaError, StateError
from panes.operators import Event, EventClock, SlidingWindow, TumblingWindow
from panes.operators.policies import Partitions, SlidingPolicies, TumblingPolicies, operator_policies
from panes.queries.measures import Rows
from tests.operators.drawing import make

ROW, UNTIL_MARK = pn.tumbling(pn.rows(1)), pn.tumbling(pn.punctuation())


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: pn.rows(-1), "Write a whole number"),
        (lambda: pn.rows(1.5), "Write a whole number"),
        (lambda: pn.rows(True), "Write a whole number"),
        (lambda: pn.tumbling("0 s"), "Write for example '5 min'"),
        (lambda: pn.tumbling(10), "has no unit. Write it with one"),
        (lambda: pn.delta(None, 1), "needs the name of a column"),
        (lambda: pn.delta("x", -1), "at least 0"),
        (lambda: pn.delta("x", float("nan")), "at least 0"),
        (lambda: pn.delta("x", float("inf")), "finite"),
        (lambda: pn.delta(True, 1), "needs the name of a column"),
        (lambda: pn.delta("x", None), "Write a number, or a duration"),
        (lambda: pn.delta("x", True), "Write a number, or a duration"),
        (lambda: pn.tumbling(pn.rows(0)), "never holds a row"),
        (lambda: TumblingWindow("10 s"), r"Write for example pn.tumbling\(pn.rows\(100\)\)"),
        (lambda: pn.hopping(pn.rows(1), every=pn.rows(0)), "or never be answered"),
        (lambda: pn.hopping(pn.rows(1), every=pn.punctuation()), "marks cut a stream into windows"),
        (lambda: pn.sliding(pn.punctuation()), "marks cut a stream into windows"),
        (lambda: pn.sliding(5), "has no unit"),
        (lambda: TumblingWindow(ROW, by=["a", "a"]), "names an attribute twice"),
        (lambda: TumblingWindow(ROW, by=[1.5]), "1.5 is not an attribute"),
        (lambda: TumblingWindow(ROW, by=1.5), "as by='state'"),
        (lambda: TumblingWindow(ROW, evict=pn.evict(keys=1)), "Write by= too"),
        (lambda: TumblingWindow(ROW, by="a", evict=5), "evict=5: write for example"),
        (lambda: TumblingWindow(operator_policies(ROW, "a"), by="a"), "has its keys already"),
        (lambda: pn.evict(keys=1, age="1 s"), "write one of keys=, rows= and age="),
        (lambda: pn.evict(keys=0), "1 or more"),
        (lambda: pn.evict(rows=-1), "1 or more"),
        (lambda: pn.evict(age="0 s"), "'1 hour'"),
        (lambda: pn.evict(keys=1, choose="newest"), "'least recently updated', 'least frequently updated'"),
        (lambda: pn.evict(choose="oldest"), "write one of keys=, rows= and age="),
        (lambda: pn.evict(age="1 s", choose="oldest"), "write one of them"),
        (lambda: TumblingWindow(pn.sliding(pn.rows(3))), "Use a SlidingWindow"),
        (lambda: SlidingWindow(ROW), "Use a TumblingWindow"),
        (lambda: TumblingWindow(pn.session("1 h")), "sessions are windows of queries"),
        (lambda: TumblingWindow(pn.cumulate("1 h", upto="1 day")), "several windows at once"),
        (lambda: TumblingWindow(pn.tumbling(pn.punctuation("end"))), r"pn.tumbling\(pn.punctuation\(\)\)"),
        (lambda: TumblingWindow(pn.tumbling(pn.punctuation(scope="key"))), r"pn.tumbling\(pn.punctuation\(\)\)"),
        (lambda: SlidingWindow(pn.sliding(pn.rows(3), ago=pn.rows(1))), "only queries can. Leave it out"),
        (lambda: SlidingWindow(pn.sliding(pn.rows(3), bounds="[)")), "only queries and lookups see at once"),
        (lambda: SlidingWindow(pn.sliding("1 h", ago="1 h")), "leaves out the row that it is answered with"),
        (lambda: SlidingWindow(pn.sliding("1 h", bounds="[)")), "leaves out the row that it is answered with"),
        (lambda: pn.plan(pn.query(select={"n": pn.count()}, over=UNTIL_MARK)), "names no column"),
        (lambda: pn.plan(pn.query(select={"n": pn.count()}, over=pn.sliding(pn.delta(1, 5)))), "a place in a tuple"),
        (lambda: SlidingWindow(pn.sliding(pn.rows(0))), "only makes sense for a one-sided Join"),
    ],
)
def test_refused(build, message):
    with pytest.raises(DeclarationError, match=message) as raised:
        build()
    assert isinstance(raised.value, PanesError)


def test_declarations_are_plain_values():
    declared = pn.hopping(pn.rows(100), every=pn.delta("ts", "10 s"))
    window = operator_policies(declared, by=["a", "b"], evict=pn.evict(age="1 h"))
    assert pickle.loads(pickle.dumps(declared)) == declared
    assert pickle.loads(pickle.dumps(window)) == window
    assert len({window, pickle.loads(pickle.dumps(window))}) == 1
    assert str(window) == "pn.hopping(pn.rows(100), every=pn.delta('ts', '10s'))"
    assert operator_policies(pn.tumbling(pn.rows(1)), by=["a", "b"]) == TumblingPolicies(
        Rows(1), Partitions(("a", "b"))
    )
    assert operator_policies(pn.sliding(pn.rows(3))) == SlidingPolicies(Rows(3), Rows(1))


@pytest.mark.parametrize(
    "declared", [pn.tumbling(pn.delta("d", 5)), pn.hopping(pn.delta("d", 5), every=pn.delta("d", 2))], ids=str
)
@pytest.mark.parametrize(
    ("item", "error", "message"),
    [
        ({"d": 3}, OrderError, "'d' fell from 4 to 3"),
        ({"d": None}, SchemaError, "no value for 'd'"),
        ({"d": float("nan")}, SchemaError, "no value for 'd'"),
    ],
)
def test_a_bad_tuple_changes_nothing(declared, item, error, message):
    window, recorder, _ = make(declared)
    window.insert({"d": 4})
    before, said = window.save(), list(recorder.log)
    with pytest.raises(error, match=message):
        window.insert(item)
    assert window.save() == before
    assert recorder.log == said
    window.insert({"d": 4})
    assert len(window) == 2


def test_a_bad_first_tuple_opens_no_subwindow():
    window, _, _ = make(pn.sliding(pn.delta("d", 5)), by="k", evict=pn.evict(keys=1))
    window.insert({"k": "a", "d": 1})
    with pytest.raises(SchemaError):
        window.insert({"k": "b", "d": None})
    assert [partition for partition, _ in window] == ["a"]


@pytest.mark.parametrize(
    ("by", "values"),
    [
        (2, [2**63 - 4, 2**63 - 3, 2**63 - 2, 2**63 - 1]),
        (2, [-(2**63), -(2**63) + 1, -(2**63) + 2, -(2**63) + 3]),
        (Decimal("0.2"), [Decimal("0.1"), Decimal("0.2"), Decimal("0.3"), Decimal("0.4")]),
        ("2 s", [dt.datetime(2026, 1, 1, 0, 0, second) for second in range(4)]),
        (dt.timedelta(seconds=2), [1_000_000 * second for second in range(4)]),
    ],
    ids=["int64 max", "int64 min", "decimals", "datetimes", "microseconds"],
)
def test_the_delta_invariant_is_exact(by, values):
    """Values that lie exactly the threshold apart share a window."""
    window, recorder, _ = make(pn.tumbling(pn.delta("d", by)))
    for value in values:
        window.insert({"d": value})
    assert [len(contents) for event, _, contents in recorder.log if event == "before_flush"] == [3]


def test_a_partition_that_nobody_names():
    window = TumblingWindow(pn.tumbling(pn.rows(1)), by=())
    with pytest.raises(DeclarationError, match=r"write insert\(tuple, partition\)"):
        window.insert(1)


def test_handlers_come_before_tuples_and_have_methods():
    window = TumblingWindow(pn.tumbling(pn.rows(9)))
    with pytest.raises(DeclarationError, match="object has no method before_flush"):
        window.register(object(), Event.BEFORE_FLUSH)
    window.insert(1)
    with pytest.raises(DeclarationError, match="before the first tuple"):
        window.register(object())


def test_states_that_cannot_be_loaded():
    window = SlidingWindow(pn.sliding(pn.rows(2)), clock=EventClock(0))
    window.insert(1)
    with pytest.raises(StateError, match="loaded into an empty one"):
        window.load(window.save())
    with pytest.raises(StateError, match="the format 99"):
        SlidingWindow(pn.sliding(pn.rows(2))).load({"format": 99})


def test_public_names_are_documented():
    for name in operators.__all__:
        value = getattr(operators, name)
        assert name.isupper() or value.__doc__, name
        if isinstance(value, type):
            for method, function in vars(value).items():
                assert method.startswith("_") or not callable(function) or function.__doc__, f"{name}.{method}"


def test_a_partition_of_a_window_that_has_none():
    window = TumblingWindow(pn.tumbling(pn.rows(2)))
    window.insert(1, ())
    with pytest.raises(DeclarationError, match="the window is not partitioned"):
        window.insert(1, "a")
