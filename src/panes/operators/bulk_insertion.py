"""Insert a list of tuples into a tumbling window at once: the same answers as one by one, with less work per tuple.

==========  =====================================================================================================
requires    no handler of single insertions, no eviction of partitions, no thread; handlers look only at the partition
            for which they are called (``WindowContainer.apart``)
costs       a few operations per tuple, and what a flush costs per flush
paper       Gedik 2014, section 3.2.1: multiplexed processing keeps substreams apart
==========  =====================================================================================================

The policy says after how many of the next tuples of a partition its subwindow is flushed; the tuples up to there are
inserted together. Several partitions are flushed in the order in which single tuples would have flushed them. On an
event clock a list is divided where something is due.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, TypeVar

from panes.operators.attributes import WHOLE, KeyReader, in_order
from panes.operators.policies import Time
from panes.operators.subwindow import Subwindow
from panes.operators.window import WindowContainer

T = TypeVar("T")

_AT_ONCE: Final = 1 << 14
"""The largest number of tuples inserted together, so that temporary lists stay small."""

_FEW: Final = 4
"""With fewer tuples per flush, they are inserted one by one."""


class BulkWindow(WindowContainer[T]):
    """A window that inserts lists of tuples at once where it can. Its policy says where a list is cut."""

    _removes: bool
    """Whether a flush removes the subwindow."""
    _lasts: bool
    """Whether the tuple that causes a flush is in the window: so by count, and not by delta."""

    @abstractmethod
    def _flush(self, subwindow: Subwindow[T]) -> None:
        """Process a subwindow, and empty it."""

    @abstractmethod
    def _values_of(self, items: Sequence[T]) -> Sequence[Any]:
        """Return the value of each tuple that the policy is measured in."""

    @abstractmethod
    def _cuts(self, subwindow: Subwindow[T] | None, values: Sequence[Any]) -> list[int]:
        """Return how many tuples are inserted before each flush; raise where a single tuple would be rejected."""

    @abstractmethod
    def _fill(self, subwindow: Subwindow[T], items: Sequence[T], values: Sequence[Any]) -> None:
        """Insert tuples of one partition with no flush among them."""

    def insert_all(self, items: Sequence[T], instants: Sequence[int] | None = None) -> None:
        """Insert tuples; see ``WindowContainer``."""
        separable = self._partition_of is None or (self.apart and isinstance(self._partition_of, KeyReader))
        heard = self._before_insertion or self._after_insertion
        ascending = instants is None or (len(instants) == len(items) and in_order(instants))
        if not separable or heard or self._keeper is not None or self._threaded or not ascending:
            super().insert_all(items, instants)
        elif instants is None or not self.timed:
            for lo in range(0, len(items), _AT_ONCE):
                self._insert_together(
                    items[lo : lo + _AT_ONCE], None if instants is None else instants[lo : lo + _AT_ONCE]
                )
        else:
            self._insert_by_time(items, instants)

    def _insert_by_time(self, items: Sequence[T], instants: Sequence[int]) -> None:
        """Insert the tuples up to the next instant at which something is due, then those up to the one after it."""
        advance, lo, policy = self._advance(), 0, self.declared.evict
        assert self.clock is not None
        assert isinstance(policy, Time)
        while lo < len(items):
            advance(instants[lo])
            due, until = self.clock.deadlines.next_due(), self._due(policy, instants[lo])
            until = until if due is None else min(due, until)
            hi = bisect_left(instants, until, lo + 1, min(lo + _AT_ONCE, len(items)))
            if self._partition_of is None:
                subwindow = self.subwindows.get(WHOLE) or self._open(WHOLE, instants[lo])
                self._fill(subwindow, items[lo:hi], ())
                advance(instants[hi - 1])
            elif hi - lo < (few := _FEW * max(len(self.subwindows), 16)):
                # More is due soon: do not divide the list again for a while.
                hi = min(lo + few, len(items))
                super().insert_all(items[lo:hi], instants[lo:hi])
            else:
                self._insert_together(items[lo:hi], instants[lo:hi])
            lo = hi

    def _insert_together(self, items: Sequence[T], instants: Sequence[int] | None) -> None:
        insertion = _Insertion(self, instants)
        try:
            insertion.divide(items)
        except Exception:
            # Some tuple is invalid: insert those before it, and let it raise its own error.
            super().insert_all(items, instants)
            return
        if insertion.flushes * _FEW > len(items):
            super().insert_all(items, instants)
            return
        insertion.run()
        if instants is not None:
            self._advance()(instants[-1])


class _Substream:
    """The tuples of one partition in a list: their positions in it, and how many of them have been inserted."""

    __slots__ = ("cuts", "done", "items", "partition", "positions", "values")

    def __init__(
        self, partition: Hashable, items: Sequence[Any], values: Sequence[Any], positions: Sequence[int]
    ) -> None:
        self.partition, self.items, self.values, self.positions = partition, items, values, positions
        self.cuts: list[int] = []
        self.done = 0


class _Insertion:
    """The insertion of one list into a window.

    Parameters
    ----------
    instants
        When each tuple arrives; None for now.
    """

    def __init__(self, window: BulkWindow[Any], instants: Sequence[int] | None) -> None:
        self._window, self._partition_of = window, window._partition_of
        self._lasts, self._removes = int(window._lasts), window._removes
        # The clock is advanced to a tuple that causes a flush.
        self._moment: Callable[[int], None] | None = None
        if instants is not None:
            advance = window._advance()
            self._moment = lambda place: advance(instants[place])
        if instants is not None and window.timed:
            self._opened: Callable[[int], int] = instants.__getitem__
        else:
            now = window.clock.now() if window.clock is not None and window.timed else 0
            self._opened = lambda _: now
        self._substreams: list[_Substream] = []

    def divide(self, items: Sequence[Any]) -> None:
        """Find where to flush, without changing anything; raises any error that a single tuple may raise."""
        window, partition_of = self._window, self._partition_of
        values = window._values_of(items)
        if isinstance(partition_of, KeyReader):
            for partition, positions in partition_of.places(items).items():
                its = [items[place] for place in positions]
                its_values = its if values is items else [values[place] for place in positions]
                self._substreams.append(_Substream(partition, its, its_values, positions))
        else:
            self._substreams = [_Substream(WHOLE, items, values, range(len(items)))]
        for each in self._substreams:
            each.cuts = window._cuts(window.subwindows.get(each.partition), each.values)

    @property
    def flushes(self) -> int:
        """The number of flushes that the list causes."""
        return sum(len(each.cuts) for each in self._substreams)

    def run(self) -> None:
        """Insert the tuples, and flush where they are cut."""
        opened = []
        if not self._removes:
            # In the order of their first tuples, before any of them is flushed.
            opened = [each for each in self._substreams if each.partition not in self._window.subwindows]
            for each in opened:
                self._subwindow(each)
        flushes = [(each.positions[cut - self._lasts], cut, each) for each in self._substreams for cut in each.cuts]
        if len(self._substreams) > 1:
            flushes.sort(key=_place)
        moment, flush, place = self._moment, self._window._flush, 0
        try:
            for place, cut, each in flushes:
                if moment is not None:
                    moment(place)
                flush(self._fill(each, cut))
        except BaseException:
            self._stop_at(place, opened)
            raise
        rest = [each for each in self._substreams if each.done < len(each.items)]
        if flushes:
            rest.sort(key=lambda each: each.positions[each.done])
        for each in rest:
            self._fill(each, len(each.items))

    def _stop_at(self, place: int, opened: Sequence[_Substream]) -> None:
        """After an error: what was before it in the list has been inserted, and nothing else."""
        for each in self._substreams:
            if each.done < (upto := bisect_left(each.positions, place)):
                self._fill(each, upto)
        for each in opened:
            if not each.done:
                self._window._remove(self._subwindow(each))

    def _fill(self, each: _Substream, upto: int) -> Subwindow[Any]:
        done = each.done
        subwindow = self._subwindow(each)
        if done < upto:
            each.done = upto
            items = each.items[done:upto]
            self._window._fill(subwindow, items, items if each.values is each.items else each.values[done:upto])
        return subwindow

    def _subwindow(self, each: _Substream) -> Subwindow[Any]:
        subwindow = self._window.subwindows.get(each.partition)
        if subwindow is None:
            place = each.positions[min(each.done, len(each.items) - 1)]
            subwindow = self._window._open(each.partition, self._opened(place))
        return subwindow


def _place(flush: tuple[int, int, _Substream]) -> int:
    return flush[0]


def cuts_by_delta(values: Sequence[Any], by: Any, oldest: Any) -> list[int]:
    """Return where values, which never decrease, are too far from the oldest of their window.

    Examples
    --------
    >>> cuts_by_delta([1, 2, 3, 7, 8, 9], by=2, oldest=0)
    [2, 3]
    """
    cuts: list[int] = []
    n, cut = len(values), 0
    while True:
        # Gallop, then bisect: a window may hold one tuple, or all of them.
        beyond, step = cut, 1
        while beyond < n and values[beyond] - oldest <= by:
            cut, beyond, step = beyond + 1, beyond + step, 2 * step
        if cut < beyond:
            cut = bisect_left(values, True, cut, min(beyond, n), key=lambda value: value - oldest > by)
        if cut >= n:
            return cuts
        cuts.append(cut)
        oldest = values[cut]
        cut += 1
