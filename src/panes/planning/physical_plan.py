"""The physical plan as values: the stores, how each runs, and which window is read from which."""

from __future__ import annotations

from dataclasses import dataclass

from panes.expressions.expression import Expression
from panes.planning.forest import Forest
from panes.planning.statistics import Keys, Statistics
from panes.planning.strategy import Costs, Strategy
from panes.queries.query import Query
from panes.timeline import Edges, Geometry

Numbered = tuple[tuple[int, Query], ...]
"""Queries, each with its number in the plan."""


@dataclass(frozen=True)
class StorePlan:
    """One store and how it is run.

    Parameters
    ----------
    keys, at
        Its key columns, and the column of event time.
    queries
        The queries it answers, with their numbers in the plan.
    kept
        The condition that all its events fulfil; queries with another one get conditional components.
    strategy, costs
        How it runs, and what each way was predicted to cost.
    edges, lanes
        Where its panes begin and end (``columnar``), and how many of them lie side by side in a row.
    from_events
        Whether ``columnar`` sorts the events themselves, since panes would hardly be fewer.
    forest
        Which window is read from which: from panes (``columnar``) or from events (``rewrite``).
    source
        The index of the store with finer keys that feeds it, or None for the events.
    per_event
        Whether its windows have an answer per event, from columns with a row per instant.
    """

    keys: Keys
    at: str
    queries: Numbered
    kept: Expression | None
    strategy: Strategy
    costs: Costs
    edges: tuple[Edges, ...]
    lanes: int
    from_events: bool
    forest: Forest
    source: int | None = None
    trace: tuple[str, ...] = ()
    per_event: bool = False

    @property
    def windows(self) -> tuple[Geometry, ...]:
        """The distinct windows of its queries."""
        return distinct_windows(self.queries)

    @property
    def views(self) -> tuple[Geometry, ...]:
        """The windows of its queries, one for each query that asks for it."""
        return tuple(window.geometry for _, query in self.queries for window in query.windows)


@dataclass(frozen=True)
class ByEvents:
    """The windows of a query that go by its events; there is nothing to decide, but pictures tell of them.

    Parameters
    ----------
    query, keys, at
        Its name, its keys and its column of time.
    windows
        What they are called.
    column
        The number of the sorted column that they are read from: the same one for all that share it.
    sessions
        Which of the windows are sessions, which end by themselves.
    """

    query: str
    keys: Keys
    at: str
    windows: tuple[str, ...]
    column: int = 0
    sessions: tuple[str, ...] = ()


@dataclass(frozen=True)
class PhysicalPlan:
    """What the planner decided for all queries; ``queries`` have their windows over time alone."""

    queries: tuple[Query, ...]
    stores: tuple[StorePlan, ...]
    statistics: Statistics
    by_events: tuple[ByEvents, ...] = ()


# Facts about several queries


def distinct_windows(queries: Numbered) -> tuple[Geometry, ...]:
    """Return the windows of all queries, each once."""
    return tuple(dict.fromkeys(window.geometry for _, query in queries for window in query.windows))


def all_idempotent(queries: Numbered) -> bool:
    """Whether every aggregate may count an event twice."""
    return all(aggregate.idempotent for _, query in queries for _, aggregate in query.aggregates)


def in_jvm(queries: Numbered) -> bool:
    """Whether Spark can build the partials of all queries without Python."""
    return all(query.in_jvm for _, query in queries)


def stored_columns(queries: Numbered) -> int:
    """About how many of Spark's aggregates build a pane: what two of ours share is not counted out."""
    distinct = {(aggregate, query.where) for _, query in queries for _, aggregate in query.aggregates}
    return sum(aggregate.weight for aggregate, _ in distinct)
