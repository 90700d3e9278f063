"""Lookups the slow way: request by request, window by window, event by event, in plain Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from panes.algebra.aggregates import Aggregate
from panes.declare.expressions import expression
from panes.declare.kinds import Last
from panes.declare.lookups import Lookup, declare_lookup
from panes.local.evaluate import evaluate
from panes.testing.reference import answers_of, comparable


def brute_force_lookup(events: pa.Table, requests: pa.Table, **asked: Any) -> pa.Table:
    """What :func:`panes.lookup` answers, one request and window at a time; slow, and meant to be obviously right.

    Examples
    --------
    >>> import panes as pn
    >>> events = pa.table({"ts": pa.array([1, 5, 9], pa.timestamp("us")), "x": [3, 1, 2]})
    >>> requests = pa.table({"ts": pa.array([5, 9], pa.timestamp("us"))})
    >>> brute_force_lookup(events, requests, at="ts", select={"low": pn.min("x")}, over=["4us", pn.last(1)]).to_pydict()
    {'ts': [...], 'low_4us': [1, 2], 'low_last_1': [1, 2]}
    """
    lookup = declare_lookup(**{"by": (), **asked})
    query = lookup.query
    instants = events.column(query.at).combine_chunks().cast(pa.int64()).to_pylist()
    passed = [True] * len(events) if query.where is None else evaluate(query.where, events).to_pylist()
    keys = _keys(events, query.by)
    # Ties by value: the columns in the order in which aggregates name them, nulls before values.
    ties = _ties(events, dict(query.aggregates))
    kept = [i for i, t in enumerate(instants) if t is not None and passed[i]]
    kept.sort(key=lambda i: (instants[i], [column[i] for column in ties]))
    asking = requests.column(lookup.asked_at).combine_chunks().cast(pa.int64()).to_pylist()
    seen: dict[str, list[tuple[list[int], int, int]]] = {window.name: [] for window in lookup.windows}
    for t, key in zip(asking, _keys(requests, query.by), strict=True):
        own = [] if t is None else [i for i in kept if keys[i] == key]
        for window in lookup.windows:
            seen[window.name].append(_window(lookup, window, own, instants, 0 if t is None else t))
    found, of = requests, dict(query.aggregates)
    for name, alias, column in lookup.features:
        found = found.append_column(column, answers_of(of[alias], events, seen[name], at=query.at))
    return found


def _window(lookup: Lookup, window: Any, own: list[int], instants: list[int], t: int) -> tuple[list[int], int, int]:
    if isinstance(window, Last):
        before = [i for i in own if instants[i] < t or (lookup.holds_end and instants[i] == t)]
        rows = before[: max(len(before) - window.skip, 0)][-window.count :]
        return rows, instants[rows[0]] if rows else t, t
    end = t - window.ago
    start = end - window.size
    rows = [
        i
        for i in own
        if start < instants[i] < end
        or (instants[i] == start and lookup.holds_start)
        or (instants[i] == end and lookup.holds_end)
    ]
    return rows, start, end


def _keys(table: pa.Table, by: tuple[str, ...]) -> list[Any]:
    rows = list(zip(*(table[name].to_pylist() for name in by), strict=True)) or [()] * len(table)
    return [comparable(row) for row in rows]


def _ties(events: pa.Table, aggregates: Mapping[str, Aggregate]) -> list[list[Any]]:
    arguments = dict.fromkeys(argument for aggregate in aggregates.values() for argument in aggregate.arguments)
    columns = [evaluate(expression(argument), events).to_pylist() for argument in arguments]
    return [[(value is not None, comparable(value) if value is not None else 0) for value in c] for c in columns]
