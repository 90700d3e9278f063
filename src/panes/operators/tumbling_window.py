"""A window that is processed and emptied when it is full.

==========  =====================================================================================================
requires    a count, delta, time or punctuation policy
costs       O(1) per tuple, O(log partitions) per flush by time; tuples are stored unless summarized
paper       Gedik 2014, sections 3.1.1 and 3.3, Table I
==========  =====================================================================================================

A flush removes a partitioned subwindow; the next tuple of its partition opens another one. Three exceptions: with a
delta policy it stays, since a tuple is inserted right after the flush; without partitions it stays, and by time is
flushed every period even if it is empty; and by time off the grid the origin decides: with ``first`` it stays, with
``row`` it is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, ClassVar, TypeVar

from panes.errors import DeclarationError
from panes.frames.order import EVICT, INSERT
from panes.operators.attributes import WHOLE, DeltaReader
from panes.operators.bulk_insertion import BulkWindow, cuts_by_delta
from panes.operators.clocks import PROCESSING, Clock
from panes.operators.events import OF_TUMBLING, Event
from panes.operators.policies import By, Gap, Time, TumblingPolicies, WindowLike, operator_policies
from panes.operators.subwindow import Subwindow, Summarizer
from panes.operators.window import Step
from panes.queries.eviction import Evict
from panes.queries.measures import Delta, Punctuation, Rows

T = TypeVar("T")


class TumblingWindow(BulkWindow[T]):
    """The container of a tumbling window.

    Parameters
    ----------
    window
        ``pn.tumbling(...)``.
    by, evict, clock
        See ``Operator``.
    summarizer
        Makes a summarizer for each subwindow; the window then stores no tuples.

    Examples
    --------
    >>> import panes as pn
    >>> class Printer:
    ...     def before_flush(self, partition, window):
    ...         print(list(window.tuples(partition)))
    >>> window = TumblingWindow(pn.tumbling(pn.rows(3)))
    >>> window.register(Printer(), Event.BEFORE_FLUSH)
    >>> for number in range(7):
    ...     window.insert(number)
    [0, 1, 2]
    [3, 4, 5]
    >>> list(window.tuples())
    [6]
    """

    events: ClassVar[frozenset[Event]] = OF_TUMBLING

    def __init__(
        self,
        window: WindowLike,
        *,
        by: By = None,
        evict: Evict | None = None,
        clock: Clock | None = None,
        summarizer: Callable[[], Summarizer] | None = None,
    ) -> None:
        declared = operator_policies(window, by, evict)
        if not isinstance(declared, TumblingPolicies):
            raise DeclarationError(f"{window} is not a tumbling window. Use a SlidingWindow.")
        policy = declared.evict
        assert not isinstance(policy, Gap)
        super().__init__(declared, (policy,), clock)
        self._before_flush: tuple[Callable[..., None], ...] = ()
        self._after_flush: tuple[Callable[..., None], ...] = ()
        self._summarizer = summarizer
        self._stores = summarizer is None
        step: Step = _on_the_clock_or_by_punctuation
        if isinstance(policy, Delta):
            self._delta = DeltaReader(policy, "latest_evict")
            self._deltas = (self._delta,)
            step = self._evict_by_delta
        self._lasts = declared.order.holds_arriving
        # A subwindow with a delta policy is never empty for long.
        self._removes = declared.partitioned is not None and not isinstance(policy, Delta)
        if isinstance(policy, Time) and policy.origin != "epoch":
            self._removes = policy.origin == "row"
        self._evict = step
        self._steps = self._in_order()

    def punctuate(self) -> None:
        """Flush all subwindows, if the window has a punctuation policy."""
        if not isinstance(self.declared.evict, Punctuation):
            return
        if self.declared.partitioned is None and WHOLE not in self.subwindows:
            self._open(WHOLE, 0)
        for subwindow in list(self.subwindows.values()):
            self._flush(subwindow)

    def punctuate_one(self, partition: Hashable) -> None:
        """Flush the subwindow of one partition."""
        subwindow = self.subwindows.get(partition)
        if subwindow is not None:
            self._flush(subwindow)

    def summarizer(self, partition: Hashable = WHOLE) -> Any:
        """Return the summarizer of a subwindow, even of an empty one; None if tuples are stored."""
        subwindow = self.subwindows.get(partition)
        return None if subwindow is None or self._stores else self._summarizer_of(subwindow)

    def stay(self) -> None:
        """Keep subwindows when they are flushed, so that their periods follow back to back."""
        self._removes = False

    # Lists of tuples

    def _values_of(self, items: Sequence[T]) -> Sequence[Any]:
        return list(map(self._delta.read, items)) if self._deltas else items

    def _cuts(self, subwindow: Subwindow[T] | None, values: Sequence[Any]) -> list[int]:
        policy, size = self.declared.evict, 0 if subwindow is None else subwindow.size
        if isinstance(policy, Rows):
            return list(range(max(policy.n - size, 1), len(values) + 1, policy.n))
        if not isinstance(policy, Delta):
            return []
        latest = () if subwindow is None or subwindow.latest_evict is None else (subwindow.latest_evict,)
        self._delta.check((*latest, *values))
        return cuts_by_delta(values, policy.by, subwindow.oldest if subwindow is not None and size else values[0])

    def _fill(self, subwindow: Subwindow[T], items: Sequence[T], values: Sequence[Any]) -> None:
        if self._deltas:
            if not subwindow.size:
                subwindow.oldest = values[0]
            subwindow.latest_evict = values[-1]
        if self._stores:
            subwindow.tuples.extend(items)
        else:
            self._summarizer_of(subwindow).insert_all(items)
        subwindow.size += len(items)
        self.held += len(items)

    # The steps of ``frames.order``

    def _in_order(self) -> tuple[Step, ...]:
        insert = self._heard(self._insert if self._stores else self._summarize)
        order = self.declared.order.arrival
        if order == (INSERT, EVICT) and isinstance(self.declared.evict, Rows):
            return (self._insert_and_evict(insert, self.declared.evict.n),)
        steps = {INSERT: insert, EVICT: self._evict}
        return tuple(steps[name] for name in order)

    def _insert_and_evict(self, insert: Step, n: int) -> Step:
        """Return both steps as one: most tuples do not fill the window."""
        flush = self._flush

        def step(subwindow: Subwindow[T], item: T, now: int) -> None:
            insert(subwindow, item, now)
            # It is larger if a handler failed: try again with the next tuple.
            if subwindow.size >= n:
                flush(subwindow)

        return step

    def _summarize(self, subwindow: Subwindow[T], item: T, _: int) -> None:
        summarizer = subwindow.summarizer
        if summarizer is None:
            summarizer = self._summarizer_of(subwindow)
        summarizer.insert(item)
        subwindow.size += 1
        self.held += 1

    def _summarizer_of(self, subwindow: Subwindow[T]) -> Summarizer:
        if subwindow.summarizer is None:
            assert self._summarizer is not None
            subwindow.summarizer = self._summarizer()
            subwindow.summarizer.open(subwindow.partition)
        summarizer: Summarizer = subwindow.summarizer
        return summarizer

    def _evict_by_delta(self, subwindow: Subwindow[T], item: T, now: int) -> None:
        value = self._delta.value
        if not subwindow.size:
            subwindow.oldest = value
        elif value - subwindow.oldest > self._delta.policy.by:
            self._flush(subwindow)
            subwindow.oldest = value
        subwindow.latest_evict = value

    def _evict_by_time(self, subwindow: Subwindow[T], due: int) -> None:
        try:
            self._flush(subwindow)
        finally:
            # Still there without partitions, or if a handler failed: try again after the next period.
            if self.subwindows.get(subwindow.partition) is subwindow:
                assert isinstance(self.declared.evict, Time)
                subwindow.due = due + self.declared.evict.period
                self._wait(subwindow)

    def _flush(self, subwindow: Subwindow[T]) -> None:
        partition = subwindow.partition
        for call in self._before_flush:
            call(partition, self)
        if self._stores:
            subwindow.tuples.clear()
        else:
            # Every subwindow opens and closes a summarizer, even if it is empty.
            self._summarizer_of(subwindow).close()
            subwindow.summarizer = None
        self.held -= subwindow.size
        subwindow.size = 0
        if self._removes:
            self._remove(subwindow)
        for call in self._after_flush:
            call(partition, self)

    # The clock

    def _begin(self, subwindow: Subwindow[T]) -> None:
        if self.timed:
            assert isinstance(self.declared.evict, Time)
            subwindow.due = self._due(self.declared.evict, subwindow.opened)
            self._wait(subwindow)

    def _wake(self, subwindow: Subwindow[T]) -> None:
        if self.timed:
            self._wait(subwindow)

    def _wait(self, subwindow: Subwindow[T]) -> None:
        assert self.clock is not None
        action = partial(self._evict_by_time, subwindow)
        subwindow.alarms = [self.clock.alarm(subwindow.due, PROCESSING, subwindow.serial, action)]


def _on_the_clock_or_by_punctuation(subwindow: Subwindow[Any], item: Any, now: int) -> None:
    """Do nothing: flushes by time happen on the clock, and those by punctuation when one arrives."""
