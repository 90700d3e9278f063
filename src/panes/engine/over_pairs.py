"""Aggregates over index pairs of a column of single events: what windows per request and by policy have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from panes.algebra.component import Component
from panes.algebra.operations import Array
from panes.engine.bags import Spans
from panes.engine.level import Partials, gathered_partials, partials_of, state_of
from panes.engine.program import Reading
from panes.engine.run import in_order
from panes.frames import Frame, Positions


def lifted(
    component: Component, values: list[pa.Array], rows: int, at_once: Positions | None = None
) -> Partials | Spans:
    """A component of single events, in the order in which they are given.

    Parameters
    ----------
    at_once
        Where the events lie, if no window parts those of one instant: they are then ordered by their own values.
    """
    row = np.arange(rows, dtype=np.int64)
    gathered = component.gather(row, row + 1, *values)
    if gathered is not None:
        return gathered_partials(gathered)
    ordered = values if at_once is None else in_order(component, values, at_once)
    return partials_of(component, component.lift(*ordered))


def answers_over(
    readings: Sequence[Reading],
    partials: Sequence[Partials | Spans] | Mapping[int, Partials | Spans],
    frame: Frame,
    start: Array,
    end: Array,
    levels: Sequence[Frame] = (),
) -> tuple[pa.Array, ...]:
    """The aggregates over every pair, of which some may hold no row.

    Parameters
    ----------
    partials
        One per component; only those that are read are reduced.
    start, end
        Where each window starts and ends, for aggregates that depend on it.
    levels
        The levels of a nested window, each without those below it and the finest first, for aggregates that look at
        them apart.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        whole = {c for reading in readings if not reading.bound.by_level for c in reading.components}
        reduced = {c: partials[c].reduce(frame, some_empty=True) for c in sorted(whole)}
        return tuple(
            _by_level(reading, [partials[c] for c in reading.components], levels)
            if reading.bound.by_level
            else _column(reading, [reduced[c] for c in reading.components], start, end)
            for reading in readings
        )


def _by_level(reading: Reading, components: list[Partials | Spans], levels: Sequence[Frame]) -> pa.Array:
    return reading.bound.lower(*([c.reduce(level, some_empty=True).answers() for level in levels] for c in components))


def _column(reading: Reading, needed: list[Partials | Spans], start: Array, end: Array) -> pa.Array:
    bound = reading.bound
    if bound.answer is not None:
        return bound.answer(*(state_of(partial) for partial in needed))
    stored = [partial.answers() for partial in needed]
    return bound.lower(*stored, start=start, end=end) if bound.by_window else bound.lower(*stored)
