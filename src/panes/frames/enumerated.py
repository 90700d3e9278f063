"""Frames by enumeration: number the instances of each key from first to last, search their edges.

O(instances · log rows), whatever the number of rows: the way for wide windows over many rows. Where the
range is a multiple of the slide, the end of an instance is the start of a later one, and one search
gives both.
"""

from __future__ import annotations

import numpy as np

from panes.frames.by_rows import holding
from panes.frames.pairs import Frame
from panes.frames.positions import Integers, Positions
from panes.timeline import Geometry


def extent(
    geometry: Geometry, positions: Positions, ending: tuple[int, int] | None = None, *, beyond: bool = False
) -> tuple[Integers, Integers]:
    """Per key with rows: the number of its first instance, and how many there are up to its last.

    Parameters
    ----------
    ending
        Only instances that end after the first of two instants, and no later than the second.
    beyond
        Whether instances after a key's last row count, up to the second of these instants.
    """
    keys = positions.occupied
    head, tail = positions.key_starts[keys], positions.key_starts[keys + 1] - 1
    first, _ = holding(geometry, positions.start[head], positions.end[head])
    _, last = holding(geometry, positions.start[tail], positions.end[tail])
    if ending is not None:
        after, upto = ((edge - geometry.offset - geometry.range) // geometry.slide for edge in ending)
        first = np.maximum(first, after + 1)
        last = np.full_like(last, upto) if beyond else np.minimum(last, upto)
    return first, np.maximum(last - first + 1, 0)


def frame_enumerated(
    geometry: Geometry,
    positions: Positions,
    *,
    emit_all: bool = False,
    ending: tuple[int, int] | None = None,
    known: tuple[Integers, Integers] | None = None,
) -> Frame:
    """The instances that hold rows, or with `emit_all` every one from a key's first row to its last.

    With `ending`, `emit_all` goes on beyond the last row: more may come, and meanwhile there is nothing.

    Parameters
    ----------
    known
        The extent, where it was asked for already.

    Examples
    --------
    >>> events = Positions.of_events(np.array([3, 4, 21]), np.array([0, 3]))
    >>> frame = frame_enumerated(Geometry(10, 10), events, emit_all=True)
    >>> frame.start, frame.lo, frame.hi
    (array([ 0, 10, 20]), array([0, 2, 2]), array([2, 2, 3]))
    """
    if not len(positions):
        return Frame.empty()
    beyond = emit_all and ending is not None
    first, count = extent(geometry, positions, ending, beyond=beyond) if known is None else known
    stop = np.cumsum(count)
    total = int(stop[-1])
    order = np.arange(total, dtype=np.int64)
    key = np.repeat(positions.occupied, count)
    start = (order + np.repeat(first - (stop - count), count)) * geometry.slide + geometry.offset
    lo = positions.search(key, start)
    ahead, rest = divmod(geometry.range, geometry.slide)
    if rest or ending is not None:
        hi = positions.search(key, start + geometry.range)
    else:
        # Instance m ends where m + ahead starts; past a key's last instance there are no more rows.
        hi = np.repeat(positions.key_starts[positions.occupied + 1], count)
        ahead = min(ahead, total)
        inside = key[: total - ahead] == key[ahead:]
        np.copyto(hi[: total - ahead], lo[ahead:], where=inside)
    if emit_all:
        return Frame(key, start, lo, hi)
    held = lo < hi
    if held.all():
        return Frame(key, start, lo, hi)
    return Frame(key, start, lo, hi).where(held)
