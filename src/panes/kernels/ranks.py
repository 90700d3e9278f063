"""Ranks: which value stands at a given place of a sorted pair?

==========  =====================================================================
requires    codes: values as numbers 0, 1, 2, ... in their order
build       O(n) for each bit of the largest code
answer      O(bits), for all pairs in step
memory      one or two indexes per row and bit; beyond a limit, built anew each time
paper       answers as B-INT-QNT, Arasu & Widom 2004, section 3.3 (see `quantile`);
            the structure is the wavelet matrix of Claude, Navarro & Ordóñez 2015
==========  =====================================================================

Where B-INT-QNT sorts intervals of rows and searches for the value, this sorts rows by one bit of the value after
another and walks down to it: a step is two lookups, whatever the width of a pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from panes.algebra.operations import Array

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
    """Values by their place in many pairs over one column of codes with weights."""

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
