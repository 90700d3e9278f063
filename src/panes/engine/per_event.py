"""An answer per event: views over sliding windows, from a column with a row per key and instant.

Time is in whole µs, so ``(t - size, t]`` is the instance ``[t - size + 1, t + 1)`` of a window that hops by 1 µs. Of
its instances only those are answered that end with an event, and each as often as there are events.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from panes.algebra.operations import Array
from panes.engine.level import Level, state_of
from panes.engine.program import Program
from panes.engine.reading import Answers, lowered
from panes.frames.per_event import frame_per_event
from panes.frames.positions import Integers
from panes.kernels.pairs import Pairs

_AT_ONCE = 1 << 18
"""Events that are answered at once: a key may have many more."""
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


def answer_per_event(program: Program, level: Level, rows: Integers) -> Iterator[Answers]:
    """Every view that has an answer per event, at the events of some rows of a column."""
    for first in range(0, len(rows), _AT_ONCE):
        for answers, _, times in _answers_at(program, level, rows[first : first + _AT_ONCE]):
            yield answers.repeated(times)


def side_by_side(program: Program, level: Level, rows: Integers) -> Iterator[pa.Array]:
    """The columns of all views, one view after another, at some rows; null where a view's query has no event."""
    found: dict[int, tuple[pa.Array, ...]] = {}
    for answers, own, _ in _answers_at(program, level, rows):
        found[answers.view] = answers.columns
        if len(own) < len(rows):
            at = np.searchsorted(own, rows)
            missing = np.append(own, -1)[at] != rows
            found[answers.view] = tuple(column.take(pa.array(at, mask=missing)) for column in answers.columns)
    for number, view in enumerate(program.views):
        nothing = tuple(pa.nulls(len(rows), reading.bound.type) for reading in view.readings)
        yield from found.get(number, nothing)


def _answers_at(program: Program, level: Level, rows: Integers) -> Iterator[tuple[Answers, Integers, Array]]:
    """The answers of every view, the rows that they are for, and how many events of its query each of these has."""
    key = level.positions.keys_at(rows)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for (size, ago, counting), views in program.by_event().items():
            times, own, key_of = state_of(level.partials[counting])[0][rows], rows, key
            # Rows that only other queries have events at are not answered.
            if not (some := times > 0).all():
                times, own, key_of = times[some], rows[some], key[some]
            if not len(own):
                continue
            instances = frame_per_event(level.positions, own, key_of, size, ago)
            needed = {c for view in views for reading in program.views[view].readings for c in reading.components}
            pairs = Pairs(instances.lo, instances.hi, len(level.positions))
            partials = {i: level.partials[i].reduce(instances, some_empty=ago > 0, pairs=pairs) for i in needed}
            for answers in lowered(program, views, instances, partials, level):
                yield answers, own, times
