"""Panes: no window cuts one, never more of them than under the gcd, and merged only where that is cheaper."""

from __future__ import annotations

import math
from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panes.planning.panes import PaneCost, finest_column, pane_edges
from panes.planning.statistics import Statistics
from panes.timeline import HOUR, SECOND, Edges, Geometry, all_within

windows_in = st.lists(
    st.builds(
        lambda r, s, o, unit: Geometry(r * unit, s * unit, o * unit),
        st.integers(1, 60),
        st.integers(1, 30),
        st.integers(0, 10),
        st.sampled_from([1, 1000, SECOND, 7 * SECOND]),
    ),
    min_size=1,
    max_size=12,
)
rates = st.floats(0.01, 1e6)
key_counts = st.floats(1, 1e7)


def cost_at(rate: float = 100, keys: float = 100) -> PaneCost:
    return PaneCost(Statistics(rate=rate, default_keys=keys), ("key",))


def tumbling(*seconds: int) -> list[Geometry]:
    return [Geometry(s * SECOND, s * SECOND) for s in seconds]


def gcd_of(windows: list[Geometry]) -> Edges:
    return reduce(Edges.common, (edges for window in windows for edges in window.edges()))


def uncut(windows: list[Geometry], edges: tuple[Edges, ...]) -> bool:
    """Whether every edge of every window is an edge of panes."""
    return all(all_within(window.edges(), edges) for window in windows)


@pytest.mark.parametrize("rate", [1, 10, 100])
def test_mutually_prime_windows_keep_their_own_progressions(rate: float) -> None:
    windows, cost = tumbling(15, 17, 19), cost_at(rate)
    edges = pane_edges(windows, cost)
    assert set(edges) == {Edges(s * SECOND) for s in (15, 17, 19)}
    assert cost(edges) < cost([Edges(SECOND)])
    assert cost.rows(edges) < cost.rows([Edges(SECOND)])


def test_mutually_prime_windows_share_the_tick_where_that_is_cheaper() -> None:
    """Very many events of one key: a pane per second is nothing, a second progression per event is something."""
    cost = cost_at(rate=1e6, keys=1)
    assert pane_edges(tumbling(15, 17, 19), cost) == (Edges(SECOND),)
    assert cost([Edges(SECOND)]) < cost([Edges(s * SECOND) for s in (15, 17, 19)])


def test_odd_offsets_are_a_second_progression() -> None:
    windows = [Geometry(HOUR, HOUR), Geometry(HOUR, HOUR, 7 * SECOND)]
    assert set(pane_edges(windows, cost_at())) == {Edges(HOUR), Edges(HOUR, 7 * SECOND)}
    assert gcd_of(windows) == Edges(SECOND)


def test_a_range_that_is_no_multiple_of_the_slide_has_two_progressions() -> None:
    window = Geometry(HOUR + 7 * SECOND, HOUR)
    assert set(pane_edges([window], cost_at())) == {Edges(HOUR), Edges(HOUR, 7 * SECOND)}


@pytest.mark.parametrize("last", [60, 110, 1020, 30_000])
def test_sequential_windows_share_one_progression(last: int) -> None:
    assert pane_edges(tumbling(*range(20, last, 10)), cost_at()) == (Edges(10 * SECOND),)


@settings(max_examples=150)
@given(windows_in, rates, key_counts)
def test_no_window_cuts_a_pane(windows: list[Geometry], rate: float, keys: float) -> None:
    assert uncut(windows, pane_edges(windows, cost_at(rate, keys)))


@settings(max_examples=150)
@given(windows_in, rates, key_counts)
def test_panes_are_never_more_than_under_the_gcd(windows: list[Geometry], rate: float, keys: float) -> None:
    cost = cost_at(rate, keys)
    edges = pane_edges(windows, cost)
    assert cost.rows(edges) <= cost.rows([gcd_of(windows)]) * (1 + 1e-9)
    for edge in edges:
        assert edge.within(gcd_of(windows)), "no pane is finer than the gcd"


@settings(max_examples=100)
@given(windows_in, rates, key_counts)
def test_merging_makes_nothing_dearer(windows: list[Geometry], rate: float, keys: float) -> None:
    cost = cost_at(rate, keys)
    apart = {edge for window in windows for edge in window.edges()}
    assert cost(pane_edges(windows, cost)) <= cost(list(apart)) * (1 + 1e-9)


@pytest.mark.parametrize("count", [20, 30, 513, 700])
@pytest.mark.parametrize("rate", [0.01, 1e6])
def test_any_number_of_windows_is_answered(count: int, rate: float) -> None:
    """Few are merged pair by pair, more than 24 all or none, more than 512 not even looked at for multiples."""
    windows = [Geometry((1000 + i) * SECOND, (1000 + i) * SECOND, i % 7 * SECOND) for i in range(count)]
    cost = cost_at(rate)
    edges = pane_edges(windows, cost)
    assert uncut(windows, edges)
    assert cost.rows(edges) <= cost.rows([gcd_of(windows)])


def test_panes_per_second_by_hand() -> None:
    """Two keys with an event a second each: a pane of ten seconds is empty with probability exp(-10)."""
    assert cost_at(rate=2, keys=2).rows([Edges(10 * SECOND)]) == pytest.approx(2 / 10 * (1 - math.exp(-10)))
    assert cost_at(rate=2, keys=2e6).rows([Edges(10 * SECOND)]) == pytest.approx(2, rel=1e-4)


def test_events_of_a_million_keys_are_sorted_as_they_are() -> None:
    window = [Geometry(20 * SECOND, 10 * SECOND)]
    few, many = finest_column(window, 1, cost_at()), finest_column(window, 1, cost_at(keys=1e6))
    assert (few.from_events, many.from_events) == (False, True)
    assert many.lanes == 1
    assert few.cost < many.cost


def test_what_the_jvm_cannot_build_comes_from_events() -> None:
    window = [Geometry(20 * SECOND, 10 * SECOND)]
    column = finest_column(window, 1, cost_at(), in_jvm=False)
    assert (column.from_events, column.lanes) == (True, 1)
    assert column.edges == finest_column(window, 1, cost_at()).edges


def test_uneven_panes_lie_side_by_side_too() -> None:
    assert finest_column(tumbling(10), 1, cost_at()).lanes > 1
    primes = finest_column(tumbling(15, 17, 19), 1, cost_at())
    assert (len(primes.edges), primes.from_events) == (3, False)
    assert primes.lanes > 1


def test_rows_of_panes_side_by_side_by_hand() -> None:
    """Panes at 10, 15, 20, 30, ...: one in six seconds, so that four of them are a row every 24 seconds."""
    edges = [Edges(10 * SECOND), Edges(15 * SECOND)]
    assert cost_at(rate=2, keys=2).rows(edges, lanes=4) == pytest.approx(2 / 24 * (1 - math.exp(-24)))


def test_many_stored_columns_take_fewer_lanes() -> None:
    lanes = [finest_column(tumbling(10), stored, cost_at()).lanes for stored in (1, 4, 64)]
    assert lanes == sorted(lanes, reverse=True)
    assert lanes[0] > lanes[-1] == 1


@settings(max_examples=100)
@given(windows_in, rates, key_counts, st.integers(1, 30))
def test_the_column_taken_is_the_cheaper_one(windows: list[Geometry], rate: float, keys: float, stored: int) -> None:
    cost = cost_at(rate, keys)
    column = finest_column(windows, stored, cost)
    assert column.cost <= finest_column(windows, stored, cost, in_jvm=False).cost
    assert column.lanes == 1 or not column.from_events
    assert uncut(windows, column.edges)
