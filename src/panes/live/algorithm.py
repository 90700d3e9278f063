"""What every live algorithm is: a column of state in rings that takes in rows and answers windows of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Final

import numpy as np

from panes.aggregates.operations import Array, Operations, State, take
from panes.errors import AlgebraError
from panes.kernels.kernel import gather, place
from panes.kernels.naive import Naive
from panes.live.rings import Rings, Runs


class LiveAlgorithm(ABC):
    """``combine(rows [lo, hi) of a key)`` for many windows at once, while rows come and expire.

    Rings hand it what is appended (:meth:`Rings.append`) and tell it what expires (:meth:`Rings.expire`).

    Parameters
    ----------
    operations
        The algebra of the state; an algorithm that needs a law it does not have is an error.
    like
        A state with the types of those to come.
    rings
        Where rows lie. The algorithm does not move in by itself: see :meth:`Rings.admit`.
    """

    name: ClassVar[str]
    needs: ClassVar[str] = "an associative combine with an identity"

    def __init__(self, operations: Operations, like: State, rings: Rings) -> None:
        if not self.can(operations):
            raise AlgebraError(
                f"the algorithm {self.name!r} needs {self.needs}, and this aggregate has none. Write 'dyadic', which "
                "serves every aggregate, or leave algorithm= out."
            )
        self.operations, self.rings = operations, rings
        self.like = take(like, slice(0))

    @classmethod
    def can(cls, operations: Operations) -> bool:
        """Whether an algebra has the laws that this algorithm needs."""
        return True

    @abstractmethod
    def append(self, rows: Runs, state: State) -> None:
        """Take in the next rows of some keys. A run that begins with the first row held begins anew."""

    def move(self, rows: Runs, state: State) -> None:
        """Take in again what a key has held before, elsewhere."""
        self.append(rows, state)

    def lookup(self, key: Array | int, lo: Array, hi: Array) -> State:
        """The combined state of rows ``[lo, hi)`` of each key; the identity for no row.

        Parameters
        ----------
        key
            The key of each window, or one for all.
        lo, hi
            Ordinals, counted from the first row that the key ever had. Rows that are not held are an error.
        """
        held = lo < hi
        # Infinities that meet are NaN, and identities may pad what is combined: neither deserves a warning.
        with np.errstate(all="ignore"):
            if len(lo) and held.all():
                self.rings.check(key, lo, hi)
                return self._lookup(key, lo, hi)
            answers, some = self.operations.identities(self.like, len(lo)), np.flatnonzero(held)
            if len(some):
                own = key if isinstance(key, int) else key[some]
                place(answers, some, self.lookup(own, lo[some], hi[some]))
            return answers

    @abstractmethod
    def _lookup(self, key: Array | int, lo: Array, hi: Array) -> State:
        """Answers for windows of rows that are held, at least one each."""

    @abstractmethod
    def elements(self, rows: Runs) -> State:
        """The states of single rows that are held."""

    @abstractmethod
    def resize(self, slots: int) -> None:
        """Have so many slots, the present ones unchanged."""

    def expire(self, key: Array, first: Array) -> None:  # noqa: B027
        """Hear that keys hold no row before ordinals; what lies there is never asked for again."""

    def keep(self, chosen: Array) -> None:  # noqa: B027
        """Hear that only these keys stay, and get new numbers."""

    def _over_slots(self, key: Array | int, lo: Array, hi: Array, answer: Callable[[Array, Array], State]) -> State:
        """Windows as ranges of slots, answered as such: one range, or two where a window wraps around its ring."""
        begin, end = self.rings.slot(key, lo), self.rings.slot(key, hi - 1) + 1
        wrapped = np.flatnonzero(begin >= end)
        if not len(wrapped):
            return answer(begin, end)
        base, size = (np.broadcast_to(array[key], lo.shape)[wrapped] for array in (self.rings.base, self.rings.size))
        # The newer rows of a wrapped window are at the beginning of its ring.
        older = end.copy()
        older[wrapped] = base + size
        found = answer(np.concatenate([begin, base]), np.concatenate([older, end[wrapped]]))
        answers, newer = take(found, slice(len(lo))), take(found, slice(len(lo), None))
        place(answers, wrapped, self.operations.combine(take(answers, wrapped), newer))
        return answers

    def _begins_anew(self, rows: Runs) -> Array:
        """The runs before which nothing is held."""
        anew: Array = rows.lo == self.rings.first[rows.key]
        return anew

    def _resized(self, state: State, length: int) -> State:
        """A state of another length; what is new are identities."""
        same = min(len(state[0]), length) if state else 0
        if state and same == length == len(state[0]):
            return state
        resized = self.operations.identities(self.like, length)
        if same:
            place(resized, slice(same), take(state, slice(same)))
        return resized


_DEAR: Final = 8
"""How many times as long it takes to lay out a row as to copy a slot, which folding in place does with all of them."""


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

    def append(self, rows: Runs, state: State) -> None:  # noqa: D102
        place(self._elements, rows.slot, state)

    def elements(self, rows: Runs) -> State:  # noqa: D102
        return gather(self._elements, rows.slot)

    def at(self, key: Array | int, ordinal: Array) -> State:
        """The states of single rows that are held."""
        return gather(self._elements, self.rings.slot(key, ordinal))

    def put(self, key: Array | int, ordinal: Array, state: State) -> None:
        """Write over the states of single rows that are held."""
        place(self._elements, self.rings.slot(key, ordinal), state)

    def _lookup(self, key: Array | int, lo: Array, hi: Array) -> State:
        return self._over_slots(key, lo, hi, self._folded)

    def _folded(self, begin: Array, end: Array) -> State:
        """Ranges of slots, folded where they lie; or laid end to end before, if they are few in a large arena."""
        width = end - begin
        total, stop = int(width.sum()), np.cumsum(width)
        if self.operations.ufunc is None or total * _DEAR > len(self._elements[0]):
            return Naive(self.operations, self._elements).answer(begin, end)
        slots = np.arange(total) + np.repeat(begin - (stop - width), width)
        return Naive(self.operations, gather(self._elements, slots)).answer(stop - width, stop)
