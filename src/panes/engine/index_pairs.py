"""Aggregates over index pairs of a column of single events: what windows per request and by policy have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panes.aggregates.component import Component
from panes.aggregates.operations import Array
from panes.engine.answer import in_order
from panes.engine.partials import Partials, Spans, gathered_partials, partials_of, state_of
from panes.engine.program import Reading
from panes.frames import Frame, Positions
from panes.kernels.distinct import Distinct


@dataclass(frozen=True, eq=False)
class Groups:
    """Every group of every window, sorted by group and window, so that neither lo nor hi ever falls.

    ==========  =====================================================================
    requires    windows in order: neither lo nor hi ever falls
    costs       O(rows log rows), and O(log rows) for each group of each window,
                however many rows it holds
    memory      one number per row, and five per group of a window
    paper       Gedik 2014, Listings 2 to 4: grouping is not partitioning
    ==========  =====================================================================

    In a column sorted by group, and by row within a group, the rows of one group in one window are neighbours.

    Parameters
    ----------
    order
        The rows as they stand in the column that ``lo`` and ``hi`` are about.
    window, first
        Which window it is, and the first row of the group in that window.
    turn
        Where each one stands, by window and first row.
    """

    order: Array
    window: Array
    first: Array
    lo: Array
    hi: Array
    turn: Array


def groups_in(code: Array, lo: Array, hi: Array) -> Groups:
    """The groups of some windows.

    Parameters
    ----------
    code
        The group of each row, as a number below the number of rows.

    Examples
    --------
    >>> found = groups_in(np.array([1, 0, 1, 1]), np.array([0, 1]), np.array([3, 4]))
    >>> found.window, found.order, found.lo, found.hi
    (array([0, 1, 0, 1]), array([1, 0, 2, 3]), array([0, 0, 1, 2]), array([1, 1, 3, 4]))
    """
    window, first = Distinct(code).rows(lo, hi)
    by_group = np.lexsort((window, code[first]))
    window, first = window[by_group], first[by_group]
    order = np.argsort(code, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    rows = len(code) + 1
    end = np.searchsorted(code[order] * rows + order, code[first] * rows + hi[window])
    return Groups(order, window, first, place[first], end, np.lexsort((first, window)))


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
