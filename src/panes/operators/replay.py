"""Event time for operators: tuples that come out of order go in by their timestamps, as watermarks allow.

==========  =====================================================================================================
requires    a timestamp in each tuple, and watermarks: no tuple with an earlier timestamp will come
costs       O(log n) for each tuple, of the n that wait for the watermark
==========  =====================================================================================================

The wall clock of the paper's time-based policies becomes event time, so that a replay gives the same answers whenever
it is run, and however its tuples were shuffled within the watermark's delay.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from datetime import datetime
from operator import itemgetter
from typing import Any

from panes.errors import SchemaError
from panes.operators.clocks import EventClock
from panes.operators.declarations import Attribute
from panes.operators.graph import Graph
from panes.operators.operator import Operator
from panes.timeline import parse_instant


class Replay:
    """Feeds an operator in the order of event time.

    Parameters
    ----------
    target
        An operator, or a graph of them, made with ``clock``.
    at
        The attribute with the timestamp: int µs, or a ``datetime``.
    ties
        What orders tuples of one timestamp, instead of their arrival.

    Examples
    --------
    >>> import panes as pn
    >>> from panes.operators import Aggregate
    >>> clock = EventClock()
    >>> counts = Aggregate(pn.tumbling("5 us", origin="first"), {"n": pn.count()}, clock=clock)
    >>> out = []
    >>> counts.connect(out.append)
    >>> replay = Replay(counts, clock, at="ts")
    >>> replay.add([{"ts": 3}, {"ts": 1}, {"ts": 7}])
    >>> replay.advance(11); out
    [{'n': 2}, PUNCTUATION, {'n': 1}, PUNCTUATION]
    """

    def __init__(
        self, target: Operator | Graph, clock: EventClock, *, at: Attribute, ties: Callable[[Any], Any] | None = None
    ) -> None:
        self._deliver: Callable[[Any, Any], None] = (
            target.process if isinstance(target, Operator) else lambda item, source: target.send(source, item)
        )
        self._clock = clock
        self._at: Callable[[Any], Any] = itemgetter(at)
        self._ties = ties
        self._waiting: list[tuple[int, Any, int, Any, int | str]] = []
        self._arrived = 0
        self._watermark: int | None = None
        self.late = 0
        """How many tuples came behind the watermark; they are left out."""

    def add(self, items: Iterable[Any], port: int | str = 0) -> None:
        """Take in tuples, in any order, for a port of an operator or a source of a graph."""
        for item in items:
            instant = self._at(item)
            if isinstance(instant, datetime):
                instant = parse_instant(instant)
            if isinstance(instant, bool) or not isinstance(instant, int):
                raise SchemaError(
                    f"a tuple has the timestamp {instant!r}. Write whole µs since the epoch, or a datetime."
                )
            if self._watermark is not None and instant < self._watermark:
                self.late += 1
                continue
            self._arrived += 1
            tie = None if self._ties is None else self._ties(item)
            heapq.heappush(self._waiting, (instant, tie, self._arrived, item, port))

    def advance(self, watermark: int) -> None:
        """Let everything happen before an instant: no earlier tuple will come."""
        waiting = self._waiting
        while waiting and waiting[0][0] < watermark:
            instant, _, _, item, port = heapq.heappop(waiting)
            self._clock.advance(instant)
            self._deliver(item, port)
        self._clock.advance(watermark)
        self._watermark = watermark

    def finish(self) -> None:
        """Let in what still waits. Windows that are not full by then stay open."""
        if self._waiting:
            self.advance(max(instant for instant, *_ in self._waiting) + 1)
