"""What a stream keeps between micro-batches: granules, the coarser the older, and what is read out of them.

A micro-batch brings panes. They join the granules that are held; the instances whose end the watermark has passed
since the last micro-batch are answered; then everything ages: granules that only wide windows still look at are
merged along the tiers (``panes.planning.granularity``), and those that no window looks at any more are dropped.

Lateness needs no rule of its own. An instance is answered once, by the watermark that passes its end; whatever comes
later joins only instances that are still open, as in Spark, where a row too late for a short window still counts in
a long one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

from panes.aggregates.component import Component
from panes.aggregates.operations import Array
from panes.engine.answer import Answers, answer_per_event, read
from panes.engine.partials import SortedColumn, floor_to_edges, next_edge, partials_of, positive
from panes.engine.program import Node, Program
from panes.frames import Frame, Positions, frame
from panes.frames.positions import Integers
from panes.planning.granularity import Tier
from panes.timeline import Geometry


@dataclass(frozen=True, eq=False)
class GranuleRows:
    """Granules, or panes on their way to become some.

    Parameters
    ----------
    key
        The ordinal of each row's key in a dictionary that others keep.
    start, end
        The span of each row. Rows of a key coincide or are disjoint.
    stored
        One stored column per component.
    """

    key: Integers
    start: Integers
    end: Integers
    stored: tuple[pa.Array, ...]

    def __len__(self) -> int:
        return len(self.key)

    @classmethod
    def empty(cls, components: Sequence[Component]) -> GranuleRows:
        """Before the first micro-batch."""
        none = np.zeros(0, np.int64)
        return cls(none, none, none, tuple(pa.array([], component.storage) for component in components))

    def and_(self, other: GranuleRows) -> GranuleRows:
        """The rows of both, one after another."""
        return GranuleRows(
            np.concatenate([self.key, other.key]),
            np.concatenate([self.start, other.start]),
            np.concatenate([self.end, other.end]),
            tuple(pa.concat_arrays(pair) for pair in zip(self.stored, other.stored, strict=True)),
        )

    def where(self, keep: Array) -> GranuleRows:
        """Some of the rows."""
        if keep.all():
            return self
        chosen = pa.array(keep)
        stored = tuple(column.filter(chosen) for column in self.stored)
        return GranuleRows(self.key[keep], self.start[keep], self.end[keep], stored)


def settled(
    rows: GranuleRows,
    components: Sequence[Component],
    tiers: Sequence[Tier],
    watermark: int | None,
    cuts: Sequence[int] = (),
) -> GranuleRows:
    """Rows as they are held under a watermark: sorted, merged, as coarse as their age allows, without the useless.

    Parameters
    ----------
    cuts
        Instants that no granule may span, in order.
    """
    if watermark is not None and len(rows):
        rows = _coarsened(rows.where(rows.start + tiers[-1].reach > watermark), tiers, watermark, cuts)
    order = np.lexsort((rows.start, rows.key))
    key, start, end = rows.key[order], rows.start[order], rows.end[order]
    lo, end = _apart(key, start, end)
    same = Frame(key[lo], start[lo], lo, np.append(lo[1:], len(key)).astype(np.int64))
    at = pa.array(order)
    stored = [column.take(at) for column in rows.stored]
    if len(lo) < len(key):
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            stored = [
                partials_of(component, column).reduce(same).stored()
                for component, column in zip(components, stored, strict=True)
            ]
    return GranuleRows(key[lo], start[lo], end, tuple(stored))


def level_of(components: Sequence[Component], held: GranuleRows, keys: int) -> SortedColumn:
    """Settled rows ready for kernels.

    Parameters
    ----------
    keys
        How many keys the dictionary has.
    """
    columns = zip(components, held.stored, strict=True)
    positions = Positions(held.start, held.end, np.searchsorted(held.key, np.arange(keys + 1)))
    return SortedColumn(positions, {i: partials_of(component, column) for i, (component, column) in enumerate(columns)})


def answer_due(program: Program, level: SortedColumn, after: int, upto: int) -> Iterator[Answers]:
    """Every view's instances that end after one watermark and no later than the next."""
    if not len(level.positions):
        return
    # The instance of an event ends right after it.
    start = level.positions.start
    yield from answer_per_event(program, level, np.flatnonzero((start >= after) & (start < upto)))

    def while_held(component: int, since: int | None) -> tuple[Array, Array]:
        first, last = level.span(component, since)
        return first, np.full_like(last, upto)

    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for node in program.nodes:
            if not node.views or not _any_ends(node.geometry, after, upto):
                continue
            every = program.emit_all
            instances = frame(node.geometry, level.positions, emit_all=every, ending=(after, upto), check=False)
            for since, views in program.by_since(node.views).items():
                own = instances if since is None else instances.since(since, level.positions)
                if len(own):
                    partials = {i: level.partials[i].reduce(own, some_empty=every) for i in node.needed}
                    held = partial(while_held, since=since) if every else None
                    yield from read(program, views, own, partials, level, held)


def answer_touched(program: Program, level: SortedColumn, news: SortedColumn, watermark: int) -> Iterator[Answers]:
    """Every view's open instances that hold a row which a micro-batch has touched: early answers and corrections."""
    if not len(level.positions) or not len(news.positions):
        return
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for node in program.nodes:
            if not node.views:
                continue
            changed = frame(node.geometry, news.positions, check=False)
            changed = changed.where(changed.start + node.geometry.range > watermark)
            for (exists, since), views in _by_condition(program, node).items():
                # What a window or a query's own condition leaves out has changed nothing for it.
                own = changed if since is None else changed.since(since, news.positions)
                if exists is not None:
                    own = own.where(positive(news.partials[exists].reduce(own)))
                if len(own):
                    lo = level.positions.search(own.key, program.views[views[0]].window.begins(own.start))
                    hi = level.positions.search(own.key, own.start + node.geometry.range)
                    # A level may leave out rows from before a window was known.
                    instances = Frame(own.key, own.start, lo, hi).where(hi > lo)
                    partials = {i: level.partials[i].reduce(instances) for i in node.needed}
                    yield from read(program, tuple(views), instances, partials, level)


def _apart(key: Array, start: Array, end: Array) -> tuple[Integers, Array]:
    """The first row of every span, where rows that coincide or overlap are one span; and where each span ends.

    Rows overlap where a granule is older than the windows that are asked for now: granules were coarser before. No
    window that looks at them begins or ends within any of them.
    """
    lo = np.arange(len(key), dtype=np.int64)
    while len(lo):
        begins = np.ones(len(lo), dtype=bool)
        begins[1:] = (key[lo[1:]] != key[lo[:-1]]) | (start[lo[1:]] >= end[:-1])
        if begins.all():
            break
        at = np.flatnonzero(begins)
        lo, end = lo[at], np.maximum.reduceat(end, at)
    return lo, end


def _coarsened(rows: GranuleRows, tiers: Sequence[Tier], watermark: int, cuts: Sequence[int]) -> GranuleRows:
    """Give every row the span of the coarsest granule that only windows of its age look at."""
    start, end = rows.start, rows.end
    bounds = np.array([np.iinfo(np.int64).min, *cuts, np.iinfo(np.int64).max])
    place = np.searchsorted(bounds, rows.start, side="right")
    for younger, tier in pairwise(tiers):
        begin, stop = floor_to_edges(tier.edges, rows.start), next_edge(tier.edges, rows.start)
        # Every instance of a narrower window that touches the granule has ended.
        old = stop + younger.reach <= watermark
        begin, stop = np.maximum(begin, bounds[place - 1]), np.minimum(stop, bounds[place])
        start, end = np.where(old, begin, start), np.where(old, stop, end)
    return GranuleRows(rows.key, start, end, rows.stored)


def _any_ends(geometry: Geometry, after: int, upto: int) -> bool:
    """Whether some instance ends after one instant and no later than another."""
    first, last = ((edge - geometry.offset - geometry.range) // geometry.slide for edge in (after, upto))
    return first < last


def _by_condition(program: Program, node: Node) -> dict[tuple[int | None, int | None], list[int]]:
    """The views of a node by the component that counts their events, and by the instant since which these count."""
    found: dict[tuple[int | None, int | None], list[int]] = {}
    for number in node.views:
        view = program.views[number]
        found.setdefault((view.exists, view.window.since), []).append(number)
    return found
