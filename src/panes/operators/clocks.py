"""The clocks of time-based policies: the wall clock, with a thread, and event time, driven by watermarks.

Paper: Gedik 2014, section 4.2. All windows on one clock share its deadlines and its lock, so that what is due at one
instant has one order, and a join may look into both of its windows. Instants are whole µs. What is due at an instant
happens before the tuples that arrive at that instant: periods are half-open.
"""

from __future__ import annotations

import heapq
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Final, TypeAlias

from panes.errors import OrderError
from panes.frames.order import ON_THE_CLOCK

# The priority queue of what is due, by instant.
#
# ==========  =====================================================================================================
# requires    instants as whole µs
# costs       O(log n) to add and to take the next; cancelled alarms are dropped before they are half of the queue
# paper       Gedik 2014, section 4.2: time-based eviction keeps the deadline of the oldest tuple of each subwindow
# ==========  =====================================================================================================
#
# Of alarms for one instant, evictions go first, then initial fulls, then triggers and flushes; within these the
# subwindow that was opened first. A tuple older than its period is therefore never seen by a trigger.


EVICTION, FULL, PROCESSING = range(len(ON_THE_CLOCK))
"""The ranks of alarms: places in ``frames.order.ON_THE_CLOCK``."""

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


_STRETCH: Final = 0.01
_BREATH: Final = 0.001


class Clock(ABC):
    """What tells windows the time, and calls them back."""

    threaded: ClassVar[bool] = False
    """Whether it calls back from a thread of its own."""

    def __init__(self) -> None:
        self.deadlines = Deadlines()
        self._serials = 0

    @abstractmethod
    def now(self) -> int:
        """The current instant, in µs."""

    @property
    def guard(self) -> AbstractContextManager[Any]:
        """What has to be held while a window changes or is looked into; nothing where there are no threads."""
        return nullcontext()

    def origin(self) -> int | None:
        """What instants that are saved now count from; None where an instant means the same on every such clock."""
        return None

    def epoch(self) -> int:
        """The instant of the epoch, from which the grid of the clock is counted."""
        return 0

    def settle(self) -> int:
        """Let everything happen that is due by now, which is what it returns; an event clock does so as it advances."""
        return self.now()

    def alarm(self, due: int, rank: int, serial: int, action: Callable[[int], None]) -> Alarm:
        """Call an action when an instant comes; see ``Deadlines``."""
        return self.deadlines.add(due, rank, serial, action)

    def serial(self) -> int:
        """A number for a new subwindow: the order among those for which something is due at the same instant."""
        self._serials += 1
        return self._serials

    def close(self) -> None:  # noqa: B027 - only a thread has to be stopped
        """Stop: nothing happens on its own any more."""


class EventClock(Clock):
    """Time as the data tell it: it stands still until it is advanced, so that a replay gives the same events.

    Parameters
    ----------
    start
        The instant at which it begins; without it, that of the first ``advance``.

    Examples
    --------
    >>> clock = EventClock()
    >>> clock.advance(1_000_000)
    >>> clock.now()
    1000000
    >>> clock.advance(5)
    Traceback (most recent call last):
    ...
    panes.errors.OrderError: the clock is at 1000000 µs and cannot go back to 5. Advance it in the order of time, ...
    """

    def __init__(self, start: int | None = None) -> None:
        super().__init__()
        self._now = start
        self._advancing = False

    def now(self) -> int:
        """The instant to which the clock was advanced; within a handler, the one at which the event was due."""
        if self._now is None:
            raise OrderError(
                "the clock has not begun, so a tuple has no time of arrival. Write clock.advance(instant) before the "
                "first tuple, or EventClock(start=instant)."
            )
        return self._now

    def advance(self, to: int) -> None:
        """Let time pass until an instant, and everything happen that is due by then, each at its own instant.

        Tuples that arrive at ``to`` itself may still follow: this is what a watermark says.
        """
        queue = self.deadlines._queue
        if self._now is not None and self._now <= to and not self._advancing and (not queue or to < queue[0][0]):
            # Most of the time nothing is due.
            self._now = to
            return
        if self._now is not None and to < self._now:
            raise OrderError(
                f"the clock is at {self._now} µs and cannot go back to {to}. Advance it in the order of time, as "
                "Replay does with tuples that come out of order."
            )
        if self._advancing:
            raise OrderError("a handler cannot advance the clock that called it. Advance it where tuples come in.")
        self._advancing = True
        try:
            deadlines = self.deadlines
            while (due := deadlines.next_due()) is not None and due <= to:
                # Of a window that was loaded, something may be due that should have happened before: it does now.
                self._now = due if self._now is None else max(due, self._now)
                deadlines.take()
        finally:
            self._advancing = False
        self._now = to


class WallClock(Clock):
    """Time as it passes. A thread calls windows back when no tuple comes; it starts with the first deadline.

    It never goes back: where the minutes and hours of the grid begin is read once, when the clock is made.

    Triggers that are late, because the processing of one took longer than a period, follow each other until they have
    caught up; whoever else wants the lock gets it in between. An error in a handler that the thread called is raised
    where the next tuple comes in, or by ``close``.

    Examples
    --------
    >>> with WallClock() as clock:
    ...     before = clock.now()
    ...     before <= clock.now()
    True
    """

    threaded: ClassVar[bool] = True

    def __init__(self, now: Callable[[], int] | None = None) -> None:
        super().__init__()
        self._read = now or (lambda: time.monotonic_ns() // 1000)
        self._epoch = self._read() - time.time_ns() // 1000 if now is None else 0
        # Reentrant: a handler looks into the windows that called it.
        self._changed = threading.Condition(threading.RLock())
        self._thread: threading.Thread | None = None
        self._running = False
        self._closed = False
        self._failure: BaseException | None = None

    def now(self) -> int:
        """Microseconds since some moment."""
        return self._read()

    def origin(self) -> int:
        """Now: another process, or the same host after a reboot, counts from another moment."""
        return self._read()

    def epoch(self) -> int:
        """When the epoch was, by the time of day when the clock was made."""
        return self._epoch

    @property
    def guard(self) -> AbstractContextManager[Any]:
        """The lock that the thread holds while it calls windows back."""
        return self._changed

    def settle(self) -> int:
        """Let everything happen that is due by now, on the thread that asks; raise what went wrong on the other."""
        with self._changed:
            self._raise()
            # What falls due meanwhile is not waited for: slow handlers would keep a tuple out for ever.
            now = self._read()
            while (due := self.deadlines.next_due()) is not None and due <= now:
                self.deadlines.take()
            return now

    def alarm(self, due: int, rank: int, serial: int, action: Callable[[int], None]) -> Alarm:
        """Call an action when an instant comes, from the thread of this clock."""
        with self._changed:
            before = self.deadlines.next_due()
            alarm = self.deadlines.add(due, rank, serial, action)
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="panes-clock", daemon=True)
                self._running = True
                self._thread.start()
            elif before is None or due < before:
                self._changed.notify_all()
            return alarm

    def close(self) -> None:
        """Stop the thread; raise what went wrong on it."""
        self._closed = True
        elsewhere = self._thread is not threading.current_thread()
        with self._changed:
            self._changed.notify_all()
            # Waiting lets go of the lock, which a handler that closes the clock holds already.
            while self._running and elsewhere:
                self._changed.wait()
        if self._thread is not None and elsewhere:
            self._thread.join()
        self._raise()

    def __enter__(self) -> WallClock:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _raise(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _run(self) -> None:
        with self._changed:
            rest = 0.0
            while not self._closed:
                due = self.deadlines.next_due()
                wait = None if due is None else (due - self._read()) / 1e6
                if wait is not None and wait <= 0 and time.monotonic() < rest:
                    try:
                        self.deadlines.take()
                    except BaseException as failure:
                        # Nobody waits for this thread: keep it for whoever comes next.
                        self._failure = self._failure or failure
                        rest = 0.0
                    continue
                # Also where all is late, or a handler fails again and again: others have to get the lock.
                self._changed.wait(wait if wait is None or wait > 0 else _BREATH)
                rest = time.monotonic() + _STRETCH
            self._running = False
            self._changed.notify_all()
