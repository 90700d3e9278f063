"""What a column's axis accepts, and that one search over all keys equals a search per key."""

from __future__ import annotations

import bisect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panes.errors import PlanError
from panes.frames import Positions
from panes.timeline import Edges


def positions(*spans, key_starts=None):
    start, end = [a for a, _ in spans], [b for _, b in spans]
    key_starts = [0, len(spans)] if key_starts is None else key_starts
    return Positions(np.array(start, np.int64), np.array(end, np.int64), np.array(key_starts))


@pytest.mark.parametrize(
    ("spans", "key_starts", "reason"),
    [
        ([(0, 0)], [0, 1], "empty or backwards"),
        ([(0, 2), (1, 3)], [0, 2], "row 1 starts before row 0"),
        ([(5, 6), (0, 1)], [0, 2], "row 1 starts before row 0"),
        ([(0, 1), (0, 2)], [0, 2], "row 1 starts before row 0"),
        ([(0, 1)], [0, 2], "key_starts"),
        ([(0, 1)], [1, 1], "key_starts"),
        ([(0, 1)], [0, 1, 0, 1], "key_starts"),
        ([(0, 2**62)], [0, 1], "36,000 years"),
    ],
)
def test_refuses(spans, key_starts, reason):
    with pytest.raises(PlanError, match=reason):
        positions(*spans, key_starts=key_starts)


def test_refuses_floats():
    with pytest.raises(PlanError, match="must be integers"):
        Positions(np.array([0.5]), np.array([1.0]), np.array([0, 1]))


def test_refuses_unequal_lengths():
    with pytest.raises(PlanError, match="1 starts and 2 ends"):
        Positions(np.array([0]), np.array([1, 2]), np.array([0, 1]))


def test_ties_new_keys_and_keys_without_rows_are_fine():
    column = positions((3, 4), (3, 4), (9, 12), (-5, 0), key_starts=[0, 3, 3, 4, 4])
    assert column.keys == 4
    assert column.occupied.tolist() == [0, 2]
    assert column.widest == 5


def test_panes_are_recognised():
    assert positions((5, 10), (20, 25)).panes == Edges(5, 0)
    assert positions((5, 10), (21, 26)).panes is None
    assert positions((5, 10), (20, 30)).panes is None
    assert positions().panes is None


@st.composite
def keyed_events(draw, farthest):
    instants = st.integers(-farthest, farthest)
    keys = draw(st.lists(st.lists(instants, max_size=8).map(sorted), min_size=1, max_size=5))
    queries = draw(st.lists(st.tuples(st.integers(0, len(keys) - 1), instants), max_size=20))
    return keys, queries


@pytest.mark.parametrize("farthest", [20, 2**59])
@given(data=st.data())
def test_search(farthest, data):
    """Wide apart, several keys do not fit one axis, and the search falls back to one within each key."""
    keys, queries = data.draw(keyed_events(farthest))
    key_starts = np.cumsum([0, *map(len, keys)])
    column = Positions.of_events(np.array([t for key in keys for t in key], np.int64), key_starts)
    found = column.search(
        np.array([key for key, _ in queries], np.int64), np.array([instant for _, instant in queries], np.int64)
    )
    assert found.tolist() == [key_starts[k] + bisect.bisect_left(keys[k], instant) for k, instant in queries]


def test_an_axis_that_would_overflow_is_not_built():
    column = Positions.of_events(np.tile(np.array([-(2**59), 2**59]), 10), np.arange(0, 21, 2))
    assert column.axis.numbers is None
