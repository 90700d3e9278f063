"""The frame of a time window ⟨range, slide, offset⟩: the one place that chooses how to find it."""

from __future__ import annotations

from typing import Final, Literal

from panes.errors import PlanError
from panes.frames.by_rows import frame_by_rows
from panes.frames.cut import check_uncut
from panes.frames.enumerated import extent, frame_enumerated
from panes.frames.pairs import Frame
from panes.frames.positions import FARTHEST, Positions
from panes.timeline import Geometry

# Nanoseconds, measured with a million rows in 100 keys and windows from one row to a thousand rows wide.
_PER_INSTANCE: Final = 45
_PER_ROW: Final = 16
_PER_ROW_TUMBLING: Final = 3


def frame(
    geometry: Geometry,
    positions: Positions,
    *,
    emit_all: bool = False,
    ending: tuple[int, int] | None = None,
    check: bool = True,
    method: Literal["enumerated", "rows"] | None = None,
) -> Frame:
    """The index pairs that a window means on a sorted column.

    Parameters
    ----------
    geometry
        The instances ``[offset + m * slide, offset + m * slide + range)``.
    positions
        The column's rows; none may be cut by an edge of the window.
    emit_all
        Also the instances without rows between the first and the last row of each key.
    ending
        Only the instances that end after the first of two instants, and no later than the second.
    check
        Whether to look for rows that are cut.
    method
        How to find the pairs; both ways give the same. By default the cheaper one.

    Examples
    --------
    >>> import numpy as np
    >>> events = Positions.of_events(np.array([3, 4, 21]), np.array([0, 3]))
    >>> found = frame(Geometry(10, 10), events)
    >>> found.start, found.lo, found.hi
    (array([ 0, 20]), array([0, 2]), array([2, 3]))
    """
    if max(geometry.range, geometry.slide) > FARTHEST:
        raise PlanError(f"the window ⟨{geometry.range}, {geometry.slide}⟩ is longer than 36,000 years.")
    if not len(positions):
        return Frame.empty()
    if check:
        check_uncut(geometry, positions)
    if emit_all:
        return frame_enumerated(geometry, positions, emit_all=True, ending=ending)
    known = None
    if method is None:
        known = extent(geometry, positions, ending)
        # Summed as floats: years of microseconds in a million keys are more instances than int64 counts.
        instances = float(known[1].sum(dtype=float))
        per_row = _PER_ROW_TUMBLING if geometry.tumbling else _PER_ROW
        method = "enumerated" if instances * _PER_INSTANCE < len(positions) * per_row else "rows"
    if method == "enumerated":
        return frame_enumerated(geometry, positions, ending=ending, known=known)
    found = frame_by_rows(geometry, positions)
    if ending is None:
        return found
    end = found.start + geometry.range
    return found.where((end > ending[0]) & (end <= ending[1]))
