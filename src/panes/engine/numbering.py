"""Panes numbered in the order of time: a pane's number is how many edges there are up to its start.

Edges are counted from the first one of each progression at or after the epoch. Where edges of several progressions
coincide, numbers are skipped. A number costs an event no more than one rounded product per progression (two divisions
where edges are fine), and takes nothing else to say where its pane starts and ends, so that several panes can share a
row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from panes.algebra.operations import Array
from panes.timeline import Edges


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
    """Where the panes of some blocks start, a row per block: each block is that many panes with following numbers.

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
