"""The declaration of a function over windows: checked before any row is read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from panes.aggregates.sums import count
from panes.engine.sorting import tie_columns
from panes.errors import DeclarationError
from panes.expressions.expression import ExpressionLike
from panes.queries.eviction import Evict
from panes.queries.query import Query
from panes.queries.query_constructor import query
from panes.queries.windows import AnyWindow
from panes.row_windows.parts import RowsPart, over_everything

BEFORE = ("window_name", "window")
"""The first columns of results, before the keys."""


class Instance(NamedTuple):
    """The window that a function is called for.

    Parameters
    ----------
    name
        The name of the window.
    start, end
        Its bounds, as in results; None for rows without a time.
    number
        For windows of rows: its number within the key, from 0.
    processed
        For windows of rows: when it was answered; None for rows without a time.
    """

    name: str
    start: datetime | None
    end: datetime | None
    number: int | None = None
    processed: datetime | None = None


Function: TypeAlias = "Callable[[dict[str, Any], Instance, pa.Table], Any]"
"""Called for each window with its key, the window, and its rows in the order of arrival."""


@dataclass(frozen=True)
class WindowedFunction:
    """A function that is called for every window.

    Parameters
    ----------
    query
        The windows, and which rows they see.
    schema
        The columns that it returns; None to infer them.
    order
        For a sort, the columns to sort by: results are the returned rows alone.
    """

    query: Query
    function: Function
    schema: pa.Schema | None
    order: tuple[str, ...] = ()

    def parts(self, schema: pa.Schema) -> tuple[RowsPart, ...]:
        """Return the windows as parts, each of windows that see the same rows in the same order.

        Parameters
        ----------
        schema
            The columns of the data. Rows that ``ties=`` leaves equal are ordered by all others: a function sees them.
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
    """Check a function and its windows."""
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
    """Reject a function that cannot take a key, a window and rows, if its signature is known."""
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
    """Reject what is not a schema, or has columns that results already have."""
    if schema is None:
        return
    if not isinstance(schema, pa.Schema):
        raise DeclarationError(f"schema={schema!r} is not a pyarrow Schema. Write pa.schema({{'n': pa.int64()}}).")
    own = {name.lower() for name in taken}
    for name in schema.names:
        if name.lower() in own:
            raise DeclarationError(
                f"schema= has a column {name!r}, which results already have: the window and its key are added to "
                "them. Leave it out, or give it another name."
            )
    names = [name.lower() for name in schema.names]
    if len(set(names)) < len(names):
        raise DeclarationError("schema= names a column twice (upper and lower case count as equal). Name each once.")
