"""The declaration of an operator over the rows of a table or stream: checked before any row is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from panes.applying.user_functions import check_schema
from panes.errors import DeclarationError
from panes.expressions.expression import ExpressionLike, expression
from panes.operators.clocks import Clock, EventClock
from panes.operators.operator import Operator
from panes.operators.policies import TumblingPolicies, policies_of
from panes.operators.sort_operator import Sort
from panes.queries.eviction import Evict
from panes.queries.measures import Punctuation, Rows
from panes.queries.windows import AnyWindow, RowWindow, Window
from panes.row_windows.window_input import WindowInput, check_times
from panes.suggestions import each_of, shown

MakeOperator: TypeAlias = "Callable[..., Operator]"
"""Makes an operator from a window and ``clock=``; usually its class."""


@dataclass(frozen=True)
class WindowedOperator:
    """An operator that gets one tuple after another.

    Parameters
    ----------
    schema
        The columns that it submits; None to infer them.
    declaration
        The operator and its arguments as text, which give its state a meaning.
    order
        For a sort, the columns to sort by: it submits rows as they are.
    """

    input: WindowInput
    make: MakeOperator
    schema: pa.Schema | None
    declaration: str = ""
    order: tuple[str, ...] = ()


def one_window(over: AnyWindow | Iterable[AnyWindow]) -> AnyWindow:
    """Return the only window of ``over=``."""
    listed = each_of(over)
    if len(listed) != 1:
        raise DeclarationError(
            f"over= has {len(listed)} windows, and this takes one. Call it once per window; pn.apply with a function "
            "takes any number."
        )
    window: AnyWindow = listed[0]
    return window


def follows(window: object) -> bool:
    """Return whether instances of a window follow one another, so that each row is in one of them."""
    if isinstance(window, RowWindow):
        return window.kind in ("tumbling", "session")
    return isinstance(window, Window) and window.geometry.tumbling


def input_of(
    window: AnyWindow,
    by: str | Iterable[str] = (),
    at: str | None = None,
    where: ExpressionLike | None = None,
    ties: str | Iterable[str] = (),
    evict: Evict | None = None,
    port: str | None = None,
) -> WindowInput:
    """Check the window of an operator, and how rows arrive at it."""
    keys, order = (_names(what, value) for what, value in (("by", by), ("ties", ties)))
    for what, name in (("at", at), ("port", port)):
        if name is not None:
            _names(what, name)
    if evict is not None and not isinstance(evict, Evict):
        raise DeclarationError(f"evict={evict!r} is not an eviction. Write evict=pn.evict(keys=1000).")
    if evict is not None and not keys:
        raise DeclarationError("evict= limits keys, and there are none. Write by= too.")
    if isinstance(window, RowWindow) and (window.kind == "session" or window.may_be_empty):
        what = "is a session" if window.kind == "session" else "leaves out its latest rows"
        raise DeclarationError(
            f"{window} {what}, which operators do not support. Write a function of key, window and rows."
        )
    policies = policies_of(window, keys if keys else None, evict)
    check_times(policies, at)
    if isinstance(policies.evict, Punctuation) and policies.evict.scope == "key":
        if not keys:
            # All rows are of one key.
            policies = replace(policies, evict=replace(policies.evict, scope="stream"))
        elif evict is not None:
            raise DeclarationError(
                "with evict= one operator gets all keys, and marks end the windows of all of them. Write "
                "pn.punctuation(...) without scope='key', or leave evict= out."
            )
    return WindowInput(policies, keys, at, None if where is None else expression(where), port, ties=order)


def _names(what: str, value: str | Iterable[str]) -> tuple[str, ...]:
    names = each_of(value)
    for name in names:
        if not isinstance(name, str) or not name:
            raise DeclarationError(f"{what}={shown(name)} is not the name of a column. Write it as a string.")
    if len(set(names)) < len(names):
        raise DeclarationError(f"{what}={list(names)} names a column twice. Name it once.")
    return names


def operator_of(
    input: WindowInput, operator: MakeOperator, schema: pa.Schema | None = None, order: tuple[str, ...] = ()
) -> WindowedOperator:
    """Check an operator by making one, which reveals its windows and rejects unsupported ones."""
    if not callable(operator):
        raise DeclarationError(
            f"operator={operator!r} cannot be called. Write the class, or a function of a window and a clock: "
            "lambda window, clock: Deduplicator(window, clock=clock)."
        )
    check_schema(schema)
    probe = made(WindowedOperator(input, operator, schema), EventClock())
    # Of its ports, and others that it makes.
    windows = (*probe.declared, *(each.declared for each in probe.windows))
    input = replace(input, others=tuple(each for each in windows if each is not None and each != input.window))
    for window in (input.window, *input.others):
        check_times(window, input.at)
    if input.together and input.mark is not None and input.mark.scope == "key":
        raise DeclarationError(
            "one operator gets all keys here, because one of its windows evicts keys or has others, and marks end the "
            f"windows of all of them. Write pn.punctuation({input.mark.column!r}) without scope='key'."
        )
    return WindowedOperator(input, operator, schema, f"{type(probe).__name__}: {probe.declaration()}", order)


def sort_of(input: WindowInput, order: Sequence[tuple[str, bool]]) -> WindowedOperator:
    """Check a sort of tumbling windows, or a progressive sort over a window up to each row."""
    if not isinstance(input.window, TumblingPolicies) and input.window.trigger != Rows(1):
        raise DeclarationError(
            "pn.sort sorts windows that follow one another, as pn.tumbling('1 min'), or a stream over a window up to "
            "each row, as pn.sliding('10 s'). Other overlapping windows would return rows several times: write "
            "pn.apply with a function that sorts."
        )
    names, down = tuple(name for name, _ in order), [descending for _, descending in order]
    return operator_of(input, partial(Sort, order=names, descending=down), None, names)


def order_of(order: str | Iterable[str]) -> tuple[tuple[str, bool], ...]:
    """Return the columns to sort by, each with whether it is descending.

    Examples
    --------
    >>> order_of(["price desc", "ts"])
    (('price', True), ('ts', False))
    """
    found = tuple(_ordered(each) for each in each_of(order))
    if not found:
        raise DeclarationError("order= names no column. Write order='price', or order=['price desc', 'ts'].")
    return found


def _ordered(value: object) -> tuple[str, bool]:
    """Return a column, and whether it is descending."""
    if not isinstance(value, str) or not value.strip():
        raise DeclarationError(f"order={shown(value)} is not a column. Write order='price', or order='price desc'.")
    name, _, direction = value.strip().rpartition(" ")
    if name and direction.lower() in ("asc", "desc"):
        return name.strip(), direction.lower() == "desc"
    return value.strip(), False


def made(declared: WindowedOperator, clock: Clock) -> Operator:
    """Make an operator on a clock."""
    try:
        operator = declared.make(declared.input.window, clock=clock)
    except TypeError as error:
        raise DeclarationError(
            f"operator= failed when called with a window and clock=: {error}. Write a function of just these, as "
            "lambda window, clock: Aggregate(window, {'n': pn.count()}, clock=clock)."
        ) from error
    if not isinstance(operator, Operator):
        raise DeclarationError(
            f"operator= made {operator!r}, which is not an operator. Make a subclass of panes.operators.Operator."
        )
    return operator
