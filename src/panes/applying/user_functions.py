"""Plain functions over windows of tables, checked before any row is looked at."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from panes.aggregates.constructors import count
from panes.engine.sorting import tie_columns
from panes.errors import DeclarationError
from panes.expressions.expression import ExpressionLike
from panes.queries.eviction import Evict
from panes.queries.query import Query
from panes.queries.query_constructor import query
from panes.queries.windows import AnyWindow
from panes.row_windows.parts import RowsPart, over_everything

BEFORE = ("window_name", "window")
"""The columns that results begin with, before the keys."""


class Instance(NamedTuple):
    """Which window a function is called for.

    Parameters
    ----------
    name
        What the window is called.
    start, end
        Its bounds, as results show them; None for rows without a time.
    number
        Of windows by rows: which one of its key it is, from 0.
    processed
        Of windows by rows: when it was answered; None for rows without a time.
    """

    name: str
    start: datetime | None
    end: datetime | None
    number: int | None = None
    processed: datetime | None = None


Function: TypeAlias = "Callable[[dict[str, Any], Instance, pa.Table], Any]"
"""What is called for each window: with its key, the window, and its rows in the order of arrival."""


@dataclass(frozen=True)
class WindowedFunction:
    """A function that is called for every window.

    Parameters
    ----------
    query
        The windows, and which rows they see.
    schema
        The columns of what it returns; None to see from the values.
    order
        Of a sort the columns that it goes by: results are what it returns alone, rows as they are.
    """

    query: Query
    function: Function
    schema: pa.Schema | None
    order: tuple[str, ...] = ()

    def parts(self, schema: pa.Schema) -> tuple[RowsPart, ...]:
        """The windows, by which of them see the same rows in the same order.

        Parameters
        ----------
        schema
            The columns of the data. What ``ties=`` leaves equal is ordered by the others, since a function sees all.
        """
        query = self.query
        if query.ties:
            query = replace(query, ties=tuple(tie_columns(schema, query.ties, (*query.by, query.at), schema.names)))
        return over_everything(query)


def function_of(
    function: Function,
    *,
    over: AnyWindow | Iterable[AnyWindow],
    by: str | Iterable[str],
    at: str | None,
    where: ExpressionLike | None,
    ties: str | Iterable[str],
    evict: Evict | None,
    schema: pa.Schema | None,
) -> WindowedFunction:
    """Check what is to be called, and for which windows."""
    if not callable(function):
        raise DeclarationError(
            f"function={function!r} cannot be called. Write a function of a key, a window and its rows: "
            "lambda key, window, rows: {'n': rows.num_rows}."
        )
    _check_fits(function)
    declared = query("apply", by=by, at=at, select={"rows": count()}, over=over, where=where, ties=ties, evict=evict)
    check_schema(schema, (*BEFORE, *declared.by))
    return WindowedFunction(declared, function, schema)


def _check_fits(function: Function) -> None:
    """Refuse a function that cannot take a key, a window and rows, where its parameters can be seen."""
    try:
        parameters = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        parameters.bind({}, None, None)
    except TypeError as error:
        name = getattr(function, "__name__", type(function).__name__)
        raise DeclarationError(
            f"{name}{parameters} is called with a key, a window and its rows ({error}). Write for example "
            "lambda key, window, rows: {'n': rows.num_rows}."
        ) from None


def check_schema(schema: pa.Schema | None, taken: Iterable[str] = ()) -> None:
    """Refuse what names no columns, or some that results have already."""
    if schema is None:
        return
    if not isinstance(schema, pa.Schema):
        raise DeclarationError(f"schema={schema!r} is not a pyarrow Schema. Write pa.schema({{'n': pa.int64()}}).")
    own = {name.lower() for name in taken}
    for name in schema.names:
        if name.lower() in own:
            raise DeclarationError(
                f"schema= has a column {name!r}, which results have already: the window and its key come by "
                "themselves. Leave it out, or give it another name."
            )
    names = [name.lower() for name in schema.names]
    if len(set(names)) < len(names):
        raise DeclarationError("schema= names a column twice (upper and lower case count as equal). Name each once.")
