"""A window and those that read it in, the best factor window between them out.

⟨20, 20⟩ and ⟨30, 30⟩ from the raw stream => ⟨20, 20⟩ and ⟨30, 30⟩ from ⟨10, 10⟩, which alone reads the raw stream.

Requires: a target (a window, or ``None`` for the raw stream) and its downstream windows. Costs: one step per divisor
of the downstream's common slide. Paper: Factor Windows, sections IV-A, IV-B and IV-D; Algorithms 2, 4 and 5.

Three things make it cheaper and safer than the algorithms as printed:

* The downstream windows enter the benefit (equation 2) only through ``Σ nj`` and ``Σ nj·rj``, so a candidate is
  weighed in constant time.
* For a given slide the benefit is linear in the candidate's range, so only the shortest and the longest can be best.
* Algorithm 5 takes common divisors of ranges; with hopping windows these need not divide the slides, so they must be
  divisors of both. And Theorem 9 turns around when ``λ < rf / rW``; written out, the longer candidate always wins,
  which makes the greatest common divisor the only candidate worth checking.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from panes.planning.cost import window_cost
from panes.planning.coverage import CoverageGraph, Integers, Semantics, divisors
from panes.timeline import Geometry

#: A benefit below this fraction of the downstream's cost is a rounding error.
_NOTHING = 1e-12


@dataclass(frozen=True, slots=True)
class Downstream:
    """A summary of the windows W1, ..., WK below a target, enough to weigh any candidate.

    Attributes
    ----------
    step
        The number that the slide of a common provider divides: of slides, differences of offsets and of ranges.
    member
        One of the windows; a provider's offset and range are congruent to its.
    shortest
        The shortest range.
    recurrences, inputs
        ``Σ nj`` and ``Σ nj·rj``, per unit of time.
    """

    step: int
    member: Geometry
    shortest: int
    recurrences: float
    inputs: float

    @classmethod
    def of(cls, graph: CoverageGraph, indices: Integers) -> Downstream:
        """Summarise some vertices of a graph."""
        ranges, slides, offsets = graph.ranges[indices], graph.slides[indices], graph.offsets[indices]
        return cls(
            step=int(np.gcd.reduce(np.concatenate([slides, ranges - ranges[0], offsets - offsets[0]]))),
            member=graph.windows[int(indices[0])],
            shortest=int(ranges.min()),
            recurrences=float((1 / slides).sum()),
            inputs=float((ranges / slides).sum()),
        )

    @property
    def pane(self) -> int:
        """The longest tumbling window that partitions all of them."""
        return math.gcd(self.step, self.member.range)

    def cost_from(self, provider: Geometry | None, eta: float) -> float:
        """Return what the downstream windows cost together if all read one provider."""
        if provider is None:
            return eta * self.inputs
        return self.recurrences + (self.inputs - self.recurrences * provider.range) / provider.slide


def benefit(factor: Geometry, target: Geometry | None, downstream: Downstream, eta: float) -> float:
    """Return how much a factor window in between saves, its own cost deducted (equation 2).

    Examples
    --------
    >>> windows = CoverageGraph((Geometry(20, 20), Geometry(30, 30)), Semantics.PARTITIONED_BY)
    >>> benefit(Geometry(10, 10), None, Downstream.of(windows, np.arange(2)), eta=1.0)
    0.8
    """
    return downstream.cost_from(target, eta) - downstream.cost_from(factor, eta) - window_cost(factor, target, eta)


def best_factor(target: Geometry | None, downstream: Downstream, semantics: Semantics, eta: float) -> Geometry | None:
    """Return the factor window that saves most below a target, or None if none does (Algorithms 2, 4 and 5).

    Examples
    --------
    >>> windows = CoverageGraph((Geometry(20, 20), Geometry(30, 30)), Semantics.PARTITIONED_BY)
    >>> downstream = Downstream.of(windows, np.arange(2))
    >>> best_factor(None, downstream, windows.semantics, eta=1.0)
    Geometry(range=10, slide=10, offset=0)
    >>> best_factor(None, downstream, windows.semantics, eta=0.01) is None
    True
    """
    if semantics is Semantics.COVERED_BY:
        factors = covering_candidates(target, downstream)
    else:
        # All candidates divide the longest, so they are dependent on it and dominated by it.
        pane = Geometry(downstream.pane, downstream.pane, downstream.member.offset)
        exists = pane == target or pane.range == downstream.shortest
        factors = () if exists else (pane,)
    saved = {factor: benefit(factor, target, downstream, eta) for factor in factors}
    best = max(saved, key=saved.__getitem__, default=None)
    return None if best is None or saved[best] <= _NOTHING * downstream.cost_from(target, eta) else best


def covering_candidates(target: Geometry | None, downstream: Downstream) -> tuple[Geometry, ...]:
    """Return the candidates for the best window between a target and its downstream (Algorithm 2, lines 1 to 11).

    For each eligible slide, only the shortest and the longest eligible range.
    """
    member = downstream.member
    least, above = (1, 0) if target is None else (target.slide, target.range)
    found = []
    for part in divisors(downstream.step // least):
        slide = least * part
        floor = max(slide, above + 1)
        shortest = floor + (member.range - floor) % slide
        longest = downstream.shortest - slide
        if shortest <= longest:
            found += [Geometry(length, slide, member.offset) for length in sorted({shortest, longest})]
    return tuple(found)
