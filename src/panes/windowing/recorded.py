"""Declared windows as index pairs, found by running them: one tuple after another.

==========  =====================================================================================================
requires    nothing: every configuration, partition eviction included
costs       those of the windows themselves, some µs for each tuple
paper       Gedik 2014, section 3
==========  =====================================================================================================

Evicting partitions depends on the tuples of all partitions in the order of time, so that no partition can be looked at
by itself, and nothing at once. Only the windows run here; what is computed over them is left to kernels.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from panes.frames.processed import Processed, key_of_rows
from panes.windowing.clocks import EventClock
from panes.windowing.declarations import Sliding, WindowDeclaration
from panes.windowing.events import Event
from panes.windowing.sliding_window import SlidingWindow
from panes.windowing.tumbling_window import TumblingWindow
from panes.windowing.vectorised import Arrivals, deltas_of
from panes.windowing.window import WHOLE, Window


class _Recorder:
    """Writes down which rows a window held when it was processed. A tuple has its row under ``ROW``."""

    ROW = None

    def __init__(self, clock: EventClock, partial: bool) -> None:
        self._clock, self._partial = clock, partial
        self.found: list[tuple[int, int, int, int]] = []

    def before_flush(self, partition: Hashable, window: Window[Any]) -> None:
        """A tumbling window is processed."""
        self._record(partition, window)

    def trigger(self, partition: Hashable, window: Window[Any]) -> None:
        """A sliding window is processed."""
        if self._partial or window.full(partition):
            self._record(partition, window)

    def initial_full(self, partition: Hashable, window: Window[Any]) -> None:
        """The window itself keeps it in mind."""

    def _record(self, partition: Any, window: Window[Any]) -> None:
        tuples = window.tuples(partition)
        if tuples:
            key = 0 if partition == WHOLE else partition
            self.found.append((key, self._clock.now(), tuples[0][self.ROW], tuples[-1][self.ROW] + 1))


def recorded(window: WindowDeclaration, arrivals: Arrivals, *, partial: bool = True) -> Processed:
    """Every window that held a tuple when it was processed, in the order of partitions; see ``vectorised.processed``.

    Examples
    --------
    >>> import panes as pn
    >>> from panes.frames import Positions
    >>> rows = Positions.of_events(np.array([1, 5, 2, 3]), np.array([0, 2, 4]))
    >>> one = pn.policy.partitions("device", count=1)
    >>> window = pn.policy.sliding(pn.policy.count(2), partitioned=one)
    >>> found = recorded(window, Arrivals(rows, end=6))
    >>> found.key, found.lo, found.hi
    (array([0, 0, 1, 1]), array([0, 1, 2, 2]), array([1, 2, 3, 4]))
    """
    events, clock = arrivals.events, EventClock()
    recorder = _Recorder(clock, partial)
    made: Any
    if isinstance(window, Sliding):
        made = SlidingWindow(window, clock=clock)
        made.register(recorder, Event.TRIGGER, Event.INITIAL_FULL)
    else:
        made = TumblingWindow(window, clock=clock)
        made.register(recorder, Event.BEFORE_FLUSH)
    # Partitions arrived side by side; those of one instant in the order of their keys.
    order = np.argsort(events.start, kind="stable")
    keys = key_of_rows(events)[order].tolist() if window.partitioned is not None else [WHOLE] * len(events)
    names = list(dict.fromkeys(policy.attribute for policy in deltas_of(window)))
    places = (_Recorder.ROW, *names)
    columns = [arrivals.attributes[name][order].tolist() for name in names]
    punctuations, done = arrivals.punctuations.tolist(), 0
    insert, advance = made.insert, clock.advance
    for row, instant, key, *values in zip(order.tolist(), events.start[order].tolist(), keys, *columns, strict=True):
        while done < len(punctuations) and punctuations[done] < instant:
            advance(punctuations[done])
            made.punctuate()
            done += 1
        advance(instant)
        insert(dict(zip(places, (row, *values), strict=True)), key)
    for instant in punctuations[done:]:
        advance(instant)
        made.punctuate()
    if len(events):
        advance(max(arrivals.end, clock.now()))
    found = np.array(recorder.found, np.int64).reshape(-1, 4)
    found = found[np.argsort(found[:, 0], kind="stable")]
    return Processed(*(np.ascontiguousarray(column) for column in found.T))
