"""Windows of rows the slow way: one key after another, from the definitions, in plain Python.

No frame, policy or container of the library is used. Rows are given in the order in which they arrive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from panes.queries.measures import Delta, Punctuation, Rows
from panes.queries.windows import RowWindow


@dataclass(frozen=True)
class Arrived:
    """The rows of one key.

    Parameters
    ----------
    rows, instants
        By what callers call them, and when they came, by row.
    values
        The columns that sizes and paces are measured in, by name and row.
    marks
        When marks came that end windows of this key.
    end
        Until when the clock runs.
    """

    rows: Sequence[int]
    instants: Mapping[int, int]
    values: Mapping[str | int, Mapping[int, Any]]
    marks: Sequence[int]
    end: int


def instances(window: RowWindow, came: Arrived) -> Iterator[tuple[int, int, list[int]]]:
    """Where each answered instance starts and ends, and its rows."""
    for end, held in _answered(window, came):
        if isinstance(window.size, int) and window.kind != "session":
            yield end - window.size, end, held
        elif held or window.may_be_empty:
            yield (came.instants[held[0]] if held else end), end, held


def _answered(window: RowWindow, came: Arrived) -> Iterator[tuple[int, list[int]]]:
    if window.kind == "session":
        return _sessions(window, came)
    if window.every is None:
        return _tumbling(window, came)
    return _moving(window, came)


def _sessions(window: RowWindow, came: Arrived) -> Iterator[tuple[int, list[int]]]:
    assert isinstance(window.size, int)
    held: list[int] = []
    for row in came.rows:
        if held and came.instants[row] - came.instants[held[-1]] > window.size:
            yield came.instants[held[-1]] + window.size, held
            held = []
        held.append(row)
    if held:
        yield came.instants[held[-1]] + window.size, held


def _tumbling(window: RowWindow, came: Arrived) -> Iterator[tuple[int, list[int]]]:
    size, held, at = window.size, list[int](), came.instants
    if isinstance(size, Rows):
        for row in came.rows:
            held.append(row)
            if len(held) == size.n:
                yield at[row], held
                held = []
    elif isinstance(size, Delta):
        for row in came.rows:
            value = came.values[size.column]
            if held and value[row] - value[held[0]] > size.by:
                yield at[row], held
                held = []
            held.append(row)
    elif isinstance(size, Punctuation):
        for mark in sorted(came.marks):
            held = [row for row in came.rows if at[row] <= mark and row not in _before(came, mark)]
            if held:
                yield mark, held
    elif window.origin == "row":
        due = None
        for row in came.rows:
            if due is not None and at[row] >= due:
                yield due, held
                held, due = [], None
            if due is None:
                due = at[row] + size
            held.append(row)
        if due is not None and due <= came.end:
            yield due, held
    else:
        first = at[came.rows[0]] if came.rows else 0
        due = first + size
        while came.rows and due <= came.end:
            held = [row for row in came.rows if due - size <= at[row] < due]
            if held:
                yield due, held
            due += size


def _before(came: Arrived, mark: int) -> set[int]:
    """Rows that an earlier mark has ended."""
    earlier = max((other for other in came.marks if other < mark), default=None)
    return set() if earlier is None else {row for row in came.rows if came.instants[row] <= earlier}


def _moving(window: RowWindow, came: Arrived) -> Iterator[tuple[int, list[int]]]:
    """The most recent rows, at a pace: ``arrived`` rows are in at each moment."""
    for moment, arrived, next_row in _moments(window, came):
        if window.before:
            arrived = sum(came.instants[row] < moment for row in came.rows)
        inserted = came.rows[:arrived]
        inserted = inserted[: max(len(inserted) - window.ago, 0)]
        held = _held(window, came, moment, list(inserted))
        if not held and not window.may_be_empty:
            continue
        if not window.partial and not _full(window, came, moment, arrived, next_row):
            continue
        shown = moment - (1 if window.bounds == "(]" and isinstance(window.every, int) else 0)
        yield shown, held


def _moments(window: RowWindow, came: Arrived) -> Iterator[tuple[int, int, int | None]]:
    """When a window is answered, how many rows are in by then, and the row that is at the door."""
    pace, at = window.every, came.instants
    if isinstance(pace, Rows):
        for arrived in range(pace.n, len(came.rows) + 1, pace.n):
            yield at[came.rows[arrived - 1]], arrived, None
    elif isinstance(pace, Delta):
        value, last = came.values[pace.column], None
        for place, row in enumerate(came.rows):
            if last is None:
                last = value[row]
            elif value[row] - last > pace.by:
                last = value[row]
                yield at[row], place, row
    elif came.rows:
        assert isinstance(pace, int)
        first = at[came.rows[0]]
        if window.origin == "first":
            moment = first + pace
        else:
            phase = window.offset + (1 if window.bounds == "(]" else 0)
            moment = phase + ((first - phase) // pace + 1) * pace
        while moment <= came.end:
            yield moment, sum(at[row] < moment for row in came.rows), None
            moment += pace


def _held(window: RowWindow, came: Arrived, moment: int, inserted: list[int]) -> list[int]:
    size, at = window.size, came.instants
    if isinstance(size, Rows):
        return inserted[-size.n :] if size.n else []
    if isinstance(size, Delta):
        value = came.values[size.column]
        return [row for row in inserted if value[inserted[-1]] - value[row] <= size.by]
    assert isinstance(size, int)
    if isinstance(window.every, Rows) and window.bounds != "[]":
        return [row for row in inserted if at[row] > moment - size]
    return [row for row in inserted if at[row] >= moment - size]


def _full(window: RowWindow, came: Arrived, moment: int, arrived: int, next_row: int | None) -> bool:
    """Whether the window has been full by a moment."""
    size = window.size
    if isinstance(size, Rows):
        return arrived >= size.n + window.ago
    if isinstance(size, Delta):
        value = came.values[size.column]
        seen = [*came.rows[:arrived], *([] if next_row is None else [next_row])]
        return bool(seen) and value[seen[-1]] - value[seen[0]] > size.by
    assert isinstance(size, int)
    shorter = isinstance(window.every, Rows) and window.bounds != "[]"
    return moment - came.instants[came.rows[0]] >= size - (1 if shorter else 0)
