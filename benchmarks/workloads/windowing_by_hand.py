"""What somebody would write for one window and one aggregate: a bare loop, and an operator with window and logic mixed.

An operator is given one tuple after another (``process``), lets tuples and punctuations out (``submit``), and has a
clock that goes by what it is told (``advance``), as those of the library do. It knows one policy and one aggregate.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from panes.operators import PUNCTUATION

Row = dict[str, Any]


def tumbling_loop(rows: list[Row], kind: str, size: int, partitioned: bool) -> list[Row]:
    """Totals by key, each emitted when its window is full."""
    out: list[Row] = []
    open_: dict[Any, list[Any]] = {}
    due: deque[tuple[int, Any]] = deque()  # by time: when each window that is open ends, in that order
    period = None if partitioned else 0
    for row in rows:
        ts, key, value = row["ts"], row["key"] if partitioned else 0, row["value"]
        while due and due[0][0] <= ts:
            end, ended = due.popleft()
            total, n, _ = open_.pop(ended)
            if n:
                out.append({"key": ended, "answer": total / n})
            if period is not None:
                open_[ended] = [0, 0, end]
                due.append((end + size, ended))
        state = open_.get(key)
        if state is None:
            state = open_[key] = [0, 0, ts]
            if kind == "time":
                due.append((ts + size, key))
        elif kind == "delta" and ts - state[2] > size - 1:
            out.append({"key": key, "answer": state[0] / state[1]})
            state[0], state[1], state[2] = 0, 0, ts
        state[0] += value
        state[1] += 1
        if kind == "count" and state[1] == size:
            out.append({"key": key, "answer": state[0] / size})
            del open_[key]
    return out


def sliding_loop(rows: list[Row], kind: str, size: int, partitioned: bool) -> list[Row]:
    """The last rows by key, sorted anew with every tuple."""
    out: list[Row] = []
    held: dict[Any, deque[Row]] = {}
    for row in rows:
        key = row["key"] if partitioned else 0
        last = held.setdefault(key, deque())
        if kind == "count":
            if len(last) == size:
                last.popleft()
        else:
            # The age invariant of time allows a tuple as old as the period, the delta here one less.
            oldest = row["ts"] - (size if kind == "time" else size - 1)
            while last and last[0]["ts"] < oldest:
                last.popleft()
        last.append(row)
        out.append({"key": key, "answer": percentile(last)})
    return out


def percentile(rows: deque[Row]) -> float:
    """The 90th, between two values where it has to be."""
    values = sorted([each["value"] for each in rows])
    place = (len(values) - 1) * 0.9
    low = int(place)
    answer: float = values[low]
    return answer if low == place else (low + 1 - place) * answer + (place - low) * values[low + 1]


class ByHand:
    """An operator for one policy, one aggregate, and one attribute to partition by, or none."""

    def __init__(self, size: int, partitioned: bool, sink: Callable[[Any], object]) -> None:
        self.size, self.partitioned = size, partitioned
        self.sinks = [sink]
        self.now = 0
        self.open: dict[Any, Any] = {}

    def advance(self, to: int) -> None:
        """Let time pass."""
        self.now = to

    def process(self, row: Row, port: int = 0) -> None:
        """Take in a tuple."""
        raise NotImplementedError

    def submit(self, item: Any) -> None:
        """Let a tuple or a punctuation out."""
        for sink in self.sinks:
            sink(item)

    def answer(self, key: Any, value: Any) -> None:
        """An output tuple and its punctuation."""
        self.submit({"key": key, "answer": value} if self.partitioned else {"answer": value})
        self.submit(PUNCTUATION)


class TumblingCount(ByHand):
    """The average of so many tuples."""

    def process(self, row: Row, port: int = 0) -> None:
        """Add, and answer where the window is full."""
        key = row["key"] if self.partitioned else 0
        state = self.open.get(key)
        if state is None:
            state = self.open[key] = [0, 0]
        state[0] += row["value"]
        state[1] += 1
        if state[1] == self.size:
            del self.open[key]
            self.answer(key, state[0] / state[1])


class TumblingDelta(ByHand):
    """The average of the tuples within some distance from the first."""

    def process(self, row: Row, port: int = 0) -> None:
        """Answer where the tuple is too far, then add it."""
        key, ts = row["key"] if self.partitioned else 0, row["ts"]
        state = self.open.get(key)
        if state is None:
            state = self.open[key] = [0, 0, ts]
        elif ts - state[2] > self.size - 1:
            self.answer(key, state[0] / state[1])
            state[0], state[1], state[2] = 0, 0, ts
        state[0] += row["value"]
        state[1] += 1


class TumblingTime(ByHand):
    """The average of the tuples of a period."""

    def __init__(self, size: int, partitioned: bool, sink: Callable[[Any], object]) -> None:
        super().__init__(size, partitioned, sink)
        self.due: deque[tuple[int, Any]] = deque()

    def advance(self, to: int) -> None:
        """Answer for the windows that end."""
        due = self.due
        while due and due[0][0] <= to:
            end, key = due.popleft()
            total, n = self.open.pop(key)
            if n:
                self.answer(key, total / n)
            if not self.partitioned:
                self.open[key] = [0, 0]
                due.append((end + self.size, key))
        self.now = to

    def process(self, row: Row, port: int = 0) -> None:
        """Add."""
        key = row["key"] if self.partitioned else 0
        state = self.open.get(key)
        if state is None:
            state = self.open[key] = [0, 0]
            self.due.append((self.now + self.size, key))
        state[0] += row["value"]
        state[1] += 1


class SlidingCount(ByHand):
    """The percentile of the last tuples."""

    def process(self, row: Row, port: int = 0) -> None:
        """Let the oldest go, and answer."""
        key = row["key"] if self.partitioned else 0
        last = self.open.setdefault(key, deque())
        self.evict(last, row)
        last.append(row)
        self.answer(key, percentile(last))

    def evict(self, last: deque[Row], row: Row) -> None:
        """Let go what has to."""
        if len(last) == self.size:
            last.popleft()


class SlidingDelta(SlidingCount):
    """The percentile of the tuples within some distance from the last."""

    reach = 1

    def evict(self, last: deque[Row], row: Row) -> None:
        """Let go what is too far."""
        oldest = row["ts"] - self.size + self.reach
        while last and last[0]["ts"] < oldest:
            last.popleft()


class SlidingTime(SlidingDelta):
    """The percentile of the tuples that are not too old."""

    reach = 0


TUMBLING: dict[str, type[ByHand]] = {"count": TumblingCount, "delta": TumblingDelta, "time": TumblingTime}
SLIDING: dict[str, type[ByHand]] = {"count": SlidingCount, "delta": SlidingDelta, "time": SlidingTime}
