"""Which kernel finds values by their place: narrow pairs are sorted one by one, for wide ones ranks are built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from panes.algebra.operations import Array
from panes.kernels.pairs import Pairs
from panes.kernels.ranks import Ranks
from panes.kernels.sorting import Sorting


@dataclass(frozen=True, slots=True)
class _Rates:
    """Nanoseconds on one core, measured with doubles: columns of 10,000 to a million rows, pairs of 10 to 1000.

    Parameters
    ----------
    copied, pair, width
        Of sorting: per number and bit of the width, per pair, and per different width.
    coded, split, step
        Of ranks: per row that gets a code, per row and bit that is built, per pair, bit and place that is looked up.
    """

    copied: float
    pair: float
    width: float
    coded: float
    split: float
    step: float


_RATES: Final = _Rates(copied=0.36, pair=50, width=25_000, coded=45, split=17, step=22)


class Places:
    """Values by their place in many pairs over one column of numbers.

    Nobody knows how many windows will still ask, so ranks are built once sorting has cost as much more than their
    answers would have (as `Reducer` does it for other aggregates).

    Parameters
    ----------
    numbers
        A column in the order of values.
    coded
        Called once ranks are needed: the different numbers in order, and of each row its place among them.
    weight
        How often each row counts; None for once.

    Examples
    --------
    >>> import numpy as np
    >>> column = np.array([5.5, 1.0, 4.0, 1.0])
    >>> places = Places(column, lambda: np.unique(column, return_inverse=True))
    >>> places.at(np.array([0, 2]), np.array([4, 4]), np.array([3, 0]))
    (array([5.5, 1. ]),)
    """

    def __init__(self, numbers: Array, coded: Callable[[], tuple[Array, Array]], weight: Array | None = None) -> None:
        self._numbers, self._coded, self._weight = numbers, coded, weight
        self._ranks: Ranks | None = None
        self._regret = 0.0

    def at(self, lo: Array, hi: Array, *ranks: Array) -> tuple[Array, ...]:
        """The numbers at some places of each sorted pair ``[lo, hi)``, counted from 0 with weights.

        Every pair has to be heavier than its ranks.
        """
        if self._weight is None and self._sorts(Pairs(lo, hi, len(self._numbers)), len(ranks)):
            return Sorting(self._numbers).at(lo, hi, *ranks)
        distinct, code = self._coded()
        if self._ranks is None:
            self._ranks = Ranks(code, self._weight)
        return tuple(distinct[found] for found in self._ranks.at(lo, hi, *ranks))

    def _sorts(self, pairs: Pairs, places: int) -> bool:
        rows, built = len(self._numbers), self._ranks
        bits = rows.bit_length() if built is None else built.bits
        build = rows * bits * _RATES.split if built is None or not built.keeps else 0.0
        build += rows * _RATES.coded if built is None else 0.0
        lookups = len(pairs) * bits * places * _RATES.step
        widths = min(pairs.widest - pairs.narrowest + 1, len(pairs))
        copied = pairs.total * pairs.widest.bit_length() * _RATES.copied
        sorting = copied + len(pairs) * _RATES.pair + widths * _RATES.width
        if sorting > max(build - self._regret, 0.0) + lookups:
            return False
        self._regret += max(sorting - lookups, 0.0)
        return True
