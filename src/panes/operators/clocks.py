"""The clocks of time-based policies: wall time with a thread, and event time driven by watermarks.

Paper: Gedik 2014, section 4.2. All windows on a clock share its deadlines and its lock, so that what is due at one
instant has one order, and a join may read both of its windows. Instants are whole µs. What is due at an instant happens
before the tuples that arrive at it (``frames.order.WITHIN_AN_INSTANT``): periods are half-open.
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
from panes.frames import order
from panes.frames.order import ON_THE_CLOCK

# Deadlines

EVICTION, FULL, PROCESSING = map(ON_THE_CLOCK.index, (order.EVICT, order.FULL, order.TRIGGER))
"""The ranks of alarms: places in ``frames.order.ON_THE_CLOCK``."""

Alarm: TypeAlias = list[Any]
"""``[due, rank, serial, number, action]``, without an action once it is cancelled. A list, since lists compare fast."""


class Deadlines:
    """A priority queue of alarms: by instant, then by rank (``ON_THE_CLOCK``), then by age of the subwindow.

    Subwindows of two clocks, which are loaded on one, may be of the same age: then the first alarm goes first.

    ``add`` and ``take`` cost O(log n). Cancelled alarms are dropped before they are half of the queue.
    """

    def __init__(self) -> None:
        self._queue: list[Alarm] = []
        self._added = 0
        self._cancelled = 0

    def __len__(self) -> int:
        return len(self._queue) - self._cancelled

    def add(self, due: int, rank: int, serial: int, action: Callable[[int], None]) -> Alarm:
        """Call an action at an instant, and pass it the instant.

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
        self._added += 1
        alarm: Alarm = [due, rank, serial, self._added, action]
        heapq.heappush(self._queue, alarm)
        return alarm

    def cancel(self, alarm: Alarm) -> None:
        """Cancel an alarm, and release its action."""
        if alarm[-1] is None:
            return
        alarm[-1] = None
        self._cancelled += 1
        if 2 * self._cancelled > len(self._queue):
            self._queue = [each for each in self._queue if each[-1] is not None]
            heapq.heapify(self._queue)
            self._cancelled = 0

    def next_due(self) -> int | None:
        """Return the instant of the next alarm, or None."""
        queue = self._queue
        while queue and queue[0][-1] is None:
            heapq.heappop(queue)
            self._cancelled -= 1
        return queue[0][0] if queue else None

    def take(self) -> None:
        """Run the next alarm; there must be one."""
        alarm = heapq.heappop(self._queue)
        due, action = alarm[0], alarm[-1]
        # Not in the queue any more: cancelling it later must not count.
        alarm[-1] = None
        action(due)


_STRETCH: Final = 0.01
_BREATH: Final = 0.001


class Clock(ABC):
    """Tells windows the time, and calls them back."""

    threaded: ClassVar[bool] = False
    """Whether callbacks come from a thread of its own."""

    def __init__(self) -> None:
        self.deadlines = Deadlines()
        self._serials = 0

    @abstractmethod
    def now(self) -> int:
        """Return the current instant in µs."""

    @property
    def guard(self) -> AbstractContextManager[Any]:
        """The lock to hold while a window is changed or read; no lock without a thread."""
        return nullcontext()

    def origin(self) -> int | None:
        """Return the reference of saved instants; None if instants mean the same on every such clock."""
        return None

    def epoch(self) -> int:
        """Return the instant of the epoch, where the grid of the clock begins."""
        return 0

    def settle(self) -> int:
        """Run everything that is due, and return the current instant; an event clock has done so when it advanced."""
        return self.now()

    def alarm(self, due: int, rank: int, serial: int, action: Callable[[int], None]) -> Alarm:
        """Call an action at an instant; see ``Deadlines``."""
        return self.deadlines.add(due, rank, serial, action)

    def serial(self) -> int:
        """Return a number for a new subwindow, which orders alarms of one instant."""
        self._serials += 1
        return self._serials

    def resume(self, serial: int) -> None:
        """Go on after the number of a saved subwindow: new subwindows are younger than all that are loaded."""
        self._serials = max(self._serials, serial)

    def close(self) -> None:  # noqa: B027 - only a thread has to be stopped
        """Stop the thread of the clock, if it has one."""


class EventClock(Clock):
    """Event time: stands still until it is advanced, so that a replay gives the same results.

    Parameters
    ----------
    start
        The first instant; by default that of the first ``advance``.

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
        """Return the instant to which the clock was advanced; in a handler, the one at which its event was due."""
        if self._now is None:
            raise OrderError(
                "the clock has not begun, so a tuple has no time of arrival. Write clock.advance(instant) before the "
                "first tuple, or EventClock(start=instant)."
            )
        return self._now

    def advance(self, to: int) -> None:
        """Advance to an instant, and run everything that is due by then, each at its own instant.

        Tuples that arrive at ``to`` itself may still follow, as after a watermark.
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
            raise OrderError("a handler cannot advance the clock that called it. Advance it where tuples are inserted.")
        self._advancing = True
        try:
            deadlines = self.deadlines
            while (due := deadlines.next_due()) is not None and due <= to:
                # Of a loaded window, something may have been due earlier: it happens now.
                self._now = due if self._now is None else max(due, self._now)
                deadlines.take()
        finally:
            self._advancing = False
        self._now = to


class WallClock(Clock):
    """Wall time. A thread, started with the first deadline, calls windows back even if no tuple arrives.

    It never goes back: the time of day, which places the grid, is read once when the clock is made.

    Late triggers, after processing that took longer than a period, follow each other until they have caught up; the
    lock is released in between. An error in a handler that the thread called is raised at the next insertion, or by
    ``close``.

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
        """Return µs since an arbitrary moment."""
        return self._read()

    def origin(self) -> int:
        """Return the current instant: another process, or a rebooted host, counts from another moment."""
        return self._read()

    def epoch(self) -> int:
        """Return the instant of the epoch, by the time of day when the clock was made."""
        return self._epoch

    @property
    def guard(self) -> AbstractContextManager[Any]:
        """The lock that the thread holds during callbacks."""
        return self._changed

    def settle(self) -> int:
        """Run everything that is due in the calling thread, and raise an earlier error of the clock's thread."""
        with self._changed:
            self._raise()
            # Not what falls due meanwhile: slow handlers would delay a tuple for ever.
            now = self._read()
            while (due := self.deadlines.next_due()) is not None and due <= now:
                self.deadlines.take()
            return now

    def alarm(self, due: int, rank: int, serial: int, action: Callable[[int], None]) -> Alarm:
        """Call an action at an instant, from the thread of this clock."""
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
        """Stop the thread, and raise its error."""
        self._closed = True
        elsewhere = self._thread is not threading.current_thread()
        with self._changed:
            self._changed.notify_all()
            # Waiting releases the lock, which a handler that closes the clock already holds.
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
                        # Raised by the next caller.
                        self._failure = self._failure or failure
                        rest = 0.0
                    continue
                # Even if everything is late, or a handler keeps failing: release the lock for others.
                self._changed.wait(wait if wait is None or wait > 0 else _BREATH)
                rest = time.monotonic() + _STRETCH
            self._running = False
            self._changed.notify_all()
