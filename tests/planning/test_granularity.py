"""Tiers: no window is cut short by coarse granules, and many windows need no more granules than few."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panes.planning.granularity import granules_kept, tiers
from panes.testing import sliding_class
from panes.timeline import Geometry

# Subsuming Multiple Sliding Windows, figure 7, rebuilt from what the text says of it: ranges and slides.
FIGURE_7 = [(8, 4), (8, 2), (24, 8), (32, 4), (6, 3), (15, 3), (30, 6), (10, 5), (20, 5), (30, 5), (40, 10)]

windows = st.builds(Geometry, st.integers(1, 40), st.integers(1, 12), st.integers(0, 3))


@given(st.lists(windows, min_size=1, max_size=8), st.integers(0, 45), st.integers(0, 200))
def test_no_granule_of_any_age_is_cut_by_a_window_that_needs_it(pool: list[Geometry], age: int, instant: int) -> None:
    steps = tiers(pool)
    assert steps[-1].reach == max(w.range for w in pool)
    assert [tier.reach for tier in steps] == sorted(tier.reach for tier in steps)
    edges = next((tier.edges for tier in steps if tier.reach > age), ())
    wider = [w for w in pool if w.range > age]
    is_edge = any(edge.floor(instant) == instant for edge in edges)
    needed = any(edge.floor(instant) == instant for w in wider for edge in w.edges())
    # Granules may be finer than what windows of just this age need, never coarser.
    assert is_edge or not needed


def test_tiers_of_figure_7_thin_out() -> None:
    assert [
        (tier.reach, [edge.period for edge in tier.edges]) for tier in tiers(Geometry(*window) for window in FIGURE_7)
    ] == [
        (8, [2, 3, 5]),
        (15, [3, 4, 5]),
        (30, [4, 5, 6]),
        (32, [4, 10]),
        (40, [10]),
    ]


@pytest.mark.parametrize("name", ["smooth", "medium", "abrupt"])
def test_thousands_of_windows_need_a_bounded_number_of_granules(name: str) -> None:
    few, many = (tiers(sliding_class(name, count, rng=7, unit=1)) for count in (1_000, 10_000))
    # The widest window spans 60 ticks, so nobody needs more granules, however many windows there are.
    assert granules_kept(few) <= granules_kept(many) <= 60
