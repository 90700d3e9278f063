"""What the watermark decides: which events are late, which instances are due, and how these are answered.

**A late event counts in the instances that are still open**, as in Spark: an instance is answered once, when the
watermark passes its end. Too late for a short window, an event still counts in a long one. :func:`lateness` says which
events miss an instance that would hold them, and which are in time for one. ``tally.py`` makes *late* and *lost* of
that, over all queries that count an event; with ``late="emit"`` late events also come out as rows.

In append mode :func:`answer_due` answers the instances whose ends lie between the last watermark and this one. In
update mode :func:`answer_touched` answers every open instance that the micro-batch has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np

from panes.aggregates.operations import Array
from panes.engine.answer import Answers, answer_per_event, read
from panes.engine.partials import SortedColumn, positive
from panes.engine.program import Node, Program
from panes.frames import Frame, frame
from panes.queries.windows import Window
from panes.timeline import Geometry

EPOCH = 0
"""Spark's watermark before any event: events before it are late from the start."""

NEVER = 2**62


def lateness(windows: Iterable[Window], instants: Array, watermark: int) -> tuple[Array, Array]:
    """Return which instants are too late for some instance that would hold them, and which in time for some.

    Examples
    --------
    >>> import panes as pn
    >>> lateness([pn.tumbling("10us"), pn.tumbling("100us")], np.array([52, 65]), watermark=60)
    (array([ True, False]), array([ True, False]))
    """
    late, in_time = np.zeros(len(instants), dtype=bool), np.zeros(len(instants), dtype=bool)
    old = np.flatnonzero(instants < watermark)
    if not len(old):
        return late, in_time
    # Queries share windows, and names do not matter.
    for geometry, since in {(window.lifespan, window.since) for window in windows}:
        # The first and the last instance that hold each instant; in a gap between instances there is none.
        last = (instants[old] - geometry.offset) // geometry.slide
        first = (instants[old] - geometry.offset - geometry.range) // geometry.slide + 1
        base = geometry.offset + geometry.range
        held = first <= last if since is None else (first <= last) & (instants[old] >= since)
        late[old] |= held & (base + first * geometry.slide <= watermark)
        in_time[old] |= held & (base + last * geometry.slide > watermark)
    return late, in_time


def due_from(windows: Iterable[Geometry], after: int, upto: int) -> int:
    """Return the earliest start of an instance that ends in ``(after, upto]``; ``NEVER`` without one.

    Examples
    --------
    >>> due_from([Geometry(10, 10), Geometry(100, 100)], after=60, upto=75)
    60
    """
    starts = [NEVER]
    for g in windows:
        start = g.offset + ((after - g.offset - g.range) // g.slide + 1) * g.slide
        if start + g.range <= upto:
            starts.append(start)
    return min(starts)


def open_from(windows: Iterable[Geometry], touched: Array, watermark: int) -> int:
    """Return a lower bound for the start of any open instance that holds a touched row; ``NEVER`` without rows.

    Examples
    --------
    >>> open_from([Geometry(10, 10), Geometry(100, 100)], np.array([40, 80]), watermark=60)
    -40
    """
    if not len(touched):
        return NEVER
    return max(int(touched.min()), watermark) - max(g.range for g in windows)


def open_instances(windows: Iterable[Geometry], latest: int, watermark: int) -> int:
    """Count the instances that have begun by ``latest`` and not ended by the watermark.

    Examples
    --------
    >>> open_instances([Geometry(10, 10), Geometry(100, 50)], latest=75, watermark=60)
    4
    """
    return sum(max(0, (latest - g.offset) // g.slide - (watermark - g.offset - g.range) // g.slide) for g in windows)


def answer_due(program: Program, column: SortedColumn, after: int, upto: int) -> Iterator[Answers]:
    """Answer every view's instances that end in ``(after, upto]``."""
    if not len(column.positions):
        return
    # The instance of an event ends right after it.
    start = column.positions.start
    yield from answer_per_event(program, column, np.flatnonzero((start >= after) & (start < upto)))

    def span_while_held(component: int, since: int | None) -> tuple[Array, Array]:
        first, last = column.span(component, since)
        return first, np.full_like(last, upto)

    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for node in program.nodes:
            if not node.views or not _any_ends(node.geometry, after, upto):
                continue
            every = program.emit_all
            instances = frame(node.geometry, column.positions, emit_all=every, ending=(after, upto), check=False)
            for since, views in program.by_since(node.views).items():
                visible = instances if since is None else instances.since(since, column.positions)
                if len(visible):
                    partials = column.reduce(node.needed, visible, some_empty=every)
                    spans = partial(span_while_held, since=since) if every else None
                    yield from read(program, views, visible, partials, column, spans)


def answer_touched(program: Program, column: SortedColumn, news: SortedColumn, watermark: int) -> Iterator[Answers]:
    """Answer every view's open instances that hold a row of the micro-batch: early answers and corrections."""
    if not len(column.positions) or not len(news.positions):
        return
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for node in program.nodes:
            if not node.views:
                continue
            changed = frame(node.geometry, news.positions, check=False)
            changed = changed.where(changed.start + node.geometry.range > watermark)
            for (exists, since), views in _by_condition(program, node).items():
                # Rows that a window or a query's condition leaves out change nothing for it.
                visible = changed if since is None else changed.since(since, news.positions)
                if exists is not None:
                    visible = visible.where(positive(news.partials[exists].reduce(visible)))
                if len(visible):
                    lo = column.positions.search(visible.key, program.views[views[0]].window.begins(visible.start))
                    hi = column.positions.search(visible.key, visible.start + node.geometry.range)
                    # The column may lack rows from before a window was declared.
                    instances = Frame(visible.key, visible.start, lo, hi).where(hi > lo)
                    partials = column.reduce(node.needed, instances)
                    yield from read(program, tuple(views), instances, partials, column)


def _any_ends(geometry: Geometry, after: int, upto: int) -> bool:
    """Return whether an instance ends in ``(after, upto]``."""
    first, last = ((edge - geometry.offset - geometry.range) // geometry.slide for edge in (after, upto))
    return first < last


def _by_condition(program: Program, node: Node) -> dict[tuple[int | None, int | None], list[int]]:
    """Group the views of a node by the component that counts their events and the instant since which these count."""
    groups: dict[tuple[int | None, int | None], list[int]] = {}
    for number in node.views:
        view = program.views[number]
        groups.setdefault((view.exists, view.window.since), []).append(number)
    return groups
