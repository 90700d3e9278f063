"""What a sample of a DataFrame says about rate and keys, for plans that were told neither."""

from __future__ import annotations

import math
from dataclasses import replace

from pyspark.sql import DataFrame

from panes.declare.query import Query
from panes.planning.statistics import Keys, Statistics
from panes.spark.naming import micros, quoted
from panes.timeline import SECOND

_SAMPLE = 4_000


def sample(events: DataFrame, queries: tuple[Query, ...], believed: Statistics) -> Statistics:
    """Look at the first events: how much time they span, and how many keys they have.

    The head of a DataFrame costs one small task. Data in the order of time, as event logs are, show their real
    rate there; shuffled data seem slower than they are, and the planner then shares less than it could.
    """
    at = queries[0].at
    type_ = next(field.dataType for field in events.schema if field.name.lower() == at.lower())
    key_sets: list[Keys] = sorted({tuple(sorted(query.by)) for query in queries if query.by})
    # Keys travel as hashes: a sample need not know them, only how many there are.
    hashes = [f"xxhash64({', '.join(map(quoted, keys))})" for keys in key_sets]
    # As one text per event: values one by one take longer to arrive than the job to run.
    text = f"concat_ws(' ', {', '.join([micros(quoted(at), type_), *hashes])})"
    head = events.where(f"{quoted(at)} IS NOT NULL").selectExpr(text)
    # Collected as it is: below any aggregate, a limit would be taken from every partition.
    rows = [text.split() for (text,) in head.limit(_SAMPLE).collect()]
    instants = [int(row[0]) for row in rows]
    span = max(instants, default=0) - min(instants, default=0)
    if not span:
        return believed
    seen = {keys: len({row[i] for row in rows}) for i, keys in enumerate(key_sets, start=1)}
    distinct = {tuple(sorted(key.lower() for key in keys)): _all_keys(count, len(rows)) for keys, count in seen.items()}
    return replace(believed, rate=len(rows) * SECOND / span, keys={**distinct, **believed.keys}, origin="sampled")


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
