"""Joins over windows of rows: the rows of both sides are one stream, and enter a ``Join`` by its two ports.

Rows of one instant arrive in the order of the column that the window is measured in, then left before right, then in
the order of all their columns by name, as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from panes.aggregates.ordering import is_ordered
from panes.engine.input_columns import JoinColumns, SideColumns
from panes.engine.schema import plain, position, shown
from panes.errors import SchemaError
from panes.expressions.evaluate import evaluate
from panes.expressions.expression import Expression
from panes.operators.clocks import EventClock
from panes.operators.join_operator import Join
from panes.operators.policies import policies_of
from panes.queries.join_declarations import JoinDeclaration
from panes.queries.measures import Delta
from panes.queries.windows import RowWindow
from panes.row_windows.window_input import WindowInput, check_delta

AT, PORT = "__panes_at", "__panes_port"
"""Columns of both sides: the time, and the side."""


def key_name(number: int) -> str:
    """Return the name of a key column of both sides."""
    return f"__panes_key{number}"


def left_name(place: int | str) -> str:
    """Return the name of the left column at a position."""
    return f"__panes_left_{place}"


def right_name(place: int | str) -> str:
    """Return the name of the right column at a position."""
    return f"__panes_right_{place}"


@dataclass(frozen=True)
class BothSides:
    """The rows of both sides as one stream.

    Parameters
    ----------
    schemas
        The columns of the left side and of the right.
    """

    declared: JoinDeclaration
    columns: JoinColumns
    schemas: tuple[pa.Schema, pa.Schema]
    window: RowWindow

    @cached_property
    def delta(self) -> tuple[str, int, int] | None:
        """The column that the window is measured in, and its positions on both sides."""
        if not isinstance(self.window.size, Delta):
            return None
        name = str(self.window.size.column)
        sides = zip(("the left side", "the right side"), self.schemas, strict=True)
        left, right = (position(f"pn.delta({name!r}, ...)", name, side, schema) for side, schema in sides)
        types = self.schemas[0].field(left).type, self.schemas[1].field(right).type
        if plain(types[0]) != plain(types[1]):
            raise SchemaError(
                f"{name!r} is {shown(types[0])} in the left side and {shown(types[1])} in the right side, and the "
                f"window {self.window.suffix!r} is measured in it on both. Cast one of them to the type of the other."
            )
        return name, left, right

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of key columns."""
        return tuple(map(key_name, range(len(self.declared.on))))

    @cached_property
    def input(self) -> WindowInput:
        """How rows arrive at the window."""
        return WindowInput(policies_of(self.window, self.keys), self.keys, AT, None, PORT, ties=self.ties)

    @property
    def ties(self) -> tuple[str, ...]:
        """The columns that order rows of one instant."""
        one, other = (
            [
                (schema.names[place].lower(), name(place))
                for place, _ in side.others
                if place != side.at and is_ordered(schema.field(place).type)
            ]
            for (side, name), schema in zip(self._named, self.schemas, strict=True)
        )
        first = () if self.delta is None else self.delta[:1]
        return (*first, PORT, *(name for _, name in sorted(one)), *(name for _, name in sorted(other)))

    @cached_property
    def places(self) -> Mapping[str, tuple[int | None, int | None]]:
        """The positions of each column on the left side and on the right; None for a side without it."""
        left, right = self.columns.left, self.columns.right
        found: dict[str, tuple[int | None, int | None]] = dict(
            zip(self.keys, zip(left.keys, right.keys, strict=True), strict=True)
        )
        found[AT] = left.at, right.at
        if self.delta is not None:
            found[self.delta[0]] = self.delta[1:]
        return (
            found
            | {left_name(i): (i, None) for i, _ in left.others}
            | {right_name(i): (None, i) for i, _ in right.others}
        )

    def operator(self, condition: Any = None) -> MakeJoin:
        """Return the callable that makes the join.

        Parameters
        ----------
        condition
            A predicate on the row of a match, a dict.
        """
        shown = [
            (*zip(self.keys, self.declared.on, strict=True), *((name(i), alias) for i, alias in side.others))
            for side, name in self._named
        ]
        outer = None if self.declared.how == "inner" else self.declared.how
        return MakeJoin(self.keys, (shown[0], shown[1]), outer, condition)

    @property
    def _named(self) -> tuple[tuple[SideColumns, Any], tuple[SideColumns, Any]]:
        return (self.columns.left, left_name), (self.columns.right, right_name)


@dataclass(frozen=True)
class MakeJoin:
    """Makes a join with the same window on both sides.

    Parameters
    ----------
    columns
        For the left side and the right: the columns of a row, and their names in a match.
    outer
        The side whose unmatched rows are submitted too.
    condition
        A further condition on matches.
    """

    keys: tuple[str, ...]
    columns: tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]
    outer: str | None
    condition: Any

    def __call__(self, window: Any, clock: EventClock) -> Join:
        """Make a join on a clock."""
        match = None if self.condition is None else self._fulfils
        return Join(window, window, on=self.keys, match=match, select=self.row, outer=self.outer, clock=clock)

    def row(self, left: Any, right: Any) -> dict[str, Any]:
        """Return the row of a match, or of an unmatched row."""
        found: dict[str, Any] = {}
        for item, columns in zip((left, right), self.columns, strict=True):
            if item is not None:
                found |= {alias: item[name] for name, alias in columns}
        return found

    def _fulfils(self, left: Any, right: Any) -> bool:
        return bool(self.condition(self.row(left, right)))


def both_sides(
    declared: JoinDeclaration, columns: JoinColumns, schemas: tuple[pa.Schema, pa.Schema], window: RowWindow
) -> BothSides:
    """Return the rows of both sides as one stream, after checking the column that the window is measured in."""
    both = BothSides(declared, columns, schemas, window)
    if both.delta is not None:
        for policy in both.input.window.deltas:
            check_delta(policy, schemas[0].field(both.delta[1]).type)
    return both


@dataclass(frozen=True)
class Condition:
    """A condition on the row of a match."""

    where: Expression
    schema: pa.Schema

    def __call__(self, row: dict[str, Any]) -> bool:
        """Return whether a row fulfils the condition; null counts as false."""
        return evaluate(self.where, pa.Table.from_pylist([row], schema=self.schema))[0].as_py() is True
