"""Sample a DataFrame for its rate and number of keys, for plans that were given neither."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import median

from pyspark.sql import DataFrame

from panes.planning.physical_plan import PhysicalPlan
from panes.planning.statistics import Keys, Statistics
from panes.queries.query import Query
from panes.spark.naming import micros, quoted
from panes.timeline import SECOND

_SAMPLE = 4_000


def worth_a_sample(physical: PhysicalPlan) -> bool:
    """Whether figures could change the plan: those of one tumbling window, or of sliding ones alone, cannot."""
    if all(store.per_event for store in physical.stores):
        return False
    windows = [window.geometry for query in physical.queries for window in query.windows]
    return not (len(windows) == 1 and windows[0].tumbling and physical.stores[0].strategy == "native")


def sample(events: DataFrame, queries: tuple[Query, ...], believed: Statistics) -> Statistics:
    """Look at the first events: how much time they span, and how many keys they have.

    The head of a DataFrame costs one small task. Data in the order of time, as event logs are, show their real rate
    there. The head of shuffled data comes from all over and says nothing about the rate, which then stays as assumed.
    """
    at = queries[0].at
    type_ = next(field.dataType for field in events.schema if field.name.lower() == at.lower())
    key_sets: list[Keys] = sorted({tuple(sorted(query.by)) for query in queries if query.by})
    # Keys travel as hashes, since only their number matters.
    hashes = [f"xxhash64({', '.join(map(quoted, keys))})" for keys in key_sets]
    # One string per event: collecting values one by one takes longer than the job.
    text = f"concat_ws(' ', {', '.join([micros(quoted(at), type_), *hashes])})"
    head = events.where(f"{quoted(at)} IS NOT NULL").selectExpr(text)
    # Collected as it is: below any aggregate, a limit would be taken from every partition.
    rows = [text.split() for (text,) in head.limit(_SAMPLE).collect()]
    instants = [int(row[0]) for row in rows]
    span = _span(instants)
    if not span:
        return believed
    seen = {keys: len({row[i] for row in rows}) for i, keys in enumerate(key_sets, start=1)}
    distinct = {tuple(sorted(key.lower() for key in keys)): _all_keys(count, len(rows)) for keys, count in seen.items()}
    known = replace(believed, keys={**distinct, **believed.keys})
    return replace(known, rate=len(rows) * SECOND / span, origin="sampled") if _in_order(instants, span) else known


def _span(instants: list[int]) -> float:
    """How much time some events span, without the first and the last tenth: a single wrong time must not count.

    Examples
    --------
    >>> _span([0, *range(100, 200)]), _span([7, 7, 9]), _span([5])
    (100.0, 2.0, 0)
    """
    ordered, tenth = sorted(instants), len(instants) // 10
    span = ordered[-1 - tenth] - ordered[tenth] if ordered else 0
    most = ordered[-1] - ordered[0] if ordered else 0
    return span * (len(ordered) - 1) / (len(ordered) - 1 - 2 * tenth) if span else most


def _in_order(instants: list[int], span: float) -> bool:
    """Whether events come in the order of time, by and large: the later half of them is later, or earlier.

    Examples
    --------
    >>> _in_order([0, 2, 1, 3, 5, 4], 5), _in_order([5, 3, 0, 1], 5), _in_order([0, 5, 1, 4, 0, 5, 1, 4], 5)
    (True, True, False)
    """
    half = len(instants) // 2
    return abs(median(instants[half:]) - median(instants[:half])) > span / 4


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
