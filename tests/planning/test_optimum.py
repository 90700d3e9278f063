"""The integer program: no dearer than the heuristic, and right by brute force."""

from __future__ import annotations

import itertools
import sys

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from panes.errors import PlanError
from panes.planning.cost import min_cost
from panes.planning.coverage import CoverageGraph, Semantics
from panes.planning.optimize import optimize
from panes.testing import optimum, random_gen
from panes.timeline import Geometry
from tests.planning.definitions import HOLDS, partitioned_by

windows_in = st.lists(
    st.builds(Geometry, st.integers(1, 24), st.integers(1, 12), st.integers(0, 4)), min_size=1, max_size=5, unique=True
)


def brute_force(windows: list[Geometry], pool: list[Geometry], semantics: Semantics, eta: float) -> float:
    return min(
        min_cost(CoverageGraph((*windows, *chosen), semantics), eta).total
        for size in range(len(pool) + 1)
        for chosen in itertools.combinations(pool, size)
    )


@settings(max_examples=40)
@given(windows_in, st.sampled_from(Semantics), st.floats(0.05, 20))
def test_no_dearer_than_the_heuristic(windows: list[Geometry], semantics: Semantics, eta: float) -> None:
    heuristic, best = optimize(windows, semantics, eta), optimum(windows, semantics, eta)
    assert best.total <= heuristic.total * (1 + 1e-7)
    assert best.windows == heuristic.windows
    assert all(node.provider is None or HOLDS[semantics](node.window, node.provider) for node in best.nodes)
    assert all(best.children().get(factor) for factor in best.factors)


@settings(max_examples=25)
@given(windows_in, st.floats(0.05, 20))
def test_the_closure_holds_an_optimum_over_all_tumbling_windows(windows: list[Geometry], eta: float) -> None:
    # Of equal ranges, one rides on another before plans are made.
    assume(len({w.range for w in windows}) == len(windows))
    longest = max(w.range for w in windows)
    every = {Geometry(p, p, o) for p in range(1, longest) for o in range(p)}
    useful = [f for f in every if f not in windows and any(partitioned_by(w, f) for w in windows)]
    assume(len(useful) <= 9)
    best = optimum(windows, Semantics.PARTITIONED_BY, eta)
    assert best.total == pytest.approx(brute_force(windows, useful, Semantics.PARTITIONED_BY, eta), rel=1e-7)


@pytest.mark.parametrize("semantics", Semantics)
def test_the_heuristic_is_close_on_the_paper_s_window_sets(semantics: Semantics) -> None:
    for seed in range(2):
        windows = random_gen(10, tumbling=False, rng=seed, unit=1)
        best = optimum(windows, semantics).total
        assert 1 - 1e-7 <= optimize(windows, semantics).total / best <= 1.05
        assert optimize(windows, semantics, paper=True).total / best > 1.1


def test_without_scipy_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(PlanError, match=r"pip install 'panes\[exact\]'"):
        optimum([Geometry(20, 20), Geometry(30, 30)], Semantics.PARTITIONED_BY)
