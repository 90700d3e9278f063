"""The façade of lookups: any window, at any time, for many requests at once; in this process or on Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from panes.algebra.aggregates import Aggregate
from panes.declare.expressions import ExpressionLike
from panes.declare.lookups import BackLike, Closed, LookupLayout, declare_lookup, lookup_of
from panes.declare.query import Query
from panes.errors import DeclarationError
from panes.inputs import both_on_spark


def lookup(
    events: Any,
    requests: Any,
    query: Query | None = None,
    *,
    at: str | Sequence[str] | None = None,
    select: Mapping[str, Aggregate | ExpressionLike] | None = None,
    over: BackLike | Iterable[BackLike] | Mapping[str, BackLike] | None = None,
    by: str | Iterable[str] = (),
    where: ExpressionLike | None = None,
    closed: Closed = "right",
    layout: LookupLayout = "wide",
) -> Any:
    """For each request, the aggregates over the events before it, for every window, exactly.

    A request at t sees the events of its key in ``(t - size, t]`` and nothing later: what is known at that moment, and
    what a training set may know. Windows are not rounded to panes.

    Parameters
    ----------
    events, requests
        Two Spark DataFrames give a (lazy) Spark DataFrame. Two pyarrow Tables, or anything with the Arrow C interface
        (pandas, polars), give a pyarrow Table. Requests have the key columns, a time, and any other columns; neither
        side need be sorted.
    query
        A query over sliding windows whose features are wanted: the same definition then serves a training set, and a
        stream with ``plan.run``. It stands for ``by``, ``select``, ``over`` and ``where``; ``at`` then is the column of
        time of the requests, where it has another name there.
    at
        The column of time, or one for the events and one for the requests. Events without a time do not count; a
        request without one finds no event.
    select
        Output columns: an aggregate each, or an expression over the aggregates' names, the keys, ``window`` and
        ``window_name``.
    over
        How far to look back: durations, ``pn.sliding(size, ago=...)`` for a window that ended a while before the
        request, ``pn.last(n)`` for the last n events; or these by name.
    by
        The key columns, of the same names and types on both sides. Null is a key of its own, as for queries. A key
        without events has a count of 0, and null otherwise.
    where
        Which events count.
    closed
        Which bounds belong to a window: ``right``: ``(t - size, t]``, with events at the time of the request itself;
        ``left``: ``[t - size, t)``, only what was before; ``both``; ``neither``.
    layout
        ``wide``: the requests with a column ``<output column>_<window>`` for each window, as ``amount_sum_7d``.
        ``long``: a row per request and window, with the column ``window_name``.

    Returns
    -------
    pyarrow.Table or pyspark.sql.DataFrame
        All columns of the requests, then the answers. In this process rows keep the order of the requests.

    Examples
    --------
    >>> import datetime as dt, pyarrow as pa, panes as pn
    >>> hour = lambda *hours: [dt.datetime(2026, 1, 1, h) for h in hours]
    >>> payments = pa.table({"ts": hour(1, 2, 9, 3), "card": ["a", "a", "a", "b"], "amount": [10, 20, 5, 7]})
    >>> labels = pa.table({"ts": hour(2, 9, 12), "card": ["a", "a", "c"], "fraud": [False, True, False]})
    >>> features = pn.lookup(payments, labels, by="card", at="ts",
    ...     select={"n": pn.count(), "amount_sum": pn.sum("amount")}, over=["1 hour", "1 day", pn.last(1)])
    >>> for row in features.drop_columns(["ts"]).to_pylist():
    ...     print(*row.values())
    a False 1 20 2 30 1 20
    a True 1 5 3 35 1 5
    c False 0 None 0 None 0 None

    References
    ----------
    Arasu and Widom, *Resource Sharing in Continuous Sliding-Window Aggregates* (2004).
    """
    if query is not None:
        _refuse_both(by=by, select=select, over=over, where=where)
        declared = lookup_of(query, at=at, closed=closed, layout=layout)
    else:
        declared = declare_lookup(by=by, at=at, select=select, over=over, where=where, closed=closed, layout=layout)
    if both_on_spark("look up in", events=events, requests=requests):
        from panes.spark.looking import lookup as lookup_on_spark

        return lookup_on_spark(declared, events, requests)
    from panes.local.looking import lookup as lookup_here

    return lookup_here(declared, events, requests)


def _refuse_both(**given: Any) -> None:
    """Refuse what a query says already."""
    for name, value in given.items():
        if value is not None and value != ():
            raise DeclarationError(f"the lookup is given a query, which has {name}= of its own. Leave one of them out.")
