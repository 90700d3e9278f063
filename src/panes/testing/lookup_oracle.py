"""Spark's own answers to a lookup: for each window a range join of requests and events, and a group-by."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from panes.declare.lookups import answered, declare_lookup, features
from panes.declare.query import Query
from panes.declare.windows import Sliding
from panes.testing.oracle import spark_aggregate

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ROW = "__row"


def spark_lookups(query: Query, events: DataFrame, requests: DataFrame, *, at: str | None = None) -> DataFrame:
    """What Spark itself answers, in the wide form.

    Parameters
    ----------
    query
        Over sliding windows of time, of plain aggregates.
    events, requests
        The data; requests have a column ``id`` that tells them apart.
    at
        The column of time of the requests, as ``plan.lookup`` takes it.
    """
    from pyspark.sql import functions as F

    (part,) = declare_lookup([query], at=at).parts
    parts, names = [requests], {(window, alias): name for _, window, alias, name in features([query])}
    if query.where is not None:
        events = events.where(query.where.sql)
    event_at, asked_at = F.col(f"e.{query.at}"), F.col(f"r.{part.asked_at}")
    alike: list[Column] = [F.col(f"r.{name}").eqNullSafe(F.col(f"e.{name}")) for name in query.by]
    for window in answered(query):
        assert isinstance(window, Sliding)
        end = asked_at - F.expr(f"INTERVAL '{window.ago}' MICROSECOND")
        start = end - F.expr(f"INTERVAL '{window.size}' MICROSECOND")
        after = event_at >= start if window.bounds[0] == "[" else event_at > start
        before = event_at <= end if window.bounds[1] == "]" else event_at < end
        rows = requests.select("id", *query.by, part.asked_at).alias("r")
        met = rows.join(
            events.withColumn(_ROW, F.lit(1)).alias("e"), reduce(lambda a, b: a & b, [*alike, after, before]), "left"
        )
        # A request without events is one row of nulls, which only count() would notice.
        columns = [
            (
                F.count(_ROW) if str(aggregate) == "count()" else spark_aggregate(query, aggregate, streaming=False)
            ).alias(names[window.name, alias])
            for alias, aggregate in query.aggregates
        ]
        inner = met.select("r.id", *(F.col(f"e.{name}").alias(name) for name in events.columns if name != "id"), _ROW)
        parts.append(inner.groupBy("id").agg(*columns))
    return reduce(lambda a, b: a.join(b, "id"), parts)
