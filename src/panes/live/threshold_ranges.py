"""What a lookup asks of a value: more than this, less than that, or both; in the numbers that values are kept as."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from panes.algebra.operations import Array
from panes.errors import PlanError

Number: TypeAlias = "int | float | Decimal"


@dataclass(frozen=True, slots=True)
class Asked:
    """The open range ``(above, below)``; None where it is open to that side."""

    above: Number | None
    below: Number | None

    @classmethod
    def of(cls, above: object, below: object, between: object) -> Asked:
        """Read the arguments of a lookup.

        Examples
        --------
        >>> Asked.of(1000, None, None)
        Asked(above=1000, below=None)
        >>> Asked.of(None, None, (9, 1))
        Traceback (most recent call last):
        ...
        panes.errors.PlanError: between=(9, 1) is empty: nothing is more than 9 and less than 1. ...
        """
        if sum(each is not None for each in (above, below, between)) != 1:
            raise PlanError(
                "a lookup compares with one threshold or asks for one range. Give one of above=1000, below=10 and "
                "between=(10, 1000)."
            )
        if between is None:
            return cls(_number("above", above), _number("below", below))
        if not isinstance(between, (tuple, list)) or len(between) != 2:
            raise PlanError(f"between={between!r} is no range. Write both of its ends, as between=(10, 1000).")
        low, high = (_number("between", end) for end in between)
        if low is None or high is None or not Fraction(low) < Fraction(high):
            raise PlanError(
                f"between={between!r} is empty: nothing is more than {low} and less than {high}. Write the lower end "
                "first; neither end is part of the range."
            )
        return cls(low, high)


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


def _number(name: str, value: Any) -> Number | None:
    if value is None and name != "between":
        return None
    if isinstance(value, np.number):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)) or not math.isfinite(value):
        raise PlanError(f"{name}={value!r} is not a number to compare with. Write a finite one, as {name}=1000.")
    return value
