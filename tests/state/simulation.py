"""What every query alone would do with a stream, and how random streams look."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

import panes as pn
from panes.engine.bind_program import bind_store, types_in
from panes.engine.program import Program
from panes.expressions.evaluate import evaluate
from panes.expressions.expression import expression
from panes.queries.windows import Sliding, Window
from panes.timeline import Geometry

Event: TypeAlias = tuple[int, int, int | None]
"""Key, µs, value."""
Found: TypeAlias = dict[tuple[int, int, int], tuple[Any, ...]]
"""Answers by view, key and start."""

KEYS = 3
SCHEMA = pa.schema([("key", pa.int64()), ("ts", pa.timestamp("us")), ("x", pa.int64())])


def _nested(steps: list[tuple[int, int]], since: int | None, bounds: str, level: int) -> Window:
    """A level of a nested window."""
    slide, range_, ranges, slides = 1, 0, [], []
    for longer, granules in steps:
        slide += longer
        range_ = (range_ // slide + granules) * slide
        slides.append(f"{slide}us"), ranges.append(f"{range_}us")
    begun = None if since is None else dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=since)
    levels = pn.nested(ranges, slides, since=begun, bounds=bounds).windows
    return levels[level % len(levels)]


levels = st.builds(
    _nested,
    st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4)), min_size=1, max_size=3),
    st.none() | st.integers(0, 90),
    st.sampled_from(["[)", "(]"]),
    st.integers(0, 2),
)

windows = levels | st.builds(
    lambda size, slide, offset: pn.hopping(f"{size}us", every=f"{slide}us", offset=f"{offset}us"),
    st.integers(1, 60),
    st.integers(1, 25),
    st.integers(0, 7),
)


def events(first: int, last: int) -> st.SearchStrategy[list[Event]]:
    return st.lists(
        st.tuples(st.integers(0, KEYS - 1), st.integers(first, last), st.none() | st.integers(-5, 5)), max_size=12
    )


def queries(over: list[Window]) -> list[pn.Query]:
    select = {"n": pn.count(), "total": pn.sum("x"), "top": pn.max("x"), "spread": pn.std("x")}
    everything = pn.query("all", at="ts", by="key", select=select, over=over)
    some = pn.query("some", at="ts", by="key", select={"m": pn.count()}, over=over, where="x > 0")
    return [everything, some]


def program_of(over: list[Window]) -> Program:
    return bind_store(pn.plan(queries(over), strategy="columnar").physical_plan().stores[0], types_in(SCHEMA))


def arguments_of(program: Program, batch: list[Event]) -> dict[str, pa.Array]:
    columns = ([event[i] for event in batch] for i in range(3))
    table = pa.table([pa.array(c, t.type) for c, t in zip(columns, SCHEMA, strict=True)], SCHEMA)
    arguments = {sql: evaluate(expression(sql), table) for sql in program.arguments}
    return {sql: a.combine_chunks() if isinstance(a, pa.ChunkedArray) else a for sql, a in arguments.items()}


def starts_of(geometry: Geometry, instant: int) -> range:
    """Where the instances begin that hold an instant."""
    last = instant - (instant - geometry.offset) % geometry.slide
    return range(last, instant - geometry.range, -geometry.slide)[::-1]


class Simulation:
    """What each query alone would do: every instance has its events, those that came in time for it."""

    def __init__(self, program: Program, watermark: int) -> None:
        self.program, self.watermark = program, watermark
        self.open: dict[tuple[int, int, int], list[int | None]] = defaultdict(list)

    def step(self, batch: list[Event], watermark: int) -> tuple[Found, Found]:
        changed: Found = {}
        for number, view in enumerate(self.program.views):
            geometry, only = view.window.geometry, view.query == 1
            for key, instant, value in batch:
                if view.window.since is not None and instant < view.window.since:
                    continue
                for start in starts_of(geometry, instant):
                    if start + geometry.range > self.watermark and not (only and (value is None or value <= 0)):
                        self.open[number, key, start].append(value)
                        changed[number, key, start] = ()
        changed = {at: self.lower(at) for at in changed}
        due = {at: self.lower(at) for at in self.open if at[2] + self._range(at[0]) <= watermark}
        for at in due:
            del self.open[at]
        self.watermark = watermark
        return due, changed

    def lower(self, at: tuple[int, int, int]) -> tuple[Any, ...]:
        values = self.open[at]
        if self.program.views[at[0]].query == 1:
            return (len(values),)
        known = [v for v in values if v is not None]
        total, top = (sum(known), max(known)) if known else (None, None)
        return (len(values), total, top, pytest.approx(np.std(known, ddof=1)) if len(known) > 1 else None)

    def _range(self, view: int) -> int:
        return self.program.views[view].window.geometry.range


class PerEvent:
    """Sliding windows of a stream, by definition: who asks, when it is answered, and what had come until then.

    An event asks unless it is late: unless the watermark of the micro-batch before had passed it. It is answered in
    the micro-batch whose watermark passes it, over all events that had come, late ones too.
    """

    def __init__(self, windows: list[Sliding], watermark: int) -> None:
        self.windows, self.watermark = windows, watermark
        self.come: list[Event] = []
        self.asking: list[Event] = []

    def step(self, batch: list[Event], watermark: int) -> list[tuple[Any, ...]]:
        """Of each answer: the name of the window, the key, the bounds shown, and the values in the window."""
        self.come += batch
        self.asking += [event for event in batch if event[1] >= self.watermark]
        due = [event for event in self.asking if event[1] < watermark]
        self.asking = [event for event in self.asking if event[1] >= watermark]
        self.watermark = max(watermark, self.watermark)
        found = []
        for window in self.windows:
            for key, instant, _ in due:
                end = instant - window.ago
                start = end - window.size
                held = [value for other, t, value in self.come if other == key and start < t <= end]
                found.append((window.name, key, start, end, held))
        return found
