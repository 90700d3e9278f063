"""Spark's own answers to runs, joins and lookups, window by window.

Only ``native`` comes from Panes, Spark's own form of each aggregate; ``panes.spark`` and the planner take no part. A
sliding window is a join of every instant of an event with all events of its window, and a lookup a range join of
requests and events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING

from panes.aggregates.aggregate import Aggregate
from panes.queries.lookup_declarations import answered, declare_lookup, features
from panes.queries.query import Query
from panes.queries.windows import Sliding, Window
from panes.timeline import DurationLike, format_instant, parse_duration

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


# Runs


def spark_answers(queries: Query | Iterable[Query], events: DataFrame) -> DataFrame:
    """Return Spark's answers to queries, in the long layout: ``groupBy(window(...))`` for each window, united.

    Parameters
    ----------
    queries
        With aggregates that Spark has.
    events
        The data.
    """
    listed = (queries,) if isinstance(queries, Query) else tuple(queries)
    parts = [_answers_of(query, window, events) for query in listed for window in query.windows]
    united = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)
    keys = dict.fromkeys(key for query in listed for key in query.by)
    columns = dict.fromkeys(column for query in listed for column in query.columns)
    return united.select("query", "window_name", "window", *(_quoted(name) for name in (*keys, *columns)))


def _answers_of(query: Query, window: Window, events: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    if query.where is not None:
        events = events.where(query.where.sql)
    if window.per_event:
        return _finished(query, window, _per_event(query, window, events))
    geometry = window.geometry
    slide, offset = f"{geometry.slide} microseconds", f"{geometry.offset - window.shift} microseconds"
    time = _quoted(query.at)
    if window.shift:
        # Spark's windows are [start, end): an event at an end belongs where one a moment earlier would.
        time = "__time"
        events = events.withColumn(time, F.expr(f"{_quoted(query.at)} - INTERVAL '1' MICROSECOND"))
    own = [F.col(_quoted(key)).alias(key) for key in query.by]
    since = None
    if window.since is not None:
        type_ = dict(events.dtypes)[query.at]
        # An instant without a zone would be one of the session's.
        text = format_instant(window.since - window.shift) + ("" if type_ == "timestamp_ntz" else "Z")
        since = F.lit(text).cast(type_)
        events = events.where(F.col(time) >= since)
    if geometry.range >= geometry.slide:
        at = F.window(time, f"{geometry.range} microseconds", slide, offset)
        grouped = events.groupBy(at.alias("window"), *own)
    else:
        # Spark refuses a slide beyond the range: take tumbling windows of the slide, and of each only its beginning.
        length = F.expr(f"INTERVAL '{geometry.range}' MICROSECOND")
        placed = events.withColumn("__window", F.window(time, slide, slide, offset))
        start = F.col("__window.start")
        bounds = F.struct(start.alias("start"), (start + length).alias("end"))
        inside = placed.where(F.col(time) < start + length)
        grouped = inside.groupBy(bounds.alias("window"), *own)
    columns = [spark_aggregate(query, value, events.isStreaming).alias(alias) for alias, value in query.aggregates]
    answers = grouped.agg(*columns)
    if since is not None:
        start = F.greatest(F.col("window.start"), since)
        answers = answers.withColumn("window", F.struct(start.alias("start"), F.col("window.end").alias("end")))
    return _finished(query, window, answers)


def _per_event(query: Query, window: Window, events: DataFrame) -> DataFrame:
    """Join every event with the events of its window."""
    from pyspark.sql import functions as F

    keys, at = [_quoted(key) for key in query.by], F.col(_quoted(query.at))
    events = events.where(at.isNotNull()).withColumn("__here", F.lit(1))
    asking = [F.col(key).alias(f"__key{i}") for i, key in enumerate(keys)]
    asking.append((at - F.expr(f"INTERVAL '{window.ago}' MICROSECOND")).alias("__end"))
    instants = events.groupBy(*asking).agg(F.count("*").alias("__times"))
    first = F.col("__end") - F.expr(f"INTERVAL '{window.geometry.range}' MICROSECOND")
    near = (at > first) & (at <= F.col("__end"))
    for i, key in enumerate(keys):
        near = near & F.col(f"__key{i}").eqNullSafe(F.col(key))
    named = [F.col(f"__key{i}").alias(key) for i, key in enumerate(query.by)]
    bounds = F.struct(first.alias("start"), F.col("__end").alias("end")).alias("window")
    columns = []
    for alias, value in query.aggregates:
        # A window without events is a row of nulls, which even count(1) must not count.
        own = value.with_arguments(tuple(f"CASE WHEN __here = 1 THEN {argument} END" for argument in value.arguments))
        columns.append(spark_aggregate(query, own, streaming=False).alias(alias))
    grouped = instants.join(events, near, "left").groupBy(bounds, *named, "__times").agg(*columns)
    return grouped.withColumn("__times", F.explode(F.sequence(F.lit(1), F.col("__times").cast("int"))))


def _finished(query: Query, window: Window, answers: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    answers = answers.withColumn("window_name", F.lit(window.name))
    if query.uses_expires:
        slide = window.geometry.slide
        answers = answers.withColumn("expires", F.expr(f"window.end + INTERVAL '{slide}' MICROSECOND"))
    for alias, value in query.derived:
        answers = answers.withColumn(alias, F.expr(value.sql))
    if query.having is not None:
        answers = answers.where(query.having.sql)
    titled = answers.withColumn("query", F.lit(query.name))
    return titled.select("query", "window_name", "window", *(_quoted(name) for name in (*query.by, *query.columns)))


def spark_aggregate(query: Query, aggregate: Aggregate, streaming: bool) -> Column:
    """Spark's own aggregate."""
    from pyspark.sql import functions as F

    order = [_quoted(name) for name in (query.at, *query.ties)] if aggregate.by_time else []
    text = aggregate.native((*order, *aggregate.arguments))
    if text is None:
        raise NotImplementedError(f"Spark has no {aggregate}")
    if streaming and text.startswith("count(DISTINCT "):
        # Spark's streams have no distinct aggregates.
        return F.size(F.collect_set(F.expr(aggregate.arguments[0]))).cast("bigint")
    return F.expr(text)


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


# Joins


def spark_joins(
    left: DataFrame,
    right: DataFrame,
    *,
    on: str,
    over: Mapping[str, DurationLike],
    at: str = "ts",
    where: str = "TRUE",
    how: str = "inner",
) -> DataFrame:
    """Return Spark's answers to a join, in the long layout of ``pn.join``: an interval join for each window, united.

    Parameters
    ----------
    left, right
        Batches or streams that share the key, the time and possibly other columns.
    where
        A condition over ``l`` and ``r``, as ``l.price < r.price``.
    """
    return reduce(
        lambda a, b: a.unionAll(b),
        (_matches_of(left, right, on, at, name, parse_duration(size), where, how) for name, size in over.items()),
    )


def _matches_of(
    left: DataFrame, right: DataFrame, on: str, at: str, name: str, size: int, where: str, how: str
) -> DataFrame:
    from pyspark.sql import functions as F

    width = f"INTERVAL '{size}' MICROSECOND"
    near = f"l.{at} < r.{at} + {width} AND r.{at} < l.{at} + {width}"
    # In a full outer join of streams, Spark matches null keys with each other unless told otherwise.
    alike = f"l.{on} = r.{on} AND l.{on} IS NOT NULL"
    joined = left.alias("l").join(right.alias("r"), F.expr(f"{alike} AND {near} AND {where}"), how)
    shared = (set(left.columns) & set(right.columns)) - {on}
    columns = [
        F.col(f"{side}.{column}").alias(f"{column}{suffix}" if column in shared else column)
        for side, rows, suffix in (("l", left, "_left"), ("r", right, "_right"))
        for column in rows.columns
        if column != on
    ]
    matched = f"CASE WHEN l.{at} IS NOT NULL AND r.{at} IS NOT NULL THEN least(l.{at}, r.{at}) + {width} END"
    return joined.select(
        F.lit(name).alias("window_name"),
        F.coalesce(F.col(f"l.{on}"), F.col(f"r.{on}")).alias(on),
        *columns,
        F.expr(matched).alias("expires"),
    )


# Lookups


_ROW = "__row"


def spark_lookups(query: Query, events: DataFrame, requests: DataFrame, *, at: str | None = None) -> DataFrame:
    """Return Spark's answers to a lookup, in the wide layout.

    Parameters
    ----------
    query
        Plain aggregates over sliding windows in time.
    events, requests
        The data; the column ``id`` identifies a request.
    at
        The column of time of the requests, as ``plan.lookup`` takes it.
    """
    from pyspark.sql import functions as F

    (part,) = declare_lookup([query], at=at).parts
    parts, names = [requests], {(window, alias): name for _, window, alias, name in features([query])}
    if query.where is not None:
        events = events.where(query.where.sql)
    event_at, requested_at = F.col(f"e.{query.at}"), F.col(f"r.{part.requested_at}")
    alike: list[Column] = [F.col(f"r.{name}").eqNullSafe(F.col(f"e.{name}")) for name in query.by]
    for window in answered(query):
        assert isinstance(window, Sliding)
        end = requested_at - F.expr(f"INTERVAL '{window.ago}' MICROSECOND")
        start = end - F.expr(f"INTERVAL '{window.size}' MICROSECOND")
        after = event_at >= start if window.bounds[0] == "[" else event_at > start
        before = event_at <= end if window.bounds[1] == "]" else event_at < end
        rows = requests.select("id", *query.by, part.requested_at).alias("r")
        met = rows.join(
            events.withColumn(_ROW, F.lit(1)).alias("e"), reduce(lambda a, b: a & b, [*alike, after, before]), "left"
        )
        # A request without events is a row of nulls, which count() must not count.
        columns = [
            (
                F.count(_ROW) if str(aggregate) == "count()" else spark_aggregate(query, aggregate, streaming=False)
            ).alias(names[window.name, alias])
            for alias, aggregate in query.aggregates
        ]
        inner = met.select("r.id", *(F.col(f"e.{name}").alias(name) for name in events.columns if name != "id"), _ROW)
        parts.append(inner.groupBy("id").agg(*columns))
    return reduce(lambda a, b: a.join(b, "id"), parts)
