"""What a window costs, read from raw events or from another window's partials.

Paper: Factor Windows, section III-B. The cost of a window is how often it recurs times what one instance costs:
``eta * range`` events from the raw stream, or the covering multiplier from a provider.

The paper counts recurrences within ``R = lcm(ranges)``, a number with thousands of digits for a thousand windows.
Dividing by R and letting it grow, ``n / R`` becomes ``1 / slide``; so costs here are per unit of time unless a finite
period is asked for, which the paper's worked examples need.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from panes.errors import PlanError
from panes.planning.coverage import multiplier
from panes.planning.graph import Integers
from panes.planning.numbers import Floats
from panes.timeline import Geometry


@dataclass(frozen=True, slots=True)
class Period:
    """Over how much time costs are counted: a finite length, or for ever (then per unit of time).

    Examples
    --------
    >>> Period().recurrences(Geometry(20, 5)), Period(120).recurrences(Geometry(20, 5))
    (0.2, 21.0)
    """

    length: int | None = None

    @classmethod
    def of(cls, windows: Iterable[Geometry]) -> Period:
        """The paper's period, the least common multiple of all ranges.

        Examples
        --------
        >>> Period.of([Geometry(20, 20), Geometry(30, 30), Geometry(40, 40)])
        Period(length=120)
        """
        return cls(math.lcm(*(window.range for window in windows)))

    def recurrences(self, window: Geometry) -> float:
        """How many instances a window has in the period (equation 1), or per unit of time."""
        if self.length is None:
            return 1 / window.slide
        return 1 + (self.length - window.range) / window.slide

    def recurrences_of(self, ranges: Integers, slides: Integers) -> Floats:
        """The same for columns of windows."""
        if self.length is None:
            return 1 / slides
        return 1 + (self.length - ranges) / slides

    def ticks(self, tick: int) -> Period:
        """The same period, measured in ticks."""
        if self.length is None:
            return self
        if self.length % tick:
            raise PlanError(f"a period of {self.length} is not a whole number of ticks of {tick}; give a multiple")
        return Period(self.length // tick)


@dataclass(frozen=True, slots=True)
class CostModel:
    """The rate of events and the period, and what windows cost under them.

    Parameters
    ----------
    eta
        Events per unit of time, of the unit in which windows are measured. May be below one.
    period
        Over which time costs are counted.

    Examples
    --------
    >>> model = CostModel(eta=1.0, period=Period(120))
    >>> model.cost(Geometry(20, 20)), model.cost(Geometry(20, 20), Geometry(10, 10))
    (120.0, 12.0)
    """

    eta: float = 1.0
    period: Period = Period()

    def __post_init__(self) -> None:
        if not (self.eta > 0 and math.isfinite(self.eta)):
            raise PlanError(f"a stream has a positive rate of events, not {self.eta}; give events per unit of time")

    def cost(self, window: Geometry, provider: Geometry | None = None) -> float:
        """What a window costs from a provider, or from the raw stream."""
        instance = self.eta * window.range if provider is None else multiplier(window, provider)
        return self.period.recurrences(window) * instance

    def naive(self, windows: Iterable[Geometry]) -> float:
        """What windows cost when each is computed on its own."""
        return math.fsum(self.cost(window) for window in windows)
