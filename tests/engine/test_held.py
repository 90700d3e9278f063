"""Granules held between micro-batches give the answers of a simulation that keeps every event and every instance."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.declare.expressions import expression
from panes.engine.held import Held, answer_due, answer_touched, settled
from panes.engine.level import floor_to_edges, next_edge
from panes.engine.program import Program, assemble, bind_components
from panes.engine.run import Answers
from panes.local.evaluate import evaluate, result_type
from panes.plan.manager import WindowManager
from panes.plan.stairs import Stair, stairs

Event: TypeAlias = tuple[int, int, int | None]
"""Key, µs, value."""
Found: TypeAlias = dict[tuple[int, int, int], tuple[Any, ...]]
"""Answers by view, key and start."""

KEYS = 3
LONG_AGO, AT_LAST = -(10**6), 10**6
SCHEMA = pa.schema([("key", pa.int64()), ("ts", pa.timestamp("us")), ("x", pa.int64())])

events = st.lists(
    st.tuples(st.integers(0, KEYS - 1), st.integers(-50, 250), st.none() | st.integers(-5, 5)), max_size=12
)
windows = st.builds(
    lambda size, slide, offset: pn.hopping(f"{size}us", every=f"{slide}us", offset=f"{offset}us"),
    st.integers(1, 60),
    st.integers(1, 25),
    st.integers(0, 7),
)


def queries(over: list[pn.Window]) -> list[pn.Query]:
    select = {"n": pn.count(), "total": pn.sum("x"), "top": pn.max("x"), "spread": pn.std("x")}
    everything = pn.query("all", at="ts", by="key", select=select, over=over)
    some = pn.query("some", at="ts", by="key", select={"m": pn.count()}, over=over, where="x > 0")
    return [everything, some]


class Job:
    """A stream in one process: granules, and the watermark that was seen last."""

    def __init__(self, over: list[pn.Window], *, coarsen: bool = True) -> None:
        store = pn.plan(queries(over), strategy="columnar").blueprint().stores[0]
        types = {"kept": store.kept, "type_of": lambda sql: result_type(expression(sql), SCHEMA)}
        components, readings = bind_components(store.queries, **types)
        self.program: Program = assemble(components, store.edges, store.forest, store.queries, readings)
        steps = stairs(WindowManager([window.geometry for window in over]).groups)
        self.stairs: tuple[Stair, ...] = steps if coarsen else (Stair(steps[0].edges, steps[-1].reach),)
        self.held, self.watermark = Held.nothing(components), LONG_AGO

    def panes(self, batch: list[Event]) -> Held:
        key, instant, value = ([event[i] for event in batch] for i in range(3))
        table = pa.table([pa.array(c, t.type) for c, t in zip((key, instant, value), SCHEMA, strict=True)], SCHEMA)
        arguments = {sql: evaluate(expression(sql), table) for sql in self.program.arguments}
        arrays = {sql: a.combine_chunks() if isinstance(a, pa.ChunkedArray) else a for sql, a in arguments.items()}
        stored = tuple(c.lift(*(arrays[a] for a in c.arguments)) for c in self.program.components)
        at = np.array(instant, np.int64)
        edges = self.stairs[0].edges
        return Held(np.array(key, np.int64), floor_to_edges(edges, at), next_edge(edges, at), stored)

    def step(self, batch: list[Event], watermark: int) -> tuple[list[Answers], list[Answers]]:
        components = self.program.components
        news = self.panes(batch)
        self.held = settled(self.held.and_(news), components, self.stairs, self.watermark)
        touched = settled(news, components, self.stairs, self.watermark)
        changed = list(answer_touched(self.program, self.held, touched, KEYS, self.watermark))
        due = list(answer_due(self.program, self.held, KEYS, self.watermark, watermark))
        self.held = settled(self.held, components, self.stairs, watermark)
        self.watermark = watermark
        return due, changed


def listed(answers: list[Answers]) -> Found:
    found: Found = {}
    for part in answers:
        columns = zip(*(column.to_pylist() for column in part.columns), strict=True)
        for key, start, values in zip(part.key.tolist(), part.start.tolist(), columns, strict=True):
            assert (part.view, key, start) not in found
            found[part.view, key, start] = values
    return found


class Simulation:
    """What each query alone would do: every instance has its events, those that came in time for it."""

    def __init__(self, program: Program) -> None:
        self.program, self.watermark = program, LONG_AGO
        self.open: dict[tuple[int, int, int], list[int | None]] = defaultdict(list)

    def step(self, batch: list[Event], watermark: int) -> tuple[Found, Found]:
        changed: Found = {}
        for number, view in enumerate(self.program.views):
            geometry, only = view.window.geometry, view.query == 1
            for key, instant, value in batch:
                for m in geometry.instances(instant):
                    start = geometry.offset + m * geometry.slide
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


@settings(max_examples=150)
@given(
    over=st.lists(windows, min_size=1, max_size=4, unique_by=lambda w: w.name),
    batches=st.lists(events, min_size=1, max_size=6),
    delay=st.integers(0, 60),
    coarsen=st.booleans(),
)
def test_held_granules_answer_as_every_query_alone(
    over: list[pn.Window], batches: list[list[Event]], delay: int, coarsen: bool
) -> None:
    job = Job(over, coarsen=coarsen)
    simulation = Simulation(job.program)
    watermark = LONG_AGO
    for batch in [*batches, []]:
        found, expected = job.step(batch, watermark), simulation.step(batch, watermark)
        assert listed(found[0]) == expected[0]
        assert listed(found[1]) == expected[1]
        watermark = max([watermark, *(instant - delay for _, instant, _ in batch)])
    assert listed(job.step([], AT_LAST)[0]) == simulation.step([], AT_LAST)[0]
    assert not len(job.held)


def test_a_row_too_late_for_a_short_window_counts_in_a_long_one() -> None:
    job = Job([pn.tumbling("10us"), pn.tumbling("100us")])
    job.step([(0, 55, 1)], LONG_AGO)
    assert {start for (_, _, start) in listed(job.step([], 60)[0])} == {50}
    due, _ = job.step([(0, 52, 1)], 110)
    assert listed(due)[1, 0, 0][:2] == (2, 2)
    assert all(start == 0 for _, _, start in listed(due))


def test_granules_grow_coarser_with_age_and_are_dropped_at_last() -> None:
    job = Job([pn.tumbling("1us"), pn.hopping("100us", every="50us")])
    job.step([(0, t, t) for t in range(200)], LONG_AGO)
    assert len(job.held) == 200
    job.step([], 120)
    # From 20 on the long window has open instances; the short one needs single microseconds after 120 only.
    assert set((job.held.end - job.held.start).tolist()) == {1, 50}
    assert len(job.held) < 110
    job.step([], 300)
    assert not len(job.held)
