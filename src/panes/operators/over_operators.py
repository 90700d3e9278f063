"""Operators of a user's own over the rows of tables, checked before any row is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from panes.declare.expressions import ExpressionLike, expression
from panes.errors import DeclarationError
from panes.operators.clocks import Clock, EventClock
from panes.operators.declarations import Sliding, Tumbling, WindowDeclaration
from panes.operators.operator import Operator
from panes.operators.over_tables import Stream, check_times
from panes.operators.vectorised import deltas_of

MakeOperator: TypeAlias = "Callable[..., Operator]"
"""Makes an operator when it is called with a window and ``clock=``: as a rule its class."""


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
    by: Iterable[str] = (),
    at: str | None = None,
    where: ExpressionLike | None = None,
    port: str | None = None,
) -> Stream:
    """Check how rows arrive."""
    if not isinstance(window, (Tumbling, Sliding)):
        raise DeclarationError(f"{window!r} is not a lowered window.")
    columns = (*by, *(policy.attribute for policy in deltas_of(window)))
    for name in (*columns, *(each for each in (at, port) if each is not None)):
        if not isinstance(name, str) or not name:
            raise DeclarationError(f"{name!r} is not the name of a column, and a table has no others. Write a string.")
    check_times(window, at)
    return Stream(window, tuple(by), at, None if where is None else expression(where), port)


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
    for window in (stream.window, *stream.others):
        check_times(window, stream.at)
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
            f"operator= made {operator!r}, which is no operator. Make a subclass of panes.operators.Operator."
        )
    return operator
