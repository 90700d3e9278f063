"""The stairwise chain against the definitions: nodes partition the window, reports are what the scope says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from benchmarks.stairwise import Composed, Stairwise
from hypothesis import given, settings
from hypothesis import strategies as st

from panes.aggregates.operations import Operations, State, concatenate, from_ufunc
from panes.errors import PlanError
from panes.kernels.naive import Naive

ORIGIN = 7


@st.composite
def shapes(draw: st.DrawFn, symmetric: bool | None = None) -> tuple[list[int], list[int]]:
    """Levels in step, or not; ranges that are multiples of the next slide, or not."""
    in_step = draw(st.booleans()) if symmetric is None else symmetric
    slide, range_, ranges, slides = 1, 0, [], []
    for _ in range(draw(st.integers(1, 4))):
        slide = slide * draw(st.integers(1, 3)) if in_step else slide + draw(st.integers(0, 3))
        range_ = (range_ // slide + draw(st.integers(1, 4))) * slide
        ranges.append(range_)
        slides.append(slide)
    return ranges, slides


Happened = list[tuple[int, int]]
"""Instants and numbers that tell tuples apart."""

happened: st.SearchStrategy[Happened] = st.lists(st.integers(0, 120), max_size=40).map(
    lambda instants: [(instant, i) for i, instant in enumerate(sorted(instants))]
)


def scope(chain: Stairwise[Any], level: int) -> tuple[int, int]:
    """Section III-A, half-open: ``[max(τ0, t_k), τ - mod(τ - τ0, β_k))``."""
    end = chain.now - (chain.now - chain.origin) % chain.slides[level]
    return max(chain.origin, end - chain.ranges[level]), end


def tuples(shape: tuple[list[int], list[int]]) -> Stairwise[list[tuple[int, int]]]:
    return Stairwise(*shape, combine=lambda a, b: a + b, origin=ORIGIN)


def within(rows: Happened, start: int, end: int) -> Happened:
    return [row for row in rows if start <= row[0] < end]


@settings(max_examples=150)
@given(shapes(), happened, st.integers(1, 9))
def test_nodes_partition_the_window(shape: tuple[list[int], list[int]], rows: Happened, step: int) -> None:
    chain = tuples(shape)
    for now in range(ORIGIN, 130, step):
        for row in within(rows, now - step, now):
            chain.insert(row[0], [row])
        chain.advance(now)
        nodes = chain.nodes()
        assert nodes[0].end == chain.now
        assert all(younger.start == older.end for younger, older in pairwise(nodes))
        assert nodes[-1].start <= chain.rear(len(shape[0]) - 1)
        for node in nodes:
            assert all(node.start <= g.start < g.end and g.start < node.end for g in node.granules)
            # The youngest granule of a buffer is still growing.
            assert all(g.end <= node.end for g in node.granules) or node.name[0] == "δ"
            assert all(a.end <= b.start for a, b in pairwise(node.granules))
            assert all(g.start <= t < g.end for g in node.granules for t, _ in g.content)
        kept = sorted(row for node in nodes for granule in node.granules for row in granule.content)
        # No tuple in two nodes, and none missing.
        assert kept == within(rows, max(ORIGIN, nodes[-1].start), now)
        for level, (range_, slide) in enumerate(zip(*shape, strict=True)):
            below = shape[0][level - 1] if level else 0
            if all(b % a == 0 for a, b in pairwise(shape[1])) and below % slide == 0:
                # What the paper says of sizes, where granules fit.
                assert len(nodes[2 * level + 1].granules) <= -(-(range_ - below) // slide)
                assert nodes[2 * level].end - nodes[2 * level].start <= slide


def reports(chain: Stairwise[Any]) -> Iterator[tuple[int, Composed[Any]]]:
    """Periodic reporting: the levels that have slid just now, and what they hold."""
    for level, range_ in enumerate(chain.ranges):
        if chain.front(level) == chain.now:
            yield level, chain.state(range_)


@settings(max_examples=150)
@given(shapes(), happened, st.integers(1, 25), st.integers(1, 200))
def test_reports_are_what_the_scope_says(
    shape: tuple[list[int], list[int]], rows: Happened, batch: int, horizon: int
) -> None:
    chain = tuples(shape)
    reported = 0
    for begin in range(ORIGIN, 130, batch):
        for row in within(rows, begin if begin > ORIGIN else 0, begin + batch):
            assert chain.insert(row[0], [row]) == (row[0] >= ORIGIN)
        # Arrivals of a batch that lie ahead of a slide do not belong to its report.
        for now in range(begin + 1, begin + batch + 1):
            chain.advance(now)
            for level, found in reports(chain):
                assert (found.start, found.end) == scope(chain, level) == (max(ORIGIN, chain.rear(level)), now)
                assert (found.content or []) == within(rows, found.start, found.end)
                reported += 1
        asked = min(horizon, shape[0][-1])
        state = chain.state(asked)
        assert state.end == chain.now
        assert state.start <= max(ORIGIN, chain.now - asked)
        assert (state.content or []) == within(rows, state.start, state.end)
    ends = [sum(begin % slide == 0 for begin in range(1, chain.now - ORIGIN + 1)) for slide in shape[1]]
    assert reported == sum(ends)


@settings(max_examples=100)
@given(shapes(), happened, st.integers(1, 60))
def test_what_comes_late_joins_the_granule_that_covers_it(
    shape: tuple[list[int], list[int]], rows: Happened, delay: int
) -> None:
    chain = tuples(shape)
    chain.advance(ORIGIN + 1)
    arrived: Happened = []
    for row in sorted(rows, key=lambda row: row[0] + row[1] * 7919 % delay):
        widest = chain.nodes()[-1].start
        assert chain.insert(row[0], [row]) == (row[0] >= max(ORIGIN, widest))
        arrived.append(row)
        chain.advance(row[0] + 1)
        state = chain.state(shape[0][-1])
        assert sorted(state.content or []) == sorted(within(arrived, state.start, state.end))


def test_promotion_and_shift_tick_by_tick() -> None:
    """Figure 2 in small: ⟨2, 1⟩ and ⟨6, 2⟩; a letter per tick, the oldest first within a node.

    ::

        now  δ0   g0      δ1      g1
         1        a
         2        ab                        W1 slides, but nothing has expired from W0
         3        bc      a                 a is shifted
         4        cd              ab        b is shifted, and δ1 is promoted
    """
    chain = Stairwise([2, 6], [1, 2], combine=lambda a, b: a + b)
    told = []
    for tick, letter in enumerate("abcdefghi"):
        chain.insert(tick, letter)
        before = [[g.content for g in node.granules] for node in chain.nodes()]
        assert before[0] == [letter]
        chain.advance(tick + 1)
        told.append([",".join(g.content for g in node.granules) for node in chain.nodes()])
    assert told == [
        ["", "a", "", ""],
        ["", "a,b", "", ""],
        ["", "b,c", "a", ""],
        ["", "c,d", "", "ab"],
        ["", "d,e", "c", "ab"],
        ["", "e,f", "", "ab,cd"],
        ["", "f,g", "e", "ab,cd"],
        # ab has left the widest level and is discarded, ef is promoted in exchange.
        ["", "g,h", "", "cd,ef"],
        ["", "h,i", "g", "cd,ef"],
    ]
    assert [chain.state(h).content for h in (1, 2, 3, 4, 5, 6)] == ["i", "hi", "ghi", "efghi", "efghi", "cdefghi"]


def test_a_granule_that_the_level_below_still_holds_waits_in_the_buffer() -> None:
    """⟨10, 2⟩ and ⟨24, 8⟩: ten is no multiple of eight, so that the paper's δ1 would not be empty after a slide."""
    chain = Stairwise([10, 2 * 12], [2, 8], combine=lambda a, b: a + b)
    for tick in range(48):
        chain.insert(tick, [tick])
        chain.advance(tick + 1)
    assert [(node.name, node.start, node.end) for node in chain.nodes()] == [
        ("δ0", 48, 48),
        ("g0", 38, 48),
        ("δ1", 32, 38),
        ("g1", 24, 32),
    ]
    assert chain.state(24).content == list(range(24, 48))


def _moments(a: State, b: State) -> State:
    n = a[0] + b[0]
    delta = b[1] - a[1]
    share = np.divide(b[0], n, out=np.zeros_like(delta), where=n > 0)
    return n, a[1] + delta * share, a[2] + b[2] + delta * delta * a[0] * share


def over_keys(operations: Operations) -> Callable[[State, State], State]:
    """Combine states with an element per key; keys that came later have none in an older one."""

    def combine(earlier: State, later: State) -> State:
        keys = max(len(earlier[0]), len(later[0]))
        both = [concatenate([state, operations.identities(state, keys - len(state[0]))]) for state in (earlier, later)]
        return operations.combine(*both)

    return combine


ALGEBRAS: dict[str, Operations] = {
    "a group": from_ufunc(np.add, 0, subtract=np.subtract),
    "a monoid": from_ufunc(np.add, 0),
    "an idempotent one": from_ufunc(np.maximum, -(2**62), idempotent=True),
    "where order matters": Operations((1, 0), lambda a, b: (a[0] * b[0] % 97, (a[1] * b[0] + b[1]) % 97)),
    "moments": Operations((0.0, 0.0, 0.0), _moments),
}


@pytest.mark.parametrize("name", ALGEBRAS)
@settings(max_examples=60)
@given(shape=shapes(), seed=st.integers(0, 2**32), keys=st.integers(1, 5))
def test_every_algebra_over_many_keys(name: str, shape: tuple[list[int], list[int]], seed: int, keys: int) -> None:
    operations, rng = ALGEBRAS[name], np.random.default_rng(seed)
    chain = Stairwise(*shape, combine=over_keys(operations), origin=ORIGIN)
    ticks: list[tuple[int, State]] = []
    for tick in range(ORIGIN, ORIGIN + 60):
        if rng.random() < 0.7:
            # Keys that are there from some tick on.
            known = min(keys, 1 + len(ticks) // 3)
            kind = float if name == "moments" else np.int64
            state = tuple(rng.integers(1, 50, known).astype(kind) for _ in operations.identity)
            state = (np.ones(known), state[1], np.zeros(known)) if name == "moments" else state
            ticks.append((tick, state))
            chain.insert(tick, state)
        chain.advance(tick + 1)
        for _, found in reports(chain):
            inside = [state for at, state in ticks if found.start <= at < found.end]
            assert (found.content is None) == (not inside)
            if found.content is not None:
                expected = reduce(over_keys(operations), inside)
                for ours, theirs in zip(found.content, expected, strict=True):
                    assert np.allclose(ours, theirs)
    whole = chain.state(shape[0][-1])
    if whole.content is not None:
        inside = [state for at, state in ticks if whole.start <= at]
        column = tuple(np.array([state[i][0] for state in inside]) for i in range(len(operations.identity)))
        folded = Naive(operations, column).answer(np.array([0]), np.array([len(inside)]))
        assert all(np.allclose(ours[0], theirs[0]) for ours, theirs in zip(whole.content, folded, strict=True))


def test_what_is_kept_grows_with_granules_and_not_with_tuples() -> None:
    chain = Stairwise([60, 600, 3600], [1, 60, 300], combine=over_keys(ALGEBRAS["a group"]))
    for tick in range(10_000):
        chain.insert(tick, (np.array([tick]),))
        chain.advance(tick + 1)
    granules = sum(len(node.granules) for node in chain.nodes())
    assert granules <= 60 + 9 + 10 + 3
    # The partial sums of a core are as many as its granules at most.
    assert all(len(core._suffixes) <= len(core.granules) for core in chain._cores)


@pytest.mark.parametrize(
    ("ranges", "slides"),
    [([], []), ([4, 4], [1, 2]), ([4, 8], [2, 1]), ([4, 9], [1, 2]), ([0], [1]), ([4], [0])],
)
def test_levels_that_are_none(ranges: list[int], slides: list[int]) -> None:
    with pytest.raises((PlanError, ZeroDivisionError)):
        Stairwise(ranges, slides, combine=lambda a, b: a)


def test_a_horizon_beyond_the_widest_level_is_refused() -> None:
    chain = Stairwise([4, 8], [1, 4], combine=lambda a, b: a + b)
    for horizon in (0, -1, 9):
        with pytest.raises(PlanError, match="up to 8"):
            chain.state(horizon)
