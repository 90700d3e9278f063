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
from dataclasses import replace
from typing import Any

import numpy as np

from panes.frames.positions import Integers
from panes.frames.row_windows import Processed, key_of_rows
from panes.operators.clocks import EventClock
from panes.operators.events import Event
from panes.operators.policies import Attribute, SlidingPolicies, WindowPolicies
from panes.operators.sliding_window import SlidingWindow
from panes.operators.tumbling_window import TumblingWindow
from panes.operators.window import WHOLE, Window
from panes.queries.measures import Rows
from panes.row_windows.vectorised import Arrivals, deltas_of

_ROW = None
"""Under which attribute a tuple has its row."""


class Recording:
    """A window that runs, and what it held whenever it was processed.

    Parameters
    ----------
    start
        Where the clock begins, of a window that goes on.

    Examples
    --------
    >>> import panes as pn
    >>> from panes.frames import Positions
    >>> from panes.operators.policies import policies_of
    >>> rows = Positions.of_events(np.array([1, 5, 2, 3]), np.array([0, 2, 4]))
    >>> recording = Recording(policies_of(pn.sliding(pn.rows(2)), ["device"], pn.evict(keys=1)))
    >>> recording.run(Arrivals(rows, end=6), rows=np.arange(4))
    >>> found, numbers = recording.found()
    >>> found.key, found.lo, found.hi, numbers
    (array([0, 0, 1, 1]), array([0, 1, 2, 2]), array([1, 2, 3, 4]), array([0, 0, 0, 1]))
    """

    def __init__(self, window: WindowPolicies, *, start: int | None = None) -> None:
        self._declared, self._ago = window, 0
        self._clock = EventClock(start)
        self._window: Any
        if isinstance(window, SlidingPolicies):
            if isinstance(window.evict, Rows):
                # The very last rows are held, and left out of answers.
                self._ago = window.ago
                window = replace(window, evict=Rows(window.evict.n + window.ago), ago=0)
            self._window = SlidingWindow(window, clock=self._clock)
            self._window.register(self, Event.TRIGGER)
        else:
            self._window = TumblingWindow(window, clock=self._clock)
            self._window.register(self, Event.BEFORE_FLUSH)
        self._found: list[tuple[int, int, int, int, int]] = []
        # Of each partition its subwindow, and how many windows of that were processed.
        self._numbered: dict[Hashable, tuple[object, int]] = {}

    # Events

    def before_flush(self, partition: Hashable, window: Window[Any]) -> None:
        """A tumbling window is processed."""
        self._record(partition, window)

    def trigger(self, partition: Hashable, window: Window[Any]) -> None:
        """A sliding window is processed."""
        self._record(partition, window)

    def _record(self, partition: Any, window: Window[Any]) -> None:
        tuples = window.tuples(partition)
        if not tuples:
            return
        subwindow = window.subwindows[partition]
        known, number = self._numbered.get(partition, (None, 0))
        number = number if known is subwindow else 0
        self._numbered[partition] = (subwindow, number + 1)
        key = 0 if partition == WHOLE else partition
        first, last = tuples[0][_ROW], tuples[-1][_ROW]
        self._found.append((key, self._clock.now(), first, max(last + 1 - self._ago, first), number))

    # What runs

    def run(self, arrivals: Arrivals, rows: Integers) -> None:
        """Let some rows of all partitions arrive, in the order of time, and the clock run."""
        events = arrivals.events
        # Partitions arrived side by side; those of one instant in the order of their keys.
        order = rows[np.argsort(events.start[rows], kind="stable")]
        partitioned = self._declared.partitioned is not None
        keys = key_of_rows(events)[order].tolist() if partitioned else [WHOLE] * len(order)
        names, columns = self._attributes(arrivals, order)
        places = (_ROW, *names)
        punctuations, done = _punctuations(arrivals), 0
        insert, advance = self._window.insert, self._clock.advance
        for row, instant, key, *values in zip(
            order.tolist(), events.start[order].tolist(), keys, *columns, strict=True
        ):
            while done < len(punctuations) and punctuations[done][0] < instant:
                self._punctuate(*punctuations[done])
                done += 1
            advance(instant)
            insert(dict(zip(places, (row, *values), strict=True)), key)
        for instant, marked in punctuations[done:]:
            self._punctuate(instant, marked)
        if len(events):
            advance(max(arrivals.end, self._clock.now()))

    def _punctuate(self, instant: int, marked: int | None) -> None:
        self._clock.advance(instant)
        if marked is None:
            self._window.punctuate()
        else:
            self._window.punctuate_one(marked)

    def found(self) -> tuple[Processed, Integers]:
        """Every window that held a tuple, in the order of partitions, and which one of its partition it was.

        A partition that was evicted, or of a tumbling window flushed, begins again with 0 when it comes back.
        """
        found = np.array(self._found, np.int64).reshape(-1, 5)
        found = np.ascontiguousarray(found[np.argsort(found[:, 0], kind="stable")].T)
        return Processed(*found[:4]), found[4]

    # State

    def held(self) -> Integers:
        """The rows that the window still holds."""
        return np.sort(np.array([item[_ROW] for _, tuples in self._window for item in tuples], np.int64))

    def save(self) -> dict[str, Any]:
        """Everything but the rows themselves, as plain values."""
        state: dict[str, Any] = self._window.save()
        for saved in state["subwindows"]:
            partition = saved["partition"]
            known, number = self._numbered.get(partition, (None, 0))
            saved["number"] = number if known is self._window.subwindows[partition] else 0
            saved["tuples"] = len(saved["tuples"])
        return state

    def load(self, state: dict[str, Any], arrivals: Arrivals, key_of: dict[int, int]) -> None:
        """Continue what was saved. The first rows of each partition at hand are those that its subwindow held.

        Parameters
        ----------
        key_of
            Which partition each one that was saved is among those at hand.
        """
        starts = arrivals.events.key_starts.tolist()
        restored, numbers = [], {}
        for saved in state["subwindows"]:
            saved = dict(saved)
            key = 0 if self._declared.partitioned is None else key_of[saved["partition"]]
            partition = WHOLE if self._declared.partitioned is None else key
            rows = np.arange(starts[key], starts[key] + saved["tuples"])
            names, columns = self._attributes(arrivals, rows)
            places = (_ROW, *names)
            tuples = [dict(zip(places, values, strict=True)) for values in zip(rows.tolist(), *columns, strict=True)]
            numbers[partition] = saved.pop("number")
            restored.append(saved | {"partition": partition, "tuples": tuples})
        order = [key_of[partition] for partition in state["order"]]
        self._window.load({**state, "subwindows": restored, "order": order})
        self._numbered = {key: (self._window.subwindows[key], number) for key, number in numbers.items()}

    def _attributes(self, arrivals: Arrivals, rows: Integers) -> tuple[list[Attribute], list[list[Any]]]:
        names = list(dict.fromkeys(policy.column for policy in deltas_of(self._declared)))
        return names, [arrivals.attributes[name][rows].tolist() for name in names]


def _punctuations(arrivals: Arrivals) -> list[tuple[int, int | None]]:
    """When windows end, and those of which key; None for all."""
    if arrivals.marks is None:
        return [(instant, None) for instant in arrivals.punctuations.tolist()]
    marks = arrivals.marks
    return sorted(zip(marks.start.tolist(), key_of_rows(marks).tolist(), strict=True))


def recorded(window: WindowPolicies, arrivals: Arrivals) -> tuple[Processed, Integers]:
    """Every window that held a tuple when it was processed, in the order of partitions, and its number in its own."""
    recording = Recording(window)
    recording.run(arrivals, np.arange(len(arrivals.events)))
    return recording.found()
