"""Values by their place in a sorted pair: quantiles and medians of many pairs over one column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from panes.aggregates.operations import Array
from panes.kernels.kernel import Pairs

_AT_ONCE: Final = 1 << 15
"""Numbers that are copied out at a time: they stay in the cache of a core."""


class Sorting:
    """Values by their place in many pairs over one column of numbers.

    ==========  =====================================================================
    requires    numbers in the order of values; no weights
    build       nothing
    answer      O(width log width), for all pairs of one width together
    memory      bounded: some pairs at a time
    paper       none; the naive way, cheap on processors that sort in vectors
    ==========  =====================================================================

    Best for narrow pairs: ``Ranks`` has to sort the whole column first, and splits it once for each bit. With AVX-512
    NumPy sorts a hundred doubles in 0.3 µs, four times as fast as it selects one place of them.
    """

    def __init__(self, numbers: Array) -> None:
        self._numbers = numbers

    def at(self, lo: Array, hi: Array, *ranks: Array) -> tuple[Array, ...]:
        """The numbers at some places of each sorted pair ``[lo, hi)``, counted from 0.

        Every pair has to be longer than its ranks.

        Examples
        --------
        >>> sorting = Sorting(np.array([5.5, 1.0, 4.0, 1.0]))
        >>> sorting.at(np.array([0, 0, 2]), np.array([4, 3, 4]), np.array([0, 1, 1]), np.array([3, 2, 0]))
        (array([1., 4., 4.]), array([5.5, 5.5, 1. ]))
        """
        found = tuple(np.empty(len(lo), self._numbers.dtype) for _ in ranks)
        for width, pairs in _by_width(Pairs(lo, hi, len(self._numbers))):
            windows = sliding_window_view(self._numbers, width)
            at_once = max(_AT_ONCE // width, 1)
            for begin in range(0, len(pairs), at_once):
                some = pairs[begin : begin + at_once]
                rows = windows[lo[some]]
                rows.sort(axis=1)
                for into, rank in zip(found, ranks, strict=True):
                    into[some] = rows[np.arange(len(some)), rank[some]]
        return found


def _by_width(pairs: Pairs) -> Iterator[tuple[int, Array]]:
    """The pairs of each width."""
    if not len(pairs):
        return
    if pairs.narrowest == pairs.widest:
        yield pairs.widest, np.arange(len(pairs))
        return
    order = np.argsort(pairs.width)
    widths, begins = np.unique(pairs.width[order], return_index=True)
    for width, begin, end in zip(widths.tolist(), begins, np.append(begins[1:], len(order)), strict=True):
        yield width, order[begin:end]


_KEPT: Final = 1 << 26
"""Numbers that are kept between calls; a larger column is partitioned anew for each."""


@dataclass(frozen=True, slots=True)
class _Bit:
    """One bit of all codes, in the order of the bits above it.

    Parameters
    ----------
    zeros
        How many rows before each place have no such bit.
    weight
        The running weight of all rows in the order after this bit: those without it, then those with it. None where
        every row weighs one.
    """

    value: int
    zeros: Array
    weight: Array | None


class _Walk:
    """Pairs on their way down to the values at a place of each."""

    def __init__(self, lo: Array, hi: Array, rank: Array) -> None:
        self._lo, self._hi, self._rank = lo, hi, rank
        self.found = np.zeros(len(lo), np.int64)

    def step(self, bit: _Bit) -> None:
        """Go to the rows with or without a bit."""
        lo, hi = self._lo, self._hi
        zero_lo, zero_hi = bit.zeros[lo].astype(np.int64), bit.zeros[hi].astype(np.int64)
        light = zero_hi - zero_lo if bit.weight is None else bit.weight[zero_hi] - bit.weight[zero_lo]
        above = self._rank >= light
        self._rank = self._rank - np.where(above, light, 0)
        all_zeros = int(bit.zeros[-1])
        self._lo = np.where(above, all_zeros + lo - zero_lo, zero_lo)
        self._hi = np.where(above, all_zeros + hi - zero_hi, zero_hi)
        self.found += np.where(above, bit.value, 0)


class Ranks:
    """Values by their place in many pairs over one column of codes with weights.

    ==========  =====================================================================
    requires    codes: values as numbers 0, 1, 2, ... in their order
    build       O(n) for each bit of the largest code
    answer      O(bits), for all pairs in step
    memory      one or two indexes per row and bit; beyond a limit, built anew each time
    paper       answers as B-INT-QNT, Arasu & Widom 2004, section 3.3;
                the structure is the wavelet matrix of Claude, Navarro & Ordóñez 2015
    ==========  =====================================================================

    Where B-INT-QNT sorts intervals of rows and searches for the value, this sorts rows by one bit of the value after
    another and walks down to it: a step is two lookups, whatever the width of a pair.
    """

    def __init__(self, code: Array, weight: Array | None = None) -> None:
        self._code, self._weight = code, weight
        largest = int(code.max(initial=0))
        self._bits = max(largest.bit_length(), 1)
        self._kept: list[_Bit] | None = None

    @property
    def bits(self) -> int:
        """How many bits the largest code has."""
        return self._bits

    @property
    def keeps(self) -> bool:
        """Whether what is built is kept for the next call."""
        return len(self._code) * self._bits <= _KEPT

    def at(self, lo: Array, hi: Array, *ranks: Array) -> tuple[Array, ...]:
        """The codes at some places of each sorted pair ``[lo, hi)``, counted from 0 with weights.

        Every pair has to be heavier than its ranks.

        Examples
        --------
        >>> ranks = Ranks(np.array([5, 1, 4, 1]))
        >>> ranks.at(np.array([0, 0, 2]), np.array([4, 3, 4]), np.array([0, 1, 1]))
        (array([1, 4, 4]),)
        """
        walks = [_Walk(lo, hi, rank) for rank in ranks]
        for bit in self._levels():
            for walk in walks:
                walk.step(bit)
        return tuple(walk.found for walk in walks)

    def _levels(self) -> Iterator[_Bit]:
        if self._kept is not None:
            return iter(self._kept)
        if self.keeps:
            self._kept = list(self._built())
            return iter(self._kept)
        return self._built()

    def _built(self) -> Iterator[_Bit]:
        code, weight = self._code, self._weight
        small = np.int32 if len(code) < 2**31 else np.int64
        for shift in reversed(range(self._bits)):
            without = (code >> shift) & 1 == 0
            zeros = np.zeros(len(code) + 1, small)
            np.cumsum(without, out=zeros[1:])
            code = np.concatenate([code[without], code[~without]])
            running = None
            if weight is not None:
                weight = np.concatenate([weight[without], weight[~without]])
                running = np.zeros(len(weight) + 1, np.int64)
                np.cumsum(weight, out=running[1:])
            yield _Bit(1 << shift, zeros, running)


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
    """Values by their place in many pairs over one column of numbers: by sorting narrow pairs, by ranks for wide ones.

    How many windows follow is unknown, so ranks are built once sorting has cost as much more than their answers would
    have (as in ``Reducer`` for other aggregates).

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
