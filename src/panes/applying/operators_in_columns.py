"""Run built-in operators on whole columns: windows are index pairs, and only submitted rows become tuples.

==========  =====================================================================================================
requires    rows sorted by partition and arrival; a ``Sort`` of whole windows, or an inner ``Join`` whose equal
            attributes have one type, and no subclass of them; no partition eviction
costs       Sort: one sort of all rows. Join: two searches per tuple, and a call of ``match`` and ``select`` per pair
            that may match
paper       Gedik 2014, sections 6.1.2 and 6.1.3
==========  =====================================================================================================

Everything else runs tuple by tuple: a progressive sort depends on all that it has released, and an outer join on when
tuples leave.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.aggregates.ordering import codes, is_ordered
from panes.applying.user_operators import WindowedOperator, made
from panes.engine.columns import column_of, whole
from panes.engine.keys import key_ordinals, one_zero
from panes.frames import Positions
from panes.frames.order import ARRIVAL
from panes.frames.positions import Integers, ranges
from panes.frames.row_frame import Arrivals, key_of_rows
from panes.frames.row_sliding import TriggerMoments
from panes.operators.clocks import EventClock
from panes.operators.join_operator import Join
from panes.operators.policies import SlidingPolicies, Time, TumblingPolicies
from panes.operators.sort_operator import Sort
from panes.queries.measures import Rows
from panes.row_windows.arrival import delta_values
from panes.row_windows.bound_rows import ENDLESS
from panes.row_windows.framing import Framing, check_ascending, kept_at

_AT_ONCE = 1 << 14
"""The number of pairs whose tuples are made at a time."""


def in_columns(declared: WindowedOperator, table: pa.Table, arrivals: Arrivals) -> pa.Table | Iterator[object] | None:
    """Return what an operator submits, as a table or as tuples; None if it must run tuple by tuple."""
    input, operator = declared.input, made(declared, EventClock())
    # The callable may use another window than it was passed, which arrivals are not for.
    if input.together or not len(table) or operator.declared[:1] != (input.window,):
        return None
    if type(operator) is Sort and isinstance(input.window, TumblingPolicies) and input.port is None:
        if declared.order and isinstance(input.window.evict, Time) and input.window.evict.origin == "epoch":
            # The last window on the clock ends as if rows followed.
            arrivals = replace(arrivals, end=ENDLESS)
        return _sorted(operator, input.window, table, arrivals)
    if type(operator) is Join and operator.outer is None and input.port is not None:
        return _joined(operator, input.port, table, arrivals)
    return None


# Sort


def _sorted(operator: Sort, window: TumblingPolicies, table: pa.Table, arrivals: Arrivals) -> pa.Table | None:
    if not all(name in table.column_names and is_ordered(table.schema.field(name).type) for name, _ in operator.order):
        return None
    found = Framing(window, arrivals).frame.held()
    width = found.hi - found.lo
    rows, owner = ranges(found.lo, width), np.repeat(np.arange(len(found)), width)
    return table.take(pa.array(rows[in_order(operator.order, table, rows, owner)]))


@dataclass(frozen=True)
class SortRows:
    """A function that sorts the rows of a window, for ``pn.apply``."""

    order: tuple[tuple[str, bool], ...]

    def __call__(self, key: object, window: object, rows: pa.Table) -> pa.Table:
        """Return the rows in order."""
        everything = np.arange(len(rows))
        return rows.take(pa.array(in_order(self.order, rows, everything, np.zeros(len(rows), np.int64))))


def in_order(order: Sequence[tuple[str, bool]], table: pa.Table, rows: Integers, owner: Integers) -> Integers:
    """Return the order that sorts some rows of a table within their windows; equal rows keep their order.

    Parameters
    ----------
    owner
        The window of each row.
    """
    keys: list[Array] = []
    for name, descending in reversed(order):
        keys += [key[rows] for key in _keys(whole(table.column(name)), descending)]
    return np.lexsort((*keys, owner))


def _keys(column: pa.Array, descending: bool) -> list[Array]:
    """Return sort keys for ``lexsort``, the least significant first: nulls first and NaN last, or descending."""
    values = codes(column).values
    if descending:
        values = -np.unique(values, return_inverse=True)[1]
    if not column.null_count:
        return [values]
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return [np.where(valid, values, 0), ~valid if descending else valid]


# Join


def _joined(join: Join, port: str, table: pa.Table, arrivals: Arrivals) -> Iterator[object] | None:
    tags = column_of(table, port)
    if tags.null_count or not np.isin(tags.to_numpy(), (0, 1)).all():
        return None  # the run tuple by tuple raises at the first invalid row
    tuples = table.drop_columns([port])
    met = pairs(join, tags.to_numpy(), tuples, arrivals)
    return None if met is None else join.matches(_tuples(tuples, *met))


def pairs(join: Join, ports: Array, tuples: pa.Table, arrivals: Arrivals) -> tuple[Integers, Integers] | None:
    """Return the left and the right tuples that meet in the windows of an inner join and have equal attributes.

    In the order of the arriving tuple, and for each of them oldest first. None if columns cannot be compared as they
    are.
    """
    sides = [np.flatnonzero(ports == side) for side in (0, 1)]
    codes_ = _equal(join, tuples, sides)
    if codes_ is None:
        return None
    probing: list[Integers] = []
    met: list[tuple[Integers, Integers]] = []
    for side, other in ((0, 1), (1, 0)):
        probe, candidate = _candidates(join, side, tuples, arrivals, sides, codes_)
        pair = sides[side][probe], sides[other][candidate]
        probing.append(pair[0])
        met.append(pair if side == 0 else (pair[1], pair[0]))
    order = np.argsort(np.concatenate(probing), kind="stable")
    left, right = (np.concatenate(each)[order] for each in zip(*met, strict=True))
    return left, right


def _equal(join: Join, tuples: pa.Table, sides: list[Integers]) -> list[Integers] | None:
    """Return for the tuples of each side a code, equal where attributes are equal, and -1 if one of them is null.

    None if columns cannot be compared as they are.
    """
    lengths = [len(rows) for rows in sides]
    columns = []
    for names in join.pairs.items():
        if any(name not in tuples.column_names for name in names):
            return None
        parts = [whole(tuples.column(name)).take(pa.array(rows)) for name, rows in zip(names, sides, strict=True)]
        if parts[0].type != parts[1].type or not is_ordered(parts[0].type):
            return None
        columns.append(one_zero(pa.concat_arrays(parts)))
    code = key_ordinals(columns, sum(lengths))
    for column in columns:
        code = np.where(column.is_valid().to_numpy(zero_copy_only=False), code, -1)
    return np.split(code, lengths[:1])


def _candidates(
    join: Join, side: int, tuples: pa.Table, arrivals: Arrivals, sides: list[Integers], code: list[Integers]
) -> tuple[Integers, Integers]:
    """Return pairs of tuples of a side and equal tuples in the window of the other side, by position in each side."""
    nothing = np.zeros(0, np.int64)
    window, rows, others = join.declared[1 - side], sides[side], sides[1 - side]
    assert isinstance(window, SlidingPolicies)
    if window.evict == Rows(0) or not len(others):
        return nothing, nothing
    events, starts = arrivals.events, arrivals.events.key_starts
    own = Positions.of_events(events.start[rows], np.searchsorted(rows, starts))
    other = Positions.of_events(events.start[others], np.searchsorted(others, starts))
    held = Arrivals(other, arrivals.end, delta_values(window, tuples.take(pa.array(others))))
    check_ascending(window, held)
    # What the other window holds of earlier tuples when a tuple arrives.
    key, hi = key_of_rows(own), np.searchsorted(others, rows)
    some = np.flatnonzero((hi > other.key_starts[key]) & (code[side] >= 0))
    key, hi = key[some], hi[some]
    lo = kept_at(window, held, TriggerMoments(key, own.start[some], hi, hi - 1, ARRIVAL)).lo
    # The other side by code and arrival: equal tuples in the window lie between two places.
    by_code = np.argsort(code[1 - side], kind="stable")
    scale = len(others) + 1
    places = code[1 - side][by_code] * scale + by_code
    first, last = (np.searchsorted(places, code[side][some] * scale + row) for row in (lo, hi))
    count = last - first
    return np.repeat(some, count), by_code[ranges(first, count)]


def _tuples(tuples: pa.Table, left: Integers, right: Integers) -> Iterator[tuple[object, object]]:
    for begin in range(0, len(left), _AT_ONCE):
        some = [side[begin : begin + _AT_ONCE] for side in (left, right)]
        # Make each tuple once, however many others it meets.
        rows, place = np.unique(np.concatenate(some), return_inverse=True)
        made_ = tuples.take(pa.array(rows)).to_pylist()
        one, other = np.split(place, [len(some[0])])
        yield from ((made_[a], made_[b]) for a, b in zip(one.tolist(), other.tolist(), strict=True))
