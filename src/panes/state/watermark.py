"""What a watermark means for windows: which events are too late for which of their instances, and what is due."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from panes.aggregates.operations import Array
from panes.timeline import Geometry

NEVER = 2**62


def lateness(windows: Iterable[Geometry], instants: Array, watermark: int) -> tuple[Array, Array]:
    """Which instants are too late for at least one instance that holds them, and which for all.

    Examples
    --------
    >>> lateness([Geometry(10, 10), Geometry(100, 100)], np.array([52, 65]), watermark=60)
    (array([ True, False]), array([False, False]))
    """
    late, open_ = np.zeros(len(instants), dtype=bool), np.zeros(len(instants), dtype=bool)
    old = np.flatnonzero(instants < watermark)
    for geometry in windows if len(old) else ():
        # The first and the last instance that hold each instant; between instances there is none.
        last = (instants[old] - geometry.offset) // geometry.slide
        first = (instants[old] - geometry.offset - geometry.range) // geometry.slide + 1
        base = geometry.offset + geometry.range
        late[old] |= (first <= last) & (base + first * geometry.slide <= watermark)
        open_[old] |= (first <= last) & (base + last * geometry.slide > watermark)
    return late, late & ~open_


def due_from(windows: Iterable[Geometry], after: int, upto: int) -> int:
    """Where the first instance starts that ends after one watermark and no later than the next; never without any.

    Examples
    --------
    >>> due_from([Geometry(10, 10), Geometry(100, 100)], after=60, upto=75)
    60
    """
    starts = [NEVER]
    for g in windows:
        start = g.offset + ((after - g.offset - g.range) // g.slide + 1) * g.slide
        if start + g.range <= upto:
            starts.append(start)
    return min(starts)


def open_from(windows: Iterable[Geometry], touched: Array, watermark: int) -> int:
    """No open instance that holds one of some touched rows starts before this; never without rows.

    Examples
    --------
    >>> open_from([Geometry(10, 10), Geometry(100, 100)], np.array([40, 80]), watermark=60)
    -40
    """
    if not len(touched):
        return NEVER
    return max(int(touched.min()), watermark) - max(g.range for g in windows)


def open_instances(windows: Iterable[Geometry], latest: int, watermark: int) -> int:
    """How many instances have begun by an instant and not ended by the watermark, or by another instant.

    Examples
    --------
    >>> open_instances([Geometry(10, 10), Geometry(100, 50)], latest=75, watermark=60)
    4
    """
    return sum(max(0, (latest - g.offset) // g.slide - (watermark - g.offset - g.range) // g.slide) for g in windows)
