"""How many copies of an event stand for its value, so that a count of copies bounds the sum of values.

CI-SUM counts copies: an event of value a is a copies (Arasu & Widom 2004, section 4.2). That takes positive integers.
For other values the copies are at least the value in some unit, so that no key is missed:

- integers and decimals are in units of one (of their last place) while they are below 2^36, else of a power of two;
- floats are in units of a power of two, some thousandth of a typical value, rounded up;
- values above 2^36 units, infinite ones and NaN are 2^36 copies, and no lookup needs more than that;
- a negative value is no copy. The copies then bound the sum of the other values, and that bounds the sum from above. It
  does not from below, so that every key is a candidate for sums *below* a threshold once a value was negative.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from panes.aggregates.operations import Array
from panes.live.ragged import Integers

MOST: Final = 2**36
"""Copies of one event at most: 2^24 events, the most inserted at once, have no more than 2^60 then."""

FAR: Final = 2**60
"""No key has so many copies, so that a bound of as many excludes nothing."""

_TYPICAL: Final = 12


class WholeCopies:
    """Copies of integers.

    Examples
    --------
    >>> copies = WholeCopies()
    >>> copies.of(np.array([3, -1, 2**40])).tolist() == [3, 0, MOST]
    True
    >>> copies.at_least(1001)
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

    def at_least(self, total: int | None) -> int:
        """The fewest copies of a sum that is at least ``total``; not positive if there may be none."""
        return 0 if total is None else min(-(-total >> self._shift), self._most)

    def at_most(self, total: int | None, longest: int) -> int | None:
        """The most copies of a sum that is at most ``total``, of so many events; None if there is no bound."""
        if total is None or self._signed:
            return None
        # Rounding up added less than one unit for each event.
        bound = max(0, total >> self._shift) + (longest if self._shift else 0)
        return None if bound >= FAR else bound


class RealCopies:
    """Copies of floats.

    Examples
    --------
    >>> copies = RealCopies()
    >>> copies.fit(np.array([0.25, 0.5, 0.75]))
    >>> copies.of(np.array([0.5, 1e-300, -1.0, np.nan])).tolist() == [2048, 1, 0, MOST]
    True
    >>> copies.at_least(0.5, longest=10)
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

    def at_least(self, above: float | None, longest: int) -> int:
        """The fewest copies of a sum above a number; not positive if there may be none."""
        if above is None or above < 0:
            return 0
        # A sum that comes out above a threshold may be below it but for rounding.
        return max(1, math.floor(min(self._units(above * (1 - _rounding(longest))), self._most)))

    def at_most(self, below: float | None, longest: int) -> int | None:
        """The most copies of a sum below a number, of so many events; None if there is no bound."""
        if below is None or self._signed:
            return None
        bound = self._units(max(below, 0.0) * (1 + _rounding(longest)))
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
    """The share by which a sum of so many positive doubles may be off, generously."""
    return (2 * longest + 16) * 2.0**-52
