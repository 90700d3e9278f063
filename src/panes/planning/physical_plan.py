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
    """One store, and how it runs.

    Parameters
    ----------
    keys, at
        Its key columns, and the column of event time.
    queries
        The queries it answers, with their numbers in the plan.
    kept
        The condition on its events; queries with another one get conditional components.
    strategy, costs
        How it runs, and the predicted cost of each way.
    edges, lanes
        Where its panes begin and end (``columnar``), and how many of them are stored side by side in a row.
    from_events
        Whether ``columnar`` sorts the events themselves, because there would be almost as many panes.
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
        """The windows of its queries; one that two queries declare comes twice."""
        return tuple(window.geometry for _, query in self.queries for window in query.windows)


@dataclass(frozen=True)
class WindowsOfRows:
    """The windows of a query that depend on its rows. The planner decides nothing about them, but shows them.

    Parameters
    ----------
    query, keys, at
        The name of the query, its keys and its time column.
    windows
        The names of the windows.
    column
        The number of the sorted column that they are read from; queries that share it have the same number.
    sessions
        Which of the windows are sessions.
    """

    query: str
    keys: Keys
    at: str
    windows: tuple[str, ...]
    column: int = 0
    sessions: tuple[str, ...] = ()


@dataclass(frozen=True)
class PhysicalPlan:
    """What the planner decided for all queries; ``queries`` have only their windows on the clock."""

    queries: tuple[Query, ...]
    stores: tuple[StorePlan, ...]
    statistics: Statistics
    row_windows: tuple[WindowsOfRows, ...] = ()


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
    """Estimate how many Spark aggregates build a pane; components that two aggregates share count twice."""
    distinct = {(aggregate, query.where) for _, query in queries for _, aggregate in query.aggregates}
    return sum(aggregate.weight for aggregate, _ in distinct)
