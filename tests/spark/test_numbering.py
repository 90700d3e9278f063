"""Panes by their numbers: what an event is counted by in SQL, and where Python finds the panes again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panes.engine.partials import floor_to_edges, next_edge
from panes.spark.lanes import bounds_of, number_of
from panes.timeline import DAY, SECOND, Edges

units = st.sampled_from([1, 1000, SECOND, 7 * DAY])
progressions = st.lists(
    st.builds(lambda p, o, unit: Edges(p * unit, o * unit), st.integers(1, 60), st.integers(0, 60), units),
    min_size=1,
    max_size=6,
)
centuries = st.sampled_from([0, -SECOND, 10**12, 1_800_000_000 * SECOND, -62_135_596_800 * SECOND, 2**61])
instants = st.builds(
    lambda origin, unit, steps: np.array([origin + step * unit for step in steps]),
    centuries,
    units,
    st.lists(st.integers(-10_000, 10_000), min_size=1, max_size=30),
)


@settings(max_examples=150)
@given(progressions, instants, st.sampled_from([1, 2, 4, 8, 16, 32]))
def test_a_number_says_where_its_pane_starts_and_ends(edges: list[Edges], at: np.ndarray, lanes: int) -> None:
    number = number_of(edges, at)
    blocks, block = np.unique(number // lanes, return_inverse=True)
    bounds = bounds_of(edges, blocks, lanes)
    np.testing.assert_array_equal(bounds[block, number % lanes], floor_to_edges(tuple(edges), at))
    np.testing.assert_array_equal(bounds[block, number % lanes + 1], next_edge(tuple(edges), at))


@given(progressions, st.integers(-(10**15), 10**15))
def test_numbers_grow_by_one_at_every_edge(edges: list[Edges], instant: int) -> None:
    """By as many as there are where several coincide."""
    grown = number_of(edges, np.array([instant])) - number_of(edges, np.array([instant - 1]))
    assert grown == sum(e.floor(instant) == instant for e in edges)


@pytest.mark.parametrize("blocks", [[], [0], [-3, 5]])
def test_no_block_is_like_any_other_number_of_them(blocks: list[int]) -> None:
    assert bounds_of([Edges(15), Edges(17)], np.array(blocks, np.int64), 4).shape == (len(blocks), 5)
