"""One contract for all kernels: every pair is answered as if its rows were combined one after another.

Each kernel runs with every algebra whose laws it needs, on columns of every shape. This catches kernels that
change the order of rows (affine maps do not commute), count rows twice (sums), cancel (floats), let NaN or
infinity out of a pair into its neighbours, or go wrong at the edges of blocks, levels and the column.
"""

from __future__ import annotations

import itertools
import math
import sys
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panes.aggregates.operations import Operations, from_ufunc, take
from panes.errors import AlgebraError
from panes.kernels import KERNELS, Reducer, choose
from panes.kernels.dyadic import Overlapping
from panes.kernels.landmark import Landmark

INT64 = np.iinfo(np.int64)
PRIME = 1_000_003


@dataclass(frozen=True)
class Algebra:
    """Operations, what a row may be, the arrays' types, and how near answers have to be."""

    operations: Operations
    elements: st.SearchStrategy
    dtypes: tuple
    same: object = None


def compose(a, b):
    """First a, then b: the affine maps x -> a0 * x + a1 modulo a prime. Associative, not commutative."""
    return (a[0] * b[0] % PRIME, (a[1] * b[0] + b[1]) % PRIME)


def merge_moments(a, b):
    """Count, mean and M2, merged the stable way."""
    n = a[0] + b[0]
    share = np.divide(b[0], n, out=np.zeros_like(n), where=n > 0)
    delta = b[1] - a[1]
    return (n, a[1] + delta * share, a[2] + b[2] + delta * delta * a[0] * share)


def first_and_last(a, b):
    """Pairs of (first, last) with -1 for no row yet."""
    return (np.where(a[0] < 0, b[0], a[0]), np.where(b[1] < 0, a[1], b[1]))


def near_fsum(rows, answer):
    """Float sums: within c·n·ε·Σ|x| of the exact one; infinities and NaN exactly."""
    values = [x for (x,) in rows]
    if not all(map(math.isfinite, values)):
        with np.errstate(invalid="ignore"):
            exact = float(np.sum(np.array(values)))
        return math.isnan(answer[0]) if math.isnan(exact) else answer[0] == exact
    bound = 2 * len(values) * np.finfo(float).eps * math.fsum(map(abs, values))
    return abs(answer[0] - math.fsum(values)) <= bound


def near_moments(rows, answer):
    values = [mean for _, mean, _ in rows]
    if not values:
        return answer == (0, 0, 0)
    mean = math.fsum(values) / len(values)
    m2 = math.fsum((x - mean) ** 2 for x in values)
    scale = max(1.0, *map(abs, values))
    return (
        answer[0] == len(values)
        and abs(answer[1] - mean) <= 1e-13 * scale * len(values)
        and abs(answer[2] - m2) <= 1e-12 * scale**2 * len(values)
    )


INTEGERS = st.one_of(st.integers(-50, 50), st.integers(INT64.min, INT64.max), st.sampled_from([INT64.min, INT64.max]))
FLOATS = st.one_of(
    st.integers(-9, 9).map(float),
    st.floats(-1e15, 1e15, allow_subnormal=False),
    st.sampled_from([math.nan, math.inf, -math.inf, -0.0]),
)


def column(*strategies):
    return st.tuples(*strategies)


ALGEBRAS = {
    "int sum": Algebra(from_ufunc(np.add, 0, subtract=np.subtract), column(INTEGERS), (np.int64,)),
    "int min": Algebra(from_ufunc(np.minimum, INT64.max, idempotent=True), column(INTEGERS), (np.int64,)),
    "int max": Algebra(from_ufunc(np.maximum, INT64.min, idempotent=True), column(INTEGERS), (np.int64,)),
    # NaN is the largest float, as in Spark.
    "float min": Algebra(from_ufunc(np.fmin, np.nan, idempotent=True), column(FLOATS), (np.float64,)),
    "float max": Algebra(from_ufunc(np.maximum, -np.inf, idempotent=True), column(FLOATS), (np.float64,)),
    "float sum": Algebra(from_ufunc(np.add, 0.0), column(FLOATS), (np.float64,), near_fsum),
    "any": Algebra(from_ufunc(np.logical_or, False, idempotent=True), column(st.booleans()), (np.bool_,)),
    "small int sum": Algebra(from_ufunc(np.add, 0, subtract=np.subtract), column(st.integers(-128, 127)), (np.int8,)),
    "decimal sum": Algebra(
        from_ufunc(np.add, 0, subtract=np.subtract), column(st.integers(-(10**38), 10**38)), (object,)
    ),
    "strings": Algebra(from_ufunc(np.add, ""), column(st.sampled_from("abc")), (object,)),
    "affine maps": Algebra(Operations((1, 0), compose), column(*[st.integers(0, PRIME - 1)] * 2), (np.int64, np.int64)),
    "first and last": Algebra(
        Operations((-1, -1), first_and_last),
        st.integers(-1, 99).map(lambda x: (x, x)),
        (np.int64, np.int64),
    ),
    "sums of two": Algebra(
        Operations((0, 0), lambda a, b: (a[0] + b[0], a[1] + b[1]), subtract=lambda a, b: (a[0] - b[0], a[1] - b[1])),
        column(INTEGERS, INTEGERS),
        (np.int64, np.int64),
    ),
    "moments": Algebra(
        Operations((0.0, 0.0, 0.0), merge_moments),
        st.floats(-1e3, 1e3, allow_subnormal=False).map(lambda x: (1.0, x, 0.0)),
        (np.float64,) * 3,
        near_moments,
    ),
}
LEGAL = [
    pytest.param(kernel, algebra, id=f"{kernel.name}-{name}")
    for kernel in KERNELS
    for name, algebra in ALGEBRAS.items()
    if kernel.can(algebra.operations)
]
ILLEGAL = [
    pytest.param(kernel, algebra, id=f"{kernel.name}-{name}")
    for kernel in KERNELS
    for name, algebra in ALGEBRAS.items()
    if not kernel.can(algebra.operations)
]


def as_state(algebra, rows):
    arrays = zip(*rows, strict=True) if rows else [()] * len(algebra.dtypes)
    return tuple(np.array(list(a), dtype=d) for a, d in zip(arrays, algebra.dtypes, strict=True))


def one_by_one(operations, state, lo, hi):
    """The definition: combine the rows of a pair one after another, from the left."""
    nothing = operations.identities(state, 1)
    with np.errstate(all="ignore"):
        rows = (take(state, slice(i, i + 1)) for i in range(lo, hi))
        return tuple(array[0] for array in reduce(operations.combine, rows, nothing))


def assert_answers(algebra, state, lo, hi, answers):
    assert [len(array) for array in answers] == [len(lo)] * len(state)
    assert [array.dtype for array in answers] == [array.dtype for array in state]
    for i, (a, b) in enumerate(zip(lo, hi, strict=True)):
        answer = tuple(array[i] for array in answers)
        if algebra.same is None:
            expected = one_by_one(algebra.operations, state, a, b)
            # 0.0 and -0.0 are equal; which of them is the least depends on the order, in Spark as well.
            assert all(x == y or (x != x and y != y) for x, y in zip(answer, expected, strict=True)), (answer, expected)
        else:
            rows = list(zip(*(array[a:b].tolist() for array in state), strict=True))
            assert algebra.same(rows, answer), (rows, answer)


@st.composite
def questions(draw, algebra, most=40):
    """A column, and pairs that are empty, narrow, wide, in any order, or one after another."""
    rows = draw(st.lists(algebra.elements, max_size=most))
    index = st.integers(0, len(rows))
    if draw(st.booleans()):
        edges = sorted(draw(st.lists(index, min_size=1, max_size=12)))
        pairs = list(itertools.pairwise(edges))
    else:
        pairs = draw(st.lists(st.tuples(index, index).map(sorted), max_size=12))
    return as_state(algebra, rows), np.array([a for a, _ in pairs], int), np.array([b for _, b in pairs], int)


@pytest.mark.parametrize(("kernel", "algebra"), LEGAL)
@settings(max_examples=40)
@given(data=st.data())
def test_any_pairs(kernel, algebra, data):
    state, lo, hi = data.draw(questions(algebra))
    assert_answers(algebra, state, lo, hi, kernel(algebra.operations, state).answer(lo, hi))


def seeded(algebra, rows, seed=7):
    """A longer column, made from a few drawn elements."""
    generator = np.random.default_rng(seed)
    few = {
        object: [10**37, -3, 7] if algebra.operations.identity == (0,) else list("abc"),
        np.bool_: [True, False, False],
    }.get(algebra.dtypes[0], [3, 1, 4, 1, 5, 9, 2, 6])
    if algebra.same is near_moments:
        return as_state(algebra, [(1.0, float(x), 0.0) for x in generator.choice(few, rows)])
    picked = [generator.integers(0, len(few), rows) for _ in algebra.dtypes]
    return tuple(np.array([few[i] for i in p], dtype=d) for p, d in zip(picked, algebra.dtypes, strict=True))


@pytest.mark.parametrize(("kernel", "algebra"), LEGAL)
@pytest.mark.parametrize("rows", [1, 8, 64, 65, 200])
def test_every_width(kernel, algebra, rows):
    """All widths at many places: around the edges of groups, blocks and levels, and up to the last row."""
    state = seeded(algebra, rows)
    lo = np.repeat(np.arange(0, rows, max(1, rows // 16)), 2)
    hi = np.minimum(lo + 1 + np.arange(len(lo)) * 5 % rows, rows)
    hi[-1] = rows
    kernel_ = kernel(algebra.operations, state)
    assert_answers(algebra, state, lo, hi, kernel_.answer(lo, hi))
    # Asked again, wider and narrower: what was built is extended, not confused.
    assert_answers(algebra, state, lo[:1], hi[-1:], kernel_.answer(lo[:1], hi[-1:]))
    assert_answers(algebra, state, lo[::-1], hi[::-1], kernel_.answer(lo[::-1], hi[::-1]))


@pytest.mark.parametrize(("kernel", "algebra"), [case for case in LEGAL if case.values[0] in (Overlapping, Landmark)])
def test_of_large_columns_little_is_kept(kernel, algebra, monkeypatch):
    monkeypatch.setattr(sys.modules[kernel.__module__], "_KEPT", 1)
    state = seeded(algebra, 200)
    lo = np.tile(np.arange(100), 4)
    kernel_ = kernel(algebra.operations, state)
    for width in (3, 20, 100, 7):
        # Several magnitudes at once, each of them often enough to be worth a build.
        hi = np.minimum(lo + width + lo % 5 * 9, 200)
        answers = kernel_.answer(lo, hi)
        assert_answers(algebra, state, lo[::7], hi[::7], take(answers, slice(None, None, 7)))
        kept = kernel_._levels if kernel is Overlapping else kernel_._partitions
        assert len(kept) <= 1


@pytest.mark.parametrize(("kernel", "algebra"), LEGAL)
@pytest.mark.parametrize("width", [1, 2, 3, 8, 13, 16, 31, 100])
def test_hopping_by_one(kernel, algebra, width):
    """One width at every row: the pairs are together wider than the column, so that every build is worth it."""
    state = seeded(algebra, 130)
    lo = np.arange(130 - width + 1)
    # Every pair several times, so that even narrow ones are worth a build.
    often = np.tile(lo, 4)
    answers = kernel(algebra.operations, state).answer(often, often + width)
    some = np.unique(np.concatenate([lo[:20], lo[-20:], lo[::9]]))
    assert_answers(algebra, state, some, some + width, take(answers, some))


@pytest.mark.parametrize(("kernel", "algebra"), LEGAL)
def test_no_rows_and_no_pairs(kernel, algebra):
    nothing = np.zeros(0, np.int64)
    for rows in (0, 3):
        state = seeded(algebra, rows)
        assert_answers(algebra, state, nothing, nothing, kernel(algebra.operations, state).answer(nothing, nothing))
        ends = np.array([0, rows])
        assert_answers(algebra, state, ends, ends, kernel(algebra.operations, state).answer(ends, ends))


@pytest.mark.parametrize(("kernel", "algebra"), LEGAL)
def test_the_column_is_not_written(kernel, algebra):
    state = seeded(algebra, 100)
    before = tuple(array.copy() for array in state)
    for array in state:
        array.flags.writeable = False
    lo = np.arange(80)
    kernel(algebra.operations, state).answer(lo, lo + 20)
    for array, copy in zip(state, before, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize(("kernel", "algebra"), LEGAL)
def test_pairs_beyond_the_column_are_refused(kernel, algebra):
    state = seeded(algebra, 5)
    for lo, hi in ((-1, 2), (0, 6)):
        with pytest.raises(IndexError, match="beyond the 5 rows"):
            kernel(algebra.operations, state).answer(np.array([lo]), np.array([hi]))


@pytest.mark.parametrize(("kernel", "algebra"), ILLEGAL)
def test_an_illegal_kernel_is_an_error_at_construction(kernel, algebra):
    state = seeded(algebra, 3)
    law = {"running": r"a group \(an exact subtract\)", "overlapping": "an idempotent combine"}[kernel.name]
    with pytest.raises(AlgebraError, match=law):
        kernel(algebra.operations, state)
    with pytest.raises(AlgebraError, match=law):
        Reducer(algebra.operations, state, kernel=kernel.name)
    with pytest.raises(AlgebraError, match=law):
        choose(algebra.operations, state, np.array([0]), np.array([1]), kernel=kernel.name)


@pytest.mark.parametrize("name", ALGEBRAS)
@settings(max_examples=25)
@given(data=st.data())
def test_the_reducer(name, data):
    """Whatever it chooses, call after call."""
    algebra = ALGEBRAS[name]
    state, lo, hi = data.draw(questions(algebra))
    reducer = Reducer(algebra.operations, state)
    for _ in range(3):
        assert_answers(algebra, state, lo, hi, reducer.reduce(lo, hi))
