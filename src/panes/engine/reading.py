"""What comes out of a window's partials: the answers of its views, column by column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from panes.algebra.operations import Array
from panes.declare.windows import Window
from panes.engine.bags import Spans
from panes.engine.level import Level, Partials, positive, state_of
from panes.engine.program import Program, Reading, View
from panes.frames import Frame


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
    for answers in lowered(program, views, instances, partials, level):
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
    program: Program, views: tuple[int, ...], instances: Frame, partials: dict[int, Partials | Spans], level: Level
) -> Iterator[Answers]:
    """Some views of a window at all of its instances, whether these hold events of the view's query or not."""
    stored = {i: partials[i].answers() for i in _read_components([program.views[v] for v in views])}
    for number in views:
        view = program.views[number]
        columns = tuple(_column(r, view, instances, partials, stored, level) for r in view.readings)
        yield Answers(number, instances.key, instances.start, columns)


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
    end = instances.start + window.geometry.range - window.end_shift
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
