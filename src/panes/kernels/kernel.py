"""What every kernel is: built on a column of state, it answers all index pairs at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from panes.aggregates.operations import Array, Operations, State
from panes.errors import AlgebraError

# The index pairs that a kernel is asked for, and the facts about their widths that kernels share.


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
    for array, values in zip(into, part, strict=True):
        array[index] = values


@dataclass(frozen=True, slots=True)
class Work:
    """What a kernel still has to do for some pairs, in elements.

    Parameters
    ----------
    build
        Elements to combine before the first answer; what is built already does not count.
    steps
        Elements to fetch and combine for all answers together.
    folds, folded
        Pairs to fold where they lie, the naive way, and their elements.
    """

    build: int = 0
    steps: int = 0
    folds: int = 0
    folded: int = 0


class Kernel(ABC):
    """``combine(state[lo:hi])`` for many pairs over one column.

    Parameters
    ----------
    operations
        The algebra of the state; a kernel that needs a law it does not have is an error.
    state
        The column: equally long arrays. Kernels read it and never write it.
    """

    name: ClassVar[str]
    needs: ClassVar[str] = "an associative combine with an identity"

    def __init__(self, operations: Operations, state: State) -> None:
        if not self.can(operations):
            raise AlgebraError(
                f"the kernel {self.name!r} needs {self.needs}, and this aggregate has none. "
                "Leave the kernel to the chooser, or ask for 'naive', which serves every aggregate."
            )
        self.operations, self.state = operations, state
        self.rows = len(state[0])

    @classmethod
    def can(cls, operations: Operations) -> bool:
        """Whether an algebra has the laws that this kernel needs."""
        return True

    def fits(self) -> bool:
        """Whether what it would build on its column is small enough."""
        return True

    def answer(self, lo: Integers, hi: Integers) -> State:
        """The combined state of each pair ``[lo, hi)``; the identity for an empty one."""
        return self.answer_pairs(Pairs(lo, hi, self.rows))

    def answer_pairs(self, pairs: Pairs) -> State:
        """The same, for pairs whose facts may be known already."""
        # Infinities that meet are NaN, and identities may pad what a kernel combines: neither deserves a warning.
        with np.errstate(all="ignore"):
            if not len(pairs):
                return self.operations.identities(self.state, 0)
            if pairs.narrowest == pairs.widest == 1:
                return gather(self.state, pairs.lo)
            if pairs.narrowest > 0:
                return self._answer(pairs)
            answers = self.operations.identities(self.state, len(pairs))
            held = np.flatnonzero(pairs.width > 0)
            if len(held):
                place(answers, held, self._answer(pairs.only(held)))
            return answers

    @abstractmethod
    def work(self, pairs: Pairs) -> Work:
        """What answering would take; every pair holds a row."""

    def part(self, pairs: Pairs) -> int:
        """Which of its separate builds the pairs ask for; most kernels have one."""
        return 0

    @abstractmethod
    def _answer(self, pairs: Pairs) -> State:
        """Answers for pairs that each hold a row."""
