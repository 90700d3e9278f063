"""Coverage and partitioning against their definitions, interval by interval."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panes.planning.cost import window_cost
from panes.planning.coverage import CoverageGraph, Semantics
from panes.timeline import Geometry
from tests.planning.definitions import HOLDS, covered_by, partitioned_by

small = st.builds(Geometry, st.integers(1, 14), st.integers(1, 9), st.integers(0, 8))


def intervals(window: Geometry, low: int, high: int) -> list[tuple[int, int]]:
    first = (low - window.offset) // window.slide - 1
    last = (high - window.offset) // window.slide + 1
    return [
        (window.offset + m * window.slide, window.offset + m * window.slide + window.range)
        for m in range(first, last + 1)
    ]


def covering_set(a: int, b: int, provider: Geometry) -> list[tuple[int, int]]:
    return [(u, v) for u, v in intervals(provider, a, b) if a <= u and v <= b]


def covered_by_definition(w1: Geometry, w2: Geometry) -> bool:
    """Definitions 1 and 3: both ends are matched, and what lies between makes the whole interval."""
    if w1 == w2:
        return True
    if w1.range <= w2.range:
        return False
    # Starts repeat modulo w2.slide after at most that many instances.
    for m in range(w2.slide):
        a = w1.offset + m * w1.slide
        b = a + w1.range
        inside = covering_set(a, b, w2)
        starts, ends = {u for u, _ in inside}, {v for _, v in inside}
        if a not in starts or b not in ends:
            return False
        if {t for u, v in inside for t in range(u, v)} != set(range(a, b)):
            return False
    return True


def partitioned_by_definition(w1: Geometry, w2: Geometry) -> bool:
    if not covered_by_definition(w1, w2):
        return False
    inside = covering_set(w1.offset, w1.offset + w1.range, w2)
    return sum(v - u for u, v in inside) == w1.range


@given(small, small)
def test_theorem_1_with_offsets_and_any_range(w1: Geometry, w2: Geometry) -> None:
    assert covered_by(w1, w2) == covered_by_definition(w1, w2)


@given(small, st.integers(1, 6), st.integers(0, 8), st.integers(0, 3))
def test_windows_built_to_be_covered_are(w2: Geometry, times: int, steps: int, more: int) -> None:
    """Random pairs are rarely related, so related ones are built as well."""
    w1 = Geometry(w2.range + (1 + more) * w2.slide, times * w2.slide, w2.offset + steps * w2.slide)
    assert covered_by(w1, w2) == covered_by_definition(w1, w2) == (w2.slide <= w2.range)
    assert partitioned_by(w1, w2) == partitioned_by_definition(w1, w2)


@given(small, small)
def test_theorem_4_with_offsets_and_any_range(w1: Geometry, w2: Geometry) -> None:
    assert partitioned_by(w1, w2) == partitioned_by_definition(w1, w2)


@given(small.filter(lambda w: w.slide <= w.range), st.integers(1, 6), st.integers(1, 4))
def test_theorem_3_counts_the_covering_set(w2: Geometry, times: int, more: int) -> None:
    w1 = Geometry(w2.range + more * w2.slide, times * w2.slide, w2.offset)
    multiplier = len(covering_set(w1.offset, w1.offset + w1.range, w2))
    assert window_cost(w1, w2, eta=1.0) == pytest.approx(multiplier / w1.slide)


@given(small, small, small)
def test_theorem_2_a_partial_order(w1: Geometry, w2: Geometry, w3: Geometry) -> None:
    for holds in (covered_by, partitioned_by):
        assert holds(w1, w1)
        assert not (holds(w1, w2) and holds(w2, w1)) or w1 == w2
        assert not (holds(w1, w2) and holds(w2, w3)) or holds(w1, w3)


def test_examples_2_to_5() -> None:
    w1, w2 = Geometry(10, 2), Geometry(8, 2)
    assert covered_by(w1, w2)
    assert window_cost(w1, w2, eta=1.0) == 2 / w1.slide
    assert not partitioned_by(w1, w2)
    assert covering_set(0, 10, w2) == [(0, 8), (2, 10)]
    assert covering_set(2, 12, w2) == [(2, 10), (4, 12)]


def test_a_window_with_gaps_reads_but_is_not_read() -> None:
    gaps = Geometry(10, 20)
    assert partitioned_by(gaps, Geometry(5, 5))
    assert not covered_by(Geometry(50, 20), gaps)
    assert covered_by(gaps, gaps)


@given(st.lists(small, min_size=1, max_size=12, unique=True), st.sampled_from(Semantics))
def test_the_graph_has_the_edges_that_hold(windows: list[Geometry], semantics: Semantics) -> None:
    graph = CoverageGraph(tuple(windows), semantics)
    expected = {(p, c) for p in windows for c in windows if p != c and HOLDS[semantics](c, p)}
    for window in windows:
        assert {windows[i] for i in graph.downstream(window)} == {c for p, c in expected if p == window}
        assert {windows[i] for i in graph.upstream(window)} == {p for p, c in expected if c == window}


def test_windows_that_are_vertices_are_not_added_again() -> None:
    graph = CoverageGraph(tuple(Geometry(r, r) for r in (20, 30, 40)), Semantics.PARTITIONED_BY)
    assert graph.extended([Geometry(10, 10), Geometry(20, 20)]).windows == (*graph.windows, Geometry(10, 10))
