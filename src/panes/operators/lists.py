"""Reading the attribute of a delta policy, which must have a value and never decrease.

Paper: Gedik 2014, section 3.3.2.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Sequence
from datetime import datetime
from itertools import islice
from operator import itemgetter, le
from typing import Any, Final, Protocol

from panes.errors import OrderError, SchemaError
from panes.operators.policies import policy_text
from panes.operators.subwindow import KeyReader, Subwindow
from panes.queries.measures import Delta
from panes.timeline import parse_instant

# Tuples that come into a tumbling window as a list: the same as one after another, with less work for each.
#
# ==========  =====================================================================================================
# requires    nobody hears of single insertions, no eviction of partitions, no thread; and handlers that look at the
#             partition they are called for, and at no other
# costs       a few operations for each tuple, and what a flush costs for each flush
# paper       Gedik 2014, section 3.2.1: multiplexed processing keeps substreams apart
# ==========  =====================================================================================================
#
# The policy says after how many of the next tuples of a subwindow something happens; up to there they go in at once.
# Where several partitions are flushed, they are in the order in which single tuples would have ended them.


AT_ONCE: Final = 1 << 14
"""No more tuples at a time, so that what is made for them stays small."""

FEW: Final = 4
"""Where so few tuples would come in at once, they come in one after another."""


class Lists(Protocol):
    """What a window says about lists."""

    subwindows: dict[Hashable, Subwindow[Any]]

    def _values_of(self, items: Sequence[Any]) -> Sequence[Any]:
        """What the policy goes by: a value for each tuple."""

    def _cuts(self, subwindow: Subwindow[Any] | None, values: Sequence[Any]) -> list[int]:
        """How many tuples go in before each flush; raises where a single tuple would be refused."""

    def _fill(self, subwindow: Subwindow[Any], items: Sequence[Any], values: Sequence[Any]) -> None:
        """Insert tuples of one partition, among which nothing happens."""

    def _open(self, partition: Hashable, now: int) -> Subwindow[Any]:
        """Open a subwindow."""

    def _flush(self, subwindow: Subwindow[Any]) -> None:
        """Process a subwindow, and empty it."""

    def _remove(self, subwindow: Subwindow[Any]) -> None:
        """Forget a subwindow."""


class Run:
    """Tuples of one partition in a list: where they were in it, and how many of them have come in."""

    __slots__ = ("cuts", "done", "items", "partition", "positions", "values")

    def __init__(
        self, partition: Hashable, items: Sequence[Any], values: Sequence[Any], positions: Sequence[int]
    ) -> None:
        self.partition, self.items, self.values, self.positions = partition, items, values, positions
        self.cuts: list[int] = []
        self.done = 0


class Taking:
    """Takes one list into a window.

    Parameters
    ----------
    partition_of
        To which partition a tuple belongs; None where there is only one.
    lasts
        Whether a flush ends with the tuple that comes in, as by count; by delta it ends before that tuple.
    removes
        Whether a subwindow is gone when it has been flushed.
    moment
        Called with the position of a tuple when something is about to happen because of it.
    opened
        When the subwindow of a tuple is opened, by its position.
    """

    def __init__(
        self,
        window: Lists,
        partition_of: KeyReader | None,
        *,
        lasts: bool,
        removes: bool,
        moment: Callable[[int], object] | None,
        opened: Callable[[int], int],
    ) -> None:
        self._window, self._partition_of = window, partition_of
        self._lasts, self._removes = int(lasts), removes
        self._moment, self._opened = moment, opened
        self._runs: list[Run] = []

    def split(self, items: Sequence[Any]) -> None:
        """Look at the tuples without changing anything; raises what a single tuple may raise, which then is to."""
        window = self._window
        values = window._values_of(items)
        if self._partition_of is None:
            self._runs = [Run((), items, values, range(len(items)))]
        else:
            for partition, positions in self._partition_of.places(items).items():
                its = [items[place] for place in positions]
                its_values = its if values is items else [values[place] for place in positions]
                self._runs.append(Run(partition, its, its_values, positions))
        for run in self._runs:
            run.cuts = window._cuts(window.subwindows.get(run.partition), run.values)

    @property
    def flushes(self) -> int:
        """How often something happens."""
        return sum(len(run.cuts) for run in self._runs)

    def take(self) -> None:
        """Let the tuples come in, and everything happen because of them."""
        ahead = []
        if not self._removes:
            # In the order of their first tuples, before any of them is flushed.
            ahead = [run for run in self._runs if run.partition not in self._window.subwindows]
            for run in ahead:
                self._subwindow(run)
        flushes = [(run.positions[cut - self._lasts], cut, run) for run in self._runs for cut in run.cuts]
        if len(self._runs) > 1:
            flushes.sort(key=_place)
        moment, flush, place = self._moment, self._window._flush, 0
        try:
            for place, cut, run in flushes:
                if moment is not None:
                    moment(place)
                flush(self._fill(run, cut))
        except BaseException:
            # What was before it in the list has come in, and nothing else.
            for other in self._runs:
                if other.done < (upto := bisect_left(other.positions, place)):
                    self._fill(other, upto)
            for other in ahead:
                if not other.done:
                    self._window._remove(self._subwindow(other))
            raise
        rest = [run for run in self._runs if run.done < len(run.items)]
        if flushes:
            rest.sort(key=lambda run: run.positions[run.done])
        for run in rest:
            self._fill(run, len(run.items))

    def _fill(self, run: Run, upto: int) -> Subwindow[Any]:
        done = run.done
        subwindow = self._subwindow(run)
        if done < upto:
            run.done = upto
            items = run.items[done:upto]
            self._window._fill(subwindow, items, items if run.values is run.items else run.values[done:upto])
        return subwindow

    def _subwindow(self, run: Run) -> Subwindow[Any]:
        subwindow = self._window.subwindows.get(run.partition)
        if subwindow is None:
            place = run.positions[min(run.done, len(run.items) - 1)]
            subwindow = self._window._open(run.partition, self._opened(place))
        return subwindow


def cuts_by_delta(values: Sequence[Any], by: Any, oldest: Any) -> list[int]:
    """Where values, which never decrease, are too far from the oldest of their window.

    Examples
    --------
    >>> cuts_by_delta([1, 2, 3, 7, 8, 9], by=2, oldest=0)
    [2, 3]
    """
    cuts: list[int] = []
    n, cut = len(values), 0
    while True:
        # In steps that grow, then between the last two: windows may have one tuple, or all of them.
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


def in_order(values: Sequence[Any]) -> bool:
    """Whether values never decrease; no order has NaN in it.

    Examples
    --------
    >>> in_order([1, 1, 3]), in_order([1, float("nan"), 3])
    (True, False)
    """
    return all(map(le, values, islice(values, 1, None)))


def _place(flush: tuple[int, int, Run]) -> int:
    return flush[0]


class DeltaReader:
    """Reads the value of the tuple that is coming in, once, and compares it with the one before.

    Parameters
    ----------
    latest
        The field of a subwindow that keeps the last value: eviction and trigger may go by different attributes.
    """

    def __init__(self, policy: Delta, latest: str) -> None:
        self.policy = policy
        self.value: Any = None
        attribute: Callable[[Any], Any] = itemgetter(policy.column)
        self.read: Callable[[Any], Any] = attribute
        if policy.temporal:
            self.read = lambda item: _instant(attribute(item))
        self._latest = latest

    def look(self, item: Any, subwindow: Subwindow[Any] | None) -> None:
        """Keep the value of a tuple in ``value``, or raise before anything has changed."""
        value = self.read(item)
        if value is None or value != value:
            raise SchemaError(
                f"a tuple has no value for {self.policy.column!r} (it is {value!r}), which {policy_text(self.policy)} "
                "goes by. Leave such tuples out, or give them a value."
            )
        latest = None if subwindow is None else getattr(subwindow, self._latest)
        if latest is not None and value < latest:
            raise OrderError(
                f"{self.policy.column!r} fell from {latest!r} to {value!r}, and {policy_text(self.policy)} goes by an "
                "attribute that never decreases within a partition. Sort the tuples first, as the progressive Sort "
                "does."
            )
        self.value = value

    def check(self, values: Sequence[Any]) -> None:
        """Raise unless each of these values could follow the one before."""
        if not in_order(values) or values[0] is None or values[0] != values[0]:
            raise OrderError(f"{self.policy.column!r} falls, or has no value.")


def _instant(value: Any) -> Any:
    return parse_instant(value) if isinstance(value, datetime) else value
