"""Spark's own answers to a lookup: for each window a range join of requests and events, and a group-by."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from panes.declare.lookups import declare_lookup
from panes.declare.sliding import Sliding
from panes.testing.oracle import spark_aggregate

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ROW = "__row"


def spark_lookups(events: DataFrame, requests: DataFrame, **asked: Any) -> DataFrame:
    """What Spark itself answers, in the wide form.

    Parameters
    ----------
    events, requests
        The data; requests have a column ``id`` that tells them apart.
    asked
        As :func:`panes.lookup` takes it, over windows of time.
    """
    from pyspark.sql import functions as F

    lookup = declare_lookup(**{"by": (), **asked})
    query, parts = lookup.query, [requests]
    if query.where is not None:
        events = events.where(query.where.sql)
    event_at, asked_at = F.col(f"e.{query.at}"), F.col(f"r.{lookup.asked_at}")
    alike: list[Column] = [F.col(f"r.{name}").eqNullSafe(F.col(f"e.{name}")) for name in query.by]
    for window in lookup.windows:
        assert isinstance(window, Sliding)
        end = asked_at - F.expr(f"INTERVAL '{window.ago}' MICROSECOND")
        start = end - F.expr(f"INTERVAL '{window.size}' MICROSECOND")
        after = event_at >= start if lookup.holds_start else event_at > start
        before = event_at <= end if lookup.holds_end else event_at < end
        rows = requests.select("id", *query.by, lookup.asked_at).alias("r")
        met = rows.join(
            events.withColumn(_ROW, F.lit(1)).alias("e"), reduce(lambda a, b: a & b, [*alike, after, before]), "left"
        )
        # A request without events is one row of nulls, which only count() would notice.
        columns = [
            F.count(_ROW) if str(aggregate) == "count()" else spark_aggregate(query, aggregate, streaming=False)
            for _, aggregate in query.aggregates
        ]
        names = [f"{alias}_{window.name}" for alias, _ in query.aggregates]
        inner = met.select("r.id", *(F.col(f"e.{name}").alias(name) for name in events.columns if name != "id"), _ROW)
        grouped = inner.groupBy("id")
        parts.append(grouped.agg(*(column.alias(name) for column, name in zip(columns, names, strict=True))))
    return reduce(lambda a, b: a.join(b, "id"), parts)
