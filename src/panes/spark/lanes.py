"""Several panes side by side in one row, for streams whose panes are rarely empty.

A row per pane costs the same to hash, shuffle, sort and send to Python however little it holds. Where a key has events
in most panes, a row for ``lanes`` consecutive panes moves that many times fewer rows; an event then passes a few
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
from panes.spark.naming import stored
from panes.timeline import Edges

INSTANT = "__panes_instant"
"""Where a pane, or the first of several panes side by side, starts; or the time of an event."""

_LANE, _OCCUPIED = "__panes_lane", "__panes_occupied"


def panes_side_by_side(
    events: DataFrame, keys: Sequence[str], instant: str, edges: Edges, lanes: int, components: Sequence[Component]
) -> DataFrame:
    """One row per key and ``lanes`` panes: a column per component and lane.

    Parameters
    ----------
    keys, instant
        The names of the key columns, and the SQL of the event time in µs.
    """
    position = f"pmod({instant} - {edges.offset}L, {edges.period * lanes}L)"
    block = f"{instant} - {position} AS {INSTANT}"
    placed = events.selectExpr("*", block, f"CAST({position} div {edges.period}L AS INT) AS {_LANE}")
    built = [
        F.expr(f"{component.build(f'{_LANE} = {lane}')} AS {_stored(i, lane)}")
        for i, component in enumerate(components)
        for lane in range(lanes)
    ]
    occupied = F.expr(f"bit_or(shiftleft(1L, {_LANE})) AS {_OCCUPIED}")
    return placed.groupBy(*keys, INSTANT).agg(occupied, *built)


def merge_side_by_side(lanes: int, components: Sequence[Component]) -> list[Column]:
    """The aggregates that merge rows of panes side by side, for coarser keys."""
    merged = [
        F.expr(f"{component.merge(_stored(i, lane))} AS {_stored(i, lane)}")
        for i, component in enumerate(components)
        for lane in range(lanes)
    ]
    return [F.expr(f"bit_or({_OCCUPIED}) AS {_OCCUPIED}"), *merged]


def one_after_another(
    start: Array, key_starts: Array, columns: Sequence[pa.Array], lanes: int, period: int
) -> tuple[Array, Array, list[pa.Array]]:
    """Panes side by side as a column of panes: starts, first rows of keys, and a stored column per component.

    Examples
    --------
    >>> occupied, low = pa.array([0b01, 0b11]), [pa.array([5, 7]), pa.array([None, 9])]
    >>> one_after_another(np.array([0, 20]), np.array([0, 2]), [occupied, *low], lanes=2, period=10)[0]
    array([ 0, 20, 30])
    """
    rows = len(start)
    bits = (columns[0].to_numpy()[:, None] >> np.arange(lanes)) & 1
    row, lane = np.nonzero(bits)
    before = np.concatenate([[0], np.cumsum(bits.sum(axis=1))])
    index = pa.array(lane * rows + row)
    unpacked = []
    for first in range(1, len(columns), lanes):
        unpacked.append(pa.concat_arrays(columns[first : first + lanes]).take(index))
    return start[row] + lane * period, before[key_starts], unpacked


def _stored(component: int, lane: int) -> str:
    return f"{stored(component)}_{lane}"
