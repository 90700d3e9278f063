"""Which window can be answered from which.

A window ⟨r, s⟩ at offset o can be read from a provider ⟨r', s'⟩ at o' if every instance of it is a union of instances
of the provider, which is the case if

* its starts are starts of the provider: s' divides s and o - o';
* its ends are ends of the provider: s' divides r - r';
* the provider is shorter and leaves no gaps: s' <= r' < r.

Such an instance is made of ``1 + (r - r') / s'`` instances of the provider, the covering multiplier. They are disjoint
if the provider is tumbling.

Paper: Factor Windows, sections II-B, II-C and IV-A. Its Theorems 1 to 4 put all windows at offset 0 and assume s <= r.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from panes.timeline import Geometry

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


class Semantics(Enum):
    """Which relation a provider must have to its consumers.

    ``PARTITIONED_BY`` (the provider is tumbling) is right for every aggregate that combines partials; ``COVERED_BY``
    only for idempotent ones (min, max, distinct sketches), since partials may then overlap (Theorems 5 and 6).
    """

    COVERED_BY = "covered by"
    PARTITIONED_BY = "partitioned by"


@dataclass(frozen=True, slots=True)
class CoverageGraph:
    """Windows as vertices; an edge leads from a provider to every window that can be answered from it.

    The graph of 10,000 windows may have tens of millions of edges, so edges are not stored: those of a vertex are found
    when needed, by one vectorised test.

    Parameters
    ----------
    windows
        Distinct windows.
    semantics
        The relation that an edge stands for.

    Examples
    --------
    >>> graph = CoverageGraph((Geometry(10, 10), Geometry(20, 20), Geometry(30, 30)), Semantics.PARTITIONED_BY)
    >>> graph.downstream(Geometry(10, 10)).tolist(), graph.upstream(Geometry(30, 30)).tolist()
    ([1, 2], [0])
    """

    windows: tuple[Geometry, ...]
    semantics: Semantics
    ranges: Integers = field(init=False, repr=False, compare=False)
    slides: Integers = field(init=False, repr=False, compare=False)
    offsets: Integers = field(init=False, repr=False, compare=False)
    # The order by range, and the columns in it. A provider is shorter than its consumers, so one side is searched.
    _by_range: tuple[Integers, Integers, Integers, Integers] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        columns = np.array([(w.range, w.slide, w.offset) for w in self.windows], dtype=np.int64).reshape(-1, 3)
        ranges, slides, offsets = (np.ascontiguousarray(columns[:, i]) for i in range(3))
        object.__setattr__(self, "ranges", ranges)
        object.__setattr__(self, "slides", slides)
        object.__setattr__(self, "offsets", offsets)
        order = np.argsort(ranges, kind="stable")
        object.__setattr__(self, "_by_range", (order, ranges[order], slides[order], offsets[order]))

    def __len__(self) -> int:
        return len(self.windows)

    def downstream(self, provider: Geometry) -> Integers:
        """Return the indices of the other windows that a window (a vertex or not) could answer."""
        partitions = self.semantics is Semantics.PARTITIONED_BY
        if provider.slide > provider.range or (partitions and not provider.tumbling):
            return np.empty(0, dtype=np.int64)
        order, ranges, slides, offsets = self._by_range
        first = int(np.searchsorted(ranges, provider.range, side="right"))
        step = provider.slide
        consumers = first + np.flatnonzero(slides[first:] % step == 0)
        ends = (ranges[consumers] - provider.range) % step == 0
        starts = (offsets[consumers] - provider.offset) % step == 0
        answered: Integers = order[consumers[ends & starts]]
        return answered

    def upstream(self, consumer: Geometry) -> Integers:
        """Return the indices of the other windows that could answer a window (a vertex or not)."""
        end = int(np.searchsorted(self._by_range[1], consumer.range))
        order, ranges, slides, offsets = (column[:end] for column in self._by_range)
        partitions = self.semantics is Semantics.PARTITIONED_BY
        candidates = ranges == slides if partitions else slides <= ranges
        providers = np.flatnonzero(candidates & (consumer.slide % slides == 0))
        step = slides[providers]
        ends = (consumer.range - ranges[providers]) % step == 0
        starts = (consumer.offset - offsets[providers]) % step == 0
        able: Integers = order[providers[ends & starts]]
        return able

    def extended(self, windows: Iterable[Geometry]) -> CoverageGraph:
        """Return the graph with more vertices, after the present ones."""
        return CoverageGraph(tuple(dict.fromkeys((*self.windows, *windows))), self.semantics)


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
        origin = windows[0].offset
        return cls(math.gcd(*(part for w in windows for part in (w.range, w.slide, w.offset - origin))), origin)

    def measure(self, window: Geometry) -> Geometry:
        """Return a window in ticks."""
        tick = self.tick
        return Geometry(window.range // tick, window.slide // tick, (window.offset - self.origin) // tick)

    def restore(self, window: Geometry) -> Geometry:
        """Return a window that is measured in ticks in its original unit."""
        tick = self.tick
        return Geometry(window.range * tick, window.slide * tick, window.offset * tick + self.origin)


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
