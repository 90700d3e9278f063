"""Evict partitions, so that a window with many of them stays within a limit.

===============  ===============================  ===================================================================
policy           when a tuple arrives             what is evicted
===============  ===============================  ===================================================================
partition age    before anything else             every partition without a tuple for longer than the age
partition count  before a partition is added      one, to make room, or as many as a user's selection marks
tuple count      after everything else            one partition after another, until the rest is within the limit
===============  ===============================  ===================================================================

Which partition goes first, if there are too many:

==========================  ===========================================================  ========================
selection                   evicts first                                                 costs
==========================  ===========================================================  ========================
least recently updated      the one without a tuple for longest                          O(1)
least frequently updated    the one with the fewest tuples; then least recently updated  O(1)
oldest                      the one that was opened first                                O(1)
by operator, a function     what it marks                                                what it looks at
==========================  ===========================================================  ========================

Paper: Gedik 2014, sections 3.5 and 4.2. Evictions are piggybacked on insertions, those by age too: a partition may
outlive its age until some tuple arrives. Age counts from the last insertion; the eviction of tuples does not renew it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from panes.errors import DeclarationError
from panes.operators.subwindow import Subwindow
from panes.queries.eviction import LEAST_FREQUENTLY_UPDATED, LEAST_RECENTLY_UPDATED, OLDEST, Evict

# Selections


class Selection(Protocol):
    """Which partition to evict next. It remembers nothing but the order of partitions."""

    def touched(self, partition: Hashable, updates: int = 1) -> None:
        """Note that tuples of a partition arrived."""

    def forget(self, partition: Hashable) -> None:
        """Note that a partition was removed."""

    def choose(self) -> Sequence[Hashable]:
        """Return the partitions to evict now: one or more."""

    def order(self) -> list[Hashable]:
        """Return the partitions in an order that restores the selection if they are touched in it."""


class LeastRecentlyUpdated:
    """Evicts the partition without a tuple for longest."""

    def __init__(self) -> None:
        self._order: OrderedDict[Hashable, None] = OrderedDict()

    def touched(self, partition: Hashable, updates: int = 1) -> None:
        """Move the partition to the end."""
        order = self._order
        if partition in order:
            order.move_to_end(partition)
        else:
            order[partition] = None

    def forget(self, partition: Hashable) -> None:
        """Remove the partition."""
        self._order.pop(partition, None)

    def choose(self) -> Sequence[Hashable]:
        """Return the first partition."""
        return (next(iter(self._order)),)

    def order(self) -> list[Hashable]:
        """Return the partitions, the next to be evicted first."""
        return list(self._order)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._order)


class Oldest(LeastRecentlyUpdated):
    """Evicts the partition that was opened first."""

    def touched(self, partition: Hashable, updates: int = 1) -> None:
        """Append the partition if it is new."""
        self._order.setdefault(partition, None)


class LeastFrequentlyUpdated:
    """Evicts the partition with the fewest tuples; of several, the one without a tuple for longest."""

    def __init__(self) -> None:
        self._updates: dict[Hashable, int] = {}
        # By number of tuples, partitions in the order in which they reached it.
        self._reached: dict[int, OrderedDict[Hashable, None]] = {}
        # A lower bound of the fewest tuples, corrected in choose.
        self._fewest = 1

    def touched(self, partition: Hashable, updates: int = 1) -> None:
        """Count the tuples of the partition."""
        before = self._updates.get(partition, 0)
        if before:
            self._take(partition, before)
        after = before + updates
        self._updates[partition] = after
        self._reached.setdefault(after, OrderedDict())[partition] = None
        if not before:
            self._fewest = min(self._fewest, after)

    def forget(self, partition: Hashable) -> None:
        """Remove the partition."""
        updates = self._updates.pop(partition, 0)
        if updates:
            self._take(partition, updates)

    def choose(self) -> Sequence[Hashable]:
        """Return the first of the partitions with the fewest tuples."""
        if self._fewest not in self._reached:
            self._fewest = min(self._reached)
        return (next(iter(self._reached[self._fewest])),)

    def order(self) -> list[Hashable]:
        """Return the partitions by number of tuples, then in the order in which they reached it."""
        return [partition for updates in sorted(self._reached) for partition in self._reached[updates]]

    def _take(self, partition: Hashable, updates: int) -> None:
        reached = self._reached[updates]
        del reached[partition]
        if not reached:
            del self._reached[updates]


class Candidates:
    """The partitions to select from: iterate over them and their tuples, and mark those to evict.

    A partition with a summarizer has no tuples to look at.

    Examples
    --------
    >>> from collections import deque
    >>> candidates = Candidates({"a": Subwindow("a", tuples=deque([1, 2])), "b": Subwindow("b")})
    >>> for partition, tuples in candidates:
    ...     if not tuples:
    ...         candidates.mark(partition)
    >>> candidates.marked
    ['b']
    """

    def __init__(self, subwindows: Mapping[Hashable, Subwindow[Any]]) -> None:
        self._subwindows = subwindows
        self.marked: list[Hashable] = []

    def __iter__(self) -> Iterator[tuple[Hashable, Sequence[Any]]]:
        for partition, subwindow in self._subwindows.items():
            yield partition, subwindow.tuples

    def __len__(self) -> int:
        return len(self._subwindows)

    def mark(self, partition: Hashable) -> None:
        """Evict a partition."""
        if partition not in self._subwindows:
            raise DeclarationError(f"there is no partition {partition!r} to evict. Mark one that the candidates hold.")
        if partition not in self.marked:
            self.marked.append(partition)


class UserDefined:
    """Evicts what a function or an operator marks."""

    def __init__(self, subwindows: Mapping[Hashable, Subwindow[Any]], ask: Callable[[Candidates], object]) -> None:
        self._subwindows = subwindows
        self._ask = ask

    def touched(self, partition: Hashable, updates: int = 1) -> None:
        """Ignore; nothing is remembered."""

    def forget(self, partition: Hashable) -> None:
        """Ignore; nothing is remembered."""

    def order(self) -> list[Hashable]:
        """Return nothing; the choice is made anew each time."""
        return []

    def choose(self) -> Sequence[Hashable]:
        """Let the function or operator mark partitions."""
        candidates = Candidates(self._subwindows)
        self._ask(candidates)
        if not candidates.marked:
            raise DeclarationError(
                "the partition selection marked no partition, although one must be evicted. Call "
                "candidates.mark(partition) at least once, or write choose='least recently updated'."
            )
        return candidates.marked


BUILT_IN: dict[str, Callable[[], Selection]] = {
    LEAST_RECENTLY_UPDATED: LeastRecentlyUpdated,
    LEAST_FREQUENTLY_UPDATED: LeastFrequentlyUpdated,
    OLDEST: Oldest,
}


# Limits


class Evictable(Protocol):
    """What a keeper needs from a window."""

    subwindows: dict[Hashable, Subwindow[Any]]
    held: int

    def evict_partitions(self, partitions: Sequence[Hashable]) -> None:
        """Remove partitions."""


class Keeper:
    """Keeps a window within its limit. Subclasses override the moment at which they evict."""

    def __init__(self, window: Evictable, selection: Selection) -> None:
        self.window = window
        self.selection = selection

    def expire(self, now: int) -> None:
        """Evict before a tuple is looked at."""

    def make_room(self) -> None:
        """Evict before a partition is added."""

    def trim(self) -> None:
        """Evict after a tuple was inserted."""

    def touched(self, subwindow: Subwindow[Any], now: int) -> None:
        """Note that a tuple is being inserted."""
        subwindow.updated = now
        subwindow.updates += 1
        self.selection.touched(subwindow.partition)

    def forget(self, partition: Hashable) -> None:
        """Note that a partition was removed."""
        self.selection.forget(partition)


class ByAge(Keeper):
    """Evicts partitions without a tuple for longer than an age."""

    def __init__(self, window: Evictable, age: int) -> None:
        self._by_update = LeastRecentlyUpdated()
        super().__init__(window, self._by_update)
        self._age = age

    def expire(self, now: int) -> None:
        """Evict what is too old: the first partitions by last update."""
        subwindows, too_old = self.window.subwindows, []
        oldest_allowed = now - self._age
        for partition in self._by_update:
            if subwindows[partition].updated >= oldest_allowed:
                break
            too_old.append(partition)
        if too_old:
            self.window.evict_partitions(too_old)


class ByPartitionCount(Keeper):
    """Limits the number of partitions."""

    def __init__(self, window: Evictable, limit: int, selection: Selection) -> None:
        super().__init__(window, selection)
        self._limit = limit

    def make_room(self) -> None:
        """Evict if one more partition would exceed the limit."""
        while len(self.window.subwindows) >= self._limit:
            self.window.evict_partitions(self.selection.choose())


class ByTupleCount(Keeper):
    """Limits the number of tuples of all partitions together."""

    def __init__(self, window: Evictable, limit: int, selection: Selection) -> None:
        super().__init__(window, selection)
        self._limit = limit

    def trim(self) -> None:
        """Evict partitions until the rest is within the limit."""
        while self.window.held > self._limit:
            self.window.evict_partitions(self.selection.choose())


def keeper(window: Evictable, evict: Evict, selection: Callable[[], Selection]) -> Keeper:
    """Return the keeper of a window."""
    if evict.age is not None:
        return ByAge(window, evict.age)
    if evict.keys is not None:
        return ByPartitionCount(window, evict.keys, selection())
    assert evict.rows is not None
    return ByTupleCount(window, evict.rows, selection())
