"""Frames against brute force: which rows lie in each instance, asked row by row.

Columns of every kind (equal panes, mixed granules, single events with ties, ordinals) times windows of every
shape (tumbling, hopping, range no multiple of the slide, gaps, offsets, before the epoch), by both methods.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panes.errors import PlanError
from panes.frames import Positions, frame
from panes.timeline import HOUR, MINUTE, Geometry

geometries = st.builds(Geometry, st.integers(1, 12), st.integers(1, 12), st.integers(0, 11))


def column(keys):
    rows = [row for key in keys for row in key]
    start, end = np.array([a for a, _ in rows], np.int64), np.array([b for _, b in rows], np.int64)
    return Positions(start, end, np.cumsum([0, *map(len, keys)]))


def keyed(rows):
    return st.lists(rows, min_size=1, max_size=4)


events = st.lists(st.integers(-40, 40), max_size=12).map(lambda ts: [(t, t + 1) for t in sorted(ts)])
ordinals = st.tuples(st.integers(-9, 9), st.integers(0, 20)).map(
    lambda head: [(i, i + 1) for i in range(head[0], head[0] + head[1])]
)


@st.composite
def panes(draw):
    """Equal panes of a width, and a window in multiples of it."""
    width, offset = draw(st.integers(1, 5)), draw(st.integers(-7, 7))
    rows = st.sets(st.integers(-12, 12), max_size=10).map(
        lambda ps: [(p * width + offset, (p + 1) * width + offset) for p in sorted(ps)]
    )
    geometry = draw(geometries)
    wider = Geometry(geometry.range * width, geometry.slide * width, geometry.offset * width + offset)
    return draw(keyed(rows)), wider


@st.composite
def granules(draw):
    """Mixed widths: neighbouring panes merged where no edge of the window lies between them."""
    keys, geometry = draw(panes())
    coarse = []
    for key in keys:
        rows = []
        for start, end in key:
            cut = any((start - edges.offset) % edges.period == 0 for edges in geometry.edges())
            if rows and rows[-1][1] == start and not cut and draw(st.booleans()):
                rows[-1] = (rows[-1][0], end)
            else:
                rows.append((start, end))
        coarse.append(rows)
    return coarse, geometry


cases = st.one_of(st.tuples(keyed(events), geometries), st.tuples(keyed(ordinals), geometries), panes(), granules())


def brute_force(keys, geometry, emit_all=False):
    """Every instance from well before the first row to well after the last, row by row."""
    answers, before = [], 0
    for key, rows in enumerate(keys):
        first = min((a for a, _ in rows), default=0) - geometry.range - geometry.slide
        last = max((b for _, b in rows), default=0) + geometry.slide
        found = []
        for number in range(first // geometry.slide - 1, last // geometry.slide + 1):
            start = geometry.offset + number * geometry.slide
            held = [before + i for i, (a, b) in enumerate(rows) if start <= a and b <= start + geometry.range]
            assert held == list(range(held[0], held[-1] + 1)) if held else True
            found.append((key, start, held))
        if emit_all and rows:
            # From the first instance that ends after the first row to the last that starts before the last row.
            found = [f for f in found if f[1] + geometry.range >= rows[0][1] and f[1] <= rows[-1][0]]
            answers += [(k, s, h[0], h[-1] + 1) if h else (k, s, None, None) for k, s, h in found]
        else:
            answers += [(k, s, h[0], h[-1] + 1) for k, s, h in found if h]
        before += len(rows)
    return answers


def as_tuples(found):
    arrays = (found.key, found.start, found.lo, found.hi)
    assert all(array.dtype == np.int64 for array in arrays)
    return list(zip(*(array.tolist() for array in arrays), strict=True))


@pytest.mark.parametrize("method", ["enumerated", "rows", None])
@given(case=cases)
def test_frame(method, case):
    keys, geometry = case
    assert as_tuples(frame(geometry, column(keys), method=method)) == brute_force(keys, geometry)


@given(case=cases)
def test_emit_all(case):
    keys, geometry = case
    found = as_tuples(frame(geometry, column(keys), emit_all=True))
    assert all(lo <= hi for _, _, lo, hi in found)
    blank = [(k, s, lo, hi) if lo < hi else (k, s, None, None) for k, s, lo, hi in found]
    assert blank == brute_force(keys, geometry, emit_all=True)


@given(rows=keyed(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6)), max_size=5)), geometry=geometries)
def test_a_cut_row_is_refused(rows, geometry):
    keys = []
    for steps in rows:
        at, key = -20, []
        for gap, width in steps:
            key.append((at + gap, at + gap + width))
            at += gap + width
        keys.append(key)
    inside = [
        any((t - edges.offset) % edges.period == 0 for edges in geometry.edges() for t in range(a + 1, b))
        for key in keys
        for a, b in key
    ]
    if any(inside):
        with pytest.raises(
            PlanError, match=f"cuts row {inside.index(True)} " if len(geometry.edges()) == 1 else "cuts"
        ):
            frame(geometry, column(keys))
    else:
        assert as_tuples(frame(geometry, column(keys))) == brute_force(keys, geometry)


def test_gaps_hold_no_rows():
    #  time   0    2         6    8        12
    #  window [----)         [----)
    #  events 0  1   3         7    9
    events = column([[(t, t + 1) for t in (0, 1, 3, 7, 9)]])
    assert as_tuples(frame(Geometry(2, 6), events)) == [(0, 0, 0, 2), (0, 6, 3, 4)]
    assert len(frame(Geometry(2, 6), column([[(3, 4)]]))) == 0
    assert len(frame(Geometry(2, 6), column([[(3, 4)]]), emit_all=True)) == 0


def test_instances_before_the_first_event_exist():
    found = frame(Geometry(10, 5, offset=2), column([[(-1, 0)]]))
    assert found.start.tolist() == [-8, -3]


@pytest.mark.parametrize("geometry", [Geometry(MINUTE, MINUTE), Geometry(HOUR, MINUTE), Geometry(HOUR, HOUR)])
def test_long_gaps_cost_nothing(geometry):
    """Two events three thousand years apart: enumeration would never end."""
    far = 3_000 * 365 * 24 * HOUR
    found = frame(geometry, column([[(0, 1), (far, far + 1)]] * 3))
    assert len(found) == 3 * 2 * (geometry.range // geometry.slide)


def test_keys_that_do_not_fit_one_axis():
    keys = [[(-(2**59) + k, -(2**59) + k + 1), (2**59 + k, 2**59 + k + 1)] for k in range(20)]
    geometry = Geometry(2**58, 2**57)
    by_search = frame(geometry, column(keys), method="enumerated")
    assert as_tuples(by_search) == as_tuples(frame(geometry, column(keys), method="rows"))


def test_no_rows():
    assert len(frame(Geometry(5, 5), column([[], []]))) == 0
    assert len(frame(Geometry(5, 5), column([[]]), emit_all=True)) == 0


def test_a_window_longer_than_time_is_refused():
    with pytest.raises(PlanError, match="36,000 years"):
        frame(Geometry(2**61, 2**61), column([[(0, 1)]]))
