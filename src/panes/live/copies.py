"""How many copies of an event stand for its value, so that a count of copies bounds the sum of values.

CI-SUM counts copies: an event of value a is a copies (Arasu & Widom 2004, section 4.2). That takes positive integers.
Here a value is rounded up to a multiple of a unit, a power of two: some thousandth of a typical value, but at least one
where all values are integers. So no key is missed:

- values above 2^36 units, infinite ones and NaN are 2^36 copies, and no lookup needs more than that;
- a negative value is no copy. The copies then bound the sum of the other values, and that bounds the sum from above. It
  does not from below, so that every key is a candidate for sums *below* a threshold once a value was negative.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from panes.aggregates.operations import Array
from panes.frames.positions import Integers

MOST: Final = 2**36
"""Copies of one event at most."""

FAR: Final = 2**60
"""No key has so many copies, so that a bound of as many excludes nothing."""

_TYPICAL: Final = 12
"""The binary logarithm of the copies of a typical value."""


class Copies:
    """Copies of amounts.

    Parameters
    ----------
    amounts
        All that there are, to choose a unit for. They have no more than 2^60 copies together.
    whole
        Whether amounts are integers: their unit is one or more.

    Attributes
    ----------
    exact
        Whether integers are as many copies, as long as they are not too large.

    Examples
    --------
    >>> copies = Copies(np.array([0.25, 0.5, 0.75]))
    >>> copies.of(np.array([0.5, 1e-300, -1.0, np.nan])).tolist() == [2048, 1, 0, MOST]
    True
    >>> copies.at_least(0.5, rows=10)
    2047
    """

    def __init__(self, amounts: Array, *, whole: bool = False) -> None:
        self._whole, self._signed = whole, False
        self._most = min(MOST, FAR >> len(amounts).bit_length())
        self._exponent = self._fitting(amounts) or 0
        self.exact = whole and self._exponent == 0

    def suits(self, amounts: Array) -> bool:
        """Whether the unit suits amounts like these."""
        exponent = self._fitting(amounts)
        return exponent is None or abs(exponent - self._exponent) < _TYPICAL

    def of(self, amounts: Array) -> Integers:
        """The copies of each amount."""
        self._signed = self._signed or bool((amounts < 0).any())
        # Times a power of two is exact; what underflows is still more than nothing.
        units = np.maximum(np.ceil(np.ldexp(amounts, self._exponent)), amounts > 0)
        return np.where(np.isnan(amounts), self._most, np.clip(units, 0, self._most)).astype(np.int64)

    def at_least(self, total: float, rows: int) -> int:
        """The fewest copies of a sum, over so many rows at most, that is at least so large; 0 if there may be none."""
        if total <= 0:
            return 0
        return max(1, math.floor(min(self._units(total * (1 - _error(rows))), self._most)))

    def at_most(self, total: float, rows: int) -> int | None:
        """The most copies of a sum that is at most so large; None if there is no bound.

        Unless they are exact, there may be one more for each row.
        """
        if self._signed:
            return None
        copies = self._units(max(total, 0.0) * (1 + _error(rows)))
        return None if copies >= FAR else math.ceil(copies)

    def _units(self, total: float) -> float:
        return float(np.ldexp(total, self._exponent))

    def _fitting(self, amounts: Array) -> int | None:
        """The binary exponent of the units of the median of the positive amounts, of some thousand of them."""
        sample = amounts[:: max(1, len(amounts) // 4096)]
        sample = sample[(sample > 0) & (sample < math.inf)]
        if not len(sample):
            return None
        exponent = _TYPICAL - int(np.frexp(np.median(sample))[1])
        return min(exponent, 0) if self._whole else exponent


def _error(rows: int) -> float:
    """By how much a sum of doubles, and a threshold read as a double, may be off."""
    return (2 * rows + 16) * 2.0**-52
