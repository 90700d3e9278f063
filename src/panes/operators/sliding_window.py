"""A window of the most recent tuples.

==========  =====================================================================================================
requires    a count, delta or time policy for eviction, and one for triggers
costs       O(1) for each tuple and eviction, O(log partitions) where one is due on the clock
paper       Gedik 2014, sections 3.1.2 and 3.3, Table II, figure 2
==========  =====================================================================================================

Three evictions and three triggers give all nine pairs; their order is that of ``frames.order``. The window is full for
the first time when a count is reached, when a tuple breaks the delta invariant, or when a period has passed since the
first tuple, and counts as full before it is triggered at the same moment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, ClassVar, TypeVar

from panes.errors import DeclarationError
from panes.frames.order import EVICT, INSERT, TRIGGER
from panes.operators.attributes import DeltaReader
from panes.operators.clocks import EVICTION, FULL, PROCESSING, Alarm, Clock
from panes.operators.events import OF_SLIDING, Event
from panes.operators.policies import By, SlidingPolicies, Time, WindowLike, operator_policies
from panes.operators.subwindow import Subwindow
from panes.operators.window import Step, WindowContainer
from panes.queries.eviction import Evict
from panes.queries.measures import Delta, Rows

T = TypeVar("T")


class SlidingWindow(WindowContainer[T]):
    """The container of a sliding window.

    Parameters
    ----------
    window
        ``pn.sliding(...)`` or ``pn.hopping(...)``.
    by, evict, clock
        See ``Operator``.

    Examples
    --------
    >>> import panes as pn
    >>> class Printer:
    ...     def trigger(self, partition, window):
    ...         print(list(window.tuples(partition)))
    >>> window = SlidingWindow(pn.hopping(pn.rows(3), every=pn.rows(2)))
    >>> window.register(Printer(), Event.TRIGGER)
    >>> for number in range(6):
    ...     window.insert(number)
    [0, 1]
    [1, 2, 3]
    [3, 4, 5]
    """

    events: ClassVar[frozenset[Event]] = OF_SLIDING

    def __init__(
        self, window: WindowLike, *, by: By = None, evict: Evict | None = None, clock: Clock | None = None
    ) -> None:
        declared = operator_policies(window, by, evict)
        if not isinstance(declared, SlidingPolicies):
            raise DeclarationError(f"{window} is a tumbling window. Use a TumblingWindow.")
        if declared.evict == Rows(0):
            raise DeclarationError(
                "pn.sliding(pn.rows(0)) holds no tuple, which only makes sense for a one-sided Join. Write pn.rows(1) "
                "or more."
            )
        self._partial = declared.partial
        super().__init__(declared, (declared.evict, declared.trigger), clock)
        self._before_eviction: tuple[Callable[..., None], ...] = ()
        self._after_eviction: tuple[Callable[..., None], ...] = ()
        self._trigger: tuple[Callable[..., None], ...] = ()
        self._initial_full: tuple[Callable[..., None], ...] = ()
        # Called after the clock evicted tuples of a partition at one instant. The paper has no such event; the
        # progressive Sort needs it to submit a punctuation.
        self.left_on_the_clock: Callable[[Hashable], None] | None = None
        self._step = {**self._eviction(declared.evict), TRIGGER: self._triggering(declared.trigger)}
        self._steps = self._in_order()

    def _in_order(self) -> tuple[Step, ...]:
        declared = self.declared
        assert isinstance(declared, SlidingPolicies)
        steps = self._step | {INSERT: self._heard(self._step[INSERT])}
        full = self._watches_full
        if full and isinstance(declared.evict, Rows):
            steps[INSERT] = partial(self._insert_until_full, steps[INSERT])
        order = tuple(steps[name] for name in declared.order.arrival)
        # Before anything else happens with the tuple that breaks the invariant.
        return (self._full_by_delta, *order) if full and isinstance(declared.evict, Delta) else order

    @property
    def _watches_full(self) -> bool:
        """Whether it matters when a subwindow is full for the first time."""
        return bool(self._initial_full) or not self._partial

    # Eviction policies: they insert as well as evict

    def _eviction(self, policy: Rows | Delta | Time) -> dict[str, Step]:
        if isinstance(policy, Rows):
            self._most = policy.n
            return {EVICT: self._evict_by_count, INSERT: self._insert}
        if isinstance(policy, Delta):
            self._evict_delta = DeltaReader(policy, "latest_evict")
            self._deltas = (*self._deltas, self._evict_delta)
            return {EVICT: self._evict_by_delta, INSERT: self._insert}
        self._longest = policy.period
        return {INSERT: self._insert_by_time}

    def _evict_oldest(self, subwindow: Subwindow[T]) -> None:
        for call in self._before_eviction:
            call(subwindow.tuples[0], subwindow.partition, self)
        item = subwindow.tuples.popleft()
        if subwindow.arrivals:
            subwindow.arrivals.popleft()
        subwindow.size -= 1
        self.held -= 1
        for call in self._after_eviction:
            call(item, subwindow.partition, self)

    def _evict_by_count(self, subwindow: Subwindow[T], item: T, now: int) -> None:
        # More than one where a handler inserts what was evicted.
        while subwindow.size >= self._most:
            self._evict_oldest(subwindow)

    def _insert_until_full(self, insert: Step, subwindow: Subwindow[T], item: T, now: int) -> None:
        insert(subwindow, item, now)
        if not subwindow.full and subwindow.size == self._most:
            self._fill(subwindow)

    def _evict_by_delta(self, subwindow: Subwindow[T], item: T, now: int) -> None:
        value = subwindow.latest_evict = self._evict_delta.value
        by, read = self._evict_delta.policy.by, self._evict_delta.read
        tuples = subwindow.tuples
        while tuples and value - read(tuples[0]) > by:
            self._evict_oldest(subwindow)

    def _full_by_delta(self, subwindow: Subwindow[T], item: T, now: int) -> None:
        if subwindow.full or not subwindow.tuples:
            return
        delta = self._evict_delta
        if delta.value - delta.read(subwindow.tuples[0]) > delta.policy.by:
            self._fill(subwindow)

    def _insert_by_time(self, subwindow: Subwindow[T], item: T, now: int) -> None:
        if not subwindow.tuples:
            self._wait(subwindow, now + self._longest + 1, EVICTION, self._evict_by_time)
        if subwindow.arrivals is None:
            subwindow.arrivals = deque()
        subwindow.arrivals.append(now)
        self._insert(subwindow, item, now)

    def _evict_by_time(self, subwindow: Subwindow[T], due: int) -> None:
        arrivals, longest = subwindow.arrivals, self._longest
        try:
            # Without alarms it was evicted: a handler inserted a tuple that needed its room.
            while arrivals and due - arrivals[0] > longest and subwindow.alarms is not None:
                self._evict_oldest(subwindow)
            if self.left_on_the_clock is not None:
                self.left_on_the_clock(subwindow.partition)
        finally:
            # Even if a handler failed, or no tuple would ever be evicted again. Not if a handler inserted a tuple into
            # the empty window, which then has an alarm.
            if arrivals and subwindow.alarms is not None and subwindow.alarms[EVICTION][-1] is None:
                self._wait(subwindow, arrivals[0] + longest + 1, EVICTION, self._evict_by_time)

    def _fill(self, subwindow: Subwindow[T], _: int = 0) -> None:
        subwindow.full = True
        for call in self._initial_full:
            call(subwindow.partition, self)

    # Trigger policies

    def _triggering(self, policy: Rows | Delta | Time) -> Step:
        if isinstance(policy, Rows):
            self._every = policy.n
            return self._trigger_by_count
        if isinstance(policy, Delta):
            self._trigger_delta = DeltaReader(policy, "latest_trigger")
            self._deltas = (*self._deltas, self._trigger_delta)
            return self._trigger_by_delta
        return _on_the_clock

    def _fire(self, subwindow: Subwindow[T]) -> None:
        if not self._partial and not subwindow.full:
            return
        for call in self._trigger:
            call(subwindow.partition, self)

    def _trigger_by_count(self, subwindow: Subwindow[T], item: T, now: int) -> None:
        subwindow.received += 1
        if subwindow.received == self._every:
            subwindow.received = 0
            self._fire(subwindow)

    def _trigger_by_delta(self, subwindow: Subwindow[T], item: T, now: int) -> None:
        value = subwindow.latest_trigger = self._trigger_delta.value
        # The first tuple stands for the last one that triggered (figure 2).
        if subwindow.reference is None:
            subwindow.reference = value
        elif value - subwindow.reference > self._trigger_delta.policy.by:
            subwindow.reference = value
            self._fire(subwindow)

    def _trigger_by_time(self, subwindow: Subwindow[T], due: int) -> None:
        # The next is due a period after this one was due, however long the processing takes.
        assert isinstance(self.declared, SlidingPolicies)
        assert isinstance(self.declared.trigger, Time)
        subwindow.due = due + self.declared.trigger.period
        self._wait(subwindow, subwindow.due, PROCESSING, self._trigger_by_time)
        self._fire(subwindow)

    # The clock

    def _begin(self, subwindow: Subwindow[T]) -> None:
        if self.timed:
            assert isinstance(self.declared, SlidingPolicies)
            if isinstance(self.declared.trigger, Time):
                subwindow.due = self._due(self.declared.trigger, subwindow.opened)
            self._wake(subwindow)

    def _wake(self, subwindow: Subwindow[T]) -> None:
        declared = self.declared
        assert isinstance(declared, SlidingPolicies)
        if isinstance(declared.trigger, Time):
            self._wait(subwindow, subwindow.due, PROCESSING, self._trigger_by_time)
        if isinstance(declared.evict, Time):
            if self._watches_full and not subwindow.full:
                self._wait(subwindow, subwindow.opened + self._longest, FULL, self._fill)
            if subwindow.arrivals:
                self._wait(subwindow, subwindow.arrivals[0] + self._longest + 1, EVICTION, self._evict_by_time)

    def _wait(self, subwindow: Subwindow[T], due: int, rank: int, action: Callable[[Subwindow[T], int], None]) -> None:
        assert self.clock is not None
        if subwindow.alarms is None:
            # One place for each rank.
            subwindow.alarms = [_NO_ALARM, _NO_ALARM, _NO_ALARM]
        subwindow.alarms[rank] = self.clock.alarm(due, rank, subwindow.serial, partial(action, subwindow))


_NO_ALARM: Alarm = [0, 0, 0, 0, None]


def _on_the_clock(subwindow: Subwindow[Any], item: Any, now: int) -> None:
    """Do nothing: triggers by time happen on the clock."""
