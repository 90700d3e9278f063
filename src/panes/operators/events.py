"""The events that a window fires, and what an operator that reacts to them looks like.

Paper: Gedik 2014, section 4.1.3. An operator registers for the events that it wants; nobody pays for the others.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from panes.operators.partition_eviction import Candidates
    from panes.operators.window import Window


class Event(Enum):
    """What can happen to a window. The value names the handler."""

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
    """Handlers of all events. Override those of interest, and register for them."""

    def before_insertion(self, item: Any, partition: Hashable, window: Window[Any]) -> None:
        """A tuple is about to be inserted."""

    def after_insertion(self, item: Any, partition: Hashable, window: Window[Any]) -> None:
        """A tuple was inserted."""

    def before_flush(self, partition: Hashable, window: Window[Any]) -> None:
        """A subwindow of a tumbling window is full and about to be emptied: the moment to process it."""

    def after_flush(self, partition: Hashable, window: Window[Any]) -> None:
        """A subwindow of a tumbling window was emptied."""

    def before_eviction(self, item: Any, partition: Hashable, window: Window[Any]) -> None:
        """The oldest tuple of a sliding subwindow is about to leave it."""

    def after_eviction(self, item: Any, partition: Hashable, window: Window[Any]) -> None:
        """The oldest tuple of a sliding subwindow left it."""

    def trigger(self, partition: Hashable, window: Window[Any]) -> None:
        """A sliding subwindow is ready to be processed."""

    def initial_full(self, partition: Hashable, window: Window[Any]) -> None:
        """A sliding subwindow is full for the first time."""

    def partition_eviction(self, evicted: Iterator[tuple[Hashable, Sequence[Any]]], window: Window[Any]) -> None:
        """Subwindows are about to be removed: their partitions, each with its tuples."""

    def partition_selection(self, candidates: Candidates, window: Window[Any]) -> None:
        """Some subwindow has to go, and the operator is to say which."""
