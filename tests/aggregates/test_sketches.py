"""Sketches by their own error bounds, in any split; and what they share with every component: storage, nulls, laws.

The sketches of distinct counts are functions of the set of values, so they are compared exactly, whatever was merged
with what. Quantiles throw coins: their bounds are taken three times as wide as the 99 % ones, some seven standard
deviations.
"""

from __future__ import annotations

import math
import random
import sys
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import panes as pn
from panes.aggregates.sketches import opened
from panes.errors import AlgebraError, DeclarationError, SchemaError
from panes.kernels import Reducer
from panes.testing import check_aggregate
from panes.testing.event_tables import draw
from panes.testing.reference import comparable

datasketches = pytest.importorskip("datasketches")

TYPES = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    *(pa.decimal128(9, 2), pa.decimal128(38, 4), pa.string(), pa.large_string(), pa.bool_(), pa.date32()),
    *(pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.timestamp("ms"), pa.binary()),
]
DISTINCT, MEDIAN, TOP = pn.approx_count_distinct("x"), pn.approx_quantile("x", 0.5), pn.top("x")
KERNELS = ["naive", "landmark", "dyadic", "overlapping"]


def column(type_, rows, seed, nulls=0.2):
    rng = random.Random(f"{seed} {type_}")
    drawn = [draw(rng, pa.string() if type_ == pa.large_string() else type_, special=0.2) for _ in range(rows)]
    return pa.array([None if rng.random() < nulls else value for value in drawn], type_)


def aggregates_of(type_):
    numeric = pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    return [DISTINCT, TOP, *([MEDIAN] if numeric else [])]


EVERY = [pytest.param(a, t, id=f"{a.name} of {t}") for t in TYPES for a in aggregates_of(t)]


def bound_of(aggregate, type_):
    bound = aggregate.bind(("x",), (type_,))
    (component,) = bound.components
    return bound, component


def answered(aggregate, values, cuts, kernel="naive"):
    """The answer over all values, from partials of the pieces between cuts that went through storage."""
    bound, component = bound_of(aggregate, values.type)
    edges = np.array(cuts)
    stored = component.gather(edges[:-1], edges[1:], values)
    decoded = component.decode(stored.restore(stored.state, None))
    state = Reducer(decoded.operations, decoded.state, kernel=kernel).reduce(np.array([0]), np.array([len(cuts) - 1]))
    direct, through_storage = bound.answer(state), bound.lower(decoded.restore(state, None))
    assert direct.equals(through_storage) or "nan" in str(direct)
    assert direct.type == bound.type
    return direct[0].as_py()


def distinct(values):
    return len({comparable(value) for value in values.to_pylist() if value is not None})


# Bounds, at sizes from nothing to far beyond what a sketch keeps, in pieces of any size.


@pytest.mark.parametrize("size", [0, 1, 10, 100, 1_000, 5_000, 30_000, 200_000])
def test_distinct_counts_are_within_three_standard_errors_and_any_split_gives_the_same(size):
    rng = np.random.default_rng(size)
    values = pa.array(rng.integers(0, 2 * size + 1, size))
    true = distinct(values)
    found = set()
    for pieces, kernel in zip((1, 2, 7, 40), KERNELS, strict=True):
        cuts = [0, *sorted(rng.integers(0, size + 1, pieces - 1).tolist()), size]
        found.add(answered(DISTINCT, values, cuts, kernel))
    (count,) = found
    sketch = datasketches.cpc_sketch(12)
    for value in values.to_pylist():
        sketch.update(value)
    assert abs(count - true) <= 3 * 0.6931 / 64 * true + 0.5
    assert sketch.get_lower_bound(3) - 0.5 <= true <= sketch.get_upper_bound(3) + 0.5


@pytest.mark.parametrize("lg_k", [4, 8, 16])
def test_a_larger_sketch_errs_less(lg_k):
    values = pa.array(np.random.default_rng(1).permutation(50_000))
    count = answered(pn.approx_count_distinct("x", lg_k=lg_k), values, [0, 20_000, 20_001, 50_000])
    assert abs(count - 50_000) <= 3 * 0.6931 / math.sqrt(2**lg_k) * 50_000


def assert_rank(values, found, q, error):
    """Some rank that the found value has among all values is near q."""
    ordered = np.sort(np.asarray(values, float))
    assert found in ordered
    below, upto = np.searchsorted(ordered, found, "left"), np.searchsorted(ordered, found, "right")
    assert below / len(ordered) - error <= q <= upto / len(ordered) + error


@pytest.mark.parametrize("size", [1, 2, 9, 150, 1_000, 50_000, 200_000])
@pytest.mark.parametrize("k", [20, 200])
def test_quantiles_are_within_the_rank_error(size, k):
    rng = np.random.default_rng(size)
    numbers = {"normal": rng.normal(size=size), "few": rng.integers(0, 9, size), "sorted": np.arange(size) / 8}
    allowed = 0.0 if size <= 9 else 3 * datasketches.kll_doubles_sketch.get_normalized_rank_error(k, False)
    for values in numbers.values():
        for pieces, kernel in ((1, "naive"), (3, "dyadic"), (50, "naive"), (50, "landmark")):
            cuts = [0, *sorted(rng.integers(0, size + 1, pieces - 1).tolist()), size]
            for q in (0, 0.01, 0.5, 0.9, 1):
                found = answered(pn.approx_quantile("x", q, k=k), pa.array(values), cuts, kernel)
                assert_rank(values, found, q, 0.0 if q in (0, 1) else allowed)


def test_quantiles_of_few_values_are_exact():
    values = pa.array([4.0, 1.0, 3.0, 2.0, None, math.nan])
    for q, expected in ((0, 1), (0.25, 1), (0.26, 2), (0.5, 2), (0.51, 3), (1, 4)):
        assert answered(pn.approx_quantile("x", q), values, [0, 2, 6]) == expected
    assert answered(MEDIAN, pa.array([math.inf, -math.inf, 0.0]), [0, 3]) == 0.0
    assert answered(MEDIAN, pa.array([math.nan, None]), [0, 1, 2]) is None


def assert_top(values, found, n, lg_k):
    """Counts lie in their bounds, and nothing is left out that might belong there."""
    true, listed = Counter(map(comparable, values)), {comparable(f["item"]): f for f in found}
    assert len(listed) == len(found) <= n
    most = 3.5 / 2**lg_k * len(values)
    (error,) = {f["error"] for f in found} or {most}
    assert error <= most
    for item, entry in listed.items():
        assert entry["count"] - error <= true[item] <= entry["count"]
    assert found == sorted(found, key=lambda f: (-f["count"], comparable(f["item"])))
    possible = max(error, found[-1]["count"]) if len(found) == n else error
    assert all(count <= possible for item, count in true.items() if item not in listed)
    if len(true) <= 3 * 2**lg_k // 4:
        assert error == 0
        best = sorted(true.items(), key=lambda pair: (-pair[1], pair[0]))[:n]
        assert [(comparable(f["item"]), f["count"]) for f in found] == best


@pytest.mark.parametrize(("size", "lg_k"), [(1, 10), (50, 3), (5_000, 5), (5_000, 10), (60_000, 8)])
def test_top_counts_are_within_their_bounds(size, lg_k):
    rng = np.random.default_rng(size)
    for values in (rng.zipf(1.3, size) % 10**9, rng.integers(0, 7, size), rng.permutation(size)):
        for pieces, kernel in ((1, "naive"), (4, "naive"), (30, "dyadic"), (30, "landmark")):
            cuts = [0, *sorted(rng.integers(0, size + 1, pieces - 1).tolist()), size]
            for n in (1, 5):
                found = answered(pn.top("x", n, lg_k=lg_k), pa.array(values), cuts, kernel)
                assert_top(values.tolist(), found, n, lg_k)


# Every type.


@pytest.mark.parametrize(("aggregate", "type_"), EVERY)
def test_values_of_every_type(aggregate, type_):
    for seed, nulls in enumerate((0.0, 0.3, 1.0)):
        values = column(type_, 60, seed, nulls)
        present = [value for value in values.to_pylist() if value is not None]
        for cuts in ([0, 60], [0, 0, 7, 8, 30, 60]):
            found = answered(aggregate, values, cuts)
            if aggregate is DISTINCT:
                # Two of some fifty values may fall together.
                assert abs(found - distinct(values)) <= 1
            elif aggregate is TOP:
                assert found is None if not present else assert_top(present, found, 10, 10) is None
            else:
                numbers = [float(value) for value in present if not math.isnan(value)]
                assert found is None if not numbers else assert_rank(numbers, found, 0.5, 0) is None


def test_integers_of_every_width_and_of_every_view_hash_alike():
    numbers = [0, 1, -1, 100, -128, 127]
    stored = {
        bound_of(DISTINCT, type_)[1].lift(pa.array(numbers, type_)).to_pylist().__repr__()
        for type_ in (pa.int8(), pa.int16(), pa.int32(), pa.int64())
    }
    assert len(stored) == 1
    halves = [0.5, -0.0, 0.0, math.nan, math.inf]
    assert answered(DISTINCT, pa.array(halves, pa.float32()), [0, 5]) == 4
    assert answered(DISTINCT, pa.array([*halves, -math.nan]), [0, 3, 6]) == 4


def test_empty_text_and_strange_text_are_values():
    for values in (["", "", "'", "\0", "a\0", "a", "ä", "𝒳"], [b"", b"\xff", b"\xc3\xbf", b"'", b"\0"]):
        array = pa.array(values)
        assert answered(DISTINCT, array, [0, 2, len(values)]) == len(set(values))
        assert_top(values, answered(TOP, array, [0, 2, len(values)]), 10, 10)


# The contract of components.


@pytest.mark.parametrize(("aggregate", "type_"), EVERY)
def test_storage_round_trip(aggregate, type_):
    _, component = bound_of(aggregate, type_)
    for seed, nulls in enumerate((0.0, 0.3, 1.0)):
        values = column(type_, 40, seed, nulls)
        stored = component.lift(values)
        assert stored.type == component.storage
        for part in (stored, stored.slice(7, 20)):
            decoded = component.decode(part)
            nulls_of = None if decoded.valid is None else ~decoded.valid
            assert decoded.restore(decoded.state, nulls_of).equals(part)
        lo, hi = np.array([0, 7, 7, 30]), np.array([7, 7, 30, 40])
        gathered, lifted = component.gather(lo, hi, values), component.decode(stored)
        folded = Reducer(lifted.operations, lifted.state, kernel="naive").reduce(lo, hi)
        bound, _ = bound_of(aggregate, type_)
        assert str(bound.answer(gathered.state)) == str(bound.answer(folded))
        assert gathered.state[0][1] is None
        # A slice of an array is an array.
        part = component.gather(lo[:1], hi[:1] - 2, values.slice(2))
        assert str(bound.answer(part.state)) == str(bound.answer(component.gather(lo[:1] + 2, hi[:1], values).state))


def test_sketches_that_were_handed_out_are_never_changed():
    values = pa.array(np.random.default_rng(0).normal(size=4_000))
    for aggregate in (DISTINCT, MEDIAN, TOP):
        _, component = bound_of(aggregate, values.type)
        edges = np.arange(0, 4_001, 100)
        decoded = component.gather(edges[:-1], edges[1:], values)
        before = [component.close(sketch) for sketch in opened(decoded.state)]
        for kernel in KERNELS if component.idempotent else KERNELS[:-1]:
            reducer = Reducer(decoded.operations, decoded.state, kernel=kernel)
            lo = np.repeat(np.arange(30), 2)
            reducer.reduce(lo, lo + np.tile([3, 10], 30))
        assert [component.close(sketch) for sketch in opened(decoded.state)] == before


def test_the_laws_of_distinct_counts_hold_exactly():
    for type_ in (pa.int32(), pa.float64(), pa.string()):
        check_aggregate(DISTINCT, column(type_, 40, 0))
    assert DISTINCT.idempotent
    assert not MEDIAN.idempotent
    assert not TOP.idempotent


def test_kernels_without_their_law_refuse():
    for aggregate, kernel in ((MEDIAN, "overlapping"), (TOP, "running"), (DISTINCT, "running")):
        with pytest.raises(AlgebraError, match="needs"):
            answered(aggregate, pa.array([1, 2]), [0, 2], kernel)


def test_quantiles_of_one_column_share_one_sketch():
    low, high = (pn.approx_quantile("x", q).bind(("x",), (pa.int64(),)) for q in (0.1, 0.9))
    other = pn.approx_quantile("x", 0.1, k=100).bind(("x",), (pa.int64(),))
    assert low.components == high.components != other.components
    assert low.components[0].name != other.components[0].name


def test_an_aggregate_says_everything_about_itself():
    assert str(pn.approx_count_distinct("u", lg_k=10)) == "approx_count_distinct(u, lg_k=10)"
    assert str(pn.approx_quantile("x * 2", 0.999)) == "approx_quantile(x * 2, 0.999, k=200)"
    assert str(pn.top("s", 3)) == "top(s, 3, lg_k=10)"
    assert pn.approx_quantile("x", 0.25).signature == "approx_quantile('x', q=0.25, k=200)"
    assert pn.top("x", 3).signature == "top('x', n=3, lg_k=10)"
    for aggregate in (DISTINCT, MEDIAN, TOP):
        assert aggregate.native(("x",)) is None
        assert not aggregate.in_jvm


# What is refused, before anything runs.


@pytest.mark.parametrize("q", [-0.01, 1.01, 99, math.nan, math.inf, "0.5", None, True, 1j])
def test_a_quantile_outside_of_0_to_1_is_refused(q):
    with pytest.raises(DeclarationError, match="a number from 0 to 1"):
        pn.approx_quantile("x", q)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: pn.approx_quantile("x", 0.5, k=7), "k=7: write a whole number from 8 to 65535"),
        (lambda: pn.approx_quantile("x", 0.5, k=65536), "from 8 to 65535"),
        (lambda: pn.approx_count_distinct("x", lg_k=3), "lg_k=3: write a whole number from 4 to 26"),
        (lambda: pn.approx_count_distinct("x", lg_k=27), "from 4 to 26"),
        (lambda: pn.approx_count_distinct("x", lg_k=12.0), "from 4 to 26"),
        (lambda: pn.top("x", 0), "n=0: write a whole number of at least 1"),
        (lambda: pn.top("x", -1), "of at least 1"),
        (lambda: pn.top("x", True), "of at least 1"),
        (lambda: pn.top("x", 2.5), "of at least 1"),
        (lambda: pn.top("x", lg_k=2), "from 3 to 26"),
        (lambda: pn.top("x", 800), "keeps 768 items"),
        (lambda: pn.top(3), "not a column or expression"),
        (lambda: pn.approx_count_distinct(None), "not a column or expression"),
    ],
)
def test_a_sketch_that_cannot_be_is_refused(make, said):
    with pytest.raises(DeclarationError, match=said):
        make()


def test_the_largest_and_smallest_sketches_work():
    values = pa.array(np.arange(100))
    for aggregate in (pn.approx_count_distinct("x", lg_k=4), pn.approx_count_distinct("x", lg_k=26)):
        assert answered(aggregate, values, [0, 40, 100]) == pytest.approx(100, rel=0.6)
    for k in (8, 65535):
        assert answered(pn.approx_quantile("x", 0.5, k=k), values, [0, 40, 100]) == pytest.approx(50, abs=40)
    for lg_k in (3, 26):
        assert_top(range(100), answered(pn.top("x", 3, lg_k=lg_k), values, [0, 40, 100]), 3, lg_k)


@pytest.mark.parametrize(
    ("aggregate", "type_"),
    [
        (MEDIAN, pa.string()),
        (MEDIAN, pa.timestamp("us")),
        (MEDIAN, pa.bool_()),
        (DISTINCT, pa.list_(pa.int64())),
        (TOP, pa.struct([("a", pa.int64())])),
    ],
)
def test_a_type_that_does_not_fit_is_refused(aggregate, type_):
    with pytest.raises(SchemaError, match="needs a number"):
        aggregate.bind(("x",), (type_,))


@pytest.mark.parametrize(
    "make", [lambda: pn.approx_count_distinct("x"), lambda: pn.approx_quantile("x", 0.5), lambda: pn.top("x")]
)
def test_a_missing_package_is_said_when_the_aggregate_is_declared(make, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasketches", None)
    with pytest.raises(DeclarationError, match=r"pip install panes\[sketches\]"):
        make()


def test_the_reducer_folds_few_and_builds_for_many():
    """A combine of sketches is dear, so that what saves combines is chosen."""
    _, component = bound_of(MEDIAN, pa.float64())
    rows = 400
    decoded = component.gather(np.arange(rows), np.arange(rows) + 1, pa.array(np.arange(rows) * 1.0))
    made = Counter()

    def counting(kind):
        together = kind.together

        def counted(self, sketches):
            made["combined"] += len(sketches) - 1
            return together(self, sketches)

        return counted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(component), "together", counting(type(component)))
        lo = np.arange(rows - 100)
        Reducer(decoded.operations, decoded.state).reduce(lo, lo + 100)
    # The naive way would combine 99 for each of 300 answers.
    assert made["combined"] < 10 * rows
