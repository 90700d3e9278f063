"""Whether the edges of a window cut a row: a cut row belongs neither inside nor outside an instance."""

from __future__ import annotations

import numpy as np

from panes.errors import PlanError
from panes.frames.positions import Positions
from panes.timeline import Geometry


def check_uncut(geometry: Geometry, positions: Positions) -> None:
    """Raise where a row straddles an edge of the window.

    Equal panes are checked by arithmetic on their edges alone, so that a thousand windows over one
    column cost one pass.

    Examples
    --------
    >>> hours = Positions(np.array([0, 60]), np.array([60, 120]), np.array([0, 2]))
    >>> check_uncut(Geometry(120, 60), hours)
    >>> check_uncut(Geometry(30, 30), hours)
    Traceback (most recent call last):
    ...
    panes.errors.PlanError: the window ⟨30, 30⟩ cuts row 0 of the column, [0, 60), at 30. ...
    """
    if positions.widest <= 1:
        return
    panes = positions.panes
    for edges in geometry.edges():
        if panes is not None and edges.within(panes):
            continue
        first = (positions.start - edges.offset) // edges.period
        cut = first != (positions.end - 1 - edges.offset) // edges.period
        if cut.any():
            row = int(np.argmax(cut))
            span = f"[{positions.start[row]}, {positions.end[row]})"
            edge = (int(first[row]) + 1) * edges.period + edges.offset
            offset = f" with offset {geometry.offset}" if geometry.offset else ""
            raise PlanError(
                f"the window ⟨{geometry.range}, {geometry.slide}⟩{offset} cuts row {row} of the column, "
                f"{span}, at {edge}. Answer it from a column whose rows end at the window's edges."
            )
