"""The index pairs that a kernel is asked for, and the facts about their widths that kernels share."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from panes.algebra.operations import Array, State

Integers: TypeAlias = npt.NDArray[np.int64]


class Pairs:
    """Half-open pairs of rows ``[lo, hi)`` of a column; ``hi <= lo`` is an empty one.

    Examples
    --------
    >>> pairs = Pairs(np.array([0, 1, 2]), np.array([4, 9, 3]), rows=9)
    >>> pairs.widest, pairs.total, pairs.magnitudes
    (8, 13, (0, 2, 3))
    """

    def __init__(self, lo: Integers, hi: Integers, rows: int) -> None:
        self.lo, self.hi = np.asarray(lo, dtype=np.int64), np.asarray(hi, dtype=np.int64)
        self.rows = rows
        if len(self.lo) and (int(self.lo.min()) < 0 or int(self.hi.max()) > rows):
            raise IndexError(f"a pair reaches beyond the {rows} rows of the column")

    def __len__(self) -> int:
        return len(self.lo)

    @cached_property
    def width(self) -> Integers:
        """Rows in each pair."""
        return self.hi - self.lo

    @cached_property
    def narrowest(self) -> int:
        """The smallest width; not positive where a pair is empty."""
        return int(self.width.min(initial=self.rows))

    @cached_property
    def widest(self) -> int:
        """The largest width, 0 without pairs."""
        return int(self.width.max(initial=0))

    @cached_property
    def total(self) -> int:
        """All widths together."""
        return int(self.width.sum())

    @cached_property
    def _magnitude(self) -> Integers | None:
        """For each width w the p with ``2**p <= w < 2**(p + 1)``; None where it is one for all."""
        if self.narrowest.bit_length() == self.widest.bit_length():
            return None
        # A width is far below 2**53, so its exponent as a float is exact.
        return (np.frexp(self.width.astype(np.float64))[1] - 1).astype(np.int64)

    @cached_property
    def widths_by_magnitude(self) -> dict[int, int]:
        """The total width of the pairs of each magnitude."""
        if self._magnitude is None:
            return {self.widest.bit_length() - 1: self.total}
        # Every width is positive, so a magnitude that occurs has a positive total.
        totals = np.bincount(self._magnitude, weights=self.width)
        return {p: int(total) for p, total in enumerate(totals) if total}

    @cached_property
    def counts_by_magnitude(self) -> dict[int, int]:
        """How many pairs there are of each magnitude."""
        if self._magnitude is None:
            return {self.widest.bit_length() - 1: len(self)}
        return {p: int(count) for p, count in enumerate(np.bincount(self._magnitude)) if count}

    @property
    def magnitudes(self) -> tuple[int, ...]:
        """Which powers of two the widths reach."""
        return tuple(self.widths_by_magnitude)

    def answer_by_magnitude(self, answer: Callable[[int, Pairs], State]) -> State:
        """Answer the pairs of each magnitude on their own, and put the answers in the order of the pairs."""
        if self._magnitude is None:
            return answer(self.magnitudes[0], self)
        answers: State = ()
        for magnitude in self.magnitudes:
            where = np.flatnonzero(self._magnitude == magnitude)
            part = answer(magnitude, self.only(where))
            answers = answers or tuple(np.empty(len(self), array.dtype) for array in part)
            place(answers, where, part)
        return answers

    def only(self, index: Array | slice) -> Pairs:
        """Some of the pairs."""
        return Pairs(self.lo[index], self.hi[index], self.rows)


def gather(state: State, index: Array) -> State:
    """The elements of a state at an array of indices."""
    return tuple(array.take(index) for array in state)


def place(into: State, index: Array | slice, part: State) -> None:
    """Write a state into some elements of another."""
    for array, piece in zip(into, part, strict=True):
        array[index] = piece
