"""Piggybacking: a sparser window of the same range is read from the denser one, where that is cheaper."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panes.planning.coverage import Semantics
from panes.planning.forest import Forest, piggyback
from panes.planning.optimize import optimize
from panes.timeline import Geometry
from tests.planning.definitions import HOLDS

DENSE = Geometry(60, 5)
windows_in = st.lists(
    st.builds(Geometry, st.sampled_from([12, 30, 60]), st.integers(1, 90), st.integers(0, 12)),
    min_size=1,
    max_size=8,
    unique=True,
)


def forest(*windows: Geometry, overlapping: bool = True, eta: float = 10) -> Forest:
    return piggyback(windows, lambda some: optimize(some, Semantics.PARTITIONED_BY, eta), overlapping=overlapping)


def carries(host: Geometry, window: Geometry) -> bool:
    """By the definition: every start within a common period is a start of the host."""
    starts = {host.offset + m * host.slide for m in range(-window.slide, 3 * window.slide)}
    return host.range == window.range and all(window.offset + m * window.slide in starts for m in range(host.slide))


@pytest.mark.parametrize("window", [Geometry(60, 20), Geometry(60, 20, 5), Geometry(60, 30, 25)])
def test_the_denser_window_of_the_range_is_read(window: Geometry) -> None:
    found = forest(DENSE, window)
    assert found.providers[window] == DENSE
    assert next(node.cost for node in found.nodes if node.window == window) == pytest.approx(1 / 5)
    assert any("piggyback: 1 windows" in line for line in found.trace)


@pytest.mark.parametrize("window", [Geometry(60, 20, 3), Geometry(60, 12), Geometry(120, 20), Geometry(55, 20)])
def test_other_offsets_slides_and_ranges_are_not(window: Geometry) -> None:
    found = forest(DENSE, window)
    assert found == optimize((DENSE, window), Semantics.PARTITIONED_BY, 10)


def test_the_sparsest_host_is_taken() -> None:
    found = forest(DENSE, Geometry(60, 10), Geometry(60, 30))
    assert found.providers[Geometry(60, 30)] == Geometry(60, 10)
    assert found.providers[Geometry(60, 10)] == DENSE


def test_a_column_of_partials_may_not_overlap() -> None:
    assert forest(DENSE, Geometry(60, 20), overlapping=False).providers[Geometry(60, 20)] != DENSE
    gaps = forest(Geometry(60, 60), Geometry(60, 180), overlapping=False)
    assert gaps.providers[Geometry(60, 180)] == Geometry(60, 60)


def test_a_window_with_gaps_carries_nobody() -> None:
    gaps, sparser = Geometry(60, 90), Geometry(60, 180)
    assert forest(gaps, sparser).providers[sparser] != gaps


def test_few_events_are_read_themselves() -> None:
    """With an event in a thousand units, looking at twelve instances a minute is dearer."""
    assert forest(DENSE, Geometry(60, 300), eta=0.001).providers[Geometry(60, 300)] is None


@settings(max_examples=120)
@given(windows_in, st.booleans(), st.floats(0.01, 100), st.sampled_from(Semantics))
def test_never_dearer_and_never_wrong(
    windows: list[Geometry], overlapping: bool, eta: float, semantics: Semantics
) -> None:
    def plain(some: tuple[Geometry, ...]) -> Forest:
        return optimize(some, semantics, eta)

    without = plain(tuple(windows))
    found = piggyback(tuple(windows), plain, overlapping=overlapping)
    assert found.total <= without.total
    assert found.naive == pytest.approx(without.naive)
    assert set(found.windows) == set(windows)
    assert len(found.providers) == len(found.nodes)
    for window, provider in found.providers.items():
        if provider is not None:
            assert provider in found.providers
            assert HOLDS[semantics](window, provider) or carries(provider, window)
            assert overlapping or semantics is Semantics.COVERED_BY or provider.tumbling
