"""Several panes side by side in one row, for streams whose panes are rarely empty.

A row per pane costs the same to hash, shuffle, sort and send to Python however little it holds. Where a key has events
in most panes, a row for the panes of a block of time moves that many times fewer rows; an event then passes a few
conditions more. Which panes had events at all is a bit set, so that nothing else needs to tell.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from panes.algebra.component import Component
from panes.algebra.operations import Array
from panes.planning.panes import lanes_of
from panes.spark.naming import floor_to_edges, stored
from panes.timeline import Edges

INSTANT = "__panes_instant"
"""Where a pane, or the first of several panes side by side, starts; or the time of an event."""

EVENT = "__panes_event"
"""The time of an event; Spark drops it again where no aggregate asks for it."""

_LANE, _LANE_START, _OCCUPIED = "__panes_lane", "__panes_lane_start", "__panes_occupied"


def panes_side_by_side(
    events: DataFrame,
    names: Sequence[str],
    keys: Sequence[str],
    instant: str,
    edges: Sequence[Edges],
    block: Edges,
    components: Sequence[Component],
) -> DataFrame:
    """One row per key and block of time: a column per component and lane.

    A lane's number is how many edges lie between the start of the block and an event. Where edges of two progressions
    coincide, the lane between them stays empty, which costs less than to find out.

    Parameters
    ----------
    names, keys, instant
        What the key columns are to be called, their SQL, and that of the event time in µs.
    """
    lanes = lanes_of(edges, block)
    start = f"{instant} - pmod({instant} - {block.offset}L, {block.period}L) AS {INSTANT}"
    passed = [_passed(e, block, instant) for e in edges]
    if len(passed) == 1 and block.within(edges[0]):
        passed = [f"({instant} - {INSTANT}) div {edges[0].period}L"]
    times = [f"{instant} AS {EVENT}", f"{floor_to_edges(tuple(edges), instant)} AS {_LANE_START}"]
    placed = events.selectExpr("*", *keys, start, f"CAST({' + '.join(passed)} AS INT) AS {_LANE}", *times)
    built = [
        F.expr(f"{component.build_from(EVENT, _LANE_START, f'{_LANE} = {lane}')} AS {_stored(i, lane)}")
        for i, component in enumerate(components)
        for lane in range(lanes)
    ]
    occupied = F.expr(f"bit_or(shiftleft(1L, {_LANE})) AS {_OCCUPIED}")
    return placed.groupBy(*names, INSTANT).agg(occupied, *built)


def _passed(edges: Edges, block: Edges, instant: str) -> str:
    """SQL: how many edges of one progression lie between the start of an event's block and the event."""
    since = f"(pmod({INSTANT} - {edges.offset}L, {edges.period}L) + {instant} - {INSTANT})"
    # At most one in a block that is no longer than the period, and comparing is cheaper than dividing.
    return f"{since} div {edges.period}L" if edges.period < block.period else f"CAST({since} >= {edges.period}L AS INT)"


def merge_side_by_side(lanes: int, components: Sequence[Component]) -> list[Column]:
    """The aggregates that merge rows of panes side by side, for coarser keys."""
    merged = [
        F.expr(f"{component.merge(_stored(i, lane))} AS {_stored(i, lane)}")
        for i, component in enumerate(components)
        for lane in range(lanes)
    ]
    return [F.expr(f"bit_or({_OCCUPIED}) AS {_OCCUPIED}"), *merged]


def one_after_another(
    start: Array, key_starts: Array, columns: Sequence[pa.Array], edges: Sequence[Edges], block: Edges
) -> tuple[Array, Array, list[pa.Array]]:
    """Panes side by side as a column of panes: starts, first rows of keys, and a stored column per component.

    Examples
    --------
    >>> occupied, low = pa.array([0b01, 0b11]), [pa.array([5, 7]), pa.array([None, 9])]
    >>> one_after_another(np.array([0, 20]), np.array([0, 2]), [occupied, *low], [Edges(10)], Edges(20))[0]
    array([ 0, 20, 30])
    """
    rows, lanes = len(start), lanes_of(edges, block)
    bits = (columns[0].to_numpy()[:, None] >> np.arange(lanes)) & 1
    row, lane = np.nonzero(bits)
    before = np.concatenate([[0], np.cumsum(bits.sum(axis=1))])
    index = pa.array(lane * rows + row)
    unpacked = []
    for first in range(1, len(columns), lanes):
        unpacked.append(pa.concat_arrays(columns[first : first + lanes]).take(index))
    blocks, block_of_row = np.unique(start, return_inverse=True)
    return _lane_starts(blocks, edges, block)[block_of_row[row], lane], before[key_starts], unpacked


def _lane_starts(blocks: Array, edges: Sequence[Edges], block: Edges) -> Array:
    """Where the lanes of some blocks start: a row per block."""
    starts = [blocks[:, None]]
    for e in edges:
        first = blocks - (blocks - e.offset) % e.period + e.period
        starts.append(first[:, None] + np.arange(e.inside(block)) * e.period)
    # Edges beyond the end of a block sort behind all others, to lanes that no event is in.
    return np.sort(np.concatenate(starts, axis=1), axis=1)


def _stored(component: int, lane: int) -> str:
    return f"{stored(component)}_{lane}"
