"""What a sample of a DataFrame says about rate and keys, for plans that were told neither."""

from __future__ import annotations

import math
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from panes.declare.query import Query
from panes.plan.statistics import Keys, Statistics
from panes.spark.naming import quoted

_SAMPLE = 100_000


def sample(events: DataFrame, queries: tuple[Query, ...], believed: Statistics) -> Statistics:
    """Look at the first events: how much time they span, and how many keys they have.

    The head of a DataFrame costs one small task. Data in the order of time, as event logs are, show their real
    rate there; shuffled data seem slower than they are, and the planner then shares less than it could.
    """
    at = queries[0].at
    key_sets: list[Keys] = sorted({tuple(sorted(query.by)) for query in queries if query.by})
    columns = dict.fromkeys((at, *(k for keys in key_sets for k in keys)))
    head = events.select(*(F.col(quoted(name)) for name in columns))
    head = head.where(F.col(quoted(at)).isNotNull()).limit(_SAMPLE)
    seconds = F.expr(f"timestampdiff(MICROSECOND, min({quoted(at)}), max({quoted(at)})) / 1e6").alias("seconds")
    distinct = [
        F.count_distinct(F.struct(*(F.col(quoted(k)) for k in keys))).alias(f"keys{i}")
        for i, keys in enumerate(key_sets)
    ]
    row = head.agg(F.count(F.lit(1)).alias("rows"), seconds, *distinct).collect()[0]
    if not row["rows"] or not row["seconds"]:
        return believed
    keys = {key_set: _all_keys(row[f"keys{i}"], row["rows"]) for i, key_set in enumerate(key_sets)}
    return replace(believed, rate=row["rows"] / row["seconds"], keys={**keys, **believed.keys}, origin="sampled")


def _all_keys(seen: int, rows: int) -> float:
    """How many keys there are when a sample of so many rows showed so many, all keys being as frequent.

    Solves ``seen = keys * (1 - exp(-rows / keys))`` by bisection.
    """
    if seen >= rows:
        return math.pow(rows, 1.5)
    low, high = float(seen), float(rows) ** 2
    for _ in range(80):
        middle = math.sqrt(low * high)
        if middle * -math.expm1(-rows / middle) < seen:
            low = middle
        else:
            high = middle
    return max(low, 1.0)
