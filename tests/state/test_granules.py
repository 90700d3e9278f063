"""Granules held between micro-batches give the answers of a simulation that keeps every event and every instance."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.engine.answer import Answers
from panes.engine.partials import floor_to_edges, next_edge
from panes.engine.program import Program
from panes.planning.granularity import Tier, tiers
from panes.queries.windows import Window
from panes.state.granules import GranuleRows, column_of, settle
from panes.state.watermark import answer_due, answer_touched
from tests.state.simulation import KEYS, Event, Found, Simulation, arguments_of, events, program_of, windows

LONG_AGO, AT_LAST = -(10**6), 10**6


class Job:
    """A stream in one process: granules, and the watermark that was seen last."""

    def __init__(self, over: list[Window], *, coarsen: bool = True) -> None:
        self.program: Program = program_of(over)
        steps = tiers(window.geometry for window in over)
        self.tiers: tuple[Tier, ...] = steps if coarsen else (Tier(steps[0].edges, steps[-1].reach),)
        self.held, self.watermark = GranuleRows.empty(self.program.components), LONG_AGO

    def panes(self, batch: list[Event]) -> GranuleRows:
        arrays = arguments_of(self.program, batch)
        stored = tuple(c.lift(*(arrays[a] for a in c.arguments)) for c in self.program.components)
        at = np.array([event[1] for event in batch], np.int64)
        edges = self.tiers[0].edges
        return GranuleRows(
            np.array([event[0] for event in batch], np.int64), floor_to_edges(edges, at), next_edge(edges, at), stored
        )

    def step(self, batch: list[Event], watermark: int) -> tuple[list[Answers], list[Answers]]:
        components = self.program.components
        news = self.panes(batch)
        self.held = settle(GranuleRows.concat([self.held, news], components), components, self.tiers, self.watermark)
        touched = settle(news, components, self.tiers, self.watermark)
        level = column_of(components, self.held, KEYS)
        changed = list(answer_touched(self.program, level, column_of(components, touched, KEYS), self.watermark))
        due = list(answer_due(self.program, level, self.watermark, watermark))
        self.held = settle(self.held, components, self.tiers, watermark)
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


@settings(max_examples=150)
@given(
    over=st.lists(windows, min_size=1, max_size=4, unique_by=lambda w: w.name),
    batches=st.lists(events(-50, 250), min_size=1, max_size=6),
    delay=st.integers(0, 60),
    coarsen=st.booleans(),
)
def test_held_granules_answer_as_every_query_alone(
    over: list[Window], batches: list[list[Event]], delay: int, coarsen: bool
) -> None:
    job = Job(over, coarsen=coarsen)
    simulation = Simulation(job.program, LONG_AGO)
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
