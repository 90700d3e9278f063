"""Run a program on one chunk of sorted events or panes: frames, then kernels, node by node down the tree.

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

from panes.aggregates.component import Component
from panes.aggregates.operations import Array
from panes.aggregates.ordering import codes, is_ordered
from panes.engine.partials import (
    Partials,
    SortedColumn,
    Spans,
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
from panes.frames.positions import Integers
from panes.frames.time_windows import frame_per_event
from panes.kernels.kernel import Pairs
from panes.queries.windows import Window

# What comes out of a window's partials: the answers of its views, column by column.


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

    def repeated(self, times: Array) -> Answers:
        """Each answer so many times."""
        if (times == 1).all():
            return self
        row = np.repeat(np.arange(len(times)), times)
        at = pa.array(row)
        return Answers(self.view, self.key[row], self.start[row], tuple(column.take(at) for column in self.columns))


def read(
    program: Program,
    views: tuple[int, ...],
    instances: Frame,
    partials: dict[int, Partials | Spans],
    column: SortedColumn,
    spans: Callable[[int], tuple[Array, Array]] | None = None,
) -> Iterator[Answers]:
    """Some views of a window, read out of its partials.

    Parameters
    ----------
    column
        The panes or granules, for what is read out of parts of an instance.
    spans
        Where empty instances are answered: from a component that counts a query's events to the span of each key in
        which there are any.
    """
    for answers in lowered(program, views, instances, partials, column):
        view = program.views[answers.view]
        if view.exists is not None:
            keep = positive(partials[view.exists])
            if spans is not None:
                first, last = (edge[instances.key] for edge in spans(view.exists))
                keep = (instances.start + view.window.geometry.range > first) & (instances.start < last)
            yield answers.where(keep)
        else:
            yield answers


def lowered(
    program: Program,
    views: tuple[int, ...],
    instances: Frame,
    partials: dict[int, Partials | Spans],
    column: SortedColumn,
) -> Iterator[Answers]:
    """Some views of a window at all of its instances, whether these hold events of the view's query or not."""
    stored = {i: partials[i].answers() for i in _read_components([program.views[v] for v in views])}
    for number in views:
        view = program.views[number]
        columns = tuple(_column(r, view, instances, partials, stored, column) for r in view.readings)
        yield Answers(number, instances.key, instances.start, columns)


def _column(
    reading: Reading,
    view: View,
    instances: Frame,
    partials: dict[int, Partials | Spans],
    stored: dict[int, Any],
    column: SortedColumn,
) -> pa.Array:
    """One output column of a view."""
    bound, window = reading.bound, view.window
    if bound.by_level:
        return _by_level(reading, window, instances, column)
    if bound.answer is not None:
        return bound.answer(*(state_of(partials[c]) for c in reading.components))
    values = [stored[c] for c in reading.components]
    if not bound.by_window:
        return bound.lower(*values)
    # The bounds that answers show.
    start = window.begins(instances.start) - window.shift
    end = instances.start + window.geometry.range - window.end_shift
    return bound.lower(*values, start=start, end=end)


def _read_components(views: list[View]) -> set[int]:
    """The components that answers are read out of in their stored form."""
    readings = (reading for view in views for reading in view.readings)
    return {c for r in readings if not r.bound.by_level and r.bound.answer is None for c in r.components}


def _by_level(reading: Reading, window: Window, instances: Frame, column: SortedColumn) -> pa.Array:
    """An aggregate that looks at the levels of a nested window apart: each without those below it, the finest first."""
    end = instances.start + window.geometry.range
    ages = (0, *window.finer, window.geometry.range)
    bounds = [column.positions.search(instances.key, window.begins(end - age)) for age in ages]
    parts = [Frame(instances.key, instances.start, lo, hi) for hi, lo in pairwise(bounds)]
    components = [column.partials[c] for c in reading.components]
    return reading.bound.lower(*([c.reduce(part, some_empty=True).answers() for part in parts] for c in components))


# An answer per event: views over sliding windows, from a column with a row per key and instant.
#
# Time is in whole µs, so ``(t - size, t]`` is the instance ``[t - size + 1, t + 1)`` of a window that hops by 1 µs. Of
# its instances only those are answered that end with an event, and each as often as there are events.


_AT_ONCE = 1 << 18
"""Events answered at once; a key may have many more."""
_EARLIEST = -(2**63)


def parts_of(program: Program, instants: Array, key_starts: Array) -> Iterator[tuple[int, int, int]]:
    """Events that are sorted by key and time, in parts of which each can be answered on its own.

    Of each part: the first event that its windows hold, the first that it answers, and where it ends. It answers at
    least a quarter as many events as it only holds, so that no event is held more than five times.
    """
    begin, reach = 0, max(view.window.lifespan.range for view in program.views)
    while begin < len(instants):
        first = begin - _before(instants, key_starts, begin, reach)
        last = min(begin + max(_AT_ONCE, (begin - first) // 4), len(instants)) - 1
        # Events at one instant stay together.
        key = int(np.searchsorted(key_starts, last, side="right"))
        end = last + int(np.searchsorted(instants[last : key_starts[key]], instants[last], side="right"))
        yield first, begin, end
        begin = end


def _before(instants: Array, key_starts: Array, row: int, reach: int) -> int:
    """How many events of a row's key lie less than so long before it, or at the same instant."""
    own = instants[key_starts[np.searchsorted(key_starts, row, side="right") - 1] : row]
    return len(own) - int(np.searchsorted(own, max(int(instants[row]) - reach, _EARLIEST), side="right"))


def answer_per_event(program: Program, column: SortedColumn, rows: Integers) -> Iterator[Answers]:
    """Every view that has an answer per event, at the events of some rows of a column."""
    for first in range(0, len(rows), _AT_ONCE):
        for answers, _, times in _answers_at(program, column, rows[first : first + _AT_ONCE]):
            yield answers.repeated(times)


def side_by_side(program: Program, column: SortedColumn, rows: Integers) -> Iterator[pa.Array]:
    """The columns of all views, one view after another, at some rows; null where a view's query has no event."""
    found: dict[int, tuple[pa.Array, ...]] = {}
    for answers, own, _ in _answers_at(program, column, rows):
        found[answers.view] = answers.columns
        if len(own) < len(rows):
            at = np.searchsorted(own, rows)
            missing = np.append(own, -1)[at] != rows
            found[answers.view] = tuple(answer.take(pa.array(at, mask=missing)) for answer in answers.columns)
    for number, view in enumerate(program.views):
        nothing = tuple(pa.nulls(len(rows), reading.bound.type) for reading in view.readings)
        yield from found.get(number, nothing)


def _answers_at(program: Program, column: SortedColumn, rows: Integers) -> Iterator[tuple[Answers, Integers, Array]]:
    """The answers of every view, the rows that they are for, and how many events of its query each of these has."""
    key = column.positions.keys_at(rows)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for (size, ago, counting), views in program.by_event().items():
            times, own, key_of = state_of(column.partials[counting])[0][rows], rows, key
            # Rows that only other queries have events at are not answered.
            if not (some := times > 0).all():
                times, own, key_of = times[some], rows[some], key[some]
            if not len(own):
                continue
            instances = frame_per_event(column.positions, own, key_of, size, ago)
            needed = {c for view in views for reading in program.views[view].readings for c in reading.components}
            pairs = Pairs(instances.lo, instances.hi, len(column.positions))
            partials = {i: column.partials[i].reduce(instances, some_empty=ago > 0, pairs=pairs) for i in needed}
            for answers in lowered(program, views, instances, partials, column):
                yield answers, own, times


def answer_panes(program: Program, panes: Positions, stored: Sequence[pa.Array]) -> Iterator[Answers]:
    """Answer every view from panes that were built already.

    Parameters
    ----------
    stored
        One stored column per component.
    """
    partials = {i: partials_of(c, a) for i, (c, a) in enumerate(zip(program.components, stored, strict=True))}
    yield from _answer(program, SortedColumn(panes, partials))


def answer_events(
    program: Program, instants: Array, key_starts: Array, arguments: dict[str, pa.Array], *, kernel: str | None = None
) -> Iterator[Answers]:
    """Answer every view from single events, sorted by key and time: lift them, make panes, go on from there."""
    if program.views and all(view.window.per_event for view in program.views):
        for column, rows in parts_per_event(program, instants, key_starts, arguments, kernel=kernel):
            yield from answer_per_event(program, column, rows)
            del column  # or two would be held while the next one is built
        return
    yield from _answer(program, _lifted(program, instants, key_starts, arguments, kernel)[0])


def parts_per_event(
    program: Program, instants: Array, key_starts: Array, arguments: dict[str, pa.Array], *, kernel: str | None = None
) -> Iterator[tuple[SortedColumn, Array]]:
    """Single events, sorted by key and time, in parts for answers per event: a column, and its rows to answer."""
    for first, begin, end in parts_of(program, instants, key_starts):
        starts = np.clip(key_starts, first, end) - first
        some = {sql: array.slice(first, end - first) for sql, array in arguments.items()}
        column, panes = _lifted(program, instants[first:end], starts, some, kernel)
        rows = np.arange(np.searchsorted(panes.lo, begin - first), len(panes))
        del panes
        yield column, rows
        del column


def _lifted(
    program: Program, instants: Array, key_starts: Array, arguments: dict[str, pa.Array], kernel: str | None
) -> tuple[SortedColumn, Frame]:
    panes, partials = lift_panes(program, instants, key_starts, arguments, kernel=kernel)
    ends = next_edge(program.edges, panes.start)
    positions = Positions(panes.start, ends, key_starts_of(panes, len(key_starts) - 1))
    return SortedColumn(positions, dict(enumerate(partials))), panes


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


def _answer(program: Program, base: SortedColumn) -> Iterator[Answers]:
    if not len(base.positions):
        return
    columns: dict[int, SortedColumn] = {}
    readers = _last_readers(program)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for number, node in enumerate(program.nodes):
            provider = base if node.provider is None else columns[node.provider]
            # The plan chose panes and providers that no window cuts, so nothing needs to be checked again.
            instances = frame(node.geometry, provider.positions, emit_all=program.emit_all, check=False)
            every, by_since = program.emit_all, program.by_since(node.views)
            partials: dict[int, Partials | Spans] = {}
            if None in by_since or number in readers:
                partials = provider.reduce(node.needed, instances, some_empty=every)
            if number in readers:
                ends = instances.start + node.geometry.range
                starts = key_starts_of(instances, provider.positions.keys)
                columns[number] = SortedColumn(Positions(instances.start, ends, starts), partials)
            for done in [p for p, last in readers.items() if last == number]:
                del columns[done]
            for since, views in by_since.items():
                own, values = instances, partials
                if since is not None:
                    own = instances.since(since, provider.positions)
                    values = provider.reduce(node.needed, own, some_empty=every)
                yield from read(program, views, own, values, base, partial(base.span, since=since) if every else None)


def _last_readers(program: Program) -> dict[int, int]:
    """The last node that reads each provider, after which its column can go."""
    return {node.provider: number for number, node in enumerate(program.nodes) if node.provider is not None}
