"""The oracle of joins: Spark's own interval join, each window on its own, united.

Written with PySpark alone, as its users write it; nothing of ``panes.spark`` takes part.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from panes.timeline import DurationLike, parse_duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
    """What Spark itself answers, in the long form of ``pn.join``.

    Parameters
    ----------
    left, right
        Batches or streams, which have the key and the time in common and maybe other columns.
    where
        A condition over ``l`` and ``r``, as ``l.price < r.price``.
    """
    return reduce(
        lambda a, b: a.unionAll(b),
        (_one(left, right, on, at, name, parse_duration(size), where, how) for name, size in over.items()),
    )


def _one(left: DataFrame, right: DataFrame, on: str, at: str, name: str, size: int, where: str, how: str) -> DataFrame:
    from pyspark.sql import functions as F

    width = f"INTERVAL '{size}' MICROSECOND"
    near = f"l.{at} < r.{at} + {width} AND r.{at} < l.{at} + {width}"
    # In its full outer join of streams, Spark lets null keys match each other unless it is told.
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
