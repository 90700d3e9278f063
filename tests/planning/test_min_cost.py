"""Algorithm 1: the cheapest provider of each window."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panes.errors import PlanError
from panes.planning.cost import RAW, CostModel, Period, extend, min_cost, without_childless
from panes.planning.coverage import CoverageGraph, Semantics
from panes.timeline import Geometry

windows_in = st.lists(
    st.builds(Geometry, st.integers(1, 40), st.integers(1, 20), st.integers(0, 6)), min_size=1, max_size=10, unique=True
)
rates = st.floats(0.01, 100)


def tumbling(*ranges: int) -> tuple[Geometry, ...]:
    return tuple(Geometry(r, r) for r in ranges)


def test_example_6() -> None:
    windows = tumbling(10, 20, 30, 40)
    model = CostModel(period=Period.of(windows))
    best = min_cost(CoverageGraph(windows, Semantics.COVERED_BY), model)
    assert model.naive(windows) == 480
    assert best.costs.tolist() == [120, 12, 12, 6]
    assert best.total == 150
    assert best.providers.tolist() == [RAW, 0, 0, 1]


def test_example_7_without_factor_windows() -> None:
    windows = tumbling(20, 30, 40)
    model = CostModel(period=Period.of(windows))
    assert model.naive(windows) == 360
    assert min_cost(CoverageGraph(windows, Semantics.COVERED_BY), model).total == 246


def test_per_unit_of_time_is_the_limit_of_a_long_period() -> None:
    windows = (Geometry(40, 10), Geometry(20, 20), Geometry(60, 20))
    rate = min_cost(CoverageGraph(windows, Semantics.PARTITIONED_BY), CostModel(2.0)).total
    long = 120 * 10**7
    finite = min_cost(CoverageGraph(windows, Semantics.PARTITIONED_BY), CostModel(2.0, Period(long))).total
    assert finite / long == pytest.approx(rate, rel=1e-6)


@given(windows_in, st.sampled_from(Semantics), rates)
def test_each_window_takes_its_cheapest_provider(windows: list[Geometry], semantics: Semantics, eta: float) -> None:
    model = CostModel(eta)
    best = min_cost(CoverageGraph(tuple(windows), semantics), model)
    for at, window in enumerate(windows):
        offers = [model.cost(window)]
        offers += [model.cost(window, p) for p in windows if p != window and semantics.holds(window, p)]
        assert best.costs[at] == pytest.approx(min(offers), rel=1e-12)


@given(windows_in, windows_in, st.sampled_from(Semantics), rates)
def test_extending_equals_running_again(
    windows: list[Geometry], more: list[Geometry], semantics: Semantics, eta: float
) -> None:
    model, graph = CostModel(eta), CoverageGraph(tuple(windows), semantics)
    extended = extend(min_cost(graph, model), more, model)
    assert extended.costs.tolist() == pytest.approx(min_cost(graph.extended(more), model).costs.tolist(), rel=1e-12)


def test_childless_vertices_go_with_their_childless_providers() -> None:
    graph = CoverageGraph(tumbling(7, 5, 10, 20), Semantics.PARTITIONED_BY)
    pruned = without_childless(min_cost(graph, CostModel()), keep=1)
    assert pruned.graph.windows == tumbling(7)
    kept = without_childless(min_cost(CoverageGraph(tumbling(20, 5, 3), Semantics.PARTITIONED_BY), CostModel()), keep=1)
    assert kept.graph.windows == tumbling(20, 5)
    assert kept.providers.tolist() == [1, RAW]


@pytest.mark.parametrize("eta", [0.0, -1.0, float("inf"), float("nan")])
def test_a_rate_is_positive(eta: float) -> None:
    with pytest.raises(PlanError, match="is not a rate"):
        CostModel(eta)
