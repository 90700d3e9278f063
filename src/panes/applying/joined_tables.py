"""Join two tables: each match is found once, whatever the number of windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.applying.joined_rows import PORT, BothSides, both_sides
from panes.applying.operators_in_columns import pairs
from panes.engine.input_columns import JoinColumns, SideColumns, join_columns
from panes.engine.keys import key_ordinals
from panes.engine.sorting import sort_by_time, sort_ties
from panes.errors import SchemaError
from panes.expressions.evaluate import evaluate, require_boolean
from panes.frames import Positions
from panes.frames.matching import levels, near
from panes.frames.row_frame import Arrivals
from panes.operators.join_operator import Join
from panes.queries.join_declarations import JoinDeclaration
from panes.queries.windows import RowWindow
from panes.row_windows.arrival import delta_values


def join_tables(declared: JoinDeclaration, left: pa.Table, right: pa.Table) -> pa.Table:
    """Join two tables over all windows, in this process or in a Spark task."""
    columns = join_columns(declared, left.schema, right.schema)
    if declared.where is not None:
        require_boolean(declared.where, columns.match)
    pair = _Pair(declared, columns, left, right)
    if declared.layout == "matches":
        return pair.each_once(pair.matches())
    in_time = pair.long(pair.matches()) if declared.sizes else []
    return pa.concat_tables([*in_time, *map(pair.over_rows, declared.rows)])


def _check_values(both: BothSides, columns: Mapping[str, pa.ChunkedArray]) -> None:
    """Reject rows without a value in the column that the window is measured in."""
    for name in both.input.deltas:
        if missing := columns[name].is_null(nan_is_null=True).to_numpy().sum():
            raise SchemaError(
                f"{name!r} is missing in {missing} of the rows, and the window {both.window.suffix!r} is measured in "
                "it. Leave such rows out of both sides (NaN is not a value), or give them one."
            )


@dataclass(frozen=True)
class _Matches:
    """Matches: their rows on both sides, the earlier of their times, and the narrowest window that has them."""

    left: Array
    right: Array
    since: Array
    level: Array


@dataclass(frozen=True)
class _Pair:
    """Two tables to join. Row -1 stands for the nulls of a side without a match."""

    declared: JoinDeclaration
    columns: JoinColumns
    left: pa.Table
    right: pa.Table

    def matches(self) -> _Matches:
        """Return each match of the widest window once."""
        (places, keys, instants), (right_places, right_keys, right_instants) = self._able()
        lefts, rights, sinces, distances = [], [], [], []
        for a, b in near((keys, instants), (right_keys, right_instants), self.declared.widest):
            one, other = instants[a], right_instants[b]
            a, b = places[a], right_places[b]
            if self.declared.where is not None:
                keep = evaluate(self.declared.where, self._rows(a, b)).fill_null(False).to_numpy()
                a, b, one, other = a[keep], b[keep], one[keep], other[keep]
            lefts.append(a)
            rights.append(b)
            sinces.append(np.minimum(one, other))
            distances.append(np.abs(one - other))
        return _Matches(_whole(lefts), _whole(rights), _whole(sinces), levels(_whole(distances), self.declared.sizes))

    def long(self, found: _Matches) -> list[pa.Table]:
        """Return a row per match and window and, in outer joins, per window and unmatched row."""
        tables = []
        nearest_of_left = self._nearest_match(found.left, found.level, len(self.left))
        nearest_of_right = self._nearest_match(found.right, found.level, len(self.right))
        for number, (name, size) in enumerate(zip(self.declared.names, self.declared.sizes, strict=True)):
            held = found.level <= number
            a, b, expires = found.left[held], found.right[held], found.since[held] + size
            alone = np.flatnonzero(nearest_of_left > number) if self.declared.keeps_left else _NONE
            others = np.flatnonzero(nearest_of_right > number) if self.declared.keeps_right else _NONE
            a, b, matched = _with_unmatched(a, b, alone, others)
            labels = {"window_name": pa.repeat(name, len(a))}
            tables.append(self._result(a, b, labels, expires, matched))
        return tables

    def over_rows(self, window: RowWindow) -> pa.Table:
        """Return the same for a window of rows. When a match expires there depends on rows that may still come."""
        a, b = self._meeting(window)
        if self.declared.where is not None:
            parts = (slice(begin, begin + _AT_ONCE) for begin in range(0, len(a), _AT_ONCE))
            kept = [evaluate(self.declared.where, self._rows(a[part], b[part])).fill_null(False) for part in parts]
            keep = _whole([each.to_numpy() for each in kept]).astype(bool)
            a, b = a[keep], b[keep]
        alone = np.setdiff1d(np.arange(len(self.left)), a) if self.declared.keeps_left else _NONE
        others = np.setdiff1d(np.arange(len(self.right)), b) if self.declared.keeps_right else _NONE
        a, b, _ = _with_unmatched(a, b, alone, others)
        return self._result(a, b, {"window_name": pa.repeat(window.suffix, len(a))}, _NONE, 0)

    def _meeting(self, window: RowWindow) -> tuple[Array, Array]:
        """Return the rows of both sides that meet: when one arrives, the other is in the window of its side and key."""
        both = both_sides(self.declared, self.columns, (self.left.schema, self.right.schema), window)
        able = self._able()
        places, keys, instants = (np.concatenate(each) for each in zip(*able, strict=True))
        ports = np.repeat([0, 1], [len(rows) for rows, _, _ in able])

        def column(name: str) -> pa.ChunkedArray:
            """Return a column of the left side followed by that of the right; null for a side without it."""
            found = zip((self.left, self.right), both.places[name], able, strict=True)
            parts = [
                (None if i is None else table.column(i).take(pa.array(rows)), rows) for table, i, (rows, _, _) in found
            ]
            type_ = next(part.type for part, _ in parts if part is not None)
            arrays = [pa.nulls(len(rows), type_) if part is None else _array(part).cast(type_) for part, rows in parts]
            return pa.chunked_array(arrays)

        columns = {PORT: pa.chunked_array([pa.array(ports)])} | {name: column(name) for name in both.input.deltas}
        _check_values(both, columns)
        order = sort_by_time(keys, instants)
        own, when = keys[order], instants[order]
        same = (own[1:] == own[:-1]) & (when[1:] == when[:-1])
        if same.any():
            sort_ties(order, same, [columns[name] if name in columns else column(name) for name in both.ties])
        tuples = pa.table(columns).take(pa.array(order))
        starts = np.append(np.searchsorted(own, np.unique(keys)), len(keys))
        attributes = delta_values(both.input.window, tuples)
        arrivals = Arrivals(Positions.of_events(when, starts), int(instants.max(initial=0)) + 1, attributes)
        # Rows that meet already have equal keys; those without a key were left out.
        met = pairs(Join(both.input.window, both.input.window), ports[order], tuples, arrivals)
        assert met is not None
        left, right = (places[order[rows]] for rows in met)
        return left, right

    def each_once(self, found: _Matches) -> pa.Table:
        """Return a row per match and, in outer joins, per row without a match in any window."""
        count = len(self.declared.sizes)
        alone = np.setdiff1d(np.arange(len(self.left)), found.left) if self.declared.keeps_left else _NONE
        others = np.setdiff1d(np.arange(len(self.right)), found.right) if self.declared.keeps_right else _NONE
        a, b, matched = _with_unmatched(found.left, found.right, alone, others)
        level = np.concatenate([found.level, np.full(len(a) - matched, count)])
        names = pa.array([*self.declared.names, None], pa.string())
        expires = found.since + np.asarray(self.declared.sizes, dtype=np.int64)[found.level]
        labels = {"window_name": names.take(pa.array(level)), "level": pa.array(level).cast(pa.int32())}
        return self._result(a, b, labels, expires, matched)

    def _able(self) -> list[tuple[Array, Array, Array]]:
        """Return the rows of each side that can match: time and keys must not be null, as in SQL."""
        ordinals = key_ordinals(self._both_keys, len(self.left) + len(self.right))
        able = np.ones(len(ordinals), dtype=bool)
        for key in self._both_keys:
            able &= _valid(key)
        cut, sides = len(self.left), []
        for table, side, part in (
            (self.left, self.columns.left, slice(0, cut)),
            (self.right, self.columns.right, slice(cut, None)),
        ):
            times = _array(table.column(side.at))
            rows = np.flatnonzero(able[part] & _valid(times))
            instants = times.take(pa.array(rows)).view(pa.int64()).to_numpy()
            sides.append((rows, ordinals[part][rows], instants))
        return sides

    @cached_property
    def _both_keys(self) -> list[pa.Array]:
        """The keys of the left side, then those of the right: equal ones have equal ordinals."""
        positions = zip(self.columns.left.keys, self.columns.right.keys, strict=True)
        pairs = [(_array(self.left.column(i)), _array(self.right.column(j))) for i, j in positions]
        return [pa.concat_arrays([a, b.cast(a.type)]) for a, b in pairs]

    def _nearest_match(self, rows: Array, level: Array, length: int) -> Array:
        """Return the narrowest window in which each row of a side has a match; the number of windows if none."""
        least = np.full(length, len(self.declared.sizes), dtype=np.int64)
        np.minimum.at(least, rows, level)
        return least

    def _rows(self, a: Array, b: Array) -> pa.Table:
        """Return the keys, left columns and right columns of pairs of rows."""
        left, right = _places(a), _places(b)
        either = pa.array(np.where(a < 0, len(self.left) + b, a))
        keys = [column.take(either) for column in self._both_keys]
        arrays = [*keys, *_taken(self.left, self.columns.left, left), *_taken(self.right, self.columns.right, right)]
        return pa.table(arrays, schema=self.columns.match)

    def _result(self, a: Array, b: Array, labels: dict[str, pa.Array], expires: Array, matched: int) -> pa.Table:
        """Return rows of the result: first matches, then unmatched rows, which do not expire."""
        instants = np.concatenate([expires, np.zeros(len(a) - matched, dtype=np.int64)])
        shown = pa.array(instants, mask=np.arange(len(a)) >= matched).view(self.columns.instant)
        rows = self._rows(a, b)
        return pa.table({**labels, **dict(zip(rows.column_names, rows.columns, strict=True)), "expires": shown})


_NONE = np.empty(0, dtype=np.int64)
_AT_ONCE = 1 << 20
"""The number of matches that are evaluated at a time."""


def _with_unmatched(a: Array, b: Array, alone: Array, others: Array) -> tuple[Array, Array, int]:
    left = np.concatenate([a, alone, np.full(len(others), -1)])
    right = np.concatenate([b, np.full(len(alone), -1), others])
    return left, right, len(a)


def _places(rows: Array) -> pa.Array:
    return pa.array(rows, mask=rows < 0)


def _taken(table: pa.Table, side: SideColumns, rows: pa.Array) -> list[pa.ChunkedArray]:
    return [table.column(i).take(rows) for i, _ in side.others]


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()


def _valid(array: pa.Array) -> Array:
    valid: Array = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _whole(parts: list[Array]) -> Array:
    return np.concatenate([_NONE, *parts])
