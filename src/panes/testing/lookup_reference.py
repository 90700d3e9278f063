"""A slow reference of lookups: request by request, window by window, event by event, in plain Python."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import pyarrow as pa

from panes.aggregates.ordering import is_ordered
from panes.expressions.evaluate import evaluate
from panes.queries.lookup_declarations import LookupWindow, answered, declare_lookup, features
from panes.queries.measures import Rows
from panes.queries.query import Query
from panes.queries.windows import Cumulate, RowWindow, Sliding
from panes.testing.reference import answers_of, comparable
from panes.timeline import DurationLike

_Held: TypeAlias = tuple[list[int], int, int, tuple[int, ...]]
"""The rows of a window, its bounds in µs, and where the levels of a nested one begin."""


def brute_force_lookup(
    queries: Query | Iterable[Query],
    events: pa.Table,
    requests: pa.Table,
    *,
    at: str | None = None,
    delay: DurationLike | None = None,
) -> pa.Table:
    """Return what ``plan.lookup`` answers, one request and window at a time: slow, and simple enough to be right.

    Examples
    --------
    >>> import panes as pn
    >>> events = pa.table({"ts": pa.array([1, 5, 9], pa.timestamp("us")), "x": [3, 1, 2]})
    >>> requests = pa.table({"ts": pa.array([5, 9], pa.timestamp("us"))})
    >>> over = [pn.sliding("4us"), pn.sliding(pn.rows(1)), pn.tumbling("4us", name="panes")]
    >>> query = pn.query(at="ts", select={"low": pn.min("x")}, over=over)
    >>> brute_force_lookup(query, events, requests).to_pydict()
    {'ts': [...], 'low_4us': [1, 2], 'low_1row': [1, 2], 'low_panes': [3, 1]}
    """
    declared = declare_lookup((queries,) if isinstance(queries, Query) else tuple(queries), at=at, delay=delay)
    found = {}
    for part in declared.parts:
        for query in part.queries:
            aggregates = dict(query.aggregates)
            for window in answered(query):
                held = _held(query, window, events, requests, part.requested_at, part.delay)
                for alias, aggregate in aggregates.items():
                    of_rows = isinstance(window, RowWindow)
                    found[query.name, window.name, alias] = answers_of(
                        aggregate, events, held, at=query.at, ties=query.ties, as_given=of_rows
                    )
    for name, window_name, alias, column in features(declared.queries):
        requests = requests.append_column(column, found[name, window_name, alias])
    return requests


def _held(
    query: Query, window: LookupWindow, events: pa.Table, requests: pa.Table, requested_at: str, delay: int
) -> list[_Held]:
    """Return what a window holds for each request."""
    instants = events.column(query.at).combine_chunks().cast(pa.int64()).to_pylist()
    passed = [True] * len(events) if query.where is None else evaluate(query.where, events).to_pylist()
    keys, ties = _keys(events, query.by), _ties(query, events)
    kept = [i for i, t in enumerate(instants) if t is not None and passed[i]]
    kept.sort(key=lambda i: (instants[i], [column[i] for column in ties]))
    found = []
    asking = requests.column(requested_at).combine_chunks().cast(pa.int64()).to_pylist()
    for t, key in zip(asking, _keys(requests, query.by), strict=True):
        own = [] if t is None else [i for i in kept if keys[i] == key]
        found.append(_instance(window, own, instants, 0 if t is None else t, delay))
    return found


def _instance(window: LookupWindow, own: list[int], instants: list[int], t: int, delay: int) -> _Held:
    if isinstance(window, RowWindow):
        end, holds_end = t, not window.before
        if isinstance(window.every, int):
            end, holds_end = _tick(window.every, window.offset, t - delay), window.bounds == "(]"
        return _last_rows(
            window, [i for i in own if instants[i] < end or (holds_end and instants[i] == end)], instants, end
        )
    bounds, since = window.bounds, None
    levels: tuple[int, ...] = ()
    if isinstance(window, Sliding):
        start, end = t - window.ago - window.size, t - window.ago
    elif isinstance(window, Cumulate):
        end = _tick(window.step, window.offset, t - delay)
        start = _tick(window.upto, window.offset, end - 1)
    else:
        geometry, shift = window.geometry, window.shift
        end = _tick(geometry.slide, geometry.offset - shift + geometry.range, t - delay)
        start = end - geometry.range
        since = None if window.since is None else window.since - shift
        start = start if since is None else max(start, since)
        levels = tuple(end + shift - age for age in (*window.finer, geometry.range))
    rows = [
        i
        for i in own
        if start < instants[i] < end
        or (instants[i] == start and start < end and bounds[0] == "[")
        or (instants[i] == end and start < end and bounds[1] == "]")
    ]
    return rows, start, end, levels


def _last_rows(window: RowWindow, before: list[int], instants: list[int], end: int) -> _Held:
    assert isinstance(window.size, Rows)
    rows = before[: max(len(before) - window.ago, 0)][-window.size.n :]
    if not window.partial and len(before) < window.size.n + window.ago:
        rows = []
    return rows, instants[rows[0]] if rows else end, end, ()


def _tick(period: int, phase: int, t: int) -> int:
    """Return the last instant of a grid at or before another one."""
    return t - (t - phase) % period


def _keys(table: pa.Table, by: tuple[str, ...]) -> list[Any]:
    rows = list(zip(*(table[name].to_pylist() for name in by), strict=True)) or [()] * len(table)
    return [comparable(row) for row in rows]


def _ties(query: Query, events: pa.Table) -> list[list[Any]]:
    """Return the columns that order rows of one instant: ties= and what is read, or all by name; nulls first."""
    shared = {name.lower() for name in (*query.by, query.at)}
    listed = sorted((n for n in events.column_names if n.lower() not in shared), key=str.lower)
    used = {name.lower() for name in query.used}
    names = [*query.ties, *(n for n in listed if n.lower() in used)] if query.ties else listed
    columns = [events[name] for name in names if is_ordered(events.schema.field(name).type)]
    return [
        [(value is not None, comparable(value) if value is not None else 0) for value in column.to_pylist()]
        for column in columns
    ]
