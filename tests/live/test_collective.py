"""CI-COUNT and CI-SUM against their definitions: where elements are, what lookups find, and the paper's example."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panes.errors import DeclarationError
from panes.live.collective import NEVER, Collective, Level, Levels

K1 = [76, 80, 82, 86, 90, 93, 94, 96, 98, 100, 101, 103, 104, 105, 106]
K2 = [66, 71, 73, 82, 85, 87, 92, 93, 96, 97, 98, 100, 102, 103, 105]
K3 = [47, 50, 53, 60, 68, 73, 76, 80, 81, 85, 91, 94, 97, 100, 102]
POSITIONS = (58, 43, 29)

Batches = list[list[tuple[int, int, int]]]
"""Batches of (substream, time since the one before, copies)."""


def farthest(levels: Levels, level: Level) -> int:
    """The largest distance that a level covers."""
    return levels.nearest(level) + 2**level.exponent - 1


@pytest.fixture
def figure_8() -> Collective:
    """The substreams of Figure 8; what came before the 15 elements that it shows is long ago."""
    index = Collective(Levels(1))
    index.extend(3)
    for key, (shown, last) in enumerate(zip((K1, K2, K3), POSITIONS, strict=True)):
        times = [*range(last - len(shown)), *shown]
        index.insert(np.array([key]), np.array([last]), np.array(times))
    return index


def test_the_circled_times_of_figure_8(figure_8: Collective) -> None:
    everyone = np.arange(3)
    circled = [figure_8.stamps(Level(level, 0), everyone).tolist() for level in range(4)]
    # The newest; then the multiples of 2, 4 and 8 among distances 2-3, 4-7 and 8-15.
    by_hand = [
        [K1[-1], K2[-1], K3[-1]],
        [K1[56 - 44], K2[42 - 29], K3[28 - 15]],
        [K1[52 - 44], K2[40 - 29], K3[24 - 15]],
        [K1[48 - 44], K2[32 - 29], K3[16 - 15]],
    ]
    assert circled == by_hand
    assert circled[2][2] == 85


def test_the_lookup_of_example_4_1(figure_8: Collective) -> None:
    # The paper says "more than 11" and looks at the 11th newest, so that 11 of them are enough: at 87 or later.
    assert [shown[-11] for shown in (K1, K2, K3)] == [90, 85, 68]
    assert figure_8.levels.for_at_least(11) == Level(2, 0)
    assert figure_8.at_least(11, since=87).tolist() == [0, 1]


@pytest.mark.parametrize("p", [1, 2, 3, 4, 7, 16])
def test_levels_cover_every_distance_once(p: int) -> None:
    levels = Levels(p)
    covered = 0
    for exponent in range(6):
        for place in range(p):
            level = Level(exponent, place)
            assert levels.nearest(level) == covered + 1
            covered = farthest(levels, level)
            assert covered - levels.nearest(level) + 1 == 2**exponent


@pytest.mark.parametrize("p", [1, 2, 3, 4, 7, 16])
def test_the_level_of_a_lookup_is_the_last_or_first_that_is_safe(p: int) -> None:
    levels = Levels(p)
    every = [Level(exponent, place) for exponent in range(13) for place in range(p)]
    for elements in range(1, 2000):
        assert levels.for_at_least(elements) == [v for v in every if farthest(levels, v) <= elements][-1]
        assert levels.for_at_most(elements) == next(v for v in every if levels.nearest(v) > elements)
    assert levels.for_at_most(0) == every[0]


@pytest.mark.parametrize("p", [1, 2, 3, 4, 7, 16, 50])
def test_the_error_of_a_level_is_below_epsilon_and_nowhere_much_less(p: int) -> None:
    levels = Levels(p)
    missed = []
    for v in range(1, 5000):
        # "More than v" is at least v + 1; whoever is found has the level's nearest distance at least.
        found = levels.nearest(levels.for_at_least(v + 1))
        assert found > v * (1 - levels.epsilon)
        missed.append(1 - found / v)
        # "Less than v" is at most v - 1; whoever stays has less than the level's farthest distance.
        stays = farthest(levels, levels.for_at_most(v - 1)) - 1
        assert stays < v / (1 - levels.epsilon)
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


def batches(largest: int) -> st.SearchStrategy[Batches]:
    element = st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, largest))
    return st.lists(st.lists(element, max_size=12), max_size=8)


def insert(index: Collective, batch: Sequence[tuple[int, int, int]], *, copied: bool) -> None:
    if not batch:
        return
    elements = sorted(batch, key=lambda element: element[0])
    keys, counts = np.unique([key for key, _, _ in elements], return_counts=True)
    times = np.array([time for _, time, _ in elements])
    index.insert(keys, counts, times, np.array([copies for _, _, copies in elements]) if copied else None)


def timed(found: Batches) -> Batches:
    """Gaps turned into times, which never decrease."""
    now, out = 0, []
    for batch in found:
        out.append([(key, now := now + gap, copies) for key, gap, copies in batch])
    return out


@settings(max_examples=100)
@given(st.sampled_from([1, 2, 3, 5]), st.booleans(), st.data())
def test_batches_leave_what_the_definition_says(p: int, copied: bool, data: st.DataObject) -> None:
    """State of Figure 7: of each level, the time of the element at the position that is a multiple of its size."""
    index, streams = Collective(Levels(p)), [[] for _ in range(4)]  # type: list[list[int]]
    index.extend(4)
    for batch in timed(data.draw(batches(40 if copied else 0))):
        insert(index, batch, copied=copied)
        for key, time, copies in batch:
            streams[key] += [time] * (copies if copied else 1)
    for key, stream in enumerate(streams):
        assert index.lengths[key] == len(stream)
        for level in [Level(exponent, place) for exponent in range(12) for place in range(p)]:
            near, far = index.levels.nearest(level), farthest(index.levels, level)
            positions = [m for m in range(len(stream) - far + 1, len(stream) - near + 2) if m >= 1]
            chosen = [stream[m - 1] for m in positions if m % 2**level.exponent == 0]
            assert index.stamps(level, np.array([key])).tolist() == (chosen or [NEVER])


@settings(max_examples=100)
@given(st.sampled_from([1, 2, 4]), st.booleans(), st.data())
def test_lookups_miss_nobody_and_relax_by_epsilon(p: int, copied: bool, data: st.DataObject) -> None:
    """Lemma 4.1 and its form with p, between updates."""
    index, seen = Collective(Levels(p)), []  # type: ignore[var-annotated]
    index.extend(4)
    for batch in timed(data.draw(batches(40 if copied else 0))):
        insert(index, batch, copied=copied)
        seen += batch
        since, v = data.draw(st.integers(0, 60)), data.draw(st.integers(0, 60))
        counts = np.zeros(4, np.int64)
        for key, time, copies in seen:
            counts[key] += (copies if copied else 1) * (time >= since)
        found = index.at_least(v + 1, since)
        assert set(np.flatnonzero(counts > v)) <= set(found)
        assert all(counts[found] > v * (1 - index.levels.epsilon))
        stay = index.not_more(v, since, np.arange(4))
        assert set(np.flatnonzero(counts <= v)) <= set(stay)
        assert all(counts[stay] < (v + 1) / (1 - index.levels.epsilon))


def test_a_forgotten_substream_begins_anew() -> None:
    index = Collective(Levels(2))
    index.extend(2)
    index.insert(np.array([0, 1]), np.array([3, 3]), np.array([1, 2, 3, 1, 2, 3]))
    assert index.at_least(3, since=1).tolist() == [0, 1]
    index.clear(np.array([0]))
    assert index.at_least(3, since=1).tolist() == [1]
    index.insert(np.array([0]), np.array([4]), np.array([1, 1, 2, 9]))
    assert index.at_least(4, since=1).tolist() == [0]
    assert index.at_least(2, since=2).tolist() == [0, 1]
    assert index.at_least(2, since=3).tolist() == []


def test_very_many_copies_at_once() -> None:
    index = Collective(Levels(3))
    index.extend(1)
    for time in range(1, 5):
        index.insert(np.array([0]), np.array([1]), np.array([time]), np.array([2**58 + 1]))
    assert index.lengths.tolist() == [2**60 + 4]
    assert index.at_least(2**60, since=1).tolist() == [0]
    assert index.at_least(2**60, since=4).tolist() == []


def test_layers_of_many_keys_agree_with_every_key() -> None:
    """Thousands of keys and many lookups between small updates, so that layers are built and merged."""
    rng = np.random.default_rng(0)
    index, times, keys = Collective(Levels(2)), [], []  # type: ignore[var-annotated]
    index.extend(3000)
    for step in range(60):
        size = int(rng.integers(1, 900))
        key = np.minimum(rng.geometric(0.002, size), 2999)
        time = np.sort(rng.integers(10 * step, 10 * step + 10, size))
        order = np.argsort(key, kind="stable")
        distinct, counts = np.unique(key, return_counts=True)
        index.insert(distinct, counts, time[order])
        times.append(time)
        keys.append(key)
        since, v = int(rng.integers(max(0, 10 * step - 200), 10 * step + 5)), int(rng.integers(1, 12))
        late = np.concatenate(times) >= since
        held = np.bincount(np.concatenate(keys)[late], minlength=3000)
        found = index.at_least(v + 1, since)
        assert set(np.flatnonzero(held > v)) <= set(found.tolist())
        assert (held[found] > v / 2).all()
