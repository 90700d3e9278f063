"""Algorithm 1: the cheapest provider of each window."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panes.planning.cost import RAW, extend, min_cost, naive_cost, window_cost, without_childless
from panes.planning.coverage import CoverageGraph, Semantics
from panes.timeline import Geometry
from tests.planning.definitions import HOLDS

windows_in = st.lists(
    st.builds(Geometry, st.integers(1, 40), st.integers(1, 20), st.integers(0, 6)), min_size=1, max_size=10, unique=True
)
rates = st.floats(0.01, 100)


def tumbling(*ranges: int) -> tuple[Geometry, ...]:
    return tuple(Geometry(r, r) for r in ranges)


# The paper counts over the least common multiple of all ranges, which is 120 here.


def test_example_6() -> None:
    windows = tumbling(10, 20, 30, 40)
    best = min_cost(CoverageGraph(windows, Semantics.COVERED_BY), eta=1.0)
    assert 120 * naive_cost(windows, eta=1.0) == pytest.approx(480)
    assert (120 * best.costs).tolist() == pytest.approx([120, 12, 12, 6])
    assert 120 * best.total == pytest.approx(150)
    assert best.providers.tolist() == [RAW, 0, 0, 1]


def test_example_7_without_factor_windows() -> None:
    windows = tumbling(20, 30, 40)
    assert 120 * naive_cost(windows, eta=1.0) == pytest.approx(360)
    assert 120 * min_cost(CoverageGraph(windows, Semantics.COVERED_BY), eta=1.0).total == pytest.approx(246)


def over(period: int, window: Geometry, provider: Geometry | None, eta: float) -> float:
    """What a window costs over a period by the paper: the first instance ends with its range (equation 1)."""
    return (1 + (period - window.range) / window.slide) * window_cost(window, provider, eta) * window.slide


def test_per_unit_of_time_is_the_limit_of_a_long_period() -> None:
    windows = (Geometry(40, 10), Geometry(20, 20), Geometry(60, 20))
    best = min_cost(CoverageGraph(windows, Semantics.PARTITIONED_BY), eta=2.0)
    providers = [None if at == RAW else windows[at] for at in best.providers]
    long = 120 * 10**7
    finite = sum(over(long, *pair, eta=2.0) for pair in zip(windows, providers, strict=True))
    assert finite / long == pytest.approx(best.total, rel=1e-6)


@given(windows_in, st.sampled_from(Semantics), rates)
def test_each_window_takes_its_cheapest_provider(windows: list[Geometry], semantics: Semantics, eta: float) -> None:
    best = min_cost(CoverageGraph(tuple(windows), semantics), eta)
    for at, window in enumerate(windows):
        offers = [window_cost(window, None, eta)]
        offers += [window_cost(window, p, eta) for p in windows if p != window and HOLDS[semantics](window, p)]
        assert best.costs[at] == pytest.approx(min(offers), rel=1e-12)


@given(windows_in, windows_in, st.sampled_from(Semantics), rates)
def test_extending_equals_running_again(
    windows: list[Geometry], more: list[Geometry], semantics: Semantics, eta: float
) -> None:
    graph = CoverageGraph(tuple(windows), semantics)
    extended = extend(min_cost(graph, eta), more, eta)
    assert extended.costs.tolist() == pytest.approx(min_cost(graph.extended(more), eta).costs.tolist(), rel=1e-12)


def test_childless_vertices_go_with_their_childless_providers() -> None:
    graph = CoverageGraph(tumbling(7, 5, 10, 20), Semantics.PARTITIONED_BY)
    pruned = without_childless(min_cost(graph, 1.0), keep=1)
    assert pruned.graph.windows == tumbling(7)
    kept = without_childless(min_cost(CoverageGraph(tumbling(20, 5, 3), Semantics.PARTITIONED_BY), 1.0), keep=1)
    assert kept.graph.windows == tumbling(20, 5)
    assert kept.providers.tolist() == [1, RAW]
