"""Joins over windows of rows: both sides as the rows of one stream, which come in through the ports of a ``Join``.

Rows of one instant come in the order of the column that a window goes by; then those of the left side come first; then
they are in the order of all their columns, by the names of these, as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from panes.aggregates.ordering import is_ordered
from panes.engine.input_columns import JoinColumns, Side
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
"""What the rows of both sides have in common, beside their keys and the column that a window goes by."""


def key_name(number: int) -> str:
    """What the number-th key of a row of both sides is called."""
    return f"__panes_key{number}"


def left_name(place: int | str) -> str:
    """What the column of the left side at some place is called."""
    return f"__panes_left_{place}"


def right_name(place: int | str) -> str:
    """What the column of the right side at some place is called."""
    return f"__panes_right_{place}"


@dataclass(frozen=True)
class BothSides:
    """The rows of both sides on their way to a window of rows.

    Parameters
    ----------
    schemas
        Of the left side and of the right.
    """

    declared: JoinDeclaration
    columns: JoinColumns
    schemas: tuple[pa.Schema, pa.Schema]
    window: RowWindow

    @cached_property
    def delta(self) -> tuple[str, int, int] | None:
        """The column that the window goes by, and where it is on both sides."""
        if not isinstance(self.window.size, Delta):
            return None
        name = str(self.window.size.column)
        sides = zip(("the left side", "the right side"), self.schemas, strict=True)
        left, right = (position(f"pn.delta({name!r}, ...)", name, side, schema) for side, schema in sides)
        types = self.schemas[0].field(left).type, self.schemas[1].field(right).type
        if plain(types[0]) != plain(types[1]):
            raise SchemaError(
                f"{name!r} is {shown(types[0])} in the left side and {shown(types[1])} in the right side, and the "
                f"window {self.window.suffix!r} goes by it on both. Cast one of them to the type of the other."
            )
        return name, left, right

    @property
    def keys(self) -> tuple[str, ...]:
        """What their keys are called."""
        return tuple(map(key_name, range(len(self.declared.on))))

    @cached_property
    def stream(self) -> WindowInput:
        """How they arrive."""
        return WindowInput(policies_of(self.window, self.keys), self.keys, AT, None, PORT, ties=self.ties)

    @property
    def ties(self) -> tuple[str, ...]:
        """What orders rows of one instant."""
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
        """Where each of their columns is on the left side and on the right; None where that has none."""
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
        """What makes the operator.

        Parameters
        ----------
        condition
            On the row of a match, a dict.
        """
        shown = [
            (*zip(self.keys, self.declared.on, strict=True), *((name(i), alias) for i, alias in side.others))
            for side, name in self._named
        ]
        outer = None if self.declared.how == "inner" else self.declared.how
        return MakeJoin(self.keys, (shown[0], shown[1]), outer, condition)

    @property
    def _named(self) -> tuple[tuple[Side, Any], tuple[Side, Any]]:
        return (self.columns.left, left_name), (self.columns.right, right_name)


@dataclass(frozen=True)
class MakeJoin:
    """Makes a join whose windows are alike.

    Parameters
    ----------
    columns
        Of the left side and of the right: the columns of a row, and what they are called in a match.
    outer
        Whose rows come out without a match too.
    condition
        What else a match has to fulfil.
    """

    keys: tuple[str, ...]
    columns: tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]
    outer: str | None
    condition: Any

    def __call__(self, window: Any, clock: EventClock) -> Join:
        """A join on a clock."""
        match = None if self.condition is None else self._fulfils
        return Join(window, window, on=self.keys, match=match, select=self.row, outer=self.outer, clock=clock)

    def row(self, left: Any, right: Any) -> dict[str, Any]:
        """The row of a match, or of a row without one."""
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
    """The rows of both sides on their way to a window of rows, which may go by a column that both have."""
    both = BothSides(declared, columns, schemas, window)
    if both.delta is not None:
        for policy in both.stream.window.deltas:
            check_delta(policy, schemas[0].field(both.delta[1]).type)
    return both


@dataclass(frozen=True)
class Condition:
    """What a match has to fulfil, for one row at a time."""

    where: Expression
    schema: pa.Schema

    def __call__(self, row: dict[str, Any]) -> bool:
        """Whether a row fulfils it; what is unknown does not."""
        return evaluate(self.where, pa.Table.from_pylist([row], schema=self.schema))[0].as_py() is True
