"""What a lookup asks of a value: more than this, less than that, or both; in the numbers that values are kept as."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from panes.algebra.operations import Array

Number: TypeAlias = "int | float | Decimal"


@dataclass(frozen=True, slots=True)
class Asked:
    """The open range ``(above, below)``; None where it is open to that side."""

    above: Number | None
    below: Number | None


@dataclass(frozen=True, slots=True)
class WholeRange:
    """Integers from ``at_least`` to ``at_most``, both within; None where there is no end."""

    at_least: int | None
    at_most: int | None

    @classmethod
    def of(cls, asked: Asked, scale: int = 0) -> WholeRange:
        """Thresholds for values that are kept as integers of so many decimal places.

        Examples
        --------
        >>> WholeRange.of(Asked(10, None)), WholeRange.of(Asked(0.5, Decimal("9.99")), scale=2)
        (WholeRange(at_least=11, at_most=None), WholeRange(at_least=51, at_most=998))
        """
        low, high = (
            None if v is None else v * 10**scale if isinstance(v, int) else Fraction(v) * 10**scale
            for v in (asked.above, asked.below)
        )
        return cls(None if low is None else math.floor(low) + 1, None if high is None else math.ceil(high) - 1)

    def holds(self, values: Array) -> Array:
        """Which values are within."""
        held = np.ones(len(values), bool)
        if self.at_least is not None:
            held &= (values >= self.at_least).astype(bool)
        if self.at_most is not None:
            held &= (values <= self.at_most).astype(bool)
        return held


@dataclass(frozen=True, slots=True)
class RealRange:
    """Doubles above one and below another, neither within; None where there is no end."""

    above: float | None
    below: float | None

    @classmethod
    def of(cls, asked: Asked) -> RealRange:
        """Thresholds for doubles; Spark compares with the nearest double as well."""
        return cls(*(None if v is None else nearest_double(v) for v in (asked.above, asked.below)))

    def holds(self, values: Array) -> Array:
        """Which values are within; NaN is larger than every number, as in Spark."""
        held = np.ones(len(values), bool)
        if self.above is not None:
            held &= (values > self.above) | np.isnan(values)
        if self.below is not None:
            held &= values < self.below
        return held


def nearest_double(value: Number) -> float:
    """The double nearest to a number; beyond all doubles, infinity.

    Examples
    --------
    >>> nearest_double(10**400)
    inf
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
