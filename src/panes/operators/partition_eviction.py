"""When subwindows are removed, so that a window with many partitions stays within bounds.

===============  ===============================  ===================================================================
policy           when a tuple arrives             who goes
===============  ===============================  ===================================================================
partition age    first of all                     every subwindow without a tuple for longer than the age
partition count  before a new subwindow is        one, so that there is room, or as many as a user's selection marks
                 opened
tuple count      after everything else            one after another, until the rest is within the limit
===============  ===============================  ===================================================================

Paper: Gedik 2014, sections 3.5 and 4.2. Evictions are piggybacked on insertions, those by age too: a subwindow may stay
beyond its age until some tuple arrives. Age counts from the last insertion; the eviction of tuples does not renew it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

from panes.operators.declarations import PartitionAge, PartitionCount, TupleCount
from panes.operators.partition_selection import LeastRecentlyUpdated, Selection
from panes.operators.subwindow import Subwindow


class Evictable(Protocol):
    """What an eviction needs of a window."""

    subwindows: dict[Hashable, Subwindow[Any]]
    held: int

    def evict_partitions(self, partitions: Sequence[Hashable]) -> None:
        """Remove subwindows."""


class Keeper:
    """Keeps a window within bounds; this one never has to do anything."""

    def __init__(self, window: Evictable, selection: Selection) -> None:
        self.window = window
        self.selection = selection

    def expire(self, now: int) -> None:
        """Before a tuple is looked at."""

    def make_room(self) -> None:
        """Before a subwindow is opened."""

    def trim(self) -> None:
        """After a tuple was inserted."""

    def touched(self, subwindow: Subwindow[Any], now: int) -> None:
        """A tuple is inserted into a subwindow."""
        subwindow.updated = now
        subwindow.updates += 1
        self.selection.touched(subwindow.partition)

    def forget(self, partition: Hashable) -> None:
        """A subwindow is gone."""
        self.selection.forget(partition)


class ByAge(Keeper):
    """No subwindow without a tuple for longer than some age."""

    def __init__(self, window: Evictable, policy: PartitionAge) -> None:
        self._by_update = LeastRecentlyUpdated()
        super().__init__(window, self._by_update)
        self._age = policy.age

    def expire(self, now: int) -> None:
        """Remove those that are too old; the least recently updated come first, so only they are looked at."""
        subwindows, too_old = self.window.subwindows, []
        oldest_allowed = now - self._age
        for partition in self._by_update:
            if subwindows[partition].updated >= oldest_allowed:
                break
            too_old.append(partition)
        if too_old:
            self.window.evict_partitions(too_old)


class ByPartitionCount(Keeper):
    """At most so many subwindows."""

    def __init__(self, window: Evictable, policy: PartitionCount, selection: Selection) -> None:
        super().__init__(window, selection)
        self._limit = policy.limit

    def make_room(self) -> None:
        """Remove one where one more would be too many."""
        while len(self.window.subwindows) >= self._limit:
            self.window.evict_partitions(self.selection.choose())


class ByTupleCount(Keeper):
    """At most so many tuples in all subwindows."""

    def __init__(self, window: Evictable, policy: TupleCount, selection: Selection) -> None:
        super().__init__(window, selection)
        self._limit = policy.limit

    def trim(self) -> None:
        """Remove subwindows until the rest has few enough tuples."""
        while self.window.held > self._limit:
            self.window.evict_partitions(self.selection.choose())


def keeper(
    window: Evictable,
    policy: PartitionAge | PartitionCount | TupleCount,
    selection: Callable[[], Selection],
) -> Keeper:
    """What keeps a window within the bounds of a policy."""
    if isinstance(policy, PartitionAge):
        return ByAge(window, policy)
    if isinstance(policy, PartitionCount):
        return ByPartitionCount(window, policy, selection())
    return ByTupleCount(window, policy, selection())
