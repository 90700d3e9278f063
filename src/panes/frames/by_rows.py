"""Frames from the rows: which instances does each row open, and which does it close?

An instance is opened by its first row and closed by its last. The instances that hold a row are
consecutive numbers, and both ends of that run rise with the rows, so a row opens what lies beyond the
run of the row before it, and closes what lies short of the run of the row after it. No search, and no
work for instances without rows however long the gap: O(rows + answers).
"""

from __future__ import annotations

import numpy as np

from panes.frames.pairs import Frame
from panes.frames.positions import Integers, Positions
from panes.timeline import Geometry


def frame_by_rows(geometry: Geometry, positions: Positions) -> Frame:
    """The instances that hold at least one row.

    Examples
    --------
    >>> events = Positions.of_events(np.array([3, 4, 1_000_000]), np.array([0, 3]))
    >>> frame = frame_by_rows(Geometry(10, 5), events)
    >>> frame.start, frame.lo, frame.hi
    (array([    -5,      0, 999995, 1000000]), array([0, 0, 2, 2]), array([2, 2, 3, 3]))
    """
    if not len(positions):
        return Frame.empty()
    if geometry.tumbling:
        return _tumbling(geometry, positions)
    first, last = holding(geometry, positions.start, positions.end)
    new_key = positions.key_starts[positions.occupied]
    opened = first.copy()
    np.maximum(first[1:], last[:-1] + 1, out=opened[1:])
    opened[new_key] = first[new_key]
    opens = np.maximum(last - opened + 1, 0)
    closed = last.copy()
    np.minimum(last[:-1], first[1:] - 1, out=closed[:-1])
    closed[new_key[1:] - 1] = last[new_key[1:] - 1]
    closes = np.maximum(closed - first + 1, 0)

    rows = np.arange(len(positions), dtype=np.int64)
    lo, hi = np.repeat(rows, opens), np.repeat(rows + 1, closes)
    before = np.concatenate(([0], np.cumsum(opens)))
    number = np.arange(len(lo), dtype=np.int64) + np.repeat(opened - before[:-1], opens)
    key = np.repeat(np.arange(positions.keys, dtype=np.int64), np.diff(before[positions.key_starts]))
    return Frame(key, number * geometry.slide + geometry.offset, lo, hi)


def holding(geometry: Geometry, start: Integers, end: Integers) -> tuple[Integers, Integers]:
    """The numbers of the first and the last instance that hold each span; last < first in a gap."""
    first = -((geometry.offset + geometry.range - end) // geometry.slide)
    return first, (start - geometry.offset) // geometry.slide


def _tumbling(geometry: Geometry, positions: Positions) -> Frame:
    """A row belongs to one instance, so instances begin where the number or the key changes."""
    number = (positions.start - geometry.offset) // geometry.slide
    begins = np.empty(len(number), np.bool_)
    np.not_equal(number[1:], number[:-1], out=begins[1:])
    begins[positions.key_starts[positions.occupied]] = True
    lo = np.flatnonzero(begins).astype(np.int64, copy=False)
    hi = np.append(lo[1:], len(number))
    per_key = np.diff(np.searchsorted(lo, positions.key_starts))
    key = np.repeat(np.arange(positions.keys, dtype=np.int64), per_key)
    return Frame(key, number[lo] * geometry.slide + geometry.offset, lo, hi)
