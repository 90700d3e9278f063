"""Run a program on one chunk of sorted partials: sort once (done before), then frames, then kernels.

Every runner comes through here: the in-process one with lifted events, Spark's batches with panes from the JVM.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from panes.algebra.component import Component
from panes.algebra.operations import Array
from panes.algebra.ordering import codes, is_ordered
from panes.engine.bags import Spans
from panes.engine.level import Level, Partials, gathered_partials, key_starts_of, next_edge, panes_of, partials_of
from panes.engine.per_event import answer_per_event, parts_of
from panes.engine.program import Program
from panes.engine.reading import Answers, read
from panes.frames import Frame, Positions, frame


def answer_panes(
    program: Program, panes: Positions, stored: Sequence[pa.Array], *, kernel: str | None = None
) -> Iterator[Answers]:
    """Answer every view from panes that were built already.

    Parameters
    ----------
    stored
        One stored column per component.
    """
    partials = {i: partials_of(c, a, kernel) for i, (c, a) in enumerate(zip(program.components, stored, strict=True))}
    yield from _answer(program, Level(panes, partials))


def answer_events(
    program: Program, instants: Array, key_starts: Array, arguments: dict[str, pa.Array], *, kernel: str | None = None
) -> Iterator[Answers]:
    """Answer every view from single events, sorted by key and time: lift them, make panes, go on from there."""
    if program.views and all(view.window.per_event for view in program.views):
        for level, rows in parts_per_event(program, instants, key_starts, arguments, kernel=kernel):
            yield from answer_per_event(program, level, rows)
            del level  # Else there would be two of them while the next one is made.
        return
    yield from _answer(program, _lifted(program, instants, key_starts, arguments, kernel)[0])


def parts_per_event(
    program: Program, instants: Array, key_starts: Array, arguments: dict[str, pa.Array], *, kernel: str | None = None
) -> Iterator[tuple[Level, Array]]:
    """Single events, sorted by key and time, in parts for answers per event: a column, and its rows to answer."""
    for first, begin, end in parts_of(program, instants, key_starts):
        starts = np.clip(key_starts, first, end) - first
        some = {sql: array.slice(first, end - first) for sql, array in arguments.items()}
        level, panes = _lifted(program, instants[first:end], starts, some, kernel)
        rows = np.arange(np.searchsorted(panes.lo, begin - first), len(panes))
        del panes
        yield level, rows
        del level


def _lifted(
    program: Program, instants: Array, key_starts: Array, arguments: dict[str, pa.Array], kernel: str | None
) -> tuple[Level, Frame]:
    panes, partials = lift_panes(program, instants, key_starts, arguments, kernel=kernel)
    ends = next_edge(program.edges, panes.start)
    positions = Positions(panes.start, ends, key_starts_of(panes, len(key_starts) - 1))
    return Level(positions, dict(enumerate(partials))), panes


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
