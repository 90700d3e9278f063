"""Coverage as the paper defines it, for two windows: what the vectorised planner is compared with."""

from __future__ import annotations

from panes.planning.coverage import Semantics
from panes.timeline import Geometry


def covered_by(w1: Geometry, w2: Geometry) -> bool:
    """Whether every instance of w1 is the union of instances of w2 (Theorem 1, with offsets)."""
    if w1 == w2:
        return True
    step = w2.slide
    return (
        w1.range > w2.range >= step
        and w1.slide % step == 0
        and (w1.range - w2.range) % step == 0
        and (w1.offset - w2.offset) % step == 0
    )


def partitioned_by(w1: Geometry, w2: Geometry) -> bool:
    """Whether every instance of w1 is the union of *disjoint* instances of w2 (Theorem 4, with offsets).

    A window is partitioned by itself, as Definition 5 has it; Theorem 4 forgets the hopping ones.
    """
    return w1 == w2 or (w2.tumbling and covered_by(w1, w2))


HOLDS = {Semantics.COVERED_BY: covered_by, Semantics.PARTITIONED_BY: partitioned_by}
"""Whether the first window can be answered from the second."""
