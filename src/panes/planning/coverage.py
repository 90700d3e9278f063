"""When one window can be answered from another: coverage, partitioning and the covering multiplier.

Requires: nothing but integers. Paper: Factor Windows, section II-B, Definitions 1 to 5, Theorems 1 to 4.

The paper puts every window at offset 0 and assumes ``slide <= range``. Here windows have offsets, ranges need
not be multiples of slides, and a consumer may leave gaps. Writing out Definition 1 for
``[o1 + m·s1, o1 + m·s1 + r1)`` gives three congruences modulo the provider's slide:

* every start of the consumer is a start of the provider: ``s2 | s1`` and ``s2 | o1 - o2``;
* every end of the consumer is an end of the provider: ``s2 | r1 - r2``;

and the provider may not leave gaps (``s2 <= r2``), or the instances between the two ends miss events.
"""

from __future__ import annotations

from enum import Enum

from panes.errors import PlanError
from panes.timeline import Geometry


class Semantics(Enum):
    """Which relation a provider must have to its consumers.

    ``PARTITIONED_BY`` is right for every aggregate that combines partials; ``COVERED_BY`` only for idempotent
    ones (min, max, distinct sketches), since partials may then overlap (Factor Windows, Theorems 5 and 6).
    """

    COVERED_BY = "covered by"
    PARTITIONED_BY = "partitioned by"

    def holds(self, consumer: Geometry, provider: Geometry) -> bool:
        """Whether the consumer can be answered from the provider.

        Examples
        --------
        >>> Semantics.COVERED_BY.holds(Geometry(10, 2), Geometry(8, 2))
        True
        >>> Semantics.PARTITIONED_BY.holds(Geometry(10, 2), Geometry(8, 2))
        False
        """
        if self is Semantics.COVERED_BY:
            return covered_by(consumer, provider)
        return partitioned_by(consumer, provider)


def covered_by(w1: Geometry, w2: Geometry) -> bool:
    """Whether every instance of ``w1`` is the union of instances of ``w2`` (Theorem 1, with offsets).

    Examples
    --------
    >>> covered_by(Geometry(10, 2), Geometry(8, 2)), covered_by(Geometry(10, 2), Geometry(7, 2))
    (True, False)
    >>> covered_by(Geometry(10, 4, offset=3), Geometry(6, 4, offset=3))
    True
    """
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
    """Whether every instance of ``w1`` is the union of *disjoint* instances of ``w2`` (Theorem 4, with offsets).

    A window is partitioned by itself, as Definition 5 has it; Theorem 4 forgets the hopping ones.

    Examples
    --------
    >>> partitioned_by(Geometry(10, 2), Geometry(2, 2)), partitioned_by(Geometry(10, 4), Geometry(4, 4))
    (True, False)
    """
    return w1 == w2 or (w2.tumbling and covered_by(w1, w2))


def multiplier(w1: Geometry, w2: Geometry) -> int:
    """How many instances of ``w2`` make one instance of ``w1`` (Theorem 3).

    Examples
    --------
    >>> multiplier(Geometry(10, 2), Geometry(8, 2))
    2
    """
    if not covered_by(w1, w2):
        raise PlanError(
            f"{w1} is not covered by {w2}, so it has no covering multiplier. Its starts and ends must be starts and "
            "ends of the provider, which must be shorter and leave no gaps."
        )
    return 1 + (w1.range - w2.range) // w2.slide
