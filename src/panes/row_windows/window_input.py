"""How rows arrive at a window of rows, and the checks of its declaration and of the columns that it needs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from panes.aggregates.aggregate import Aggregate as Declared
from panes.aggregates.ordering import is_ordered
from panes.engine.schema import field_of
from panes.errors import DeclarationError, SchemaError
from panes.expressions.evaluate import require_boolean
from panes.expressions.expression import Expression
from panes.operators.policies import Gap, SlidingPolicies, Time, WindowPolicies, policy_text
from panes.queries.measures import Delta, Punctuation
from panes.suggestions import nearest
from panes.timeline import Geometry

_AGES = 2**59


@dataclass(frozen=True)
class WindowInput:
    """How rows arrive at a window.

    Parameters
    ----------
    window
        Partitioned by the columns of ``by``, if there are any.
    at
        The column of event time; None for the order of the table.
    where
        Which rows arrive at all.
    port
        The column that says for which input port of an operator a row is.
    others
        The other windows of an operator, which share its rows or its clock.
    ties
        The columns that order rows of one instant; none for all columns of the data.
    """

    window: WindowPolicies
    by: tuple[str, ...]
    at: str | None
    where: Expression | None
    port: str | None = None
    others: tuple[WindowPolicies, ...] = ()
    ties: tuple[str, ...] = ()

    @property
    def mark(self) -> Punctuation | None:
        """Which rows are marks, if the window ends with them."""
        policy = self.window.evict
        return policy if isinstance(policy, Punctuation) and policy.column else None

    @property
    def deltas(self) -> tuple[str, ...]:
        """The columns of delta policies."""
        return tuple(dict.fromkeys(str(policy.column) for policy in self.window.deltas))

    @property
    def timed(self) -> bool:
        """Whether something may happen on the clock."""
        return any(_timed(window) for window in (self.window, *self.others))

    @property
    def together(self) -> bool:
        """Whether partitions depend on each other.

        One evicts another, or tuples of two partitions meet in a window that is partitioned by something else.
        """
        partitions = [window.partitioned for window in (self.window, *self.others) if window.partitioned is not None]
        mixed = any(each.evict is not None or (each.by and each.by != self.by) for each in partitions)
        return bool(self.by) and mixed

    @property
    def alone(self) -> bool:
        """Whether one operator gets all tuples: there are no partitions, or they depend on each other."""
        return not self.by or self.together

    @property
    def used(self) -> frozenset[str]:
        """The columns that decide which rows arrive where and when."""
        mark = () if self.mark is None else (self.mark.column,)
        names = (*self.by, *self.deltas, *self.ties, *mark, *(n for n in (self.at, self.port) if n is not None))
        return frozenset((*names, *(() if self.where is None else self.where.roots)))


def _timed(window: WindowPolicies) -> bool:
    policies = (window.evict, window.trigger) if isinstance(window, SlidingPolicies) else (window.evict,)
    return any(isinstance(policy, (Time, Gap)) for policy in policies)


# Checks of declarations


def check_output(alias: str, value: object) -> None:
    """Reject an aggregate that depends on the length of its window: windows of rows have no fixed length."""
    if isinstance(value, Declared) and (value.levels or value.in_order or value.misfit(Geometry(_AGES, 1)) is not None):
        raise DeclarationError(
            f"{alias!r} is {value}, which needs the length or the levels of a window in time, and windows of rows have "
            "no fixed length. Use it with windows on the clock."
        )


def check_times(window: WindowPolicies, at: str | None) -> None:
    """Reject a window in time over rows without a time."""
    evict = None if window.partitioned is None else window.partitioned.evict
    aged = evict is not None and evict.age is not None
    if (aged or _timed(window)) and at is None:
        raise DeclarationError(
            f"the window '{window}' is measured in time, and rows have none. Write at= with the column of their time."
        )


# Checks of columns


def check_input(input: WindowInput, schema: pa.Schema) -> None:
    """Reject columns that are missing, or of an unsuitable type."""
    for key in input.by:
        _check_name(f"by={key!r}", key, schema)
    if input.at is not None:
        _check_name(f"at={input.at!r}", input.at, schema)
        type_ = field_of(schema, input.at).type
        if not pa.types.is_timestamp(type_):
            raise SchemaError(f"at={input.at!r} is of type {type_}, and time must be a timestamp. Convert it first.")
    check_measures(input, schema)
    if input.port is not None:
        _check_name(f"port={input.port!r}", input.port, schema)
        type_ = field_of(schema, input.port).type
        if not pa.types.is_integer(type_):
            raise SchemaError(f"port={input.port!r} is of type {type_}, and ports are numbers from 0. Cast it first.")
    if input.where is not None:
        require_boolean(input.where, schema)


def check_tuples(input: WindowInput, schema: pa.Schema, order: Iterable[str] = ()) -> None:
    """Check the columns of an operator. It gets rows as dicts, in which names are spelled as in the data.

    Parameters
    ----------
    order
        The columns that a sort orders by.
    """
    check_input(input, schema)
    check_order(order, schema)
    for name in (*input.by, *input.deltas, *(() if input.port is None else (input.port,))):
        if name not in schema.names:
            raise SchemaError(
                f"{name!r} is spelled {field_of(schema, name).name!r} in the data, and the dicts that an operator "
                "gets are case-sensitive. Spell it as in the data."
            )


def check_order(order: Iterable[str], schema: pa.Schema) -> None:
    """Reject columns to sort by that are missing, or have no order."""
    for name in order:
        if name not in schema.names:
            raise SchemaError(f"order={name!r} is not a column of the data ({nearest(name, schema.names)})")
        if not is_ordered(schema.field(name).type):
            raise SchemaError(f"order={name!r} is of type {schema.field(name).type}, which has no order to sort by.")


def check_measures(input: WindowInput, schema: pa.Schema, whose: str = "") -> None:
    """Reject columns of sizes and paces, or of marks, that are missing or of an unsuitable type.

    Parameters
    ----------
    whose
        The beginning of error messages.
    """
    for policy in input.window.deltas:
        _check_name(f"{whose}delta({policy.column!r})", str(policy.column), schema)
        check_delta(policy, field_of(schema, str(policy.column)).type)
    if input.mark is not None:
        what = f"{whose}punctuation({input.mark.column!r})"
        _check_name(what, input.mark.column, schema)
        type_ = field_of(schema, input.mark.column).type
        if not pa.types.is_boolean(type_):
            raise SchemaError(f"{what} is of type {type_}, and must be boolean. Compare it with something first.")


def check_delta(policy: Delta, type_: pa.DataType) -> None:
    """Reject a column without distances."""
    if pa.types.is_timestamp(type_):
        if not policy.temporal:
            raise SchemaError(
                f"{policy_text(policy)} is measured in numbers, and the column is of type {type_}. Write a duration, "
                f"as delta({policy.column!r}, '10 s')."
            )
    elif policy.temporal:
        raise SchemaError(
            f"{policy_text(policy)} is measured in time, and the column is of type {type_}. Write a number, as "
            f"delta({policy.column!r}, 10), or convert it to a timestamp."
        )
    elif not (pa.types.is_integer(type_) or pa.types.is_floating(type_)):
        raise SchemaError(
            f"{policy_text(policy)} needs a column of numbers or timestamps, and this one is of type {type_}. Cast it, "
            "for example to double."
        )


def _check_name(what: str, name: str, schema: pa.Schema) -> None:
    if not isinstance(name, str):
        raise SchemaError(f"{what} is not the name of a column. Write it as a string.")
    if name.lower() not in {known.lower() for known in schema.names}:
        raise SchemaError(f"{what} is not a column of the data ({nearest(name, schema.names)})")
