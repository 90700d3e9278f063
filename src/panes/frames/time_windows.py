"""The frame of a time window ⟨range, slide, offset⟩: the one place that chooses how to find it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from panes.errors import PlanError
from panes.frames.positions import FARTHEST, MOST_ANSWERS, Integers, Positions
from panes.timeline import Geometry, format_duration

# A frame: what a window means on one column, as half-open pairs of row indices.


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """The instances of a window on a column, ordered by key and start.

    Parameters
    ----------
    key
        The ordinal of each instance's key.
    start
        Where each instance starts on the axis of the column.
    lo, hi
        Its rows, half-open; ``lo == hi`` for an instance without rows.
    """

    key: Integers
    start: Integers
    lo: Integers
    hi: Integers

    def __len__(self) -> int:
        return len(self.lo)

    def where(self, keep: npt.NDArray[np.bool_]) -> Frame:
        """Some of the instances."""
        return Frame(self.key[keep], self.start[keep], self.lo[keep], self.hi[keep])

    def since(self, instant: int, positions: Positions) -> Frame:
        """Of instances on a column, the rows from an instant on; no row spans it.

        Instances that end before a key's first such row are left out, as if earlier rows did not exist.
        """
        first = positions.search(self.key, np.full_like(self.key, instant))
        return Frame(self.key, self.start, np.maximum(self.lo, first), self.hi).where(self.hi > first)

    @classmethod
    def empty(cls) -> Frame:
        """The frame without instances."""
        nothing = np.zeros(0, np.int64)
        return cls(nothing, nothing, nothing, nothing)


# Whether the edges of a window cut a row: a cut row belongs neither inside nor outside an instance.


def check_uncut(geometry: Geometry, positions: Positions) -> None:
    """Raise where a row straddles an edge of the window.

    Equal panes are checked by arithmetic on their edges alone, so that a thousand windows over one
    column cost one pass.

    Examples
    --------
    >>> hours = Positions(np.array([0, 60]), np.array([60, 120]), np.array([0, 2]))
    >>> check_uncut(Geometry(120, 60), hours)
    >>> check_uncut(Geometry(30, 30), hours)
    Traceback (most recent call last):
    ...
    panes.errors.PlanError: the window ⟨30, 30⟩ cuts row 0 of the column, [0, 60), at 30. ...
    """
    if positions.widest <= 1:
        return
    panes = positions.panes
    for edges in geometry.edges():
        if panes is not None and edges.within(panes):
            continue
        first = (positions.start - edges.offset) // edges.period
        cut = first != (positions.end - 1 - edges.offset) // edges.period
        if cut.any():
            row = int(np.argmax(cut))
            span = f"[{positions.start[row]}, {positions.end[row]})"
            edge = (int(first[row]) + 1) * edges.period + edges.offset
            offset = f" with offset {geometry.offset}" if geometry.offset else ""
            raise PlanError(
                f"the window ⟨{geometry.range}, {geometry.slide}⟩{offset} cuts row {row} of the column, "
                f"{span}, at {edge}. Answer it from a column whose rows end at the window's edges."
            )


# Frames from the rows: which instances does each row open, and which does it close?
#
# An instance is opened by its first row and closed by its last. The instances that hold a row are
# consecutive numbers, and both ends of that run rise with the rows, so a row opens what lies beyond the
# run of the row before it, and closes what lies short of the run of the row after it. No search, and no
# work for instances without rows however long the gap: O(rows + answers).


def frame_by_rows(geometry: Geometry, positions: Positions) -> Frame:
    """The instances that hold at least one row.

    Examples
    --------
    >>> events = Positions.of_events(np.array([3, 4, 1_000_000]), np.array([0, 3]))
    >>> frame = frame_by_rows(Geometry(10, 5), events)
    >>> frame.start, frame.lo, frame.hi
    (array([    -5,      0, 999995, 1000000]), array([0, 0, 2, 2]), array([2, 2, 3, 3]))
    """
    if not len(positions):
        return Frame.empty()
    if geometry.tumbling:
        return _tumbling(geometry, positions)
    first, last = holding(geometry, positions.start, positions.end)
    new_key = positions.key_starts[positions.occupied]
    opened = first.copy()
    np.maximum(first[1:], last[:-1] + 1, out=opened[1:])
    opened[new_key] = first[new_key]
    opens = np.maximum(last - opened + 1, 0)
    _check_number(geometry, opens)
    closed = last.copy()
    np.minimum(last[:-1], first[1:] - 1, out=closed[:-1])
    closed[new_key[1:] - 1] = last[new_key[1:] - 1]
    closes = np.maximum(closed - first + 1, 0)

    rows = np.arange(len(positions), dtype=np.int64)
    lo, hi = np.repeat(rows, opens), np.repeat(rows + 1, closes)
    before = np.concatenate(([0], np.cumsum(opens)))
    number = np.arange(len(lo), dtype=np.int64) + np.repeat(opened - before[:-1], opens)
    key = np.repeat(np.arange(positions.keys, dtype=np.int64), np.diff(before[positions.key_starts]))
    return Frame(key, number * geometry.slide + geometry.offset, lo, hi)


def holding(geometry: Geometry, start: Integers, end: Integers) -> tuple[Integers, Integers]:
    """The numbers of the first and the last instance that hold each span; last < first in a gap."""
    first = -((geometry.offset + geometry.range - end) // geometry.slide)
    return first, (start - geometry.offset) // geometry.slide


def _tumbling(geometry: Geometry, positions: Positions) -> Frame:
    """A row belongs to one instance, so instances begin where the number or the key changes."""
    number = (positions.start - geometry.offset) // geometry.slide
    begins = np.empty(len(number), np.bool_)
    np.not_equal(number[1:], number[:-1], out=begins[1:])
    begins[positions.key_starts[positions.occupied]] = True
    lo = np.flatnonzero(begins).astype(np.int64, copy=False)
    hi = np.append(lo[1:], len(number))
    per_key = np.diff(np.searchsorted(lo, positions.key_starts))
    key = np.repeat(np.arange(positions.keys, dtype=np.int64), per_key)
    return Frame(key, number[lo] * geometry.slide + geometry.offset, lo, hi)


# Frames by enumeration: number the instances of each key from first to last, search their edges.
#
# O(instances · log rows), whatever the number of rows: the way for wide windows over many rows. Where the
# range is a multiple of the slide, the end of an instance is the start of a later one, and one search
# gives both.


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
    _check_number(geometry, count, emit_all=emit_all)
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


def _check_number(geometry: Geometry, counts: Integers, *, emit_all: bool = False) -> None:
    """Refuse more instances than one call should give, before they are made."""
    # Summed as floats: years of microseconds in a million keys are more instances than int64 counts.
    total = float(counts.sum(dtype=float))
    if total <= MOST_ANSWERS:
        return
    window = f"the window of {format_duration(geometry.range)} every {format_duration(geometry.slide)}"
    if emit_all:
        raise PlanError(
            f"empty=True would give {total:,.0f} rows for {window}: one for each instance between the first and the "
            f"last event of a key, and at most {MOST_ANSWERS:,} are given at once. Leave empty=True out, take a longer "
            "every=, or plan.lookup(events, requests), which answers only where it is asked."
        )
    raise PlanError(
        f"{window} would give {total:,.0f} rows, one for each instance that holds an event, and at most "
        f"{MOST_ANSWERS:,} are given at once. Take a longer every=, pn.sliding(...) for one answer per event, or "
        "plan.lookup(events, requests), which answers only where it is asked."
    )


# Frames per event: the rows that lie less than a while before a row, for every row.
#
# Rows are one instant wide. The window of a row at t is ``(t - ago - size, t - ago]``, which is ``[start, start +
# size)`` with ``start = t - ago - size + 1``. One search per row finds where it begins; it ends with the row itself,
# or by another search where it ended a while ago: O(rows · log rows), whatever the size.


def frame_per_event(positions: Positions, rows: Integers, key: Integers, size: int, ago: int = 0) -> Frame:
    """The windows of some rows of a column, in the order of the rows.

    Parameters
    ----------
    rows, key
        Rising, each one instant wide; and the ordinals of their keys.

    Examples
    --------
    >>> import numpy as np
    >>> events = Positions.of_events(np.array([3, 4, 21, 30]), np.array([0, 4]))
    >>> found = frame_per_event(events, rows=np.array([0, 1, 3]), key=np.zeros(3, np.int64), size=10)
    >>> found.start, found.lo, found.hi
    (array([-6, -5, 21]), array([0, 0, 2]), array([1, 2, 4]))
    """
    start = positions.start[rows] + (1 - ago - size)
    lo = positions.search(key, start)
    return Frame(key, start, lo, positions.search(key, start + size) if ago else rows + 1)


# Nanoseconds, measured with a million rows in 100 keys and windows from one row to a thousand rows wide.
_PER_INSTANCE: Final = 45
_PER_ROW: Final = 16
_PER_ROW_TUMBLING: Final = 3
_PER_OPENED: Final = 10


def frame(
    geometry: Geometry,
    positions: Positions,
    *,
    emit_all: bool = False,
    ending: tuple[int, int] | None = None,
    check: bool = True,
    method: Literal["enumerated", "rows"] | None = None,
) -> Frame:
    """The index pairs that a window means on a sorted column.

    Parameters
    ----------
    geometry
        The instances ``[offset + m * slide, offset + m * slide + range)``.
    positions
        The column's rows; none may be cut by an edge of the window.
    emit_all
        Also the instances without rows between the first and the last row of each key.
    ending
        Only the instances that end after the first of two instants, and no later than the second.
    check
        Whether to look for rows that are cut.
    method
        How to find the pairs; both ways give the same. By default the cheaper one.

    Examples
    --------
    >>> import numpy as np
    >>> events = Positions.of_events(np.array([3, 4, 21]), np.array([0, 3]))
    >>> found = frame(Geometry(10, 10), events)
    >>> found.start, found.lo, found.hi
    (array([ 0, 20]), array([0, 2]), array([2, 3]))
    """
    if max(geometry.range, geometry.slide) > FARTHEST:
        raise PlanError(f"the window ⟨{geometry.range}, {geometry.slide}⟩ is longer than 36,000 years.")
    if not len(positions):
        return Frame.empty()
    if check:
        check_uncut(geometry, positions)
    if emit_all:
        return frame_enumerated(geometry, positions, emit_all=True, ending=ending)
    known = None
    if method is None:
        known = extent(geometry, positions, ending)
        instances = float(known[1].sum(dtype=float))
        per_row = _PER_ROW_TUMBLING if geometry.tumbling else _PER_ROW
        by_rows = float(len(positions)) * per_row
        if ending is not None and not geometry.tumbling:
            # By rows, instances outside of `ending` are found too: as many as hold each row, at worst.
            by_rows += len(positions) * math.ceil(geometry.range / geometry.slide) * _PER_OPENED
        method = "enumerated" if instances * _PER_INSTANCE < by_rows else "rows"
    if method == "enumerated":
        return frame_enumerated(geometry, positions, ending=ending, known=known)
    found = frame_by_rows(geometry, positions)
    if ending is None:
        return found
    end = found.start + geometry.range
    return found.where((end > ending[0]) & (end <= ending[1]))
