"""Divisors, and the tick in which a set of windows is measured."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from panes.errors import PlanError
from panes.timeline import Geometry, common_tick

Floats: TypeAlias = NDArray[np.float64]


@lru_cache(maxsize=4096)
def divisors(number: int) -> tuple[int, ...]:
    """Every divisor of a positive number, ascending.

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
    """The gcd of a number and all of a column, 0 where all are 0.

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
        """The largest tick in which all windows are whole, counted from the start of the first."""
        windows = list(windows)
        return cls(common_tick(windows), windows[0].offset)

    def measure(self, window: Geometry) -> Geometry:
        """A window in ticks."""
        tick = self.tick
        return Geometry(window.range // tick, window.slide // tick, (window.offset - self.origin) // tick)

    def measure_exactly(self, window: Geometry) -> Geometry:
        """A window in ticks, or an error where it is not whole."""
        if any(part % self.tick for part in (window.range, window.slide, window.offset - self.origin)):
            raise PlanError(
                f"{window} is not whole in ticks of {self.tick} from {self.origin}, in which the windows to plan are "
                "measured. Give a window whose range, slide and offset are."
            )
        return self.measure(window)

    def restore(self, window: Geometry) -> Geometry:
        """A window in ticks, in the unit it was given in."""
        tick = self.tick
        return Geometry(window.range * tick, window.slide * tick, window.offset * tick + self.origin)
