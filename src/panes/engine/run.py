"""Run a program on one chunk of sorted partials: sort once (done before), then frames, then kernels.

Every runner comes through here: the in-process one with lifted events, Spark's batches with panes from the JVM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from panes.algebra.component import Component
from panes.algebra.operations import Array
from panes.algebra.ordering import codes, is_ordered
from panes.declare.windows import Window
from panes.engine.bags import Spans
from panes.engine.level import (
    Level,
    Partials,
    gathered_partials,
    key_starts_of,
    next_edge,
    panes_of,
    partials_of,
    positive,
    state_of,
)
from panes.engine.program import Program, Reading, View
from panes.frames import Frame, Positions, frame


@dataclass(frozen=True)
class Answers:
    """The answers of one view on one chunk.

    Parameters
    ----------
    view
        Its index in the program.
    key
        The ordinal of each answer's key within the chunk.
    start
        Where each answer's instance starts, in µs.
    columns
        The aggregates, in the order of the view's readings.
    """

    view: int
    key: Array
    start: Array
    columns: tuple[pa.Array, ...]

    def where(self, keep: Array) -> Answers:
        """Some of the answers."""
        if keep.all():
            return self
        chosen = pa.array(keep)
        columns = tuple(column.filter(chosen) for column in self.columns)
        return Answers(self.view, self.key[keep], self.start[keep], columns)


def answer_panes(
    program: Program, start: Array, key_starts: Array, stored: Sequence[pa.Array], *, kernel: str | None = None
) -> Iterator[Answers]:
    """Answer every view from panes that were built already.

    Parameters
    ----------
    start, key_starts
        Where each pane starts, sorted within each key; the first row of each key and the number of rows.
    stored
        One stored column per component.
    """
    positions = Positions(start, next_edge(program.edges, start), key_starts)
    partials = {i: partials_of(c, a, kernel) for i, (c, a) in enumerate(zip(program.components, stored, strict=True))}
    yield from _answer(program, Level(positions, partials))


def answer_events(
    program: Program, instants: Array, key_starts: Array, arguments: dict[str, pa.Array], *, kernel: str | None = None
) -> Iterator[Answers]:
    """Answer every view from single events, sorted by key and time: lift them, make panes, go on from there."""
    panes, partials = lift_panes(program, instants, key_starts, arguments, kernel=kernel)
    ends = next_edge(program.edges, panes.start)
    positions = Positions(panes.start, ends, key_starts_of(panes, len(key_starts) - 1))
    yield from _answer(program, Level(positions, dict(enumerate(partials))))


def lift_panes(
    program: Program, instants: Array, key_starts: Array, arguments: dict[str, pa.Array], *, kernel: str | None = None
) -> tuple[Frame, list[Partials | Spans]]:
    """The panes of single events, sorted by key and time: where they lie among the events, and their components."""
    events = Positions.of_events(instants, key_starts)
    panes = panes_of(program.edges, events)
    partials = []
    for component in program.components:
        values = [arguments[a] for a in component.arguments]
        gathered = component.gather(panes.lo, panes.hi, *values)
        if gathered is not None:
            partials.append(gathered_partials(gathered, kernel))
        else:
            lifted = component.lift(*in_order(component, values, events))
            partials.append(partials_of(component, lifted, kernel).reduce(panes))
    return panes, partials


def in_order(component: Component, values: list[pa.Array], events: Positions) -> list[pa.Array]:
    """Events at one instant in the order of the component's own values, where order may matter.

    Otherwise an answer would depend on the order of rows, or on what else is computed beside it.
    """
    if component.in_jvm:
        return values
    key = np.repeat(np.arange(events.keys), np.diff(events.key_starts))
    ties = [codes(array).values for array in reversed(values) if is_ordered(array.type)]
    order = pa.array(np.lexsort((*ties, events.start, key)))
    return [array.take(order) for array in values]


def _answer(program: Program, base: Level) -> Iterator[Answers]:
    if not len(base.positions):
        return
    levels: dict[int, Level] = {}
    readers = _last_readers(program)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for number, node in enumerate(program.nodes):
            provider = base if node.provider is None else levels[node.provider]
            # The plan chose panes and providers that no window cuts, so nothing needs to be checked again.
            instances = frame(node.geometry, provider.positions, emit_all=program.emit_all, check=False)
            every, asked = program.emit_all, program.by_since(node.views)
            partials: dict[int, Partials | Spans] = {}
            if None in asked or number in readers:
                partials = {i: provider.partials[i].reduce(instances, some_empty=every) for i in node.needed}
            if number in readers:
                ends = instances.start + node.geometry.range
                starts = key_starts_of(instances, provider.positions.keys)
                levels[number] = Level(Positions(instances.start, ends, starts), partials)
            for done in [p for p, last in readers.items() if last == number]:
                del levels[done]
            for since, views in asked.items():
                own, values = instances, partials
                if since is not None:
                    own = instances.since(since, provider.positions)
                    values = {i: provider.partials[i].reduce(own, some_empty=every) for i in node.needed}
                yield from read(program, views, own, values, base, partial(base.span, since=since) if every else None)


def _last_readers(program: Program) -> dict[int, int]:
    """The last node that reads each provider, after which its level can go."""
    return {node.provider: number for number, node in enumerate(program.nodes) if node.provider is not None}


def read(
    program: Program,
    views: tuple[int, ...],
    instances: Frame,
    partials: dict[int, Partials | Spans],
    level: Level,
    spans: Callable[[int], tuple[Array, Array]] | None = None,
) -> Iterator[Answers]:
    """Some views of a window, read out of its partials.

    Parameters
    ----------
    level
        The panes or granules, for what is read out of parts of an instance.
    spans
        Where empty instances are answered: from a component that counts a query's events to the span of each key in
        which there are any.
    """
    stored = {i: partials[i].answers() for i in _read_components([program.views[v] for v in views])}
    for number in views:
        view = program.views[number]
        columns = tuple(_column(r, view, instances, partials, stored, level) for r in view.readings)
        answers = Answers(number, instances.key, instances.start, columns)
        if view.exists is not None:
            keep = positive(partials[view.exists])
            if spans is not None:
                first, last = (edge[instances.key] for edge in spans(view.exists))
                keep = (instances.start + view.window.geometry.range > first) & (instances.start < last)
            answers = answers.where(keep)
        yield answers


def _column(
    reading: Reading,
    view: View,
    instances: Frame,
    partials: dict[int, Partials | Spans],
    stored: dict[int, Any],
    level: Level,
) -> pa.Array:
    """One output column of a view."""
    bound, window = reading.bound, view.window
    if bound.by_level:
        return _by_level(reading, window, instances, level)
    if bound.answer is not None:
        return bound.answer(*(state_of(partials[c]) for c in reading.components))
    columns = [stored[c] for c in reading.components]
    if not bound.by_window:
        return bound.lower(*columns)
    # The bounds that answers show.
    start = window.begins(instances.start) - window.shift
    end = instances.start + window.geometry.range - window.shift
    return bound.lower(*columns, start=start, end=end)


def _read_components(views: list[View]) -> set[int]:
    """The components that answers are read out of in their stored form."""
    readings = (reading for view in views for reading in view.readings)
    return {c for r in readings if not r.bound.by_level and r.bound.answer is None for c in r.components}


def _by_level(reading: Reading, window: Window, instances: Frame, level: Level) -> pa.Array:
    """An aggregate that looks at the levels of a nested window apart: each without those below it, the finest first."""
    end = instances.start + window.geometry.range
    ages = (0, *window.finer, window.geometry.range)
    bounds = [level.positions.search(instances.key, window.begins(end - age)) for age in ages]
    parts = [Frame(instances.key, instances.start, lo, hi) for hi, lo in pairwise(bounds)]
    components = [level.partials[c] for c in reading.components]
    return reading.bound.lower(*([c.reduce(part, some_empty=True).answers() for part in parts] for c in components))
