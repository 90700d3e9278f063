"""``pn.join``: two tables, DataFrames or streams over many windows at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from panes.expressions.expression import ExpressionLike
from panes.inputs import as_table, both_on_spark
from panes.queries.join_declarations import How, JoinLayout, Windows, declare_join
from panes.suggestions import helpful


@helpful(
    "pn.join(orders, clicks, on='user', at='ts', over=['5 min', '1 hour'])",
    **dict.fromkeys(("by", "keys", "key"), "on"),
    **dict.fromkeys(("time", "ts", "timestamp", "left_at", "right_at"), "at"),
    **dict.fromkeys(("window", "windows", "within", "tolerance", "size"), "over"),
    **dict.fromkeys(("condition", "filter", "match"), "where"),
    **dict.fromkeys(("join_type", "type"), "how"),
    suffix="suffixes",
    left_on="keys have equal names on both sides, on='user'; rename a column first.",
    right_on="keys have equal names on both sides, on='user'; rename a column first.",
    select="a join gives the columns of both sides; select from the result.",
)
def join(
    left: Any,
    right: Any,
    *,
    on: str | Iterable[str],
    at: str | Sequence[str],
    over: Windows,
    where: ExpressionLike | None = None,
    how: How = "inner",
    layout: JoinLayout = "long",
    suffixes: Sequence[str] = ("_left", "_right"),
) -> Any:
    """Join two streams over many windows at once.

    A row of the left side and one of the right match in a window of size ω when their keys are equal and their times
    are less than ω apart: the later of the two, when it comes, finds the other one in the window ``(t − ω, t]``. So a
    match of a narrow window is one of every wider window; it is found once. In a window of size ω it holds until
    ``expires``, the earlier of both times plus ω.

    Parameters
    ----------
    left, right
        Two Spark DataFrames, both batches or both streams with watermarks, give a (lazy) Spark DataFrame. Two pyarrow
        Tables, or anything with the Arrow C interface (pandas, polars), give a pyarrow Table.
    on
        The key columns, of the same names and types on both sides. A null key matches nothing, as in SQL.
    at
        The column of event time, or one for the left side and one for the right. A row without a time matches nothing.
    over
        The windows: durations, or windows up to each row, as ``pn.sliding("5 min", name="soon")``,
        ``pn.sliding(pn.rows(10))`` and ``pn.sliding(pn.delta("odometer", 5))``, of a column that both sides have.
    where
        What else a match has to fulfil: an expression over the columns of the result that come from both sides.
    how
        ``inner``: matches. ``left``, ``right``, ``full``: also, for every window, the rows of that side (or both) that
        have no match in it, with nulls in the place of the other side and of ``expires``. On a stream, and over a
        window of rows, when they leave that window.
    layout
        ``long``: one row per match and window. ``matches``: one row per match, for the narrowest window that holds it,
        with the number of that window, from 0, as its ``level``; it holds in all wider windows too. A row without a
        match in any window has the number of windows as its level, and no ``window_name``. Not for windows of rows.
    suffixes
        What is added to names that both sides have, keys aside.

    Returns
    -------
    pyarrow.Table or pyspark.sql.DataFrame
        ``window_name``, (``level``,) the keys, the columns of the left side, those of the right side, ``expires``.

    Examples
    --------
    >>> import datetime as dt, pyarrow as pa, panes as pn
    >>> moment = lambda *seconds: [dt.datetime(2026, 1, 1, 12, 0, s) for s in seconds]
    >>> orders = pa.table({"ts": moment(0, 20), "user": ["ann", "bob"], "item": ["tea", "jam"]})
    >>> clicks = pa.table({"ts": moment(3, 8, 50), "user": ["ann", "ann", "bob"], "page": ["a", "b", "c"]})
    >>> found = pn.join(orders, clicks, on="user", at="ts", over=["5s", "10s", "1 min"])
    >>> for row in found.to_pylist():
    ...     print(row["window_name"], row["user"], row["item"], row["page"], f"until {row['expires']:%H:%M:%S}")
    5s ann tea a until 12:00:05
    10s ann tea a until 12:00:10
    10s ann tea b until 12:00:10
    1m ann tea a until 12:01:00
    1m ann tea b until 12:01:00
    1m bob jam c until 12:01:20

    The last row of the other side, however long ago:

    >>> latest = pn.join(orders, clicks, on="user", at="ts", over=pn.sliding(pn.rows(1)))
    >>> latest.select(["window_name", "user", "item", "page"]).to_pylist()[-1]
    {'window_name': '1row', 'user': 'bob', 'item': 'jam', 'page': 'c'}

    References
    ----------
    Patroumpas and Sellis, *Subsuming Multiple Sliding Windows for Shared Stream Computation* (2011), section 4; Gedik,
    *Generic windowing support for extensible stream processing systems* (2014), section 6.1.2.
    """
    declared = declare_join(on=on, at=at, over=over, where=where, how=how, layout=layout, suffixes=suffixes)
    if both_on_spark("join", **{"left side": left, "right side": right}):
        from panes.spark.join import join as join_on_spark

        return join_on_spark(declared, left, right)
    from panes.applying.joined_tables import join_tables

    return join_tables(declared, as_table(left), as_table(right))
