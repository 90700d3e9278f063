"""How many copies of an element stand for a value, so that a count of copies bounds the sum of values.

CI-SUM counts copies: an element of value a is a copies (Arasu & Widom 2004, section 4.2). That takes positive integers.
For other values the copies are at least the value in some unit, so that no substream is missed:

- integers and decimals are in units of one (of their last place) while they are below 2^36, else of a power of two;
- floats are in units of a power of two, some thousandth of a typical value, rounded up;
- what is larger than 2^36 units, infinite or NaN is 2^36 copies, and no lookup asks for more than that;
- a negative value is no copy. The copies then bound the sum of the other values, and that bounds the sum from above. It
  does not from below, so that every substream is looked at for sums *below* a threshold once a value was negative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np

from panes.aggregates.operations import Array
from panes.live.substreams import Integers

# What a lookup asks of a value: more than this, less than that, or both; in the numbers that values are kept as.


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


MOST: Final = 2**36
"""Copies of one element at most: 2^24 elements, which are inserted at once at most, have no more than 2^60 then."""

FAR: Final = 2**60
"""No substream has so many copies, so that nothing is to be found out about it."""

_TYPICAL: Final = 12


class WholeCopies:
    """Copies of integers.

    Examples
    --------
    >>> copies = WholeCopies()
    >>> copies.of(np.array([3, -1, 2**40])).tolist() == [3, 0, MOST]
    True
    >>> copies.at_least(WholeRange(1001, None))
    1001
    """

    def __init__(self) -> None:
        self._shift, self._signed, self._most = 0, False, MOST

    def fit(self, values: Array) -> None:
        """Choose the unit for values like these."""
        self._most = _most(len(values))
        self._shift = max(0, int(values.max(initial=0)).bit_length() - self._most.bit_length() + 1)

    def fits(self, values: Array) -> bool:
        """Whether the unit suits values like these."""
        return bool(2 * np.count_nonzero(values >> self._shift > self._most) <= len(values))

    def of(self, values: Array) -> Integers:
        """The copies of each value."""
        self._signed = self._signed or bool((values < 0).any())
        # Negated, so that the shift rounds up.
        units = -(-np.maximum(values, 0) >> self._shift)
        copies: Integers = np.minimum(units, self._most).astype(np.int64, copy=False)
        return copies

    def at_least(self, asked: WholeRange) -> int:
        """How many copies there are at least where a sum is in a range; not positive if there may be none."""
        bound = asked.at_least
        return 0 if bound is None else min(-(-bound >> self._shift), self._most)

    def at_most(self, asked: WholeRange, longest: int) -> int | None:
        """How many copies there are at most where a sum is in a range; None if nobody knows."""
        if asked.at_most is None or self._signed:
            return None
        # Rounding up added less than one unit for each element.
        bound = max(0, asked.at_most >> self._shift) + (longest if self._shift else 0)
        return None if bound >= FAR else bound


class RealCopies:
    """Copies of floats.

    Examples
    --------
    >>> copies = RealCopies()
    >>> copies.fit(np.array([0.25, 0.5, 0.75]))
    >>> copies.of(np.array([0.5, 1e-300, -1.0, np.nan])).tolist() == [2048, 1, 0, MOST]
    True
    >>> copies.at_least(RealRange(0.5, None), longest=10)
    2047
    """

    def __init__(self) -> None:
        self._exponent: int | None = None
        self._signed, self._most = False, MOST

    def fit(self, values: Array) -> None:
        """Choose the unit for values like these."""
        typical, self._most = _typical(values), _most(len(values))
        self._exponent = None if typical is None else _TYPICAL - typical

    def fits(self, values: Array) -> bool:
        """Whether the unit suits values like these."""
        typical = _typical(values)
        if typical is None:
            return True
        return self._exponent is not None and 4 <= typical + self._exponent <= 2 * _TYPICAL

    def of(self, values: Array) -> Integers:
        """The copies of each value."""
        self._signed = self._signed or bool((values < 0).any())
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            # Times a power of two is exact; what underflows is still more than nothing.
            units = np.maximum(np.ceil(np.ldexp(values, self._exponent or 0)), values > 0)
        return np.where(np.isnan(values), self._most, np.clip(units, 0, self._most)).astype(np.int64)

    def at_least(self, asked: RealRange, longest: int) -> int:
        """How many copies there are at least where a sum is in a range; not positive if there may be none."""
        if asked.above is None or asked.above < 0:
            return 0
        # A sum that comes out above a threshold may be below it but for rounding.
        return max(1, math.floor(min(self._units(asked.above * (1 - _rounding(longest))), self._most)))

    def at_most(self, asked: RealRange, longest: int) -> int | None:
        """How many copies there are at most where a sum is in a range; None if nobody knows."""
        if asked.below is None or self._signed:
            return None
        bound = self._units(max(asked.below, 0.0) * (1 + _rounding(longest)))
        return None if bound >= FAR else math.ceil(bound) + longest

    def _units(self, value: float) -> float:
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(value, self._exponent or 0))


def _most(values: int) -> int:
    """The copies of one value at most, so that those of so many values are less than 2^60."""
    return min(MOST, 1 << (60 - values.bit_length()))


def _typical(values: Array) -> int | None:
    """The binary exponent of the median of the positive values, of some thousand of them."""
    some = values[:: max(1, len(values) // 4096)]
    some = some[(some > 0) & (some < math.inf)]
    return int(np.frexp(np.median(some))[1]) if len(some) else None


def _rounding(longest: int) -> float:
    """By which part a sum of so many positive doubles may be off, generously."""
    return (2 * longest + 16) * 2.0**-52
