"""The events of windows, and the handlers that operators register for them.

Paper: Gedik 2014, section 4.1.3. Events without a handler cost nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from panes.operators.partition_eviction import Candidates
    from panes.operators.window import WindowContainer


class Event(Enum):
    """An event of a window. Its value is the name of the handler."""

    BEFORE_INSERTION = "before_insertion"
    AFTER_INSERTION = "after_insertion"
    BEFORE_FLUSH = "before_flush"
    AFTER_FLUSH = "after_flush"
    BEFORE_EVICTION = "before_eviction"
    AFTER_EVICTION = "after_eviction"
    TRIGGER = "trigger"
    INITIAL_FULL = "initial_full"
    PARTITION_EVICTION = "partition_eviction"
    PARTITION_SELECTION = "partition_selection"


SHARED = frozenset({Event.BEFORE_INSERTION, Event.AFTER_INSERTION, Event.PARTITION_EVICTION, Event.PARTITION_SELECTION})
OF_TUMBLING = SHARED | {Event.BEFORE_FLUSH, Event.AFTER_FLUSH}
OF_SLIDING = SHARED | {Event.BEFORE_EVICTION, Event.AFTER_EVICTION, Event.TRIGGER, Event.INITIAL_FULL}


class WindowEvents:
    """Handlers of all events: override some, and register them."""

    def before_insertion(self, item: Any, partition: Hashable, window: WindowContainer[Any]) -> None:
        """A tuple is about to be inserted."""

    def after_insertion(self, item: Any, partition: Hashable, window: WindowContainer[Any]) -> None:
        """A tuple was inserted."""

    def before_flush(self, partition: Hashable, window: WindowContainer[Any]) -> None:
        """A tumbling subwindow is full, and about to be emptied: process it now."""

    def after_flush(self, partition: Hashable, window: WindowContainer[Any]) -> None:
        """A tumbling subwindow was emptied."""

    def before_eviction(self, item: Any, partition: Hashable, window: WindowContainer[Any]) -> None:
        """The oldest tuple of a sliding subwindow is about to leave it."""

    def after_eviction(self, item: Any, partition: Hashable, window: WindowContainer[Any]) -> None:
        """The oldest tuple of a sliding subwindow left it."""

    def trigger(self, partition: Hashable, window: WindowContainer[Any]) -> None:
        """A sliding subwindow is ready to be processed."""

    def initial_full(self, partition: Hashable, window: WindowContainer[Any]) -> None:
        """A sliding subwindow is full for the first time."""

    def partition_eviction(
        self, evicted: Iterator[tuple[Hashable, Sequence[Any]]], window: WindowContainer[Any]
    ) -> None:
        """Partitions are about to be removed: each with its tuples."""

    def partition_selection(self, candidates: Candidates, window: WindowContainer[Any]) -> None:
        """A partition must be evicted: mark one or more candidates."""
