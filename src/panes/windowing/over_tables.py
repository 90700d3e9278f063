"""Windows by policy over whole tables: what a user asks for, checked before any row is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from panes.algebra.aggregates import Aggregate as Declared
from panes.declare.expressions import Expression, ExpressionLike, expression
from panes.declare.query import Query, query
from panes.declare.windows import tumbling
from panes.errors import DeclarationError
from panes.timeline import Geometry
from panes.windowing.aggregate import Aggregate
from panes.windowing.clocks import Clock, EventClock
from panes.windowing.declarations import (
    BY_OPERATOR,
    Gap,
    PartitionAge,
    Punctuation,
    Sliding,
    Time,
    Tumbling,
    WindowDeclaration,
)
from panes.windowing.operator import Operator
from panes.windowing.policy import partitions
from panes.windowing.vectorised import deltas_of

ARRIVAL = "__panes_arrival"
"""Stands for the column of time where there is none: rows arrive in the order of the table."""

_AGES = 2**59

MakeOperator: TypeAlias = "Callable[..., Operator]"
"""Makes an operator when it is called with a window and ``clock=``: as a rule its class."""


@dataclass(frozen=True)
class Stream:
    """How the rows of a table arrive at a window.

    Parameters
    ----------
    window
        Partitioned by ``by``, if that names columns.
    at
        The column of time; None for the order of the table.
    where
        Which rows arrive at all.
    punctuations
        The column that says which rows are window punctuations.
    port
        The column that says for which input port of an operator a row is.
    others
        The other windows of an operator, which go by the same clock.
    """

    window: WindowDeclaration
    by: tuple[str, ...]
    at: str | None
    where: Expression | None
    punctuations: str | None
    port: str | None = None
    others: tuple[WindowDeclaration, ...] = ()

    @property
    def deltas(self) -> tuple[str, ...]:
        """The columns that delta policies go by."""
        return tuple(dict.fromkeys(str(policy.attribute) for policy in deltas_of(self.window)))

    @property
    def timed(self) -> bool:
        """Whether something may happen on the clock."""
        return any(_timed(window) for window in (self.window, *self.others))

    @property
    def together(self) -> bool:
        """Whether partitions have an influence on each other.

        One is evicted because of the others, or tuples of two partitions meet in a window that is partitioned by
        something else.
        """
        partitions = [window.partitioned for window in (self.window, *self.others) if window.partitioned is not None]
        mixed = any(each.evict is not None or (each.by and each.by != self.by) for each in partitions)
        # Without partitions of rows there are none that could meet.
        return bool(self.by) and mixed

    @property
    def alone(self) -> bool:
        """Whether one operator has all tuples: there are no partitions, or they have an influence on each other."""
        return not self.by or self.together

    @property
    def used(self) -> frozenset[str]:
        """The columns that decide which rows arrive where and when."""
        others = (self.at, self.punctuations, self.port)
        names = (*self.by, *self.deltas, *(name for name in others if name is not None))
        return frozenset((*names, *(() if self.where is None else self.where.roots)))


@dataclass(frozen=True)
class WindowedAggregates:
    """Aggregates over every window that is processed, for each group in it.

    Parameters
    ----------
    query
        Aggregates and derived columns; its keys are those of partitions and groups, its windows nothing.
    partial
        Whether a sliding window is processed before it has been full for the first time.
    """

    stream: Stream
    query: Query
    partial: bool


@dataclass(frozen=True)
class WindowedOperator:
    """An operator that is given one tuple after another.

    Parameters
    ----------
    schema
        The columns of what it submits; None to see from the values.
    declaration
        Which operator it is, and what it was declared with: what its state means.
    """

    stream: Stream
    make: MakeOperator
    schema: pa.Schema | None
    declaration: str = ""


def stream_of(
    window: WindowDeclaration,
    by: str | Iterable[str] = (),
    at: str | None = None,
    where: ExpressionLike | None = None,
    punctuations: str | None = None,
    port: str | None = None,
) -> Stream:
    """Check how rows arrive.

    Examples
    --------
    >>> import panes as pn
    >>> str(stream_of(pn.policy.tumbling(pn.policy.count(3)), by="device").window)
    'tumbling, partitioned, count(3)'
    """
    if not isinstance(window, (Tumbling, Sliding)):
        raise DeclarationError(
            f"window={window!r} is not a window by policy. Write for example pn.policy.tumbling(pn.policy.count(100)); "
            "windows over event time alone are for pn.query."
        )
    window = _partitioned(window, (by,) if isinstance(by, str) else tuple(by))
    keys = () if window.partitioned is None else window.partitioned.by
    columns = (*keys, *(policy.attribute for policy in deltas_of(window)))
    for name in (*columns, *(each for each in (at, punctuations, port) if each is not None)):
        if not isinstance(name, str) or not name:
            raise DeclarationError(f"{name!r} is not the name of a column, and a table has no others. Write a string.")
    condition = None if where is None else expression(where)
    stream = Stream(window, tuple(map(str, keys)), at, condition, punctuations, port)
    _check_times(stream)
    if isinstance(window.evict, Punctuation) != (punctuations is not None):
        raise DeclarationError(
            f"the window '{window}' ends with punctuations, and no row is one. Write punctuations= with a boolean "
            "column that says which rows are."
            if punctuations is None
            else f"punctuations={punctuations!r} is for windows that end with them, and '{window}' does not. Leave it "
            "out, or write pn.policy.tumbling(pn.policy.punctuation())."
        )
    return stream


def aggregates_of(
    stream: Stream,
    select: Mapping[str, Declared | ExpressionLike],
    group_by: str | Iterable[str] = (),
    partial: bool = True,
) -> WindowedAggregates:
    """Check what is computed over windows."""
    Aggregate.model.check(stream.window)
    groups = (group_by,) if isinstance(group_by, str) else tuple(group_by)
    if isinstance(select, Mapping):
        for alias, value in select.items():
            check_output(alias, value)
    keys = tuple(dict.fromkeys((*stream.by, *groups)))
    declared = query(
        "windowed", by=keys, at=stream.at or ARRIVAL, select=select, over=tumbling("1 us"), where=stream.where
    )
    if declared.expiring:
        raise DeclarationError("windows by policy do not say when an answer expires. Leave 'expires' out.")
    partitioned = stream.window.partitioned
    if partitioned is not None and (callable(partitioned.select) or partitioned.select == BY_OPERATOR):
        raise DeclarationError(
            "partitions that a function or an operator selects are selected by their tuples, and aggregates are "
            "computed from columns. Write operator= with an operator of your own."
        )
    return WindowedAggregates(stream, declared, partial)


def check_output(alias: str, value: object) -> None:
    """Refuse what cannot be computed over windows of any length."""
    if isinstance(value, Declared):
        # One that has to know how long windows are: these are of any length.
        if value.levels or value.in_order or value.misfit(Geometry(_AGES, 1)) is not None:
            raise DeclarationError(
                f"{alias!r} is {value}, which goes by the length or the levels of a window over time, and windows by "
                "policy are of any length. Leave it to a query."
            )
    elif callable(value):
        raise DeclarationError(
            f"{alias!r} is computed by a function, which needs the tuples themselves. Write operator= with "
            "lambda window, clock: Aggregate(window, {...}, clock=clock) of panes.windowing, and schema=."
        )


def operator_of(stream: Stream, operator: MakeOperator, schema: pa.Schema | None = None) -> WindowedOperator:
    """Check an operator, by making one: its windows, and those it does not support, are known before any row is."""
    if not callable(operator):
        raise DeclarationError(
            f"operator={operator!r} makes no operator. Write the class, or a function of a window and a clock: "
            "lambda window, clock: Deduplicator(window, clock=clock)."
        )
    if schema is not None and not isinstance(schema, pa.Schema):
        raise DeclarationError(f"schema={schema!r} is not a pyarrow Schema. Write pa.schema({{'n': pa.int64()}}).")
    probe = made(WindowedOperator(stream, operator, schema), EventClock())
    # Not only those of ports: an operator may make windows of its own.
    windows = (*probe.declared, *(each.declared for each in probe.windows))
    stream = replace(stream, others=tuple(each for each in windows if each is not None and each != stream.window))
    _check_times(stream)
    return WindowedOperator(stream, operator, schema, f"{type(probe).__name__}: {probe.declaration()}")


def made(declared: WindowedOperator, clock: Clock) -> Operator:
    """An operator on a clock."""
    try:
        operator = declared.make(declared.stream.window, clock=clock)
    except TypeError as error:
        raise DeclarationError(
            f"operator= was called with a window and clock=, and that failed: {error}. Write a function that needs no "
            "more, as lambda window, clock: Aggregate(window, {'n': pn.count()}, clock=clock)."
        ) from error
    if not isinstance(operator, Operator):
        raise DeclarationError(
            f"operator= made {operator!r}, which is no operator. Make a subclass of panes.windowing.Operator."
        )
    return operator


def _timed(window: WindowDeclaration) -> bool:
    policies = (window.evict, window.trigger) if isinstance(window, Sliding) else (window.evict,)
    return any(isinstance(policy, (Time, Gap)) for policy in policies)


def _check_times(stream: Stream) -> None:
    """Refuse windows that go by time where rows have none."""
    for window in (stream.window, *stream.others):
        aged = window.partitioned is not None and isinstance(window.partitioned.evict, PartitionAge)
        if (aged or _timed(window)) and stream.at is None:
            raise DeclarationError(
                f"the window '{window}' goes by time, and rows have none. Write at= with the column of their time."
            )


def _partitioned(window: WindowDeclaration, by: tuple[str, ...]) -> WindowDeclaration:
    partitioned = window.partitioned
    if partitioned is None:
        return replace(window, partitioned=partitions(*by)) if by else window
    if by and partitioned.by and partitioned.by != by:
        raise DeclarationError(
            f"by={by!r} and the window is partitioned by {partitioned.by!r}. Write the columns in one place."
        )
    if not by and not partitioned.by:
        raise DeclarationError("the window is partitioned by no column. Write by='device'.")
    return replace(window, partitioned=replace(partitioned, by=by or partitioned.by))
