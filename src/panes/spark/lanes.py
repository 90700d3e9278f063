"""Several panes side by side in one row, for streams whose panes are rarely empty.

A row costs the same to hash, shuffle, sort and send to Python however little it holds. Where a key has events in most
panes, putting several panes with consecutive numbers into one row, one *lane* each, moves that many times fewer rows;
an event passes a few more conditions. A bit set says which lanes had events.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from panes.aggregates.component import Component
from panes.aggregates.operations import Array
from panes.frames import Positions
from panes.spark.naming import floor_to_edges, stored
from panes.timeline import Edges

# A pane's number is how many edges there are up to its start.
#
# Edges are counted from the first one of each progression at or after the epoch; where edges of several progressions
# coincide, numbers are skipped. A number costs an event one rounded product per progression (two divisions where edges
# are fine), and it alone says where its pane starts and ends, so that several panes can share a row.


def number_of(edges: Sequence[Edges], instants: Array) -> Array:
    """The number of the pane that holds each instant.

    Examples
    --------
    >>> number_of([Edges(20), Edges(30)], np.array([-1, 0, 20, 30, 40, 60]))
    array([-2,  0,  1,  2,  3,  5])
    """
    number = np.zeros(len(instants), np.int64)
    for e in edges:
        number += (instants - e.offset) // e.period
    return number


def bounds_of(edges: Sequence[Edges], blocks: Array, lanes: int) -> Array:
    """Where the panes of some blocks start, a row per block: each block is that many panes with consecutive numbers.

    A column more than there are lanes: what follows a pane's start is its end. A number that no pane has gets the
    start of the next pane.

    Examples
    --------
    >>> bounds_of([Edges(20), Edges(30)], np.array([0, 1]), lanes=4)
    array([[  0,  20,  30,  40,  60],
           [ 60,  60,  80,  90, 100]])
    """
    first = blocks * lanes
    instant = _reached(edges, first)
    period = np.array([e.period for e in edges])[:, None]
    offset = np.array([e.offset for e in edges])[:, None]
    coming = instant - (instant - offset) % period + period
    passed = number_of(edges, instant) - first
    bounds = np.empty((len(blocks), lanes + 1), np.int64)
    for lane in range(lanes + 1):
        behind = passed < lane
        following = coming.min(axis=0)
        crossed = (coming == following) & behind
        coming += crossed * period
        passed += crossed.sum(axis=0)
        instant = np.where(behind, following, instant)
        bounds[:, lane] = instant
    return bounds


def _reached(edges: Sequence[Edges], numbers: Array) -> Array:
    """The first edges at which panes with some numbers, or higher ones, start."""
    tick = reduce(Edges.common, edges)
    density = math.fsum(tick.period / e.period for e in edges)
    # Every progression counts less than one edge too few for its share of time; the rest is for rounding.
    low = (numbers + math.fsum((e.offset - tick.offset) / e.period for e in edges)) / density
    doubt = 2 + np.abs(low) * 2.0**-48
    below = np.floor(low - doubt).astype(np.int64)
    above = np.ceil(low + len(edges) / density + doubt).astype(np.int64)
    while (above - below).max(initial=0) > 1:
        middle = (below + above) // 2
        enough = number_of(edges, tick.offset + middle * tick.period) >= numbers
        above = np.where(enough, middle, above)
        below = np.where(enough, below, middle)
    return tick.offset + above * tick.period


PLACE = "__panes_place"
"""Where in time a row belongs: the start of a pane, the spread number of a block of panes, or the time of an event."""

EVENT = "__panes_event"
"""The time of an event; Spark drops it again where no aggregate asks for it."""

_COUNTED_FROM, _NUMBER, _OCCUPIED = "__panes_counted_from", "__panes_number", "__panes_occupied"
_LANE, _LANE_START = "__panes_lane", "__panes_lane_start"

_COARSE = 2**14
"""Above so many µs between edges, no time that 64 bits can hold is rounded across one.

It has five roundings, together less than 2⁻⁵⁰ of it; half of the distance is more than that of 2⁶³ µs. The sum over all
progressions has none: a plan has no more panes than ticks, and doubles count 2⁶³⁻¹⁴ of them."""

_SPREAD = 6701
"""Blocks are this far apart.

Spark's fast table of groups looks at two places, and what finds none is left to a slow one. Its hash adds the last key
to 65 times the one before: of the keys 0, 1, ... 99 with consecutive numbers, four groups of five would find none."""


def panes_side_by_side(
    events: DataFrame,
    names: Sequence[str],
    keys: Sequence[str],
    instant: str,
    edges: Sequence[Edges],
    lanes: int,
    components: Sequence[Component],
) -> DataFrame:
    """One row per key and block of panes with consecutive numbers: an array per component, with an element per lane.

    Arrays, since a column costs the driver some milliseconds wherever it is named.

    Parameters
    ----------
    names, keys, instant
        What the key columns are to be called, their SQL, and that of the event time in µs.
    lanes
        How many panes share a row: a power of two.
    """
    built = [
        _array(i, (component.build_from(EVENT, _LANE_START, f"{_LANE} = {lane}") for lane in range(lanes)))
        for i, component in enumerate(components)
    ]
    times = [f"{instant} AS {EVENT}", f"{_counted_from(edges, instant)} AS {_COUNTED_FROM}"]
    if any(_LANE_START in sql for sql in built):
        times.append(f"{floor_to_edges(tuple(edges), instant)} AS {_LANE_START}")
    lane = f"CAST({_NUMBER} & {lanes - 1}L AS INT)"
    numbered = events.selectExpr("*", *keys, *times).selectExpr("*", f"{_number(edges)} AS {_NUMBER}")
    placed = numbered.selectExpr("*", f"{_place(edges, lanes)} AS {PLACE}", f"{lane} AS {_LANE}")
    occupied = f"bit_or(shiftleft(1L, {_LANE})) AS {_OCCUPIED}"
    return placed.groupBy(*names, PLACE).agg(*map(F.expr, [occupied, *built]))


def _counted_from(edges: Sequence[Edges], instant: str) -> str:
    """SQL for what the edges up to an instant are counted by: where edges are coarse, a number that is near none.

    Dividing 64-bit integers is what uneven panes would cost most. An instant is taken back to the gcd of all edges,
    once for all of them, and half of the gcd forward: then a rounded product tells how many edges there were.
    """
    tick = reduce(Edges.common, edges)
    if tick.period <= _COARSE:
        return instant
    return f"CAST({floor_to_edges((tick,), instant)} AS DOUBLE) + {tick.period / 2!r}D"


def _number(edges: Sequence[Edges]) -> str:
    """SQL for the number of a pane, as ``number_of`` computes it."""
    at = _COUNTED_FROM
    if reduce(Edges.common, edges).period <= _COARSE:
        return _in_pairs(
            [f"({at} - {e.offset}L - pmod({at} - {e.offset}L, {e.period}L)) div {e.period}L" for e in edges]
        )
    passed = [f"rint({at} * {1 / e.period!r}D + {-e.offset / e.period - 0.5!r}D)" for e in edges]
    return f"CAST({_in_pairs(passed)} AS BIGINT)"


def _in_pairs(terms: Sequence[str]) -> str:
    """SQL for a sum whose terms need not wait for one another: from left to right, each sum waits for the one before.

    Examples
    --------
    >>> _in_pairs(["a", "b", "c"])
    '(a + (b + c))'
    """
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return f"({_in_pairs(terms[:half])} + {_in_pairs(terms[half:])})"


def _place(edges: Sequence[Edges], lanes: int) -> str:
    """SQL for the spread number of a block, out of the number of a pane."""
    return f"shiftright({_NUMBER}, {lanes.bit_length() - 1}) * {_spread(edges, lanes)}L"


def _spread(edges: Sequence[Edges], lanes: int) -> int:
    """How far apart blocks are, unless some time that 64 bits can hold would be in a block whose number they cannot."""
    return _SPREAD if _SPREAD * sum(1 / e.period for e in edges) < lanes else 1


def merge_side_by_side(lanes: int, components: Sequence[Component]) -> list[Column]:
    """The aggregates that merge rows of panes side by side, for coarser keys."""
    merged = [
        _array(i, (component.merge(f"{stored(i)}[{lane}]") for lane in range(lanes)))
        for i, component in enumerate(components)
    ]
    return [F.expr(sql) for sql in (f"bit_or({_OCCUPIED}) AS {_OCCUPIED}", *merged)]


def _array(component: int, lanes: Iterable[str]) -> str:
    return f"array({', '.join(lanes)}) AS {stored(component)}"


def one_after_another(
    places: Array, key_starts: Array, columns: Sequence[pa.Array], edges: Sequence[Edges], lanes: int
) -> tuple[Positions, list[pa.Array]]:
    """Panes side by side as a column of panes: their positions, and a stored column per component.

    Examples
    --------
    >>> from panes.timeline import SECOND
    >>> columns = [pa.array([0b01, 0b11]), pa.array([[5, None], [7, 9]])]
    >>> panes, (low,) = one_after_another(np.array([0, _SPREAD]), np.array([0, 2]), columns, [Edges(SECOND)], lanes=2)
    >>> panes.start // SECOND, low.to_pylist()
    (array([0, 2, 3]), [5, 7, 9])
    """
    rows = len(places)
    octets = columns[0].to_numpy().astype("<i8", copy=False).view(np.uint8).reshape(rows, 8)[:, : -(-lanes // 8)]
    there = np.flatnonzero(np.unpackbits(octets, axis=1, count=lanes, bitorder="little").view(bool))
    row, lane = there >> (lanes.bit_length() - 1), there & (lanes - 1)
    before = np.searchsorted(row, key_starts)
    index = pa.array(there)
    unpacked = [column.flatten().take(index) for column in columns[1:]]
    distinct, block_of_row = np.unique(places, return_inverse=True)
    bounds, at = bounds_of(edges, distinct // _spread(edges, lanes), lanes), block_of_row[row]
    return Positions(bounds[at, lane], bounds[at, lane + 1], before), unpacked
