"""The priority queue of what is due, by instant.

==========  =====================================================================================================
requires    instants as whole µs
costs       O(log n) to add and to take the next; cancelled alarms are dropped before they are half of the queue
paper       Gedik 2014, section 4.2: time-based eviction keeps the deadline of the oldest tuple of each subwindow
==========  =====================================================================================================

Of alarms for one instant, evictions go first, then initial fulls, then triggers and flushes; within these the subwindow
that was opened first. A tuple older than its period is therefore never seen by a trigger.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, Final, TypeAlias

EVICTION: Final = 0
FULL: Final = 1
PROCESSING: Final = 2

Alarm: TypeAlias = list[Any]
"""``[due, rank, serial, action]``; an action of None was cancelled. A list, since the queue compares it often."""


class Deadlines:
    """Alarms in the order in which they go off."""

    def __init__(self) -> None:
        self._queue: list[Alarm] = []
        self._cancelled = 0

    def __len__(self) -> int:
        return len(self._queue) - self._cancelled

    def add(self, due: int, rank: int, serial: int, action: Callable[[int], None]) -> Alarm:
        """Call an action with its instant, when it comes.

        Examples
        --------
        >>> deadlines, seen = Deadlines(), []
        >>> _ = deadlines.add(7, PROCESSING, 0, seen.append)
        >>> gone = deadlines.add(5, PROCESSING, 1, seen.append)
        >>> deadlines.cancel(gone)
        >>> deadlines.next_due()
        7
        >>> deadlines.take(); seen
        [7]
        """
        alarm: Alarm = [due, rank, serial, action]
        heapq.heappush(self._queue, alarm)
        return alarm

    def cancel(self, alarm: Alarm) -> None:
        """Forget an alarm, and let go of what its action holds."""
        if alarm[3] is None:
            return
        alarm[3] = None
        self._cancelled += 1
        if 2 * self._cancelled > len(self._queue):
            self._queue = [each for each in self._queue if each[3] is not None]
            heapq.heapify(self._queue)
            self._cancelled = 0

    def next_due(self) -> int | None:
        """The instant of the next alarm; None where there is none."""
        queue = self._queue
        while queue and queue[0][3] is None:
            heapq.heappop(queue)
            self._cancelled -= 1
        return queue[0][0] if queue else None

    def take(self) -> None:
        """Let the next alarm go off; there has to be one."""
        alarm = heapq.heappop(self._queue)
        due, _, _, action = alarm
        # It is no longer in the queue, so cancelling it later must not count.
        alarm[3] = None
        action(due)
