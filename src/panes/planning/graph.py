"""The window coverage graph: who could be answered from whom.

Paper: Factor Windows, sections II-C and IV-A. The graph of 10,000 windows may have tens of millions of edges, so
edges are never stored: a vertex's edges are found when asked for, by one vectorised test of the congruences in
``coverage`` against the columns of all windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from panes.planning.coverage import Semantics
from panes.timeline import Geometry

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
        Which relation an edge stands for.
    root
        The virtual root of the augmented graph, an edge from which leads to every window that nothing else
        covers; ``None`` for the plain graph.

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
    # is shorter than its consumers, so only one side of it has to be looked at.
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
        """Whether a window could have any consumer at all: no gaps, and tumbling where instances must be disjoint."""
        if self.semantics is Semantics.PARTITIONED_BY:
            return window.tumbling
        return window.slide <= window.range

    def downstream(self, provider: Geometry) -> Integers:
        """Indices of the other windows that the given one (a vertex or not) could answer."""
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
        """Indices of the other windows that could answer the given one (a vertex or not)."""
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
        """Every edge as (provider, consumer), loops left out; those of the virtual root last."""
        uncovered = set(range(len(self)))
        for provider in self.windows:
            for at in self.downstream(provider).tolist():
                uncovered.discard(at)
                yield provider, self.windows[at]
        if self.root is not None and self.root not in self.windows:
            for at in sorted(uncovered):
                yield self.root, self.windows[at]

    def extended(self, windows: Iterable[Geometry]) -> CoverageGraph:
        """The same graph with more vertices, after the present ones."""
        known = set(self.windows)
        fresh = tuple(dict.fromkeys(w for w in windows if w not in known))
        return CoverageGraph(self.windows + fresh, self.semantics, self.root)


def _multiples(column: Integers, step: int) -> NDArray[np.bool_]:
    # Dividing a column by one number is several times faster in NumPy than taking its remainder.
    found: NDArray[np.bool_] = column // step * step == column
    return found
