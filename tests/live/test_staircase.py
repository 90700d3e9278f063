"""CI-MAX against all elements: what lookups find, the largest values, and intervals by themselves."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from panes.live.ragged import Ragged
from panes.live.staircase import Stabbing, Staircase

EXTREMES = [-(2**63), -(2**63) + 1, 2**63 - 1]
values = st.one_of(st.integers(-5, 5), st.sampled_from(EXTREMES))
elements = st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), values), max_size=10), max_size=8)


@settings(max_examples=100)
@given(elements, st.data())
def test_lookups_are_exact(found: list[list[tuple[int, int, int]]], data: st.DataObject) -> None:
    index, seen, now = Staircase(), [], 0  # type: ignore[var-annotated]
    index.extend(4)
    for batch in found:
        timed = sorted([(key, now := now + gap, value) for key, gap, value in batch], key=lambda each: each[0])
        seen += timed
        if timed:
            keys, counts = np.unique([key for key, _, _ in timed], return_counts=True)
            index.insert(keys, counts, *(np.array(column) for column in list(zip(*timed, strict=True))[1:]))
        since, v = data.draw(st.integers(0, 40)), data.draw(values)
        late = [(key, value) for key, time, value in seen if time >= since]
        assert index.above(v, since).tolist() == sorted({key for key, value in late if value > v})


def test_a_forgotten_substream_begins_anew() -> None:
    index = Staircase()
    index.extend(2)
    index.insert(np.array([0, 1]), np.array([1, 1]), np.array([5, 5]), np.array([9, 9]))
    assert index.above(8, since=0).tolist() == [0, 1]
    index.clear(np.array([0]))
    assert index.above(8, since=0).tolist() == [1]


@settings(max_examples=100)
@given(
    st.lists(st.tuples(values, values, st.integers(0, 9)), max_size=60),
    values,
    st.integers(0, 10),
)
def test_intervals_that_hold_a_point(intervals: list[tuple[int, int, int]], point: int, since: int) -> None:
    lows, highs, times = (np.array([each[i] for each in intervals], np.int64) for i in range(3))
    lows, highs = np.minimum(lows, highs), np.maximum(lows, highs)
    found = Stabbing(lows, highs, times).stabbed(point, since)
    assert sorted(found.tolist()) == np.flatnonzero((lows <= point) & (point < highs) & (times >= since)).tolist()


def test_many_intervals_by_blocks() -> None:
    rng = np.random.default_rng(1)
    lows = rng.integers(0, 10**6, 60_000)
    highs = lows + rng.integers(1, 3 * 10**5, len(lows))
    times = rng.integers(0, 10**6, len(lows))
    index = Stabbing(lows, highs, times)
    for since in (0, 500_000, 990_000, 999_990):
        for point in (0, 17, 500_000, 1_200_000, 1_400_000):
            expected = np.flatnonzero((lows <= point) & (point < highs) & (times >= since))
            assert sorted(index.stabbed(point, since).tolist()) == expected.tolist()


def test_layers_of_many_keys_are_exact() -> None:
    rng = np.random.default_rng(2)
    index, columns = Staircase(), []  # type: ignore[var-annotated]
    index.extend(3000)
    for step in range(40):
        size = int(rng.integers(1, 900))
        key, value = np.sort(rng.integers(0, 3000, size)), rng.integers(0, 1000, size)
        time = np.full(size, step)
        distinct, counts = np.unique(key, return_counts=True)
        index.insert(distinct, counts, time, value)
        columns.append((key, time, value))
        keys, times, all_values = (np.concatenate(parts) for parts in zip(*columns, strict=True))
        since, v = int(rng.integers(0, step + 1)), int(rng.integers(800, 1000))
        assert index.above(v, since).tolist() == np.unique(keys[(times >= since) & (all_values > v)]).tolist()


@given(st.lists(st.lists(st.integers(0, 9), max_size=40), max_size=6), st.integers(-1, 10), st.booleans())
def test_searches_in_rows(rows: list[list[int]], value: int, falling: bool) -> None:
    found = Ragged(0)
    found.extend(len(rows))
    flat = [element for row in rows for element in sorted(row, reverse=falling)]
    sizes = np.array([len(row) for row in rows], np.int64)
    found.append(np.arange(len(rows)), sizes, np.array(flat, np.int64))
    expected = [sum(element > value if falling else element < value for element in row) for row in rows]
    assert found.count_below(np.arange(len(rows)), 0, value, falling=falling).tolist() == expected
