"""Windows of queries that go by the events themselves: the last so many of them, and sessions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from panes.declare.kinds import Last, Session
from panes.declare.query import Query
from panes.declare.windows import tumbling
from panes.errors import PlanError
from panes.windowing.declarations import Count, Gap, Sliding, Tumbling, WindowDeclaration
from panes.windowing.over_tables import WindowedAggregates, check_output, stream_of


@dataclass(frozen=True)
class RowsQuery:
    """A query over such windows.

    Parameters
    ----------
    query
        What was declared, over these windows alone.
    windows
        Its aggregates over each of them, without what is derived from aggregates.
    names, after
        What results call each of them, and how long after its last event it ends, in µs.
    """

    query: Query
    windows: tuple[WindowedAggregates, ...]
    names: tuple[str, ...]
    after: tuple[int, ...]

    def apart(self) -> tuple[RowsQuery, ...]:
        """Parts that a stream runs on their own: the last events, which come in the order of time, and each session."""
        sessions = [isinstance(window.stream.window.evict, Gap) for window in self.windows]
        groups = [
            [i for i, alone in enumerate(sessions) if not alone],
            *([i] for i, alone in enumerate(sessions) if alone),
        ]
        return tuple(
            RowsQuery(
                self.query,
                tuple(self.windows[i] for i in some),
                tuple(self.names[i] for i in some),
                tuple(self.after[i] for i in some),
            )
            for some in groups
            if some
        )


def over_time(queries: Iterable[Query]) -> tuple[Query, ...]:
    """Queries with their windows over time; those that have no other windows are left out."""
    return tuple(part for query in queries if (part := _part(query, by_rows=False)) is not None)


def over_rows(queries: Iterable[Query]) -> tuple[RowsQuery, ...]:
    """Queries with their windows that go by events; those that have none are left out.

    Examples
    --------
    >>> import panes as pn
    >>> declared = pn.query("trades", at="ts", select={"n": pn.count()}, over=[pn.tumbling("1 h"), pn.last(100)])
    >>> [str(window.stream.window) for found in over_rows([declared]) for window in found.windows]
    ['sliding, count(100), count(1)']
    """
    return tuple(_rows_query(part) for query in queries if (part := _part(query, by_rows=True)) is not None)


def _part(query: Query, *, by_rows: bool) -> Query | None:
    over = tuple(window for window in query.over if isinstance(window, (Last, Session)) == by_rows)
    return None if not over else query if over == query.over else replace(query, over=over)


def _rows_query(query: Query) -> RowsQuery:
    for alias, aggregate in query.aggregates:
        check_output(alias, aggregate)
    aggregates = tuple(alias for alias, _ in query.aggregates)
    bare = replace(query, over=(tumbling("1 us"),), derived=(), having=None, columns=aggregates)
    declared, after = list[WindowedAggregates](), list[int]()
    for window in query.over:
        stream = stream_of(_policy(query, window), query.by, query.at, query.where)
        declared.append(WindowedAggregates(stream, bare, partial=True))
        after.append(window.gap if isinstance(window, Session) else 0)
    return RowsQuery(query, tuple(declared), tuple(str(window) for window in query.over), tuple(after))


def _policy(query: Query, window: object) -> WindowDeclaration:
    if isinstance(window, Last):
        if window.skip:
            raise PlanError(
                f"query {query.name!r}: {window} leaves out the last events, which only lookups do. Leave skip= out, "
                "or write pn.lookup(events, requests, ...)."
            )
        return Sliding(Count(window.count), Count(window.every))
    assert isinstance(window, Session)
    if window.longest is not None:
        raise PlanError(
            f"query {query.name!r}: {window} has a longest duration, which does not run here. Leave it out, or take a "
            "tumbling window of that size."
        )
    return Tumbling(Gap(window.gap))
