"""The levels of a collective index: which distances they cover, the paper's example, and what p and ε mean."""

from __future__ import annotations

import numpy as np
import pytest

from panes.errors import DeclarationError
from panes.live.collective import Level, Levels

K1 = [76, 80, 82, 86, 90, 93, 94, 96, 98, 100, 101, 103, 104, 105, 106]
K2 = [66, 71, 73, 82, 85, 87, 92, 93, 96, 97, 98, 100, 102, 103, 105]
K3 = [47, 50, 53, 60, 68, 73, 76, 80, 81, 85, 91, 94, 97, 100, 102]
POSITIONS = (58, 43, 29)


def nearest(levels: Levels, level: Level) -> int:
    """The smallest distance that a level covers."""
    return 2**level.exponent * (levels.p + level.place) - levels.p + 1


def farthest(levels: Levels, level: Level) -> int:
    """The largest distance that a level covers."""
    return nearest(levels, level) + 2**level.exponent - 1


def test_the_circled_times_of_figure_8() -> None:
    circled = []
    for exponent in range(4):
        positions = Levels(1).position(Level(exponent, 0), np.array(POSITIONS))
        # What came before the 15 elements that the figure shows is long ago.
        shown = zip((K1, K2, K3), POSITIONS, positions, strict=True)
        circled.append([times[position - last - 1] for times, last, position in shown])
    # The newest; then the multiples of 2, 4 and 8 among distances 2-3, 4-7 and 8-15.
    by_hand = [
        [K1[-1], K2[-1], K3[-1]],
        [K1[56 - 44], K2[42 - 29], K3[28 - 15]],
        [K1[52 - 44], K2[40 - 29], K3[24 - 15]],
        [K1[48 - 44], K2[32 - 29], K3[16 - 15]],
    ]
    assert circled == by_hand
    assert circled[2][2] == 85


def test_the_lookup_of_example_4_1() -> None:
    # The paper says "more than 11" and looks at the 11th newest, so that 11 of them are enough: at 87 or later.
    assert [shown[-11] for shown in (K1, K2, K3)] == [90, 85, 68]
    assert Levels(1).reached_by(11) == Level(2, 0)


@pytest.mark.parametrize("p", [1, 2, 3, 4, 7, 16])
def test_levels_cover_every_distance_once(p: int) -> None:
    levels = Levels(p)
    covered = 0
    for exponent in range(6):
        for place in range(p):
            level = Level(exponent, place)
            assert nearest(levels, level) == covered + 1
            covered = farthest(levels, level)
            assert covered - nearest(levels, level) + 1 == 2**exponent


@pytest.mark.parametrize("p", [1, 2, 3, 4, 7, 16])
def test_the_level_of_a_lookup_is_the_last_that_is_safe(p: int) -> None:
    levels = Levels(p)
    every = [Level(exponent, place) for exponent in range(13) for place in range(p)]
    for events in range(1, 2000):
        assert levels.reached_by(events) == [level for level in every if farthest(levels, level) <= events][-1]


@pytest.mark.parametrize("p", [1, 2, 3, 4, 7, 16])
def test_the_event_of_a_level_is_at_a_multiple_of_its_size_within_its_distances(p: int) -> None:
    levels, events = Levels(p), np.arange(1, 1000)
    for level in [Level(exponent, place) for exponent in range(6) for place in range(p)]:
        position = levels.position(level, events)
        assert (position % 2**level.exponent == 0).all()
        distance = events - position + 1
        assert (nearest(levels, level) <= distance).all()
        assert (distance <= farthest(levels, level)).all()


@pytest.mark.parametrize("p", [1, 2, 3, 4, 7, 16, 50])
def test_the_error_of_a_level_is_below_epsilon_and_nowhere_much_less(p: int) -> None:
    levels = Levels(p)
    missed = []
    for v in range(1, 5000):
        # "More than v" is at least v + 1; whoever is found has the level's nearest distance at least.
        found = nearest(levels, levels.reached_by(v + 1))
        assert found > v * (1 - levels.epsilon)
        missed.append(1 - found / v)
    assert max(missed) > levels.epsilon - 0.05


def test_the_paper_says_what_epsilon_is() -> None:
    assert (Levels(1).epsilon, Levels(2).epsilon) == (0.75, 0.5)
    assert Levels.within(0.75) == Levels(1)
    assert Levels.within(0.74) == Levels(2)
    assert Levels.within(0.1) == Levels(18)


@pytest.mark.parametrize("epsilon", [0, 1, -0.5, True, "half", 0.001])
def test_an_epsilon_that_cannot_be(epsilon: object) -> None:
    with pytest.raises(DeclarationError, match="epsilon="):
        Levels.within(epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize("p", [0, -1, True, 1.5, 257])
def test_a_p_that_cannot_be(p: object) -> None:
    with pytest.raises(DeclarationError, match="p="):
        Levels(p)  # type: ignore[arg-type]
