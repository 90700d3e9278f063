"""Turn a window of rows into index pairs by running it row by row: for windows that evict keys.

==========  =====================================================================================================
requires    nothing: every window, including those whose keys are evicted
costs       those of the containers of ``panes.operators``, some µs per row
paper       Gedik 2014, section 3
==========  =====================================================================================================

Which key is evicted depends on the rows of all keys in the order of time, so keys cannot be processed separately, and
``framing`` cannot vectorise over them. Only the window runs here; kernels compute over the rows that it held.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from panes.frames.positions import Integers
from panes.frames.row_frame import Arrivals, RowFrame, key_of_rows
from panes.operators.attributes import WHOLE
from panes.operators.clocks import EventClock
from panes.operators.events import Event
from panes.operators.policies import Attribute, SlidingPolicies, WindowPolicies
from panes.operators.sliding_window import SlidingWindow
from panes.operators.tumbling_window import TumblingWindow
from panes.operators.window import WindowContainer
from panes.queries.measures import Rows
from panes.row_windows.arrival import rows_before

_ROW = None
"""The attribute of a tuple with its row number."""


def frame_by_operator(window: WindowPolicies, arrivals: Arrivals) -> tuple[RowFrame, Integers]:
    """Return every instance that held a row, by key, and the number of each one within its key."""
    recording = Recording(window)
    recording.run(arrivals, np.arange(len(arrivals.events)))
    return recording.frame()


class Recording:
    """A running window, which records its rows whenever it is processed.

    Parameters
    ----------
    start
        Where the clock starts, for a window that continues.

    Examples
    --------
    >>> import panes as pn
    >>> from panes.frames import Positions
    >>> from panes.operators.policies import policies_of
    >>> rows = Positions.of_events(np.array([1, 5, 2, 3]), np.array([0, 2, 4]))
    >>> recording = Recording(policies_of(pn.sliding(pn.rows(2)), ["device"], pn.evict(keys=1)))
    >>> recording.run(Arrivals(rows, end=6), rows=np.arange(4))
    >>> frame, numbers = recording.frame()
    >>> frame.key, frame.lo, frame.hi, numbers
    (array([0, 0, 1, 1]), array([0, 1, 2, 2]), array([1, 2, 3, 4]), array([0, 0, 0, 1]))
    """

    def __init__(self, window: WindowPolicies, *, start: int | None = None) -> None:
        self._policies, self._ago = window, 0
        self._clock = EventClock(start)
        self._window: Any
        if isinstance(window, SlidingPolicies):
            if isinstance(window.evict, Rows):
                # The newest rows are held, and left out of answers.
                self._ago = window.ago
                window = replace(window, evict=Rows(window.evict.n + window.ago), ago=0)
            self._window = SlidingWindow(window, clock=self._clock)
            self._window.register(self, Event.TRIGGER)
        else:
            self._window = TumblingWindow(window, clock=self._clock)
            self._window.register(self, Event.BEFORE_FLUSH)
        # Per instance: key, instant, lo, hi, number.
        self._instances: list[tuple[int, int, int, int, int]] = []
        # Per partition: its subwindow, and the number of instances of that so far.
        self._numbered: dict[Hashable, tuple[object, int]] = {}

    def before_flush(self, partition: Hashable, window: WindowContainer[Any]) -> None:
        """Record a tumbling window."""
        self._record(partition, window)

    def trigger(self, partition: Hashable, window: WindowContainer[Any]) -> None:
        """Record a sliding window."""
        self._record(partition, window)

    def _record(self, partition: Any, window: WindowContainer[Any]) -> None:
        tuples = window.tuples(partition)
        if not tuples:
            return
        subwindow = window.subwindows[partition]
        numbered, number = self._numbered.get(partition, (None, 0))
        number = number if numbered is subwindow else 0
        self._numbered[partition] = (subwindow, number + 1)
        key = 0 if partition == WHOLE else partition
        first, last = tuples[0][_ROW], tuples[-1][_ROW]
        self._instances.append((key, self._clock.now(), first, max(last + 1 - self._ago, first), number))

    def run(self, arrivals: Arrivals, rows: Integers) -> None:
        """Insert some rows of all keys in the order of time, and advance the clock to the end."""
        events = arrivals.events
        # Rows are sorted by key; rows of one instant arrive in the order of their keys.
        order = rows[np.argsort(events.start[rows], kind="stable")]
        partitioned = self._policies.partitioned is not None
        keys = key_of_rows(events)[order].tolist() if partitioned else [WHOLE] * len(order)
        punctuations, done = _punctuations(arrivals), 0
        instants = events.start[order]
        places = rows_before(np.array([instant for instant, _ in punctuations], np.int64), instants).tolist()
        insert, advance = self._window.insert, self._clock.advance
        arriving = zip(self._tuples(arrivals, order), instants.tolist(), keys, strict=True)
        for row, (item, instant, key) in enumerate(arriving):
            while done < len(places) and places[done] <= row:
                self._punctuate(*punctuations[done])
                done += 1
            advance(instant)
            insert(item, key)
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

    def _tuples(self, arrivals: Arrivals, rows: Integers) -> list[dict[Attribute | None, Any]]:
        names = list(dict.fromkeys(policy.column for policy in self._policies.deltas))
        columns: Sequence[list[Any]] = [arrivals.attributes[name][rows].tolist() for name in names]
        places = (_ROW, *names)
        return [dict(zip(places, values, strict=True)) for values in zip(rows.tolist(), *columns, strict=True)]

    def frame(self) -> tuple[RowFrame, Integers]:
        """Return every instance that held a row, by key, and the number of each one within its key.

        A key that was evicted, or whose tumbling window was flushed and removed, starts again from 0.
        """
        instances = np.array(self._instances, np.int64).reshape(-1, 5)
        instances = np.ascontiguousarray(instances[np.argsort(instances[:, 0], kind="stable")].T)
        return RowFrame(*instances[:4]), instances[4]

    # State

    def held(self) -> Integers:
        """Return the rows that the window still holds."""
        return np.sort(np.array([item[_ROW] for _, tuples in self._window for item in tuples], np.int64))

    def save(self) -> dict[str, Any]:
        """Return everything but the rows themselves, as plain values."""
        state: dict[str, Any] = self._window.save()
        for saved in state["subwindows"]:
            partition = saved["partition"]
            numbered, number = self._numbered.get(partition, (None, 0))
            saved["number"] = number if numbered is self._window.subwindows[partition] else 0
            saved["tuples"] = len(saved["tuples"])
        return state

    def load(self, state: dict[str, Any], arrivals: Arrivals, key_of: dict[int, int]) -> None:
        """Continue from a saved state. The first rows of each key are those that its subwindow held.

        Parameters
        ----------
        key_of
            The ordinal of each saved partition among the keys of ``arrivals``.
        """
        starts = arrivals.events.key_starts.tolist()
        restored, numbers = [], {}
        for saved in state["subwindows"]:
            saved = dict(saved)
            key = 0 if self._policies.partitioned is None else key_of[saved["partition"]]
            partition = WHOLE if self._policies.partitioned is None else key
            tuples = self._tuples(arrivals, np.arange(starts[key], starts[key] + saved["tuples"]))
            numbers[partition] = saved.pop("number")
            restored.append(saved | {"partition": partition, "tuples": tuples})
        order = [key_of[partition] for partition in state["order"]]
        self._window.load({**state, "subwindows": restored, "order": order})
        self._numbered = {key: (self._window.subwindows[key], number) for key, number in numbers.items()}


def _punctuations(arrivals: Arrivals) -> list[tuple[int, int | None]]:
    """Return when punctuations arrive, each with its key; None for all keys."""
    if arrivals.marks is None:
        return [(instant, None) for instant in arrivals.punctuations.tolist()]
    marks = arrivals.marks
    return sorted(zip(marks.start.tolist(), key_of_rows(marks).tolist(), strict=True))
