"""Index pairs against the reference interpreter: the same windows, processed at the same instants, in the same order.

Catches a window that sees the tuple at the door, ticks before or after the tuples of their instant, chains that break
at the wrong tuple, and windows that count as full too early or too late.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panes.errors import OrderError, PlanError
from panes.frames import Positions
from panes.frames.distances import Distances, followed, in_step, stepped
from panes.frames.order import EVICT, FULL, ON_THE_CLOCK, TRIGGER
from panes.frames.positions import Axis
from panes.frames.row_frame import Arrivals
from panes.operators.policies import Partitions, SlidingPolicies, Time, TumblingPolicies
from panes.queries.eviction import Evict
from panes.queries.measures import Delta, Punctuation, Rows
from panes.row_windows.framing import Framing
from panes.row_windows.framing_by_operator import frame_by_operator
from panes.testing.operators_reference import ReferenceWindow

KINDS = ("count", "delta", "time")
CONFIGURATIONS = [*((kind, None) for kind in (*KINDS, "punctuation")), *((e, t) for e in KINDS for t in KINDS)]
EVICTIONS = (None, Evict(keys=2), Evict(rows=5), Evict(age=4))


def times(*origins):
    phases = st.integers(-3, 8)
    return st.one_of(
        st.builds(Time, st.integers(1, 7), st.just(origin), phases if origin == "epoch" else st.just(0))
        for origin in origins
    )


def policy(kind, attribute):
    sizes = {"count": st.builds(Rows, st.integers(1, 5)), "time": times("first")}
    sizes["delta"] = st.builds(Delta, st.just(attribute), st.integers(0, 6))
    sizes["punctuation"] = st.just(Punctuation(""))
    return sizes[kind]


def windows(evict, trigger, partitions):
    if trigger is None:
        size = times("first", "row", "epoch") if evict == "time" else policy(evict, "a")
        return st.builds(TumblingPolicies, size, st.just(partitions))
    pace = times("first", "epoch") if trigger == "time" else policy(trigger, "b")
    return st.builds(SlidingPolicies, policy(evict, "a"), pace, st.just(partitions), st.booleans())


@st.composite
def streams(draw, partitioned, punctuated):
    """Tuples as they arrive: the time that passed, the partition, steps of two attributes; and punctuations."""
    keys = st.integers(0, 2) if partitioned else st.just(0)
    steps = st.tuples(st.sampled_from([0, 0, 1, 1, 2, 3, 9]), keys, st.integers(0, 4), st.integers(0, 4))
    least = draw(st.sampled_from([0, 10, 20]))
    rows, now, first, second = [], draw(st.integers(-5, 5)), 0, 0
    for waited, key, a, b in draw(st.lists(steps, min_size=least, max_size=40)):
        now, first, second = now + waited, first + a, second + b
        rows.append((now, key, first, second))
    last = rows[-1][0] if rows else 0
    punctuations = sorted(draw(st.lists(st.integers(-6, last + 3), max_size=6 * punctuated)))
    return rows, punctuations


def expected(declared, rows, punctuations):
    """What the interpreter says: for each partition its windows, each with its instant and its tuples."""
    found, full, partial = {}, set(), getattr(declared, "partial", True)

    def emit(event, partition, contents):
        if event == "initial_full":
            full.add(partition)
        elif event == "partition_eviction":
            full.difference_update(each for each, _ in contents)
        elif event in ("before_flush", "trigger") and contents and (partial or event != "trigger" or partition in full):
            found.setdefault(partition, []).append((window.now, [item["row"] for item in contents]))

    window = ReferenceWindow(declared, emit)
    happened = [(row[0], 0, row[1], number, row) for number, row in enumerate(rows)]
    happened += [(now, 1, 0, number, None) for number, now in enumerate(punctuations)]
    happened.sort(key=lambda each: each[:2] if declared.partitioned is None else each[:3])
    if happened:
        window.now = happened[0][0]
    for now, _, key, number, row in happened:
        while window.now < now:
            window.tick()
        if row is None:
            window.punctuate()
        else:
            item = {"row": number, "a": row[2], "b": row[3]}
            window.insert(item, key if declared.partitioned is not None else ())
    if rows:
        while window.now < max(row[0] for row in rows) + 1:
            window.tick()
    return found


def arrivals_of(rows, punctuations, kind=np.int64):
    order = sorted(range(len(rows)), key=lambda i: (rows[i][1], rows[i][0], i))
    keys = [rows[i][1] for i in order]
    starts = np.searchsorted(keys, np.arange(4)).astype(np.int64)
    instants = np.array([rows[i][0] for i in order], np.int64)
    attributes = {name: np.array([rows[i][place] for i in order], kind) for name, place in (("a", 2), ("b", 3))}
    end = int(instants.max()) + 1 if rows else 0
    events = Positions.of_events(instants, starts)
    return order, Arrivals(events, end, attributes, np.array(punctuations, np.int64))


def as_listed(found, order, partitioned):
    listed = {}
    for key, instant, lo, hi in zip(*(a.tolist() for a in (found.key, found.instant, found.lo, found.hi)), strict=True):
        rows = [order[i] for i in range(lo, hi)]
        listed.setdefault(key if partitioned else (), []).append((instant, rows))
    return listed


@pytest.mark.parametrize(("evict", "trigger"), CONFIGURATIONS)
@pytest.mark.parametrize("partitioned", [False, True])
@settings(max_examples=60)
@given(data=st.data(), kind=st.sampled_from([np.int64, np.float64]))
def test_windows(evict, trigger, partitioned, data, kind):
    declared = data.draw(windows(evict, trigger, Partitions(("k",)) if partitioned else None))
    rows, punctuations = data.draw(streams(partitioned, punctuated=evict == "punctuation"))
    wanted = expected(declared, rows, punctuations)
    order, arrivals = arrivals_of(rows, punctuations, kind)
    found = Framing(declared, arrivals).frame.held()
    assert as_listed(found, order, partitioned) == wanted
    run, _ = frame_by_operator(declared, arrivals)
    assert as_listed(run, order, partitioned) == wanted
    assert (np.diff(found.lo) >= 0).all()
    assert (np.diff(found.hi) >= 0).all()


@pytest.mark.parametrize("steps", list(permutations(ON_THE_CLOCK)), ids=" ".join)
@settings(max_examples=30)
@given(data=st.data())
def test_any_declared_order_on_the_clock(steps, data):
    """Index pairs and containers derive theirs from one declaration: with another one, both change alike."""
    declared = data.draw(windows("time", data.draw(st.sampled_from(KINDS)), None))
    order, arrivals = arrivals_of(*data.draw(streams(partitioned=False, punctuated=False)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("panes.frames.order.ON_THE_CLOCK", steps)
        for rank, step in (("EVICTION", EVICT), ("FULL", FULL), ("PROCESSING", TRIGGER)):
            patch.setattr(f"panes.operators.sliding_window.{rank}", steps.index(step))
        found, (run, _) = Framing(declared, arrivals).frame.held(), frame_by_operator(declared, arrivals)
    assert as_listed(found, order, False) == as_listed(run, order, False)


@settings(max_examples=120)
@given(data=st.data())
def test_windows_whose_partitions_are_evicted(data):
    """No vectorised path, but the same pairs: the windows are run and what they hold is written down."""
    evict, trigger = data.draw(st.sampled_from(CONFIGURATIONS))
    partitions = Partitions(("k",), data.draw(st.sampled_from(EVICTIONS[1:])))
    declared = data.draw(windows(evict, trigger, partitions))
    rows, punctuations = data.draw(streams(partitioned=True, punctuated=evict == "punctuation"))
    order, arrivals = arrivals_of(rows, punctuations)
    found, _ = frame_by_operator(declared, arrivals)
    assert as_listed(found, order, True) == expected(declared, rows, punctuations)


@given(
    st.lists(st.sampled_from([-(2**63), -(2**63) + 1, -1, 0, 1, 2**62, 2**63 - 2, 2**63 - 1]), max_size=12),
    st.sampled_from([0, 1, 2.5, 2**62, 2**63, 2**64 - 2, 2**64, Fraction(7, 2)]),
)
def test_integers_of_any_size_are_far_apart(values, by):
    values.sort()
    apart = Distances(np.array(values, np.int64), np.array([0, len(values)]), by)
    rows, key = np.arange(len(values)), np.zeros(len(values), np.int64)
    within = [next(j for j in range(i + 1) if not values[i] - values[j] > by) for i in range(len(values))]
    beyond = [
        next((j for j in range(len(values)) if values[j] - values[i] > by), len(values)) for i in range(len(values))
    ]
    assert apart.first_within(rows, key).tolist() == within
    assert apart.first_beyond(rows, key).tolist() == beyond


@given(
    st.lists(st.floats(allow_nan=False), max_size=12),
    st.one_of(st.floats(0, 1e308), st.fractions(0, 10), st.integers(0, 2**80), st.just(10**400)),
)
def test_floats_are_as_far_apart_as_python_says(values, by):
    values.sort()
    apart = Distances(np.array(values, np.float64), np.array([0, len(values)]), by)
    rows, key = np.arange(len(values)), np.zeros(len(values), np.int64)
    within = [next(j for j in range(i + 1) if not values[i] - values[j] > by) for i in range(len(values))]
    beyond = [
        next((j for j in range(i, len(values)) if values[j] - values[i] > by), len(values)) for i in range(len(values))
    ]
    assert apart.first_within(rows, key).tolist() == within
    assert apart.first_beyond(rows, key).tolist() == beyond


@given(st.lists(st.lists(st.integers(0, 3), max_size=120), max_size=4), st.integers(0, 9), st.integers(0, 9))
def test_chains_of_few_and_of_many_windows(steps, by, least):
    """Searching for the end of each window meets the rows that searching for all ends meets."""
    keys = [np.cumsum(np.array(key, np.int64)) for key in steps]
    values = np.concatenate([*keys, np.zeros(0, np.int64)])
    starts = np.cumsum([0, *map(len, keys)])
    met = []
    for first, end in pairwise(starts.tolist()):
        for row in range(first, end):
            if row == first or values[row] - values[met[-1]] > by:
                met.append(row)
    assert stepped(values, starts, by).tolist() == met
    gives_up = any(number >= 64 and number * least > row for number, row in enumerate(met))
    found = stepped(values, starts, by, least)
    assert (None if found is None else found.tolist()) == (None if gives_up else met)
    key = np.repeat(np.arange(len(keys)), np.diff(starts))
    apart = Distances(values, starts, by)
    assert followed(apart.first_beyond(np.arange(len(values)), key)).tolist() == met
    assert apart.chain().tolist() == met
    met_in_step, row, end = in_step(Axis(values, starts).numbers, starts, by)
    assert (sorted(met_in_step.tolist()), row.tolist(), end.tolist()) == (met, [], [])


@given(
    st.lists(st.lists(st.integers(0, 3), max_size=3), min_size=25, max_size=60),
    st.dictionaries(st.integers(0, 24), st.lists(st.integers(0, 3), min_size=20, max_size=90), max_size=4),
    st.sampled_from([0, 1, 2, 5, 2**40, 2**70]),
    st.sampled_from([0, -(2**50), 2**59]),
)
def test_chains_of_many_keys(short, long, by, offset):
    """Whether keys are looked at together or by themselves, and some of them have far more windows than others."""
    keys = [np.cumsum(np.array(long.get(i, key), np.int64)) + offset for i, key in enumerate(short)]
    starts = np.cumsum([0, *map(len, keys)])
    alone = [starts[i] + Distances(key, np.array([0, len(key)]), by).chain() for i, key in enumerate(keys)]
    found = Distances(np.concatenate(keys), starts, by).chain()
    assert found.tolist() == np.concatenate(alone).tolist()


def test_a_chain_of_keys_that_hardly_fit_one_axis():
    """Thresholds beyond all values are added to numbers that are near the end of int64."""
    keys, span = 40, 2**63 // 41
    values, starts = np.tile(np.array([0, span - 2]), keys), np.arange(0, 2 * keys + 1, 2)
    for by, met in ((2**62, starts[:-1]), (span - 2, starts[:-1]), (span - 3, np.arange(2 * keys))):
        assert Distances(values, starts, by).chain().tolist() == met.tolist()


def test_an_attribute_that_falls_is_refused():
    events = Positions.of_events(np.array([1, 2, 3, 4]), np.array([0, 2, 4]))
    declared = TumblingPolicies(Delta("a", 3), Partitions(("k",)))
    Framing(declared, Arrivals(events, 5, {"a": np.array([8, 9, 1, 2])}))
    with pytest.raises(OrderError, match="'a' fell from 2 to 1 in the order of time"):
        Framing(declared, Arrivals(events, 5, {"a": np.array([8, 9, 2, 1])}))


def test_more_windows_than_fit_are_refused():
    events = Positions.of_events(np.array([0, 2**50]), np.array([0, 2]))
    with pytest.raises(PlanError, match="answered every 1us would be answered 1,125,899,906,842,625 times"):
        Framing(SlidingPolicies(Rows(1), Time(1)), Arrivals(events, 2**50 + 1))


def test_moments_at_which_a_window_is_empty_are_not_even_made():
    """Two tuples centuries apart, and a trigger every microsecond."""
    events = Positions.of_events(np.array([0, 2**50]), np.array([0, 2]))
    found = Framing(SlidingPolicies(Time(3), Time(1)), Arrivals(events, 2**50 + 1)).frame.held()
    assert found.instant.tolist() == [1, 2, 3, 2**50 + 1]
    assert found.lo.tolist() == [0, 0, 0, 1]
