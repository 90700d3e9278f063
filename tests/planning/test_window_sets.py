"""The paper's generators of window sets."""

from __future__ import annotations

import random

import pytest

from panes.errors import DeclarationError
from panes.testing import random_gen, sequential_gen
from panes.timeline import SECOND, Geometry


@pytest.mark.parametrize("seed", range(5))
def test_random_tumbling_windows_are_multiples_of_a_seed(seed: int) -> None:
    windows = random_gen(20, tumbling=True, rng=seed)
    assert len(set(windows)) == 20
    possible = {seed * factor * SECOND for seed in (2, 5, 10) for factor in range(2, 51)}
    assert all(w.tumbling and w.range in possible for w in windows)


@pytest.mark.parametrize("seed", range(5))
def test_random_hopping_windows_are_twice_their_slide(seed: int) -> None:
    windows = random_gen(20, tumbling=False, rng=random.Random(seed), unit=1)
    possible = {seed * factor for seed in (5, 10, 20) for factor in range(2, 51)}
    assert all(w.range == 2 * w.slide and w.slide in possible for w in windows)


def test_sequential_windows_follow_one_seed() -> None:
    assert sequential_gen(3, tumbling=True, seeds=[10], unit=1) == [Geometry(r, r) for r in (20, 30, 40)]
    assert len(sequential_gen(49, tumbling=False)) == 49


def test_a_seed_makes_it_repeatable() -> None:
    assert random_gen(5, tumbling=True, rng=7) == random_gen(5, tumbling=True, rng=7)


def test_every_window_can_be_drawn_but_no_more() -> None:
    assert len(random_gen(9, tumbling=True, seeds=[3], multiplier=10)) == 9
    with pytest.raises(DeclarationError, match="give only 9"):
        random_gen(10, tumbling=True, seeds=[3], multiplier=10)
    with pytest.raises(DeclarationError, match="at least 51"):
        sequential_gen(50, tumbling=True, seeds=[2, 3])
