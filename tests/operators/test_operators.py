"""What all operators share: state that outlives them, what they refuse, and the functions of their windows."""

from __future__ import annotations

import datetime as dt
import pickle
import statistics

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.aggregates.moments import RunningVariance
from panes.errors import AnswerOverflowError, DeclarationError, StateError
from panes.operators import PUNCTUATION, Aggregate, EventClock, InputPort, Join, Operator, OperatorModel, Sort
from panes.operators.policies import Partitions, SlidingPolicies, Time, operator_policies
from panes.queries.measures import Rows
from tests.operators.drawing import partitions, policies, tumbling, windows
from tests.operators.playing import SELECT, events, numbers_of, play, two_windows


@settings(max_examples=80)
@given(st.sampled_from(["aggregate", "rewritten", "join", "batch", "progressive"]), st.data(), events())
def test_an_operator_continues_from_its_state(kind, data, happened):
    at = data.draw(st.integers(0, len(happened)))

    def operator(clock):
        if kind == "join":
            return Join(*both, on="v", outer="full", select=numbers_of, clock=clock)
        if kind in ("batch", "progressive"):
            return Sort(both[0], order="v", clock=clock)
        return Aggregate(both[0], SELECT, groups="g", clock=clock)

    both = {
        "join": two_windows(),
        "aggregate": st.tuples(windows(("k",))),
        "rewritten": st.sampled_from(
            [
                (SlidingPolicies(policy(6), policy(slide), partitioned),)
                for policy in (Rows, Time)
                for slide in (2, 4)
                for partitioned in (None, Partitions(("k",)))
            ]
        ),
        "batch": st.tuples(tumbling(("k",))),
        "progressive": st.tuples(st.builds(SlidingPolicies, policies(), st.just(Rows(1)), partitions(("k",)))),
    }[kind]
    both = data.draw(both)
    ports = kind == "join"

    def run(pieces):
        out, clock = [], EventClock(0)
        running = operator(clock)
        running.connect(out.append)
        for number, piece in enumerate(pieces):
            if number:
                saved = pickle.loads(pickle.dumps(running.save()))
                clock = EventClock(clock.now())
                running = operator(clock)
                running.load(saved)
                running.connect(out.append)
            for act in piece:
                act(running, clock, ports)
        return out

    acts = []
    play(
        happened,
        lambda row, port: acts.append(lambda o, _, ports: o.process(row, port if ports else 0)),
        lambda by: acts.append(lambda _, clock, __: clock.advance(clock.now() + by)),
        lambda: acts.append(lambda o, _, __: o.punctuate()),
    )
    assert run([acts[:at], acts[at:]]) == run([acts])


@pytest.mark.parametrize("saves", [False, True])
def test_rows_of_one_instant_leave_both_windows_of_a_join_by_age_after_it_was_loaded_too(saves):
    out, window = [], pn.hopping("1 us", every=pn.rows(1), bounds="[]")

    def made(at):
        join = Join(window, window, on="v", outer="full", clock=EventClock(at))
        join.connect(out.append)
        return join

    join = made(0)
    join.process({"v": None, "side": "right"}, 1)
    join.process({"v": None, "side": "left"}, 0)
    if saves:
        state = pickle.loads(pickle.dumps(join.save()))
        join = made(0)
        join.load(state)
    join.clock.advance(5)
    assert [row["side"] for row in out if row is not PUNCTUATION] == ["right", "left"]


# What operators refuse


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: Sort(pn.hopping(pn.rows(3), every=pn.rows(2)), order="x"),
            r"Sort does not support the window pn.hopping\(pn.rows\(3\), every=pn.rows\(2\)\). "
            r"It supports pn.tumbling\(.*; pn.sliding\(",
        ),
        (
            lambda: Join(pn.tumbling(pn.rows(3)), pn.sliding(pn.rows(0)), on="x"),
            r"Join does not support .* on port 0. It supports pn.sliding\(.*the empty pn.sliding\(pn.rows\(0\)\)",
        ),
        (lambda: Aggregate(pn.sliding(pn.rows(0)), {"n": pn.count()}), "Aggregate does not support"),
        (lambda: Aggregate("100 rows", {"n": pn.count()}), "'100 rows' is not a window. Write for example pn.tumbling"),
        (lambda: Aggregate(pn.tumbling(pn.rows(1)), {}), "select= is empty"),
        (lambda: Aggregate(pn.tumbling(pn.rows(1)), {"x": 5}), "neither an aggregate nor a function"),
        (lambda: Aggregate(pn.tumbling(pn.rows(1)), {"x": pn.sum("a + b")}), "Let a Functor compute"),
        (
            lambda: Aggregate(pn.tumbling(pn.rows(1)), {"x": pn.last("a")}),
            r"lambda tuples: tuples\[-1\]",
        ),
        (
            lambda: Aggregate(pn.tumbling(pn.rows(1)), {"x": pn.count()}, groups="x"),
            "Rename it in select=",
        ),
        (
            lambda: Aggregate(pn.tumbling(pn.rows(1)), {"n": pn.count()}, by=()),
            "partitioned by no attribute",
        ),
        (
            lambda: Join(pn.sliding(pn.rows(1)), pn.sliding(pn.rows(1))),
            "Join has no condition",
        ),
        (
            lambda: Join(
                operator_policies(pn.sliding(pn.rows(1)), by="k"), operator_policies(pn.sliding(pn.rows(1))), on="x"
            ),
            "partitioned by 1 and 0 attributes",
        ),
        (
            lambda: Join(pn.sliding(pn.rows(0)), pn.sliding(pn.rows(0)), on="x"),
            "both windows of Join are empty",
        ),
        (lambda: Sort(pn.tumbling(pn.rows(1)), order=[]), "nothing to sort by"),
        (
            lambda: Sort(
                pn.tumbling(pn.rows(1)),
                by="k",
                evict=pn.evict(keys=1, choose="by operator"),
                order="x",
            ),
            "Sort does not select partitions",
        ),
    ],
)
def test_refused(build, message):
    with pytest.raises(DeclarationError, match=message):
        build()


def test_a_clash_of_attributes_is_named():
    join = Join(pn.sliding(pn.rows(1)), pn.sliding(pn.rows(0)), on="k")
    join.process({"k": 1, "v": 1})
    with pytest.raises(pn.PanesError, match="both streams have the attribute 'v'"):
        join.process({"k": 1, "v": 2}, 1)


def test_a_user_function_and_an_aggregate_of_ones_own():
    product = pn.aggregate(
        "x",
        name="product",
        state={"p": np.int64},
        identity=(1,),
        lift=lambda x: (x,),
        combine=lambda a, b: (a[0] * b[0],),
        lower=lambda p: p,
    )
    window = pn.tumbling(pn.rows(5))
    rows = [{"x": x} for x in (2, 3, None, 5, 7)]
    found = Aggregate(window, {"product": product, "firsts": lambda rows: [r["x"] for r in rows[:2]]}).run(rows)
    assert found == [{"product": 210, "firsts": [2, 3]}, PUNCTUATION]


@given(st.lists(st.one_of(st.none(), st.floats(allow_nan=True)), min_size=1, max_size=20))
def test_floats_as_in_a_query(values):
    """NaN is larger than every number, and nulls are passed over: the same answers as a query over columns."""
    select = {
        "least": pn.min("x"),
        "most": pn.max("x"),
        "median": pn.quantile("x", 0.5),
        "different": pn.count_distinct("x"),
        "element": pn.quantile("x", 0.3, method="element"),
    }
    table = pa.table({"ts": [dt.datetime(2026, 1, 1)] * len(values), "x": pa.array(values, pa.float64())})
    query = pn.query("q", at="ts", select=select, over=pn.tumbling("1 h"))
    expected = {alias: pn.plan(query).run(table).to_pylist()[0][alias] for alias in select}
    found, _ = Aggregate(pn.tumbling(pn.rows(len(values))), select).run([{"x": x} for x in values])
    assert {alias: repr(_zero(value)) for alias, value in found.items()} == {
        alias: repr(_zero(value)) for alias, value in expected.items()
    }


def _zero(value):
    """The two zeros are equal, and either may be the smallest."""
    return 0.0 if value == 0 else value


@given(st.lists(st.one_of(st.none(), st.integers(-50, 50)), max_size=20), st.integers(0, 20))
def test_variances_of_parts_are_merged(values, at):
    """A window in two summaries, beside the standard library."""
    present = [value for value in values if value is not None]
    parts = [RunningVariance("x", 1, False), RunningVariance("x", 1, False)]
    for number, value in enumerate(values):
        parts[number >= at].insert({"x": value})
    parts[0].merge(parts[1])
    expected = statistics.variance(present) if len(present) > 1 else None
    assert parts[0].value() == (None if expected is None else pytest.approx(expected, abs=1e-9))


def test_a_sum_that_does_not_fit_is_an_error():
    window = pn.tumbling(pn.rows(2))
    least, most = [{"x": -(2**63)}, {"x": 0}], [{"x": 2**63 - 1}, {"x": 1}]
    assert Aggregate(window, {"total": pn.sum("x")}).run(least)[0] == {"total": -(2**63)}
    with pytest.raises(AnswerOverflowError, match="more than 64 bits"):
        Aggregate(window, {"total": pn.sum("x")}).run(most)


def test_a_window_goes_on_after_its_processing_failed():
    """The tuples are still there when the next one comes."""
    total, out = Aggregate(pn.tumbling(pn.rows(2)), {"total": pn.sum("x")}), []
    total.connect(out.append)
    total.process({"x": 2**63 - 1})
    with pytest.raises(AnswerOverflowError):
        total.process({"x": 1})
    for x in (-1, 5, 6):
        total.process({"x": x})
    assert out == [{"total": 2**63 - 1}, PUNCTUATION, {"total": 11}, PUNCTUATION]


def test_an_operator_without_output_ports_can_be_run():
    class Sink(Operator):
        model = OperatorModel("Sink", (InputPort(),), ())

        def process(self, item, port=0):
            taken.append(item)

    taken = []
    assert Sink().run([1, 2]) == []
    assert taken == [1, 2]


def test_nan_is_one_partition_and_one_group_and_so_is_null():
    """As in Spark; to Python no NaN equals another."""
    rows = [{"k": k, "g": g} for k in (float("nan"), None, float("nan")) for g in (float("nan"), None, float("nan"))]
    window = operator_policies(pn.hopping(pn.rows(9), every=pn.rows(3)), by="k")
    found = Aggregate(window, {"n": pn.count()}, groups="g").run(rows)
    assert [str(row) for row in found if row is not PUNCTUATION] == [
        "{'k': nan, 'g': nan, 'n': 2}",
        "{'k': nan, 'g': None, 'n': 1}",
        "{'k': None, 'g': nan, 'n': 2}",
        "{'k': None, 'g': None, 'n': 1}",
        "{'k': nan, 'g': nan, 'n': 4}",
        "{'k': nan, 'g': None, 'n': 2}",
    ]
    both = operator_policies(pn.tumbling(pn.rows(4)), by=["k", "g"])
    first, second = (Aggregate(both, {"n": pn.count()}, groups="g") for _ in range(2))
    assert first.run(rows[:5]) == []
    second.load(pickle.loads(pickle.dumps(first.save())))
    assert [str(row) for row in second.run(rows[5:])] == [
        "{'k': nan, 'g': nan, 'n': 4}",
        "PUNCTUATION",
    ]


WINDOW = pn.tumbling(pn.rows(4))
SLIDING = pn.sliding(pn.rows(4))


@pytest.mark.parametrize(
    ("one", "other", "says"),
    [
        (
            lambda: Aggregate(WINDOW, {"s": pn.sum("x")}),
            lambda: Aggregate(WINDOW, {"s": pn.sum("y")}),
            r"state of Aggregate was saved by one .* \[s=sum\(x\), .*\], and this one .* \[s=sum\(y\), .*Declare it",
        ),
        (lambda: Aggregate(WINDOW, {"s": pn.var("x")}), lambda: Aggregate(WINDOW, {"s": pn.std("x")}), r"s=std\(x\)"),
        (
            lambda: Aggregate(WINDOW, {"s": pn.arg_max("y", "x")}),
            lambda: Aggregate(WINDOW, {"s": pn.arg_min("y", "x")}),
            r"arg_max\(y, x\).*arg_min",
        ),
        (
            lambda: Aggregate(WINDOW, {"n": pn.count()}, groups="x"),
            lambda: Aggregate(WINDOW, {"n": pn.count()}, groups="y"),
            "groups",
        ),
        (
            lambda: Aggregate(pn.hopping(pn.rows(4), every=pn.rows(2)), {"n": pn.count()}),
            lambda: Aggregate(WINDOW, {"n": pn.count()}),
            r"pn.sliding\(pn.rows\(2\)\)",
        ),
        (lambda: Join(SLIDING, SLIDING, on="x"), lambda: Join(SLIDING, SLIDING, on="y"), "state of Join .*'y': 'y'"),
        (lambda: Join(SLIDING, SLIDING, on="x"), lambda: Join(SLIDING, SLIDING, on="x", outer="left"), "outer=left"),
        (lambda: Sort(SLIDING, order="x"), lambda: Sort(SLIDING, order="y"), "state of Sort"),
        (lambda: Sort(SLIDING, order="x"), lambda: Sort(SLIDING, order="x", descending=True), "descending=True"),
    ],
)
def test_a_state_is_not_for_another_declaration(one, other, says):
    """What is summed, ordered or matched already would be taken for something else."""
    first = one()
    first.run([{"x": 1, "y": 100}, {"x": 2, "y": 50}])
    with pytest.raises(StateError, match=says):
        other().load(first.save())
    again = one()
    again.load(first.save())
    assert again.save() == first.save()
