"""A query as a value: which aggregates, over which windows, per which keys, of which events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from panes.aggregates.aggregate import Aggregate
from panes.errors import DeclarationError
from panes.expressions.expression import Expression, disjunction, expression
from panes.queries.eviction import Evict
from panes.queries.windows import AnyWindow, RowWindow, Window
from panes.suggestions import attribute, shown

RESERVED = ("query", "window_name", "window")
"""The columns that every result begins with."""

EXPIRES = "expires"
"""In expressions over answers: the instant until which an answer is the latest of its window."""

NUMBER = "number"
"""In expressions over answers of windows of rows: the number of the window within its key, from 0."""

ARRIVAL = "__panes_arrival"
"""The time column of a query without one: rows arrive in the order of the table."""

_ELSEWHERE = {
    **dict.fromkeys(("run", "execute", "collect"), "pn.plan(query).run(data)"),
    **dict.fromkeys(("stream", "start"), "pn.plan(query).stream(events)"),
    "lookup": "pn.plan(query).lookup(events, requests)",
    "live": "pn.plan(query).live()",
    "explain": "pn.plan(query).explain()",
    "to_sql": "pn.to_sql(query)",
}
"""Methods that users try on a query, and what to write instead."""


@dataclass(frozen=True, slots=True)
class Query:
    """Aggregates over windows, per key. Made by ``pn.query``, which checks it.

    Parameters
    ----------
    at
        The time column, or ``ARRIVAL`` if rows have no time and arrive in the order of the table.
    aggregates
        All aggregates, including those that only derived columns and ``having`` use.
    derived
        Expressions over aggregates.
    columns
        The output columns after the keys, aggregates and derived ones, in the order of ``select``.
    """

    name: str
    by: tuple[str, ...]
    at: str
    aggregates: tuple[tuple[str, Aggregate], ...]
    derived: tuple[tuple[str, Expression], ...]
    over: tuple[AnyWindow, ...]
    columns: tuple[str, ...]
    where: Expression | None = None
    having: Expression | None = None
    groups: tuple[str, ...] = ()
    ties: tuple[str, ...] = ()
    evict: Evict | None = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            return attribute(self, name, _ELSEWHERE)

    @property
    def timed(self) -> bool:
        """Whether rows have a time."""
        return self.at != ARRIVAL

    @property
    def windows(self) -> tuple[Window, ...]:
        """The windows to compute; a declared window may be several."""
        return tuple(window for declared in self.over for window in declared.windows)

    @property
    def row_windows(self) -> tuple[RowWindow, ...]:
        """The declared windows whose instances depend on the rows."""
        return tuple(window for window in self.over if isinstance(window, RowWindow))

    @property
    def uses_expires(self) -> bool:
        """Whether expressions refer to the instant until which an answer is valid."""
        return self.refers_to(EXPIRES)

    def refers_to(self, name: str) -> bool:
        """Whether expressions over answers refer to a name that is not a column of the query."""
        columns = {column.lower() for column in (*self.by, *self.groups, *dict(self.aggregates))}
        return name not in columns and any(
            root.lower() == name for value in self.answer_expressions for root in value.roots
        )

    @property
    def answer_expressions(self) -> tuple[Expression, ...]:
        """The expressions over answers: derived columns and ``having``."""
        return (*dict(self.derived).values(), *(() if self.having is None else (self.having,)))

    @property
    def in_jvm(self) -> bool:
        """Whether Spark can build the partials of all aggregates, over all windows, without Python."""
        return all(self.builds_in_jvm(aggregate) for _, aggregate in self.aggregates)

    def builds_in_jvm(self, aggregate: Aggregate) -> bool:
        """Whether Spark can build the partials of one aggregate, over all windows, without Python."""
        return aggregate.builds_in_jvm(max(window.geometry.range for window in self.windows))

    @property
    def used(self) -> frozenset[str]:
        """The columns of the data that the query needs."""
        values = [expression(a) for _, aggregate in self.aggregates for a in aggregate.arguments]
        values += [] if self.where is None else [self.where]
        named = (*self.by, *self.groups, *self.ties, *((self.at,) if self.timed else ()))
        return frozenset((*named, *(root for value in values for root in value.roots)))


def shared_condition(queries: Iterable[Query]) -> Expression | None:
    """Return a condition that holds for every event that some of the queries counts; None if one counts all."""
    conditions = dict.fromkeys(query.where for query in queries)
    given = [condition for condition in conditions if condition is not None]
    return disjunction(given) if len(given) == len(conditions) else None


def check_queries(queries: Iterable[Query]) -> tuple[Query, ...]:
    """Return the queries of a plan; reject an empty plan, and names or columns that clash."""
    queries = tuple(queries)
    if not queries:
        raise DeclarationError("there is no query to plan. Pass at least one pn.query(...).")
    for value in queries:
        if not isinstance(value, Query):
            raise DeclarationError(f"{shown(value)} is not a query. Make one with pn.query(name, at=..., ...).")
    refuse_duplicates([query.name for query in queries], "two queries are called {}; rename one.")
    _check_shared_schema(queries)
    return queries


def _check_shared_schema(queries: tuple[Query, ...]) -> None:
    """Check that columns agree: the answers of all queries share one schema."""
    expiring = next((query.name for query in queries if query.uses_expires), None)
    for query in queries:
        if expiring is not None and EXPIRES in {name.lower() for name in (*query.by, *dict(query.aggregates))}:
            raise DeclarationError(
                f"query {expiring!r} refers to the instant when answers expire, but query {query.name!r} has a column "
                f"{EXPIRES!r} of its own. Rename that column, or make two plans."
            )
    keys = {key for query in queries for key in query.by}
    for query in queries:
        alias = next((alias for alias in (*dict(query.aggregates), *query.columns) if alias in keys), None)
        if alias is not None:
            raise DeclarationError(
                f"query {query.name!r} calls a column {alias!r}, which is a key of another query; results share one "
                "schema. Rename it."
            )
    spellings: dict[str, str] = {}
    for column in (column for query in queries for column in (*query.by, *query.columns)):
        if spellings.setdefault(column.lower(), column) != column:
            raise DeclarationError(
                f"the column {column!r} is also spelt {spellings[column.lower()]!r}; upper and lower case count as "
                "equal. Spell it one way."
            )


def refuse_duplicates(names: Iterable[str], message: str) -> None:
    """Raise an error if a name occurs twice; ``{}`` in the message stands for that name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DeclarationError(message.replace("{}", repr(name)))
        seen.add(name)
