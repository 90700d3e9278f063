"""What every kernel is: built on a column of state, it answers all index pairs at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from panes.algebra.operations import Operations, State
from panes.errors import AlgebraError
from panes.kernels.pairs import Integers, Pairs, gather, place


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
