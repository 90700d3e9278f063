"""Algorithm 3 and the search beyond it: sound forests, never dearer than the step before."""

from __future__ import annotations

import pickle
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panes.errors import PlanError
from panes.planning.cost import naive_cost, window_cost
from panes.planning.coverage import Semantics
from panes.planning.forest import Forest
from panes.planning.optimize import optimize
from panes.testing import random_gen, sequential_gen
from panes.timeline import MINUTE, Geometry
from tests.planning.definitions import HOLDS

windows_in = st.lists(
    st.builds(Geometry, st.integers(1, 60), st.integers(1, 30), st.integers(0, 10)), min_size=1, max_size=9
)
aligned = st.lists(
    st.builds(
        lambda s, k, u: Geometry(s * k * u, s * u), st.integers(1, 30), st.integers(1, 4), st.sampled_from([1, 2, 6])
    ),
    min_size=1,
    max_size=9,
)
rates = st.floats(0.01, 100)


def tumbling(*ranges: int) -> list[Geometry]:
    return [Geometry(r, r) for r in ranges]


def check(forest: Forest, windows: list[Geometry], semantics: Semantics, eta: float) -> None:
    """What every forest has to be."""
    assert forest.windows == tuple(dict.fromkeys(windows))
    assert not set(forest.factors) & set(windows)
    providers, children = forest.providers, forest.children()
    assert len(providers) == len(forest.nodes)
    for node in forest.nodes:
        if node.provider is not None:
            assert node.provider in providers
            assert node.provider.range < node.window.range  # so following providers ends: a forest (Theorem 7)
            assert HOLDS[semantics](node.window, node.provider)
        assert node.cost == pytest.approx(window_cost(node.window, node.provider, eta))
    for factor in forest.factors:
        assert children.get(factor), "a factor window is there for somebody"
    assert forest.naive == pytest.approx(naive_cost(forest.windows, eta))
    assert forest.trace


def costs(windows: list[Geometry], semantics: Semantics, eta: float) -> tuple[float, float, float, float]:
    first = optimize(windows, semantics, eta, factors=False)
    paper = optimize(windows, semantics, eta, paper=True)
    best = optimize(windows, semantics, eta)
    for forest in (first, paper, best):
        check(forest, windows, semantics, eta)
    assert not first.factors
    return best.total, paper.total, first.total, first.naive


@given(windows_in | aligned, st.sampled_from(Semantics), rates)
def test_each_step_is_no_dearer_than_the_one_before(windows: list[Geometry], semantics: Semantics, eta: float) -> None:
    best, paper, first, naive = costs(windows, semantics, eta)
    close = 1 + 1e-9
    assert best <= paper * close
    assert paper <= first * close
    assert first <= naive * close


@pytest.mark.parametrize("semantics", Semantics)
@pytest.mark.parametrize("generate", [random_gen, sequential_gen])
@pytest.mark.parametrize("shape", [True, False])
def test_the_paper_s_window_sets(semantics: Semantics, generate, shape: bool) -> None:
    for seed in range(3):
        windows = generate(20, shape, rng=seed)
        best, paper, first, naive = costs(windows, semantics, 1e-6)
        assert best <= paper * (1 + 1e-9)
        assert best < first <= naive


@pytest.mark.parametrize("paper", [True, False])
@pytest.mark.parametrize("semantics", Semantics)
def test_examples_6_and_7(semantics: Semantics, paper: bool) -> None:
    # The paper counts over the least common multiple of all ranges, which is 120 here.
    for windows, naive in ((tumbling(10, 20, 30, 40), 480), (tumbling(20, 30, 40), 360)):
        forest = optimize(windows, semantics, paper=paper)
        assert 120 * forest.naive == pytest.approx(naive)
        assert 120 * forest.total == pytest.approx(150)
        check(forest, windows, semantics, 1.0)
    assert forest.factors == (Geometry(10, 10),)
    assert forest.providers[Geometry(40, 40)] == Geometry(20, 20)
    assert 120 * optimize(windows, semantics, factors=False).total == pytest.approx(246)


@pytest.mark.parametrize("semantics", Semantics)
def test_mutually_prime_windows_do_not_improve(semantics: Semantics) -> None:
    """At the paper's rate of one event per unit the shared tick does not pay; with many events it does."""
    windows = tumbling(15, 17, 19)
    for forest in (optimize(windows, semantics), optimize(windows, semantics, paper=True)):
        assert set(forest.providers.values()) == {None}
        assert forest.total == forest.naive
    assert optimize(windows, semantics, 0.5).factors == ()
    assert optimize(windows, semantics, 0.5).total == optimize(windows, semantics, 0.5).naive
    assert optimize(windows, semantics, 1000.0).factors == (Geometry(1, 1),)


def test_footnote_3_a_factor_window_for_some_of_the_downstream() -> None:
    windows = tumbling(20, 30, 45, 75)
    paper = optimize(windows, Semantics.PARTITIONED_BY, paper=True)
    best = optimize(windows, Semantics.PARTITIONED_BY)
    assert Geometry(15, 15) not in paper.factors
    assert Geometry(15, 15) in best.factors
    assert best.total < paper.total


def test_proposals_that_do_not_pay_together_are_left_out() -> None:
    """Each factor window is proposed as if its consumers had nothing better; sometimes they all have."""
    rng = random.Random(0)
    refused = 0
    for _ in range(200):
        windows = list({Geometry(2 * r, 2 * r) for r in (rng.randint(1, 60) for _ in range(8))})
        refused += any("do not pay" in line for line in optimize(windows, Semantics.PARTITIONED_BY, paper=True).trace)
    assert refused


def test_offsets_of_factor_windows_are_congruent() -> None:
    windows = [Geometry(20, 20, 7), Geometry(30, 30, 17), Geometry(40, 40, 27)]
    forest = optimize(windows, Semantics.PARTITIONED_BY)
    assert forest.factors == (Geometry(10, 10, 7),)
    odd = [*windows, Geometry(20, 20, 8), Geometry(30, 30, 18)]
    forest = optimize(odd, Semantics.PARTITIONED_BY)
    assert set(forest.factors) >= {Geometry(10, 10, 7), Geometry(10, 10, 8)}
    check(forest, odd, Semantics.PARTITIONED_BY, 1.0)


def test_ranges_that_are_no_multiples_of_slides() -> None:
    windows = [Geometry(10, 4), Geometry(14, 4), Geometry(22, 8)]
    check(optimize(windows, Semantics.COVERED_BY, 5.0), windows, Semantics.COVERED_BY, 5.0)
    forest = optimize(windows, Semantics.PARTITIONED_BY, 5.0)
    assert forest.factors == (Geometry(2, 2),)


@given(aligned, st.sampled_from(Semantics), st.sampled_from([2, 7, MINUTE]))
@settings(max_examples=30)
def test_the_unit_does_not_matter(windows: list[Geometry], semantics: Semantics, unit: int) -> None:
    scaled = [Geometry(w.range * unit, w.slide * unit, w.offset * unit) for w in windows]
    forest, other = optimize(windows, semantics, 3.0), optimize(scaled, semantics, 3.0 / unit)
    assert other.total * unit == pytest.approx(forest.total)


def test_many_windows_are_planned_within_bounds() -> None:
    windows = random_gen(1500, tumbling=False, multiplier=2000, rng=3, unit=1)
    for semantics in Semantics:
        best, paper, first, _ = costs(windows, semantics, 1.0)
        assert best <= paper <= first


def test_equal_windows_collapse_and_a_forest_travels() -> None:
    forest = optimize(tumbling(20, 20, 30), Semantics.PARTITIONED_BY)
    assert forest.windows == tuple(tumbling(20, 30))
    assert pickle.loads(pickle.dumps(forest)) == forest
    assert hash(forest) == hash(pickle.loads(pickle.dumps(forest)))


def test_nothing_to_plan() -> None:
    with pytest.raises(PlanError, match="no window"):
        optimize([], Semantics.COVERED_BY)


@pytest.mark.parametrize("eta", [0.0, -1.0, float("inf"), float("nan")])
def test_a_rate_is_positive(eta: float) -> None:
    with pytest.raises(PlanError, match="is not a rate"):
        optimize(tumbling(20), Semantics.COVERED_BY, eta)
