"""The window manager: the paper's example, its definitions, and chains after any sequence of changes."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panes.errors import PlanError
from panes.planning.granularity import granules_kept, tiers
from panes.planning.window_classes import Role, WindowManager, subsumable
from panes.testing import sliding_class
from panes.timeline import Geometry

# Fig. 7, rebuilt from what the text says of it.
U, D, V, Z = Geometry(8, 4), Geometry(8, 2), Geometry(24, 8), Geometry(32, 4)
R, P, Y = Geometry(6, 3), Geometry(15, 3), Geometry(30, 6)
B, H, F, E = Geometry(10, 5), Geometry(20, 5), Geometry(30, 5), Geometry(40, 10)
FIGURE_7 = [U, D, V, Z, R, P, Y, B, H, F, E]

windows = st.builds(Geometry, st.integers(1, 40), st.integers(1, 12), st.integers(0, 3))


def chains(manager: WindowManager) -> list[list[Geometry]]:
    return [[link.window for link in group.links] for group in manager.groups]


def assert_sound(manager: WindowManager, pool: Counter[Geometry]) -> None:
    found = [window for group in manager.groups for window in group.windows]
    assert Counter(found) == Counter(set(pool.elements()))
    for group in manager.groups:
        for before, after in pairwise(group.links):
            assert before.window.range < after.window.range
            assert subsumable(before.window, after.window)
        for link in group.links:
            for rider in link.riders:
                assert rider.range == link.window.range
                assert subsumable(link.window, rider)
                assert rider.slide % link.window.slide == 0


def test_the_groups_of_figure_7() -> None:
    manager = WindowManager(FIGURE_7)
    assert chains(manager) == [[R, P, Y], [D, V], [B, H, F, E], [Z]]
    assert [w for w in FIGURE_7 if manager.role(w) is Role.SEED] == [D, Z, R, B]
    assert manager.role(U) is Role.PIGGYBACKED
    assert manager.role(E) is Role.ENCLOSING
    carrier = manager.groups[1].links[0]
    assert carrier.riders == [U]
    assert U.slide == 2 * carrier.window.slide


def test_a_window_submitted_later_finds_its_place() -> None:
    manager = WindowManager(FIGURE_7)
    k = Geometry(21, 3)
    assert manager.register(k) is Role.ENCLOSING
    assert chains(manager)[0] == [R, P, k, Y]


def test_a_suspended_seed_is_followed_by_what_it_carried() -> None:
    manager = WindowManager(FIGURE_7)
    manager.suspend(D)
    assert chains(manager)[1] == [U, V]
    assert manager.role(U) is Role.SEED


def test_suspending_a_rider_leaves_the_chain() -> None:
    manager = WindowManager(FIGURE_7)
    manager.suspend(U)
    assert chains(manager)[1] == [D, V]
    assert not manager.groups[1].links[0].riders


def test_suspending_an_enclosing_window_joins_its_neighbours() -> None:
    manager = WindowManager(FIGURE_7)
    manager.suspend(H)
    assert chains(manager)[2] == [B, F, E]


def test_a_seed_alone_takes_its_group_with_it() -> None:
    manager = WindowManager(FIGURE_7)
    manager.suspend(Z)
    assert chains(manager) == [[R, P, Y], [D, V], [B, H, F, E]]


def test_what_does_not_fit_into_the_place_of_its_carrier_moves() -> None:
    # The rider slides by six, which the window after it, sliding by four, is not in step with.
    carrier, rider, after = Geometry(8, 2), Geometry(8, 6), Geometry(20, 4)
    manager = WindowManager([carrier, rider, after])
    assert chains(manager) == [[carrier, after]]
    manager.suspend(carrier)
    assert chains(manager) == [[after], [rider]]


def test_a_denser_window_of_equal_range_takes_over() -> None:
    manager = WindowManager([Geometry(8, 4), Geometry(24, 8)])
    assert manager.register(Geometry(8, 2)) is Role.SEED
    assert chains(manager) == [[Geometry(8, 2), Geometry(24, 8)]]
    assert manager.role(Geometry(8, 4)) is Role.PIGGYBACKED


def test_the_window_before_the_place_is_checked() -> None:
    # Between ⟨10, 4⟩ and ⟨30, 12⟩ there is no room for a slide of six.
    manager = WindowManager([Geometry(10, 4), Geometry(30, 12)])
    assert manager.register(Geometry(20, 6)) is Role.SEED


def test_a_window_registered_twice_stays_until_it_is_suspended_twice() -> None:
    manager = WindowManager([D, D])
    manager.suspend(D)
    assert manager.windows == [D]
    manager.suspend(D)
    assert not manager.groups
    with pytest.raises(PlanError, match="not registered"):
        manager.suspend(D)


@given(st.lists(windows, max_size=12), st.lists(windows, max_size=12), st.randoms(use_true_random=False))
def test_groups_are_chains_after_any_changes(pool: list[Geometry], later: list[Geometry], rng: random.Random) -> None:
    manager, expected = WindowManager(pool), Counter(pool)
    assert_sound(manager, expected)
    changes = [*((True, w) for w in later), *((False, w) for w in [*pool, *later] if rng.random() < 0.7)]
    rng.shuffle(changes)
    for registers, window in changes:
        if registers:
            manager.register(window)
            expected[window] += 1
        elif expected[window]:
            manager.suspend(window)
            expected[window] -= 1
            expected = +expected
        assert_sound(manager, expected)


@given(st.lists(windows, min_size=1, max_size=8), st.integers(0, 45), st.integers(0, 200))
def test_no_granule_of_any_age_is_cut_by_a_window_that_needs_it(pool: list[Geometry], age: int, instant: int) -> None:
    steps = tiers(WindowManager(pool).groups)
    assert steps[-1].reach == max(w.range for w in pool)
    assert [tier.reach for tier in steps] == sorted(tier.reach for tier in steps)
    edges = next((tier.edges for tier in steps if tier.reach > age), ())
    wider = [w for w in pool if w.range > age]
    is_edge = any(edge.floor(instant) == instant for edge in edges)
    needed = any(edge.floor(instant) == instant for w in wider for edge in w.edges())
    # Granules may be finer than what windows of just this age need, never coarser.
    assert is_edge or not needed


def test_stairs_of_figure_7_thin_out() -> None:
    steps = tiers(WindowManager(FIGURE_7).groups)
    assert [(tier.reach, [edge.period for edge in tier.edges]) for tier in steps] == [
        (8, [2, 3, 5]),
        (15, [3, 4, 5]),
        (30, [4, 5, 6]),
        (32, [4, 10]),
        (40, [10]),
    ]


@pytest.mark.parametrize("name", ["smooth", "medium", "abrupt"])
def test_thousands_of_windows_share_few_groups_and_bounded_granules(name: str) -> None:
    few, many = (WindowManager(sliding_class(name, count, rng=7, unit=1)) for count in (1_000, 10_000))
    assert len(many.groups) < 60
    # The widest window spans 60 ticks, so nobody needs more granules, however many windows there are.
    assert granules_kept(tiers(few.groups)) <= granules_kept(tiers(many.groups)) <= 60
