"""Run a program on one chunk of sorted partials: sort once (done before), then frames, then kernels.

Every runner comes through here: the in-process one with lifted events, Spark's batches with panes from the JVM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from panes.algebra.component import Component
from panes.algebra.operations import Array
from panes.algebra.ordering import codes, is_ordered
from panes.engine.level import Level, Partials, key_starts_of, next_edge, panes_of
from panes.engine.program import Program, View
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
    partials = {
        i: Partials(c.decode(a), kernel) for i, (c, a) in enumerate(zip(program.components, stored, strict=True))
    }
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
) -> tuple[Frame, list[Partials]]:
    """The panes of single events, sorted by key and time: where they lie among the events, and their components."""
    events = Positions.of_events(instants, key_starts)
    panes = panes_of(program.edges, events)
    partials = []
    for component in program.components:
        lifted = component.lift(*_in_order(component, [arguments[a] for a in component.arguments], events))
        partials.append(Partials(component.decode(lifted), kernel).reduce(panes))
    return panes, partials


def _in_order(component: Component, values: list[pa.Array], events: Positions) -> list[pa.Array]:
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
            partials: dict[int, Partials] = {}
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
                yield from read(program, views, own, values, partial(base.span, since=since) if every else None)


def _last_readers(program: Program) -> dict[int, int]:
    """The last node that reads each provider, after which its level can go."""
    return {node.provider: number for number, node in enumerate(program.nodes) if node.provider is not None}


def read(
    program: Program,
    views: tuple[int, ...],
    instances: Frame,
    partials: dict[int, Partials],
    spans: Callable[[int], tuple[Array, Array]] | None = None,
) -> Iterator[Answers]:
    """Some views of a window, read out of its partials.

    Parameters
    ----------
    spans
        Where empty instances are answered: from a component that counts a query's events to the span of each key in
        which there are any.
    """
    stored = {i: partials[i].stored() for i in _read_components([program.views[v] for v in views])}
    for number in views:
        view = program.views[number]
        columns = tuple(r.bound.lower(*(stored[c] for c in r.components)) for r in view.readings)
        answers = Answers(number, instances.key, instances.start, columns)
        if view.exists is not None:
            keep = partials[view.exists].decoded.state[0] > 0
            if spans is not None:
                first, last = (edge[instances.key] for edge in spans(view.exists))
                keep = (instances.start + view.window.geometry.range > first) & (instances.start < last)
            answers = answers.where(keep)
        yield answers


def _read_components(views: list[View]) -> set[int]:
    return {c for view in views for reading in view.readings for c in reading.components}
