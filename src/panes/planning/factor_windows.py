"""A window and those that read it in, the best factor window between them out.

⟨20, 20⟩ and ⟨30, 30⟩ from the raw stream => ⟨20, 20⟩ and ⟨30, 30⟩ from ⟨10, 10⟩, which alone reads the raw stream.

Requires: a target (a window, or ``None`` for the raw stream) and its downstream windows. Costs: one step per divisor
of the downstream's common slide. Paper: Factor Windows, sections IV-A, IV-B and IV-D; Algorithms 2, 4 and 5.

Three things make it cheaper and safer than the algorithms as printed:

* The downstream windows enter the benefit (equation 2) only through ``Σ nj`` and ``Σ nj·rj``, so a candidate is
  weighed in constant time.
* For a given slide the benefit is a convex function of the candidate's range (linear per unit of time; over a finite
  period its own cost is a concave product), so only the shortest and the longest range can be best.
* Algorithm 5 takes common divisors of ranges; with hopping windows these need not divide the slides, so they must be
  divisors of both. And Theorem 9 turns around when ``λ < rf / rW``; written out, the longer candidate always wins,
  which makes the greatest common divisor the only candidate worth checking.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from panes.planning.cost import CostModel, Period
from panes.planning.coverage import CoverageGraph, Integers, Semantics, common_divisor, divisors
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
        ``Σ nj`` and ``Σ nj·rj``.
    """

    step: int
    member: Geometry
    shortest: int
    recurrences: float
    inputs: float

    @classmethod
    def of(cls, windows: Iterable[Geometry], period: Period | None = None) -> Downstream:
        """Summarise windows."""
        graph = CoverageGraph(tuple(windows), Semantics.COVERED_BY)
        return cls.at(graph, np.arange(len(graph)), period or Period())

    @classmethod
    def at(cls, graph: CoverageGraph, indices: Integers, period: Period) -> Downstream:
        """Summarise some vertices of a graph."""
        ranges, slides, offsets = graph.ranges[indices], graph.slides[indices], graph.offsets[indices]
        step = common_divisor(slides)
        step = common_divisor(ranges - ranges[0], step)
        step = common_divisor(offsets - offsets[0], step)
        recurrences = period.recurrences_of(ranges, slides)
        return cls(
            step=step,
            member=graph.windows[int(indices[0])],
            shortest=int(ranges.min()),
            recurrences=float(recurrences.sum()),
            inputs=float(recurrences @ ranges),
        )

    @property
    def pane(self) -> int:
        """The longest tumbling window that partitions all of them."""
        return math.gcd(self.step, self.member.range)

    def load(self, period: Period) -> float:
        """λ of equation 4: the rate at which the downstream reads, in units of a tumbling window's.

        Examples
        --------
        >>> Downstream.of([Geometry(20, 20), Geometry(40, 10)]).load(Period())
        5.0
        """
        # nj / mj = nj·rj / R, and per unit of time nj·rj as it stands.
        return self.inputs / (period.length or 1)

    def cost_from(self, provider: Geometry | None, model: CostModel) -> float:
        """Return what the downstream windows cost together if all read one provider."""
        if provider is None:
            return model.eta * self.inputs
        return self.recurrences + (self.inputs - self.recurrences * provider.range) / provider.slide


def benefit(factor: Geometry, target: Geometry | None, downstream: Downstream, model: CostModel) -> float:
    """Return how much a factor window in between saves, its own cost deducted (equation 2).

    Examples
    --------
    >>> downstream = Downstream.of([Geometry(20, 20), Geometry(30, 30)], Period(120))
    >>> benefit(Geometry(10, 10), None, downstream, CostModel(period=Period(120)))
    96.0
    """
    return downstream.cost_from(target, model) - downstream.cost_from(factor, model) - model.cost(factor, target)


def beneficial(factor: Geometry, target: Geometry | None, downstream: Downstream, model: CostModel) -> bool:
    """Whether a tumbling factor window pays off below a tumbling target (Algorithm 4).

    Equation 2 becomes ``λ(t - 1/rf) >= t``, where t is what a unit of time costs from the target: ``1 / rW``, or
    eta from the raw stream. The paper's cases follow where λ >= 2 and the target is a window; with few events, or
    windows that leave gaps, they do not, so the inequality itself is tested.
    """
    per_unit = model.eta if target is None else 1 / target.range
    return downstream.load(model.period) * (per_unit - 1 / factor.range) >= per_unit


def covering_candidates(target: Geometry | None, downstream: Downstream) -> tuple[Geometry, ...]:
    """Return the candidates for the best window between a target and its downstream (Algorithm 2, lines 1 to 11).

    For each eligible slide, only the shortest and the longest eligible range.

    Examples
    --------
    >>> for factor in covering_candidates(Geometry(2, 2), Downstream.of([Geometry(20, 4), Geometry(24, 8)])):
    ...     print(factor.range, factor.slide)
    4 2
    18 2
    4 4
    16 4
    """
    member = downstream.member
    least, above = (1, 0) if target is None else (target.slide, target.range)
    found = []
    for part in divisors(downstream.step // least):
        slide = least * part
        floor = max(slide, above + 1)
        shortest = floor + (member.range - floor) % slide
        longest = downstream.shortest - slide
        for length in sorted({shortest, longest}):
            if shortest <= length <= longest:
                found.append(Geometry(length, slide, member.offset))
    return tuple(found)


def best_factor(
    target: Geometry | None, downstream: Downstream, semantics: Semantics, model: CostModel
) -> Geometry | None:
    """Return the factor window that saves most below a target, or None if none does (Algorithms 2 and 5).

    Examples
    --------
    >>> below = Downstream.of([Geometry(20, 20), Geometry(30, 30)])
    >>> best_factor(None, below, Semantics.PARTITIONED_BY, CostModel())
    Geometry(range=10, slide=10, offset=0)
    >>> best_factor(None, below, Semantics.PARTITIONED_BY, CostModel(eta=0.01)) is None
    True
    """
    least = _NOTHING * downstream.cost_from(target, model)
    if semantics is Semantics.PARTITIONED_BY:
        # All candidates divide the longest, so they are dependent on it and dominated by it.
        pane = Geometry(downstream.pane, downstream.pane, downstream.member.offset)
        if pane == target or pane.range == downstream.shortest:  # it exists already
            return None
        pays = beneficial(pane, target, downstream, model) and benefit(pane, target, downstream, model) > least
        return pane if pays else None
    best, most = None, least
    for factor in covering_candidates(target, downstream):
        saved = benefit(factor, target, downstream, model)
        if saved > most:
            best, most = factor, saved
    return best
