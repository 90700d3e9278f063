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

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from panes.errors import DeclarationError
from panes.operators.subwindow import Subwindow
from panes.queries.eviction import LEAST_FREQUENTLY_UPDATED, LEAST_RECENTLY_UPDATED, OLDEST, Evict

# Which subwindow goes first when there are too many.
#
# ==========================  ===========================  ==================================================
# selection                   goes first                   costs
# ==========================  ===========================  ==================================================
# least recently updated      no tuple for longest         O(1)
# least frequently updated    fewest tuples; of those the  O(1)
#                             least recently updated
# oldest                      opened first                 O(1)
# by operator, a function     whatever it marks            whatever it looks at
# ==========================  ===========================  ==================================================
#
# Paper: Gedik 2014, section 3.5.2. A selection remembers only the order of partitions.


class Selection(Protocol):
    """The order in which partitions would go."""

    def touched(self, partition: Hashable, updates: int = 1) -> None:
        """Tuples of the partition arrived."""

    def forget(self, partition: Hashable) -> None:
        """The subwindow is gone."""

    def choose(self) -> Sequence[Hashable]:
        """Which ones go now, one at least."""

    def order(self) -> list[Hashable]:
        """Partitions in an order from which touching them one after another gives the same selection again."""


class LeastRecentlyUpdated:
    """The one that has seen no tuple for longest."""

    def __init__(self) -> None:
        self._order: OrderedDict[Hashable, None] = OrderedDict()

    def touched(self, partition: Hashable, updates: int = 1) -> None:
        """Put it last."""
        order = self._order
        if partition in order:
            order.move_to_end(partition)
        else:
            order[partition] = None

    def forget(self, partition: Hashable) -> None:
        """Take it out."""
        self._order.pop(partition, None)

    def choose(self) -> Sequence[Hashable]:
        """The first."""
        return (next(iter(self._order)),)

    def order(self) -> list[Hashable]:
        """The first first."""
        return list(self._order)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._order)


class Oldest(LeastRecentlyUpdated):
    """The one that was opened first."""

    def touched(self, partition: Hashable, updates: int = 1) -> None:
        """Put it last, unless it has a place."""
        self._order.setdefault(partition, None)


class LeastFrequentlyUpdated:
    """The one with the fewest tuples; of several, the one that has seen none for longest."""

    def __init__(self) -> None:
        self._updates: dict[Hashable, int] = {}
        # By number of tuples, partitions in the order in which they reached it.
        self._reached: dict[int, OrderedDict[Hashable, None]] = {}
        # At most the fewest tuples that a partition has; looked up anew where no partition has so few.
        self._fewest = 1

    def touched(self, partition: Hashable, updates: int = 1) -> None:
        """Move it one up."""
        before = self._updates.get(partition, 0)
        if before:
            self._take(partition, before)
        after = before + updates
        self._updates[partition] = after
        self._reached.setdefault(after, OrderedDict())[partition] = None
        if not before:
            self._fewest = min(self._fewest, after)

    def forget(self, partition: Hashable) -> None:
        """Take it out."""
        updates = self._updates.pop(partition, 0)
        if updates:
            self._take(partition, updates)

    def choose(self) -> Sequence[Hashable]:
        """The first of those with the fewest tuples."""
        if self._fewest not in self._reached:
            self._fewest = min(self._reached)
        return (next(iter(self._reached[self._fewest])),)

    def order(self) -> list[Hashable]:
        """By number of tuples, then in the order in which they reached it."""
        return [partition for updates in sorted(self._reached) for partition in self._reached[updates]]

    def _take(self, partition: Hashable, updates: int) -> None:
        reached = self._reached[updates]
        del reached[partition]
        if not reached:
            del self._reached[updates]


class Candidates:
    """The subwindows among which somebody selects: iterate over partitions and tuples, and mark some.

    Where a summarizer takes the tuples, there are none to look at.

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
        """Let a subwindow go."""
        if partition not in self._subwindows:
            raise DeclarationError(f"there is no partition {partition!r} to evict. Mark one that the candidates hold.")
        if partition not in self.marked:
            self.marked.append(partition)


class UserDefined:
    """Whatever a function or an operator marks."""

    def __init__(self, subwindows: Mapping[Hashable, Subwindow[Any]], ask: Callable[[Candidates], object]) -> None:
        self._subwindows = subwindows
        self._ask = ask

    def touched(self, partition: Hashable, updates: int = 1) -> None:
        """Nothing to remember."""

    def forget(self, partition: Hashable) -> None:
        """Nothing to forget."""

    def order(self) -> list[Hashable]:
        """None is kept."""
        return []

    def choose(self) -> Sequence[Hashable]:
        """Ask."""
        candidates = Candidates(self._subwindows)
        self._ask(candidates)
        if not candidates.marked:
            raise DeclarationError(
                "the partition selection marked no subwindow, although one has to go. Call "
                "candidates.mark(partition) for one of them at least, or write select='least recently updated'."
            )
        return candidates.marked


BUILT_IN: dict[str, Callable[[], Selection]] = {
    LEAST_RECENTLY_UPDATED: LeastRecentlyUpdated,
    LEAST_FREQUENTLY_UPDATED: LeastFrequentlyUpdated,
    OLDEST: Oldest,
}


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

    def __init__(self, window: Evictable, age: int) -> None:
        self._by_update = LeastRecentlyUpdated()
        super().__init__(window, self._by_update)
        self._age = age

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

    def __init__(self, window: Evictable, limit: int, selection: Selection) -> None:
        super().__init__(window, selection)
        self._limit = limit

    def make_room(self) -> None:
        """Remove one where one more would be too many."""
        while len(self.window.subwindows) >= self._limit:
            self.window.evict_partitions(self.selection.choose())


class ByTupleCount(Keeper):
    """At most so many tuples in all subwindows."""

    def __init__(self, window: Evictable, limit: int, selection: Selection) -> None:
        super().__init__(window, selection)
        self._limit = limit

    def trim(self) -> None:
        """Remove subwindows until the rest has few enough tuples."""
        while self.window.held > self._limit:
            self.window.evict_partitions(self.selection.choose())


def keeper(window: Evictable, evict: Evict, selection: Callable[[], Selection]) -> Keeper:
    """Return what keeps a window within its limits."""
    if evict.age is not None:
        return ByAge(window, evict.age)
    if evict.keys is not None:
        return ByPartitionCount(window, evict.keys, selection())
    assert evict.rows is not None
    return ByTupleCount(window, evict.rows, selection())
