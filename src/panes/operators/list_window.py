"""A window that takes lists of tuples where it can, and single tuples elsewhere; see ``lists``.

On an event clock tuples come in stretches, during which nothing is due.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, TypeVar

from panes.operators.declarations import Time
from panes.operators.keys import KeyReader
from panes.operators.lists import AT_ONCE, FEW, Taking, in_order
from panes.operators.subwindow import Subwindow
from panes.operators.window import WHOLE, Window

T = TypeVar("T")


class ListWindow(Window[T]):
    """What a window with flushes does with lists. A window says what its policy goes by, and where lists are cut."""

    _removes: bool
    _lasts: bool
    _period: int

    @abstractmethod
    def _flush(self, subwindow: Subwindow[T]) -> None:
        """Process a subwindow, and empty it."""

    @abstractmethod
    def _values_of(self, items: Sequence[T]) -> Sequence[Any]:
        """See ``Lists``."""

    @abstractmethod
    def _cuts(self, subwindow: Subwindow[T] | None, values: Sequence[Any]) -> list[int]:
        """See ``Lists``."""

    @abstractmethod
    def _fill(self, subwindow: Subwindow[T], items: Sequence[T], values: Sequence[Any]) -> None:
        """See ``Lists``."""

    def insert_all(self, items: Sequence[T], instants: Sequence[int] | None = None) -> None:
        """Take in tuples; see ``Window``."""
        alone = self._partition_of is None or (self.apart and isinstance(self._partition_of, KeyReader))
        heard = self._before_insertion or self._after_insertion
        ascending = instants is None or (len(instants) == len(items) and in_order(instants))
        if not alone or heard or self._keeper is not None or self._threaded or not ascending:
            super().insert_all(items, instants)
        elif instants is None or not self.timed:
            for lo in range(0, len(items), AT_ONCE):
                self._take(items[lo : lo + AT_ONCE], None if instants is None else instants[lo : lo + AT_ONCE])
        else:
            self._take_in_stretches(items, instants)

    def _take_in_stretches(self, items: Sequence[T], instants: Sequence[int]) -> None:
        """Nothing is due on the clock while a stretch comes in: what its tuples ask for is due at its end."""
        advance, lo, policy = self._advance(), 0, self.declared.evict
        assert self.clock is not None
        assert isinstance(policy, Time)
        while lo < len(items):
            advance(instants[lo])
            due, until = self.clock.deadlines.next_due(), self._due(policy, instants[lo])
            hi = bisect_left(instants, until if due is None else min(due, until), lo + 1, min(lo + AT_ONCE, len(items)))
            if self._partition_of is None:
                subwindow = self.subwindows.get(WHOLE) or self._open(WHOLE, instants[lo])
                self._fill(subwindow, items[lo:hi], ())
                advance(instants[hi - 1])
            elif hi - lo < (few := FEW * max(len(self.subwindows), 16)):
                # It will be so for a while.
                hi = min(lo + few, len(items))
                super().insert_all(items[lo:hi], instants[lo:hi])
            else:
                self._take(items[lo:hi], instants[lo:hi])
            lo = hi

    def _take(self, items: Sequence[T], instants: Sequence[int] | None) -> None:
        advance = None if instants is None else self._advance()
        moment = None if advance is None or instants is None else lambda place: advance(instants[place])
        now = self.clock.now() if self.clock is not None and self.timed and instants is None else 0
        taking = Taking(
            self,
            self._partition_of if isinstance(self._partition_of, KeyReader) else None,
            lasts=self._lasts,
            removes=self._removes,
            moment=moment,
            opened=instants.__getitem__ if instants is not None and self.timed else lambda _: now,
        )
        try:
            taking.split(items)
        except Exception:
            # Some tuple is not as it should be: those before it come in, and it says so itself.
            super().insert_all(items, instants)
            return
        if taking.flushes * FEW > len(items):
            super().insert_all(items, instants)
            return
        taking.take()
        if advance is not None and instants is not None:
            advance(instants[-1])
