"""The window coverage graph: which window can be answered from which.

Paper: Factor Windows, sections II-B, II-C and IV-A. The graph of 10,000 windows may have tens of millions of edges, so
edges are not stored: those of a vertex are found when needed, by one vectorised test against all windows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from panes.errors import PlanError
from panes.timeline import Geometry, common_tick

# Divisors, and the tick in which a set of windows is measured.


Floats: TypeAlias = NDArray[np.float64]


@lru_cache(maxsize=4096)
def divisors(number: int) -> tuple[int, ...]:
    """Return every divisor of a positive number, ascending.

    Examples
    --------
    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    found, rest, prime = [1], number, 2
    while prime * prime <= rest:
        powers, power = found, 1
        while rest % prime == 0:
            rest //= prime
            power *= prime
            found = found + [divisor * power for divisor in powers]
        prime += 1 if prime == 2 else 2
    if rest > 1:
        found = found + [divisor * rest for divisor in found]
    return tuple(sorted(found))


def common_divisor(column: NDArray[np.int64], divisor: int = 0) -> int:
    """Return the gcd of a number and all of a column; 0 if all are 0.

    Dividing a whole column by one number is vectorised, a gcd is not; and a few numbers soon give the final gcd.

    Examples
    --------
    >>> common_divisor(np.array([20, 30, 45])), common_divisor(np.array([8, 0]), 12)
    (5, 4)
    """
    if divisor == 0:
        divisor = int(column[0]) or int(np.abs(column).max())
    divisor = abs(divisor)
    while divisor > 1:
        rest = column - column // divisor * divisor
        odd = np.flatnonzero(rest)
        if not odd.size:
            break
        divisor = math.gcd(divisor, *rest[odd[:8]].tolist())
    return divisor


@dataclass(frozen=True, slots=True)
class Ticks:
    """Measures windows in their common tick, so that the planner works on small numbers.

    Examples
    --------
    >>> windows = [Geometry(20, 20, 5), Geometry(30, 30, 15)]
    >>> ticks = Ticks.of(windows)
    >>> [ticks.measure(window) for window in windows]
    [Geometry(range=2, slide=2, offset=0), Geometry(range=3, slide=3, offset=1)]
    >>> ticks.restore(Geometry(1, 1))
    Geometry(range=10, slide=10, offset=5)
    """

    tick: int
    origin: int

    @classmethod
    def of(cls, windows: Iterable[Geometry]) -> Ticks:
        """Return the largest tick in which all windows are whole, counted from the start of the first."""
        windows = list(windows)
        return cls(common_tick(windows), windows[0].offset)

    def measure(self, window: Geometry) -> Geometry:
        """Return a window in ticks."""
        tick = self.tick
        return Geometry(window.range // tick, window.slide // tick, (window.offset - self.origin) // tick)

    def measure_exactly(self, window: Geometry) -> Geometry:
        """Return a window in ticks; raise if it is not whole."""
        if any(part % self.tick for part in (window.range, window.slide, window.offset - self.origin)):
            raise PlanError(
                f"{window} is not a whole number of ticks: the windows to plan are multiples of {self.tick} from "
                f"{self.origin}. Give a window whose range, slide and offset are."
            )
        return self.measure(window)

    def restore(self, window: Geometry) -> Geometry:
        """Return a window that is measured in ticks in its original unit."""
        tick = self.tick
        return Geometry(window.range * tick, window.slide * tick, window.offset * tick + self.origin)


# When one window can be answered from another: coverage, partitioning and the covering multiplier.
#
# Requires: nothing but integers. Paper: Factor Windows, section II-B, Definitions 1 to 5, Theorems 1 to 4.
#
# The paper puts every window at offset 0 and assumes ``slide <= range``. Here windows have offsets, ranges need
# not be multiples of slides, and a consumer may leave gaps. Writing out Definition 1 for
# ``[o1 + m·s1, o1 + m·s1 + r1)`` gives three congruences modulo the provider's slide:
#
# * every start of the consumer is a start of the provider: ``s2 | s1`` and ``s2 | o1 - o2``;
# * every end of the consumer is an end of the provider: ``s2 | r1 - r2``;
#
# and the provider may not leave gaps (``s2 <= r2``), or the instances between the two ends miss events.


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
    """Return how many instances of ``w2`` make one instance of ``w1`` (Theorem 3).

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


Integers: TypeAlias = NDArray[np.int64]

#: The paper's virtual root S⟨1, 1⟩: one aggregate per unit of time, which covers every window at whole offsets.
VIRTUAL_ROOT: Final = Geometry(1, 1)


@dataclass(frozen=True, slots=True)
class CoverageGraph:
    """Windows as vertices; an edge leads from a provider to every window it can answer.

    Parameters
    ----------
    windows
        Distinct windows.
    semantics
        The relation that an edge stands for.
    root
        The virtual root of the augmented graph, with an edge to every window that nothing else covers; None for the
        plain graph.

    Examples
    --------
    >>> graph = CoverageGraph((Geometry(10, 10), Geometry(20, 20), Geometry(30, 30)), Semantics.PARTITIONED_BY)
    >>> [(provider.range, consumer.range) for provider, consumer in graph.edges()]
    [(10, 20), (10, 30)]
    """

    windows: tuple[Geometry, ...]
    semantics: Semantics
    root: Geometry | None = None
    ranges: Integers = field(init=False, repr=False, compare=False)
    slides: Integers = field(init=False, repr=False, compare=False)
    offsets: Integers = field(init=False, repr=False, compare=False)
    # The same columns from the shortest window to the longest, and where each row stands in the others. A provider
    # is shorter than its consumers, so only one side of it is searched.
    _by_range: tuple[Integers, Integers, Integers, Integers, Integers] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        columns = np.array([(w.range, w.slide, w.offset) for w in self.windows], dtype=np.int64).reshape(-1, 3)
        ranges, slides, offsets = (np.ascontiguousarray(columns[:, i]) for i in range(3))
        object.__setattr__(self, "ranges", ranges)
        object.__setattr__(self, "slides", slides)
        object.__setattr__(self, "offsets", offsets)
        # What a provider's slide has to divide: with disjoint instances, the range as well as the slide.
        steps = np.gcd(ranges, slides) if self.semantics is Semantics.PARTITIONED_BY else slides
        order = np.argsort(ranges, kind="stable")
        object.__setattr__(self, "_by_range", (order, ranges[order], slides[order], offsets[order], steps[order]))

    def __len__(self) -> int:
        return len(self.windows)

    def can_provide(self, window: Geometry) -> bool:
        """Whether a window could have any consumer: no gaps, and tumbling if instances must be disjoint."""
        if self.semantics is Semantics.PARTITIONED_BY:
            return window.tumbling
        return window.slide <= window.range

    def downstream(self, provider: Geometry) -> Integers:
        """Return the indices of the other windows that a window (a vertex or not) could answer."""
        if not self.can_provide(provider):
            return np.empty(0, dtype=np.int64)
        step = provider.slide
        order, ranges, _, offsets, steps = self._by_range
        first = int(np.searchsorted(ranges, provider.range, side="right"))
        hits = first + np.flatnonzero(_multiples(steps[first:], step))
        fits = _multiples(ranges[hits] - provider.range, step) & _multiples(offsets[hits] - provider.offset, step)
        found: Integers = order[hits[fits]]
        return found

    def upstream(self, consumer: Geometry) -> Integers:
        """Return the indices of the other windows that could answer a window (a vertex or not)."""
        order, ranges, slides, offsets, _ = self._by_range
        end = int(np.searchsorted(ranges, consumer.range, side="left"))
        ranges, slides, offsets = ranges[:end], slides[:end], offsets[:end]
        able = ranges == slides if self.semantics is Semantics.PARTITIONED_BY else slides <= ranges
        hits = np.flatnonzero(able & (consumer.slide % slides == 0))
        step = slides[hits]
        fits = ((consumer.range - ranges[hits]) % step == 0) & ((consumer.offset - offsets[hits]) % step == 0)
        found: Integers = order[hits[fits]]
        return found

    def edges(self) -> Iterator[tuple[Geometry, Geometry]]:
        """Yield every edge as (provider, consumer), without loops; those of the virtual root last."""
        uncovered = set(range(len(self)))
        for provider in self.windows:
            for at in self.downstream(provider).tolist():
                uncovered.discard(at)
                yield provider, self.windows[at]
        if self.root is not None and self.root not in self.windows:
            for at in sorted(uncovered):
                yield self.root, self.windows[at]

    def extended(self, windows: Iterable[Geometry]) -> CoverageGraph:
        """Return the graph with more vertices, after the present ones."""
        known = set(self.windows)
        fresh = tuple(dict.fromkeys(w for w in windows if w not in known))
        return CoverageGraph(self.windows + fresh, self.semantics, self.root)


def _multiples(column: Integers, step: int) -> NDArray[np.bool_]:
    # Dividing a column by one number is several times faster in NumPy than taking its remainder.
    found: NDArray[np.bool_] = column // step * step == column
    return found
