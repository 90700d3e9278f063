"""Kernels over values: distinct ones and those at a place, against sorting and counting every pair on its own."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.errors import AlgebraError
from panes.kernels import order_statistics as ranks_module
from panes.kernels.distinct import Distinct
from panes.kernels.order_statistics import Places, Ranks, Sorting

CODES = st.lists(st.integers(0, 12), min_size=1, max_size=70).map(np.array)


def pairs_over(rows, data):
    drawn = data.draw(st.lists(st.tuples(st.integers(0, rows - 1), st.integers(1, rows)), min_size=1, max_size=20))
    lo = np.array([min(a, b - 1) for a, b in drawn])
    return lo, np.array([max(a + 1, b) for a, b in drawn])


def ranks_of(code, weight=None):
    ranks = Ranks(code, weight)
    return lambda *asked: ranks.at(*asked)[0]


@settings(max_examples=120)
@given(CODES, st.data())
def test_the_value_at_every_place_of_any_pair(code, data):
    lo, hi = pairs_over(len(code), data)
    rank = np.array([data.draw(st.integers(0, int(h - b) - 1)) for b, h in zip(lo, hi, strict=True)])
    expected = [sorted(code[b:h])[r] for b, h, r in zip(lo, hi, rank, strict=True)]
    ready = ranks_of(code)
    assert ready(lo, hi, rank).tolist() == expected
    assert ready(lo, hi, rank).tolist() == expected


NUMBERS = st.one_of(
    st.lists(st.floats(allow_subnormal=False).map(lambda x: x + 0.0), min_size=1, max_size=70).map(np.array),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=70).map(lambda x: np.array(x, np.int64)),
)


@pytest.mark.parametrize("kernel", [Sorting, lambda x: Places(x, lambda: np.unique(x, return_inverse=True))])
@settings(max_examples=120)
@given(NUMBERS, st.data())
def test_numbers_at_several_places_of_any_pair(kernel, numbers, data):
    lo, hi = pairs_over(len(numbers), data)
    ranks = [
        np.array([data.draw(st.integers(0, int(h - b) - 1)) for b, h in zip(lo, hi, strict=True)]) for _ in range(2)
    ]
    ready = kernel(numbers)
    for _ in range(3):
        found = ready.at(lo, hi, *ranks)
        for values, rank in zip(found, ranks, strict=True):
            expected = [np.sort(numbers[b:h])[r] for b, h, r in zip(lo, hi, rank, strict=True)]
            np.testing.assert_array_equal(values, np.array(expected))


def test_no_pairs_have_no_places():
    nothing = np.zeros(0, np.int64)
    for column in (nothing, np.array([3.5])):
        (found,) = Sorting(column).at(nothing, nothing, nothing)
        assert len(found) == 0


def test_narrow_pairs_are_sorted_until_ranks_have_paid_for_themselves():
    column = np.random.default_rng(1).normal(size=100_000)
    asked = []
    places = Places(column, lambda: asked.append(1) or np.unique(column, return_inverse=True))
    lo = np.arange(0, 90_000, 100)
    places.at(lo, lo + 1000, np.full(len(lo), 50))
    assert not asked
    wide = np.arange(0, 50_000, 50)
    (found,) = places.at(wide, wide + 50_000, np.full(len(wide), 25_000))
    assert asked
    assert found[0] == np.sort(column[:50_000])[25_000]
    fresh = Places(column, lambda: asked.append(2) or np.unique(column, return_inverse=True))
    for _ in range(100):
        fresh.at(lo, lo + 1000, np.full(len(lo), 50))
    assert 2 in asked


def test_wide_pairs_are_not_sorted_even_where_they_are_few():
    column = np.random.default_rng(1).normal(size=200_000)
    asked = []
    places = Places(column, lambda: asked.append(1) or np.unique(column, return_inverse=True))
    lo = np.arange(0, 100_000, 500)
    places.at(lo, lo + 100_000, np.full(len(lo), 50_000))
    assert asked


@settings(max_examples=120)
@given(CODES, st.data())
def test_places_with_weights(code, data):
    weight = np.array([data.draw(st.integers(1, 5)) for _ in code])
    lo, hi = pairs_over(len(code), data)
    bags = [sorted(np.repeat(code[b:h], weight[b:h])) for b, h in zip(lo, hi, strict=True)]
    rank = np.array([data.draw(st.integers(0, len(bag) - 1)) for bag in bags])
    expected = [bag[r] for bag, r in zip(bags, rank, strict=True)]
    assert ranks_of(code, weight)(lo, hi, rank).tolist() == expected
    places = Places(code, lambda: np.unique(code, return_inverse=True), weight)
    assert [found.tolist() for found in places.at(lo, hi, rank, rank)] == [expected, expected]


def test_a_column_too_large_to_keep_is_read_anew(monkeypatch):
    monkeypatch.setattr(ranks_module, "_KEPT", 10)
    code = np.random.default_rng(1).integers(0, 1000, 500)
    ranks = Ranks(code)
    for _ in range(2):
        assert ranks.at(np.array([0]), np.array([500]), np.array([250]))[0].tolist() == [sorted(code)[250]]


@settings(max_examples=150)
@given(CODES, st.integers(1, 30), st.integers(1, 30))
def test_distinct_values_of_pairs_in_order(code, width, step):
    lo = np.arange(0, len(code), step)
    hi = np.minimum(lo + width, len(code))
    distinct = Distinct(code)
    expected = [set(code[b:h].tolist()) for b, h in zip(lo, hi, strict=True)]
    assert distinct.counts(lo, hi).tolist() == [len(values) for values in expected]
    pair, row = distinct.rows(lo, hi)
    for number, values in enumerate(expected):
        found = code[row[pair == number]].tolist()
        assert len(found) == len(values)
        assert set(found) == values


def test_empty_pairs_and_columns():
    nothing = np.zeros(0, np.int64)
    assert Distinct(nothing).counts(np.array([0, 0]), np.array([0, 0])).tolist() == [0, 0]
    assert Distinct(np.array([3, 3])).counts(np.array([0, 1, 1]), np.array([0, 1, 2])).tolist() == [0, 0, 1]


def test_pairs_out_of_order_are_refused():
    with pytest.raises(AlgebraError, match="in order"):
        Distinct(np.array([1, 2, 3])).counts(np.array([1, 0]), np.array([2, 3]))


def test_quantiles_to_the_last_digit():
    """Decimals become the nearest doubles, and places are counted in whole numbers."""
    instants = pa.array(np.zeros(100, np.int64)).cast(pa.timestamp("us"))
    tenths = pa.array([Decimal("0.3")] * 100, pa.decimal128(20, 1))
    table = pa.table({"ts": instants, "d": tenths, "x": np.arange(100)})
    select = {"d": pn.quantile("d", 0.5), "x": pn.quantile("x", 0.29, method="element")}
    (row,) = pn.plan(pn.query("q", at="ts", select=select, over=pn.tumbling("1s"))).run(table).to_pylist()
    assert (row["d"], row["x"]) == (0.3, 28)
    assert str(pn.quantile("x", 0.12345679)) != str(pn.quantile("x", 0.12345678))
