"""Operators of a user's own over the rows of tables, checked before any row is looked at."""

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
    order
        Of a sort the columns that it goes by: it submits rows as they are.
    """

    stream: WindowInput
    make: MakeOperator
    schema: pa.Schema | None
    declaration: str = ""
    order: tuple[str, ...] = ()


def one_window(over: AnyWindow | Iterable[AnyWindow]) -> AnyWindow:
    """The window of what has only one."""
    listed = each_of(over)
    if len(listed) != 1:
        raise DeclarationError(
            f"over= has {len(listed)} windows, and this takes one. Call it for each of them; pn.apply with a function "
            "takes any number."
        )
    window: AnyWindow = listed[0]
    return window


def follows(window: object) -> bool:
    """Whether windows follow one another, so that each row is in one of them."""
    if isinstance(window, RowWindow):
        return window.kind in ("tumbling", "session")
    return isinstance(window, Window) and window.geometry.tumbling


def stream_of(
    window: AnyWindow,
    by: str | Iterable[str] = (),
    at: str | None = None,
    where: ExpressionLike | None = None,
    ties: str | Iterable[str] = (),
    evict: Evict | None = None,
    port: str | None = None,
) -> WindowInput:
    """Check how rows arrive at the one window of an operator."""
    keys, order = (_names(what, value) for what, value in (("by", by), ("ties", ties)))
    for what, name in (("at", at), ("port", port)):
        if name is not None:
            _names(what, name)
    if evict is not None and not isinstance(evict, Evict):
        raise DeclarationError(f"evict={evict!r} evicts nothing. Write evict=pn.evict(keys=1000).")
    if evict is not None and not keys:
        raise DeclarationError("evict= forgets keys, and there are none. Write by='device'.")
    if isinstance(window, RowWindow) and (window.kind == "session" or window.may_be_empty):
        what = "is a session" if window.kind == "session" else "leaves out its last rows"
        raise DeclarationError(
            f"{window} {what}, which an operator cannot see tuple by tuple. Write a function of key, window and rows."
        )
    policies = policies_of(window, keys if keys else None, evict)
    check_times(policies, at)
    if isinstance(policies.evict, Punctuation) and policies.evict.scope == "key":
        if not keys:
            # Then all rows are of one key.
            policies = replace(policies, evict=replace(policies.evict, scope="stream"))
        elif evict is not None:
            raise DeclarationError(
                "evict= gives all keys to one operator, which is told of marks for all of them. Write "
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
    stream: WindowInput, operator: MakeOperator, schema: pa.Schema | None = None, order: tuple[str, ...] = ()
) -> WindowedOperator:
    """Check an operator, by making one: its windows, and those it does not support, are known before any row is."""
    if not callable(operator):
        raise DeclarationError(
            f"operator={operator!r} makes no operator. Write the class, or a function of a window and a clock: "
            "lambda window, clock: Deduplicator(window, clock=clock)."
        )
    check_schema(schema)
    probe = made(WindowedOperator(stream, operator, schema), EventClock())
    # Not only those of ports: an operator may make windows of its own.
    windows = (*probe.declared, *(each.declared for each in probe.windows))
    stream = replace(stream, others=tuple(each for each in windows if each is not None and each != stream.window))
    for window in (stream.window, *stream.others):
        check_times(window, stream.at)
    if stream.together and stream.mark is not None and stream.mark.scope == "key":
        raise DeclarationError(
            "one operator has all keys here, because a window of its own evicts keys or has others, and it is told of "
            f"marks for all of them. Write pn.punctuation({stream.mark.column!r}) without scope='key'."
        )
    return WindowedOperator(stream, operator, schema, f"{type(probe).__name__}: {probe.declaration()}", order)


def sort_of(stream: WindowInput, order: Sequence[tuple[str, bool]]) -> WindowedOperator:
    """Check a sort of tumbling windows, or one of a stream as far as a window up to each row reaches."""
    if not isinstance(stream.window, TumblingPolicies) and stream.window.trigger != Rows(1):
        raise DeclarationError(
            "pn.sort puts windows in order that follow one another, as pn.tumbling('1 min'), or a stream as far as a "
            "window up to each row reaches, as pn.sliding('10 s'). Rows of windows that overlap would come out several "
            "times: write pn.apply with a function that sorts."
        )
    names, down = tuple(name for name, _ in order), [descending for _, descending in order]
    return operator_of(stream, partial(Sort, order=names, descending=down), None, names)


def order_of(order: str | Iterable[str]) -> tuple[tuple[str, bool], ...]:
    """What to sort by: columns, each with whether the largest goes first, as ``desc`` behind its name says.

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
    """A column, and whether the largest goes first."""
    if not isinstance(value, str) or not value.strip():
        raise DeclarationError(f"order={shown(value)} is not a column. Write order='price', or order='price desc'.")
    name, _, direction = value.strip().rpartition(" ")
    if name and direction.lower() in ("asc", "desc"):
        return name.strip(), direction.lower() == "desc"
    return value.strip(), False


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
