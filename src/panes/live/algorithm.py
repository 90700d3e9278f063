"""What every live algorithm is: a column of state in rings that takes in rows and answers windows of rows."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Final

import numpy as np

from panes.aggregates.operations import Array, Operations, State, take
from panes.errors import AlgebraError
from panes.kernels.kernel import gather, place
from panes.kernels.naive import Naive
from panes.live.rings import Rings, RowRuns, SlotColumn


class LiveAlgorithm(SlotColumn):
    """``combine(rows [lo, hi) of a key)`` for many windows at once, while rows come and expire.

    Pass it to :meth:`Rings.add` to receive rows.

    Parameters
    ----------
    operations
        The algebra of the state; an algorithm that needs a law it does not have is an error.
    like
        A state with the types of those to come.
    """

    name: ClassVar[str]
    needs: ClassVar[str] = "an associative combine with an identity"

    def __init__(self, operations: Operations, like: State, rings: Rings) -> None:
        if not self.can(operations):
            raise AlgebraError(
                f"the algorithm {self.name!r} needs {self.needs}, and this aggregate has none. Write 'dyadic', which "
                "serves every aggregate, or leave algorithm= out."
            )
        super().__init__(rings)
        self.operations = operations
        self.like = take(like, slice(0))

    @classmethod
    def can(cls, operations: Operations) -> bool:
        """Whether an algebra has the laws that this algorithm needs."""
        return True

    def lookup(self, key: Array, lo: Array, hi: Array) -> State:
        """The combined state of rows ``[lo, hi)`` of each key; the identity for no row.

        Parameters
        ----------
        lo, hi
            Ordinals, counted from the first row that the key ever had. Rows that are not held are an error.
        """
        nonempty = lo < hi
        if len(lo) and nonempty.all():
            self.rings.check(key, lo, hi)
            return self._lookup(key, lo, hi)
        answers = self.operations.identities(self.like, len(lo))
        windows = np.flatnonzero(nonempty)
        if len(windows):
            place(answers, windows, self.lookup(key[windows], lo[windows], hi[windows]))
        return answers

    @abstractmethod
    def _lookup(self, key: Array, lo: Array, hi: Array) -> State:
        """Answers for windows of rows that are held, at least one each."""

    def _is_first(self, rows: RowRuns) -> Array:
        """The runs before which nothing is held."""
        first: Array = rows.lo == self.rings.first[rows.key]
        return first

    def _resized(self, state: State, length: int) -> State:
        """A state of another length; what is new are identities."""
        kept = min(len(state[0]), length) if state else 0
        if state and kept == length == len(state[0]):
            return state
        resized = self.operations.identities(self.like, length)
        if kept:
            place(resized, slice(kept), take(state, slice(kept)))
        return resized


_COPYING: Final = 8
"""Copying out a row costs about as much as scanning this many slots."""


class Elements(LiveAlgorithm):
    """Keep the rows themselves, and compute at lookup: each slot holds the state of a row.

    ==========  =====================================================================
    requires    any monoid
    update      O(1)
    lookup      O(width)
    memory      one state per row
    paper       materialize none, Arasu & Widom 2004, sections 1.2 and 6.1
    ==========  =====================================================================
    """

    name = "elements"

    _elements: State = ()

    def resize(self, slots: int) -> None:  # noqa: D102
        self._elements = self._resized(self._elements, slots)

    def append(self, rows: RowRuns, state: State) -> None:  # noqa: D102
        place(self._elements, rows.slot, state)

    def elements(self, rows: RowRuns) -> State:  # noqa: D102
        return gather(self._elements, rows.slot)

    def at(self, key: Array, ordinal: Array) -> State:
        """The states of single rows that are held."""
        return gather(self._elements, self.rings.slot(key, ordinal))

    def _lookup(self, key: Array, lo: Array, hi: Array) -> State:
        rings = self.rings
        begin, end = rings.slot(key, lo), rings.slot(key, hi - 1) + 1
        wrapped = np.flatnonzero(begin >= end)
        if not len(wrapped):
            return self._folded(begin, end)
        # The newer rows of a window that wraps around are at the beginning of its ring.
        base = rings.base[key[wrapped]]
        older_end = end.copy()
        older_end[wrapped] = base + rings.size[key[wrapped]]
        parts = self._folded(np.concatenate([begin, base]), np.concatenate([older_end, end[wrapped]]))
        answers, newer = take(parts, slice(len(lo))), take(parts, slice(len(lo), None))
        place(answers, wrapped, self.operations.combine(take(answers, wrapped), newer))
        return answers

    def _folded(self, begin: Array, end: Array) -> State:
        """Ranges of slots, folded where they lie; or copied out first, if they are few in a large arena."""
        width = end - begin
        total, stop = int(width.sum()), np.cumsum(width)
        if self.operations.ufunc is None or total * _COPYING > len(self._elements[0]):
            return Naive(self.operations, self._elements).answer(begin, end)
        slots = np.arange(total) + np.repeat(begin - (stop - width), width)
        return Naive(self.operations, gather(self._elements, slots)).answer(stop - width, stop)
