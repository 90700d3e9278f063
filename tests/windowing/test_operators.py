"""Aggregate, Join and Sort against what the reference interpreter's windows hold, in every configuration.

The oracle of an operator is its logic in plain Python over the contents that the reference window names.
"""

from __future__ import annotations

import datetime as dt
import itertools
import pickle
import statistics
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.errors import AnswerOverflowError, DeclarationError
from panes.testing.windowing_reference import ReferenceWindow
from panes.windowing import PUNCTUATION, Aggregate, EventClock, Join, Sort
from panes.windowing.accumulators import Variance
from panes.windowing.declarations import Count, Partitions, Sliding, Time, Tumbling
from tests.windowing.configurations import AGGREGATE, JOIN, SORT, name, window_of
from tests.windowing.drawing import often, partitions, policies, tumbling, windows

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

    partitioned = declared.partitioned is not None
    play(happened, lambda item, _: window.insert(item, item["k"] if partitioned else ()), advance, window.punctuate)
    return log


# Aggregate


def aggregated(declared, happened, group_by, partial, evicted, functions):
    full = set()
    for event, partition, held in contents(declared, happened):
        if event == "initial_full":
            full.add(partition)
        elif event == "partition_eviction":
            for gone, rows in held:
                full.discard(gone)
                if evicted:
                    yield from _rows(declared, gone, rows, group_by, functions)
        elif event == "before_flush" or (event == "trigger" and (partial or partition in full)):
            yield from _rows(declared, partition, held, group_by, functions)


def _rows(declared, partition, held, group_by, functions):
    keys = {} if declared.partitioned is None else {"k": partition}
    groups = {}
    for row in held:
        groups.setdefault(row["g"] if group_by else (), []).append(row)
    for group, rows in groups.items():
        yield keys | ({"g": group} if group_by else {}) | {alias: f(rows) for alias, f in functions.items()}
    yield PUNCTUATION


def _values(rows):
    return [row["v"] for row in rows if row["v"] is not None]


def _median(rows):
    values = sorted(_values(rows))
    middle = len(values) // 2
    if not values:
        return None
    return float(values[middle] if len(values) % 2 else sum(values[middle - 1 : middle + 1]) / 2)


EXPECTED = {
    "n": len,
    "some": lambda rows: len(_values(rows)),
    "total": lambda rows: sum(_values(rows)) if _values(rows) else None,
    "mean": lambda rows: sum(_values(rows)) / len(_values(rows)) if _values(rows) else None,
    "least": lambda rows: min(_values(rows), default=None),
    "most": lambda rows: max(_values(rows), default=None),
    "at_most": lambda rows: max(((r["v"], r["number"]) for r in rows if r["v"] is not None), default=(0, None))[1],
}
EXPECTED_HOLISTIC = {
    "median": _median,
    "different": lambda rows: len(set(_values(rows))),
    "last": lambda rows: rows[-1]["v"],
}


@settings(max_examples=400)
@given(windows(("k",)), events(), st.booleans(), st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_aggregate(declared, happened, group_by, partial, evicted, rewrite, holistic):
    clock = EventClock(0)
    operator = Aggregate(
        declared,
        SELECT | (HOLISTIC if holistic else {}),
        group_by="g" if group_by else (),
        partial_windows=partial,
        evicted_partitions=evicted,
        rewrite=rewrite,
        clock=clock,
    )
    functions = EXPECTED | (EXPECTED_HOLISTIC if holistic else {})
    expected = list(aggregated(declared, happened, group_by, partial, evicted, functions))
    assert answers(operator, clock, happened) == expected


def test_aggregate_has_52_configurations():
    assert len(set(AGGREGATE)) == len(AGGREGATE) == 13 * 4 == 52


@pytest.mark.parametrize("partitioned", [False, True], ids=["", "partitioned"])
@pytest.mark.parametrize("configuration", AGGREGATE, ids=name)
def test_every_configuration_of_aggregate(configuration, partitioned):
    declared = window_of(configuration, partitioned=partitioned)
    clock = EventClock(0)
    operator = Aggregate(declared, SELECT, group_by="g", clock=clock)
    expected = list(aggregated(declared, STREAM, True, True, False, EXPECTED))
    assert expected.count(PUNCTUATION) > 3
    assert answers(operator, clock, STREAM) == expected


@pytest.mark.parametrize("evicted", [False, True], ids=["", "evicted too"])
@pytest.mark.parametrize("configuration", [each for each in AGGREGATE if each.trigger == "count"], ids=name)
def test_windows_that_are_followed(configuration, evicted):
    """Processed with every tuple: the summary goes up and down with the window, and away with its partition."""
    declared = window_of(configuration, every=1)
    clock = EventClock(0)
    operator = Aggregate(declared, SELECT, evicted_partitions=evicted, clock=clock)
    expected = list(aggregated(declared, STREAM, False, True, evicted, EXPECTED))
    assert operator._follows
    assert answers(operator, clock, STREAM) == expected
    assert operator._following.keys() == operator.windows[0].subwindows.keys()


def test_what_is_summarized_is_not_stored():
    declared = pn.policy.tumbling(pn.policy.count(1000), partitioned="k")
    operator = Aggregate(declared, SELECT)
    for number in range(100):
        operator.process({"k": number % 3, "v": number, "number": number})
    assert [len(tuples) for _, tuples in operator.windows[0]] == [0, 0, 0]
    assert len(operator.windows[0]) == 100


# Rewriting (section 4.1.8)


@settings(max_examples=200)
@given(
    st.integers(1, 5),
    st.integers(1, 5),
    st.sampled_from(["count", "time"]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    events(),
)
def test_a_rewritten_window_gives_the_same_answers(times, slide, kind, partitioned, partial, group_by, happened):
    policy = {"count": Count, "time": Time}[kind]
    declared = Sliding(policy(times * slide), policy(slide), Partitions(("k",)) if partitioned else None)

    def run(rewrite):
        clock = EventClock(0)
        options = {"group_by": "g" if group_by else (), "partial_windows": partial, "clock": clock}
        operator = Aggregate(declared, SELECT, rewrite=rewrite, **options)
        return operator, answers(operator, clock, happened)

    direct, expected = run(False)
    rewritten, found = run(True)
    assert len(direct.stages) == 1
    legal = slide > 1 if kind == "count" else not partitioned
    assert len(rewritten.stages) == (2 if legal else 1)
    assert found == expected


def test_a_rewritten_window_holds_summaries_instead_of_tuples():
    clock = EventClock(0)
    hour = pn.policy.sliding(pn.policy.time("1 hour"), pn.policy.time("1 min"))
    operator = Aggregate(hour, {"mean": pn.mean("v")}, clock=clock)
    for second in range(2 * 3600):
        clock.advance(second * 1_000_000)
        operator.process({"v": second})
    assert [len(window) for window in operator.windows] == [60, 60]
    assert sum(len(tuples) for window in operator.windows for _, tuples in window) == 60


@pytest.mark.parametrize(
    "window",
    [
        pn.policy.sliding(pn.policy.count(10), pn.policy.count(3)),
        pn.policy.sliding(pn.policy.count(10), pn.policy.time("1 s")),
        pn.policy.sliding(pn.policy.time("10 s"), pn.policy.time("3 s")),
        pn.policy.sliding(pn.policy.time("10 s"), pn.policy.time("5 s"), partitioned="k"),
        pn.policy.sliding(pn.policy.delta("ts", 10), pn.policy.delta("ts", 5)),
        pn.policy.sliding(pn.policy.count(10), pn.policy.count(5), partitioned=pn.policy.partitions("k", count=2)),
    ],
    ids=str,
)
def test_windows_that_cannot_be_rewritten(window):
    assert Aggregate(window, {"n": pn.count()}, clock=EventClock(0)).stages == (window,)


def test_functions_that_cannot_be_merged_keep_the_window():
    window = pn.policy.sliding(pn.policy.count(10), pn.policy.count(5))
    assert Aggregate(window, {"n": pn.count(), "m": pn.quantile("v", 0.5)}).stages == (window,)


# Join


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
        if window.declared.evict == Count(0):
            self.match(port, row, self.windows[1 - port].contents(partition))
            self.leave(port, row)
        else:
            window.insert(row, partition)

    def advance(self, by):
        for _ in range(by):
            for window in self.windows:
                if window.declared.evict != Count(0):
                    window.tick()


def _numbers(left, right):
    return (left and left["number"], right and right["number"])


def _in_order(stream):
    """Two windows may let tuples go at one instant; which first is of no importance to anybody."""
    return sorted(stream, key=repr)


def check_join(left, right, happened, outer, on):
    clock = EventClock(0)
    options = {"on": "v"} if on else {"match": lambda one, other: (one["v"] or 0) <= (other["v"] or 0)}
    condition = (lambda one, other: one["v"] is not None and one["v"] == other["v"]) if on else options["match"]
    operator = Join(left, right, outer=outer, select=_numbers, clock=clock, **options)
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


@st.composite
def two_windows(draw):
    """Both partitioned or neither; one may be empty."""
    both = draw(st.booleans())

    def one():
        partitioned = draw(partitions(("k",)).filter(lambda p: (p is not None) == both))
        return Sliding(draw(st.one_of(policies(), policies(), st.just(Count(0)))), Count(1), partitioned)

    left, right = one(), one()
    if left.evict == right.evict == Count(0):
        right = replace(right, evict=Count(2))
    return left, right


@settings(max_examples=400)
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
    last, none = pn.policy.sliding(pn.policy.count(1)), pn.policy.sliding(pn.policy.count(0))
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
    last = pn.policy.sliding(pn.policy.count(1), partitioned="k")
    join = Join(last, pn.policy.sliding(pn.policy.count(0), partitioned="k"))
    for k, price in (("a", 1), ("b", 2), ("a", 3)):
        join.process({"k": k, "price": price})
    assert join.run([{"k": "a", "asks": 1}, {"k": "c", "asks": 2}], port=1) == [
        {"k": "a", "price": 3, "asks": 1},
        PUNCTUATION,
    ]


def test_nulls_match_nothing_and_nan_matches_itself():
    last = pn.policy.sliding(pn.policy.count(5))
    join = Join(last, last, on={"x": "y"})
    for x in (None, float("nan"), 1.0):
        join.process({"x": x})
    out = [row for y in (None, float("nan"), 1.0) for row in join.run([{"y": y}], port=1)]
    assert [str(row) for row in out] == ["{'x': nan, 'y': nan}", "PUNCTUATION", "{'x': 1.0, 'y': 1.0}", "PUNCTUATION"]


# Sort


def sorted_batches(declared, happened):
    for event, _, held in contents(declared, happened):
        batches = [held] if event == "before_flush" else [rows for _, rows in held] if "partition" in event else []
        for rows in batches:
            yield from sorted(rows, key=_by_value)
            yield PUNCTUATION


def _by_value(row):
    return (row["v"] is not None, row["v"] or 0)


def sorted_progressively(declared, happened):
    """As many tuples as the window holds are kept back; each that leaves it lets the first one out."""
    kept = {}
    for event, partition, held in contents(declared, happened):
        if event == "after_insertion":
            kept.setdefault(partition, []).append(held)
        elif event == "before_eviction":
            first = min(kept[partition], key=_by_value)
            kept[partition].remove(first)
            yield first
        elif event == "partition_eviction":
            for gone, _ in held:
                yield from sorted(kept.pop(gone, []), key=_by_value)


@settings(max_examples=200)
@given(st.one_of(tumbling(("k",)), st.builds(Sliding, policies(), st.just(Count(1)), partitions(("k",)))), events())
def test_sort(declared, happened):
    clock = EventClock(0)
    found = answers(Sort(declared, by="v", clock=clock), clock, happened)
    if isinstance(declared, Tumbling):
        assert found == list(sorted_batches(declared, happened))
    else:
        assert [row for row in found if row is not PUNCTUATION] == list(sorted_progressively(declared, happened))


def test_sort_has_28_configurations_by_the_text():
    """Four tumbling and three sliding windows, each with four ways to evict partitions. The paper counts 44."""
    assert len(set(SORT)) == len(SORT) == (4 + 3) * 4


@pytest.mark.parametrize("configuration", SORT, ids=name)
def test_every_configuration_of_sort(configuration):
    declared = window_of(configuration, every=1)
    clock = EventClock(0)
    found = [row for row in answers(Sort(declared, by="v", clock=clock), clock, STREAM) if row is not PUNCTUATION]
    oracle = sorted_batches if isinstance(declared, Tumbling) else sorted_progressively
    assert found == [row for row in oracle(declared, STREAM) if row is not PUNCTUATION]
    assert found


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 6))
def test_progressive_sort_orders_what_is_unordered_within_a_bound(steps, bound):
    late = sorted(range(len(steps)), key=lambda i: i + min(steps[i], bound - 1))
    sort = Sort(pn.policy.sliding(pn.policy.count(bound)), by="ts")
    found = [row["ts"] for row in sort.run([{"ts": ts} for ts in late]) if row is not PUNCTUATION]
    assert found == list(range(max(len(steps) - bound, 0)))


def test_sort_descending_with_nulls_and_nan():
    rows = [{"x": x, "y": y} for x, y in itertools.product([None, float("nan"), 1.0, 2.0], [1, 2])]
    down = Sort(pn.policy.tumbling(pn.policy.count(8)), by=["x", "y"], descending=[True, False]).run(rows)
    assert [str(row["x"]) for row in down[:-1]] == ["nan", "nan", "2.0", "2.0", "1.0", "1.0", "None", "None"]
    assert [row["y"] for row in down[:-1]] == [1, 2] * 4


# State


@settings(max_examples=200)
@given(st.sampled_from(["aggregate", "rewritten", "join", "batch", "progressive"]), st.data(), events())
def test_an_operator_continues_from_its_state(kind, data, happened):
    at = data.draw(st.integers(0, len(happened)))

    def operator(clock):
        if kind == "join":
            return Join(*both, on="v", outer="full", select=_numbers, clock=clock)
        if kind in ("batch", "progressive"):
            return Sort(both[0], by="v", clock=clock)
        return Aggregate(both[0], SELECT, group_by="g", clock=clock)

    both = {
        "join": two_windows(),
        "aggregate": st.tuples(windows(("k",))),
        "rewritten": st.sampled_from([(Sliding(Count(6), Count(2)),), (Sliding(Time(6), Time(2)),)]),
        "batch": st.tuples(tumbling(("k",))),
        "progressive": st.tuples(st.builds(Sliding, policies(), st.just(Count(1)), partitions(("k",)))),
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


# What operators refuse


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: Sort(pn.policy.sliding(pn.policy.count(3), pn.policy.count(2)), by="x"),
            r"Sort does not support the window 'sliding, count\(3\), count\(2\)'. It supports tumbling\(.*; sliding\(.*"
            r"count\(1\)\)",
        ),
        (
            lambda: Join(pn.policy.tumbling(pn.policy.count(3)), pn.policy.sliding(pn.policy.count(0)), on="x"),
            r"Join does not support .* on port 0. It supports sliding\(.*the empty sliding\(count\(0\)\)",
        ),
        (lambda: Aggregate(pn.policy.sliding(pn.policy.count(0)), {"n": pn.count()}), "Aggregate does not support"),
        (lambda: Aggregate("100 rows", {"n": pn.count()}), "needs a window, and '100 rows' is none"),
        (lambda: Aggregate(pn.policy.tumbling(pn.policy.count(1)), {}), "select= is empty"),
        (lambda: Aggregate(pn.policy.tumbling(pn.policy.count(1)), {"x": 5}), "neither an aggregate nor a function"),
        (lambda: Aggregate(pn.policy.tumbling(pn.policy.count(1)), {"x": pn.sum("a + b")}), "Let a Functor compute"),
        (
            lambda: Aggregate(pn.policy.tumbling(pn.policy.count(1)), {"x": pn.last("a")}),
            r"lambda tuples: tuples\[-1\]",
        ),
        (
            lambda: Aggregate(pn.policy.tumbling(pn.policy.count(1)), {"x": pn.count()}, group_by="x"),
            "Rename it in select=",
        ),
        (
            lambda: Aggregate(
                pn.policy.tumbling(pn.policy.count(1), partitioned=pn.policy.partitions()), {"n": pn.count()}
            ),
            "partitioned by no attribute",
        ),
        (
            lambda: Join(pn.policy.sliding(pn.policy.count(1)), pn.policy.sliding(pn.policy.count(1))),
            "Join has no condition",
        ),
        (
            lambda: Join(
                pn.policy.sliding(pn.policy.count(1), partitioned="k"), pn.policy.sliding(pn.policy.count(1)), on="x"
            ),
            "partitioned by 1 and 0 attributes",
        ),
        (
            lambda: Join(pn.policy.sliding(pn.policy.count(0)), pn.policy.sliding(pn.policy.count(0)), on="x"),
            "two empty windows",
        ),
        (lambda: Sort(pn.policy.tumbling(pn.policy.count(1)), by=[]), "nothing to sort by"),
    ],
)
def test_refused(build, message):
    with pytest.raises(DeclarationError, match=message):
        build()


def test_a_clash_of_attributes_is_named():
    join = Join(pn.policy.sliding(pn.policy.count(1)), pn.policy.sliding(pn.policy.count(0)), on="k")
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
    window = pn.policy.tumbling(pn.policy.count(5))
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
    found, _ = Aggregate(pn.policy.tumbling(pn.policy.count(len(values))), select).run([{"x": x} for x in values])
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
    parts = [Variance("x", 1, False), Variance("x", 1, False)]
    for number, value in enumerate(values):
        parts[number >= at].insert({"x": value})
    parts[0].merge(parts[1])
    expected = statistics.variance(present) if len(present) > 1 else None
    assert parts[0].value() == (None if expected is None else pytest.approx(expected, abs=1e-9))


def test_a_sum_that_does_not_fit_is_an_error():
    window = pn.policy.tumbling(pn.policy.count(2))
    least, most = [{"x": -(2**63)}, {"x": 0}], [{"x": 2**63 - 1}, {"x": 1}]
    assert Aggregate(window, {"total": pn.sum("x")}).run(least)[0] == {"total": -(2**63)}
    with pytest.raises(AnswerOverflowError, match="more than 64 bits"):
        Aggregate(window, {"total": pn.sum("x")}).run(most)


def test_nan_is_one_partition_and_one_group_and_so_is_null():
    """As in Spark; to Python no NaN equals another."""
    rows = [{"k": k, "g": g} for k in (float("nan"), None, float("nan")) for g in (float("nan"), None, float("nan"))]
    window = pn.policy.sliding(pn.policy.count(9), pn.policy.count(3), partitioned="k")
    found = Aggregate(window, {"n": pn.count()}, group_by="g").run(rows)
    assert [str(row) for row in found if row is not PUNCTUATION] == [
        "{'k': nan, 'g': nan, 'n': 2}",
        "{'k': nan, 'g': None, 'n': 1}",
        "{'k': None, 'g': nan, 'n': 2}",
        "{'k': None, 'g': None, 'n': 1}",
        "{'k': nan, 'g': nan, 'n': 4}",
        "{'k': nan, 'g': None, 'n': 2}",
    ]
    both = pn.policy.tumbling(pn.policy.count(4), partitioned=["k", "g"])
    first, second = (Aggregate(both, {"n": pn.count()}, group_by="g") for _ in range(2))
    assert first.run(rows[:5]) == []
    second.load(pickle.loads(pickle.dumps(first.save())))
    assert [str(row) for row in second.run(rows[5:])] == [
        "{'k': nan, 'g': nan, 'n': 4}",
        "PUNCTUATION",
    ]
