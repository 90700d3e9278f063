"""The state of one subwindow, and summarizers, which take its tuples so that a tumbling window need not store them.

Paper: Gedik 2014, sections 3.1.3, 3.2.3 and 4.1.6. A subwindow is plain data, W^{a=v}: its tuples from the oldest (t_l)
to the newest (t_0). Each policy owns the fields that carry its name. A window with summarizers creates one for each
subwindow and passes the tuples on to it; the summarizer decides what it keeps of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Subwindow(Generic[T]):
    """What a window knows of one partition.

    Parameters
    ----------
    partition
        The value of the partition-by attributes; ``()`` where a window is not partitioned.
    opened
        When its first tuple arrived, on the clock of the window.
    tuples
        In the order of their arrival; empty where a summarizer takes them.
    arrivals
        When each of them arrived; kept by time-based eviction from sliding windows only, since an empty queue takes
        half a kilobyte.
    size
        How many tuples the subwindow holds, stored or summarized.
    updated, updates
        When a tuple was last inserted, and how many were; kept where partitions are evicted.
    full
        Whether the initial full event was fired; kept only where it is handled.
    latest_evict, latest_trigger
        The last value of the delta attribute of each policy.
    oldest
        The delta attribute of the oldest tuple, in a tumbling window.
    received
        How many tuples came since the last trigger, for count-based triggers.
    reference
        The delta attribute of the last tuple that triggered.
    due
        The next instant of a periodic trigger or flush.
    summarizer
        What takes the tuples of a tumbling window, if anything does.
    serial
        Counts the subwindows of a clock: the order among those for which something is due at the same instant. Saved,
        since a join has two windows, whose subwindows are of any age.
    alarms
        What waits for the clock on behalf of the subwindow; not state, since it follows from the rest.
    """

    partition: Hashable
    opened: int = 0
    tuples: deque[T] = field(default_factory=deque)
    arrivals: deque[int] | None = None
    size: int = 0
    updated: int = 0
    updates: int = 0
    full: bool = False
    latest_evict: Any = None
    latest_trigger: Any = None
    oldest: Any = None
    received: int = 0
    reference: Any = None
    due: int = 0
    summarizer: Any = None
    serial: int = 0
    alarms: list[Any] | None = None

    def saved(self) -> dict[str, Any]:
        """Plain values of all fields that are state. Containers are copied; tuples and summarizers are not."""
        state = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "alarms"}
        return state | {"tuples": list(self.tuples), "arrivals": list(self.arrivals or ())}

    @classmethod
    def loaded(cls, state: dict[str, Any], later: int = 0) -> Subwindow[T]:
        """The subwindow that was saved, with all its instants so much later."""
        arrivals = [arrival + later for arrival in state["arrivals"]] if later else state["arrivals"]
        containers = {"tuples": deque(state["tuples"]), "arrivals": deque(arrivals) or None}
        instants = {name: state[name] + later for name in ("opened", "updated", "due")}
        return cls(**(state | containers | instants))


class Summarizer:
    """Override what is of interest; state of constant or logarithmic size is what it is for.

    Examples
    --------
    >>> class Longest(Summarizer):
    ...     def open(self, partition):
    ...         self.length = 0
    ...     def insert(self, item):
    ...         self.length = max(self.length, len(item))
    >>> longest = Longest()
    >>> longest.open(()); longest.insert("one"); longest.insert("three"); longest.length
    5
    """

    def open(self, partition: Hashable) -> None:
        """A subwindow was created, and this summarizer for it."""

    def insert(self, item: Any) -> None:
        """A tuple was inserted into the window, which will not keep it."""

    def insert_all(self, items: Sequence[Any]) -> None:
        """Tuples were inserted, one after another."""
        for item in items:
            self.insert(item)

    def close(self) -> None:
        """The subwindow was processed, or its partition evicted; this summarizer is not used again."""
