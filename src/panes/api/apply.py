"""``pn.apply`` and ``pn.sort``: functions, operators and sorts over windows of tables, DataFrames and streams."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa

from panes.applying.user_functions import Function, WindowedFunction, function_of
from panes.applying.user_operators import (
    MakeOperator,
    WindowedOperator,
    follows,
    input_of,
    one_window,
    operator_of,
    order_of,
    sort_of,
)
from panes.errors import DeclarationError, PlanError
from panes.expressions.expression import ExpressionLike
from panes.inputs import check_one, is_spark, zone_of
from panes.queries.eviction import Evict
from panes.queries.time_zones import warn_of_zone
from panes.queries.windows import AnyWindow
from panes.row_windows.parts import is_session
from panes.suggestions import helpful

_RENAMED = {
    **dict.fromkeys(("window", "windows"), "over"),
    **dict.fromkeys(("on", "keys", "key", "group_by", "partition_by"), "by"),
    **dict.fromkeys(("time", "ts", "timestamp", "event_time"), "at"),
    **dict.fromkeys(("filter", "condition"), "where"),
}


@helpful(
    "pn.apply(events, lambda key, window, rows: {'n': rows.num_rows}, over=pn.tumbling('1 hour'), at='ts')",
    **_RENAMED,
    **dict.fromkeys(("func", "fn", "f"), "function"),
    select="aggregates are computed by a plan: pn.plan(pn.query(select=...)).run(data).",
    punctuations="marks belong to the window, as pn.tumbling(pn.punctuation('refuelled')).",
    partial="it belongs to the window, as pn.hopping(pn.rows(100), every=pn.rows(10), partial=False).",
)
def apply(
    data: Any,
    function: Function | None = None,
    *,
    operator: MakeOperator | None = None,
    over: AnyWindow | Iterable[AnyWindow],
    by: str | Iterable[str] = (),
    at: str | None = None,
    where: ExpressionLike | None = None,
    ties: str | Iterable[str] = (),
    evict: Evict | None = None,
    schema: pa.Schema | None = None,
    port: str | None = None,
    shards: int = 4,
    checkpoint: str | None = None,
) -> Any:
    """Call a function for every window, with the rows that it holds; or give rows to an operator, one after another.

    The windows and their rows are those over which ``plan.run`` aggregates, and ``plan.stream`` on a stream.

    Parameters
    ----------
    data
        A Spark DataFrame, a batch or a stream, gives a lazy Spark DataFrame; a pyarrow Table, or anything with the
        Arrow C interface (pandas, polars), gives a pyarrow Table.
    function
        Is called with the key, a dict of the columns of ``by``; the window, which has a ``name``, its ``start`` and
        ``end``, and, for a window of rows, its ``number`` and when it was ``processed``; and a pyarrow Table of its
        rows in the order of arrival. It returns None for no row, a dict for one, a list of dicts, or an Arrow table.
    operator
        Instead of a function: what makes an operator of ``panes.operators``, when it is called with a window and
        ``clock=``; as a rule its class. It is given one row after another, as a dict of all columns.
    over
        The windows, of any kinds; of an operator one, and no session.
    by
        The key columns: a window for each of their values.
    at
        The column of event time. Rows without a time are in no window. Without it, the rows of a table arrive as they
        stand, and windows are measured in rows.
    where
        Which rows count.
    ties
        Columns that order the rows of one instant; without it they are in the order of all columns, by their names.
    evict
        ``pn.evict(...)``: which keys windows of rows forget.
    schema
        The columns of what the function returns or the operator submits. On Spark it is needed; here it may be left
        out.
    port
        Of an operator with several input ports: a column of whole numbers that says for which of them a row is. Its
        tuples do not have it.
    shards
        Of a stream: into how many parts its keys are divided. A checkpoint keeps its number.
    checkpoint
        Of a stream: where it will have its checkpoint. One that cannot serve these windows is then refused here, before
        the stream starts, and otherwise in its first micro-batch.

    Returns
    -------
    pyarrow.Table or pyspark.sql.DataFrame
        Of a function: ``window_name``, ``window``, the keys, and the columns that it returned. Of an operator: what it
        submitted; of one with several output ports with a column ``port``.

    Examples
    --------
    >>> import datetime as dt, pyarrow as pa, panes as pn
    >>> second = lambda *seconds: [dt.datetime(2026, 1, 1, 12, 0, s) for s in seconds]
    >>> trades = pa.table({"ts": second(0, 1, 5, 9, 20, 21), "stock": list("aabaaa"), "price": [5, 7, 1, 9, 8, 6]})
    >>> def swing(key, window, rows):
    ...     prices = rows["price"].to_pylist()
    ...     return {"n": len(prices), "swing": max(prices) - min(prices)}
    >>> found = pn.apply(trades, swing, by="stock", at="ts", over=[pn.tumbling("10 s"), pn.sliding(pn.rows(2))])
    >>> for row in found.to_pylist():
    ...     print(row["window_name"], row["stock"], f"{row['window']['end']:%S}", row["n"], row["swing"])
    10s a 10 3 4
    10s a 30 2 2
    10s b 10 1 0
    2rows/event a 00 1 0
    2rows/event a 01 2 2
    2rows/event a 09 2 2
    2rows/event a 20 2 1
    2rows/event a 21 2 2
    2rows/event b 05 1 0
    """
    if (function is None) == (operator is None):
        raise DeclarationError(
            "pn.apply takes a function or an operator=, one of them. Write for example "
            "pn.apply(events, lambda key, window, rows: {'n': rows.num_rows}, over=..., at='ts')."
        )
    streaming = _check_data("apply a function to", data, checkpoint)
    if operator is not None:
        window = one_window(over)
        made = operator_of(input_of(window, by, at, where, ties, evict, port), operator, schema)
        _check_zone([window], at, data)
        return _run(made, data, streaming, shards, checkpoint)
    assert function is not None
    if port is not None:
        raise DeclarationError("port= is for operator=: a function has one input. Leave it out.")
    declared = function_of(function, over=over, by=by, at=at, where=where, ties=ties, evict=evict, schema=schema)
    _check_zone(declared.query.over, at, data)
    return _run(declared, data, streaming, shards, checkpoint)


@helpful(
    "pn.sort(events, order='price desc', by='stock', over=pn.tumbling('1 hour'), at='ts')",
    **_RENAMED,
    order_by="order",
    descending="write it after the column, as order='price desc'.",
    ascending="write order='price', or order='price desc' for the largest first.",
)
def sort(
    data: Any,
    *,
    order: str | Iterable[str],
    over: AnyWindow | Iterable[AnyWindow],
    by: str | Iterable[str] = (),
    at: str | None = None,
    where: ExpressionLike | None = None,
    ties: str | Iterable[str] = (),
    shards: int = 4,
    checkpoint: str | None = None,
) -> Any:
    """Sort the rows of each window; or put a stream in order, as far as a window up to each row reaches.

    Parameters
    ----------
    data
        A Spark DataFrame, a batch or a stream, gives a lazy Spark DataFrame; a pyarrow Table, or anything with the
        Arrow C interface (pandas, polars), gives a pyarrow Table.
    order
        What to sort by: ``"price"``, ``"price desc"``, or several. Nulls come first and NaN last, with ``desc`` the
        other way round; equal rows stay in the order of arrival.
    over
        A tumbling window or a session: its rows come out sorted. Or a sliding window, as ``pn.sliding(pn.rows(100))``:
        a row that leaves it lets the first of the rows that are held out, so that rows which are at most so far out of
        order come out in order; those that are held when rows end do not come out.
    by, at, where, ties, shards, checkpoint
        As in ``pn.apply``.

    Returns
    -------
    pyarrow.Table or pyspark.sql.DataFrame
        The rows, with all of their columns.

    Examples
    --------
    >>> import datetime as dt, pyarrow as pa, panes as pn
    >>> second = lambda *seconds: [dt.datetime(2026, 1, 1, 12, 0, s) for s in seconds]
    >>> trades = pa.table({"ts": second(0, 1, 5, 12, 14), "price": [5, 9, 7, 1, 8]})
    >>> pn.sort(trades, order="price desc", over=pn.tumbling("10 s"), at="ts").column("price").to_pylist()
    [9, 7, 5, 8, 1]
    """
    streaming = _check_data("sort", data, checkpoint)
    rows: dict[str, Any] = {"by": by, "at": at, "where": where, "ties": ties}
    columns, window = order_of(order), one_window(over)
    declared: WindowedFunction | WindowedOperator
    if is_session(window) or (streaming and follows(window)):
        from panes.applying.operators_in_columns import SortRows

        function = function_of(SortRows(columns), over=window, evict=None, schema=None, **rows)
        declared = replace(function, order=tuple(name for name, _ in columns))
    else:
        declared = sort_of(input_of(window, **rows), columns)
    _check_zone([window], at, data)
    return _run(declared, data, streaming, shards, checkpoint)


def _run(
    declared: WindowedFunction | WindowedOperator, data: Any, streaming: bool, shards: int, checkpoint: str | None
) -> Any:
    """Give the declaration to the runner for the data."""
    if not is_spark(data):
        from panes.local.apply import apply_to_table

        return apply_to_table(declared, data)
    from panes.spark.apply import apply_to_batch, apply_to_stream

    return apply_to_stream(declared, data, shards, checkpoint) if streaming else apply_to_batch(declared, data)


def _check_zone(windows: Iterable[AnyWindow], at: str | None, data: Any) -> None:
    """Warn of windows on the clock that do not begin where local time does."""
    if at is not None:
        warn_of_zone(windows, zone_of(data, at))


def _check_data(what: str, data: Any, checkpoint: str | None) -> bool:
    """Whether the data are a stream."""
    on_spark = is_spark(data)
    check_one(what, data)
    streaming = bool(on_spark and data.isStreaming)
    if checkpoint is not None and not streaming:
        raise PlanError("checkpoint= is for streams: tables have none. Leave it out.")
    return streaming
