"""What ``plan.lookup`` declares: queries whose windows are answered as of each request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from panes.errors import DeclarationError, DurationError
from panes.expressions.expression import Expression
from panes.queries.measures import Delta, Rows
from panes.queries.query import NUMBER, Query, shared_condition
from panes.queries.windows import AnyWindow, Cumulate, RowWindow, Sliding, Window, wide_names
from panes.timeline import DurationLike, parse_duration

LookupLayout: TypeAlias = Literal["wide", "long"]

_Keys: TypeAlias = tuple[frozenset[str], str]
"""Key columns and event time, in lower case."""

LookupWindow: TypeAlias = Window | Cumulate | Sliding | RowWindow
"""A window that has one answer per request; a nested window is several of them."""


@dataclass(frozen=True, slots=True)
class LookupPart:
    """Queries that are answered from the same sorted events: they have the same keys and event time.

    If windows hold a number of rows, the queries also count the same events in the same order.

    Parameters
    ----------
    queries
        The queries.
    requested_at
        The time column of the requests.
    delay
        How many µs after its end an instance on the clock is answered.
    read
        The columns that windows of rows read, in all queries of the plan that order events the same way.
    """

    queries: tuple[Query, ...]
    requested_at: str
    delay: int
    read: frozenset[str] = frozenset()

    @property
    def by(self) -> tuple[str, ...]:
        """The key columns."""
        return self.queries[0].by

    @property
    def at(self) -> str:
        """The column of event time."""
        return self.queries[0].at

    @property
    def ties(self) -> tuple[str, ...]:
        """The columns that order events of one instant, as declared."""
        return self.queries[0].ties

    @property
    def kept(self) -> Expression | None:
        """The condition on the events of any of the queries, or None."""
        return shared_condition(self.queries)

    @property
    def views(self) -> tuple[tuple[int, LookupWindow], ...]:
        """The windows to answer, each with the number of its query."""
        return tuple((i, window) for i, query in enumerate(self.queries) for window in answered(query))

    @property
    def reach(self) -> int:
        """How many µs before a request the oldest event of a window in time may be."""
        return max((_reach(window, self.delay) for _, window in self.views), default=0)

    @property
    def rows(self) -> int:
        """How many of the last events the windows of rows need; 0 if there are none."""
        windows = (window for _, window in self.views if isinstance(window, RowWindow))
        return max((w.size.n + w.ago for w in windows if isinstance(w.size, Rows)), default=0)


@dataclass(frozen=True, slots=True)
class LookupDeclaration:
    """The queries of a plan, looked up at requests. Made by :func:`declare_lookup`, which checks it.

    Parameters
    ----------
    parts
        The queries, grouped by the sorted events they share.
    layout
        ``wide``: a row per request. ``long``: a row per request, query and window.
    """

    queries: tuple[Query, ...]
    parts: tuple[LookupPart, ...]
    layout: LookupLayout

    @property
    def added(self) -> tuple[str, ...]:
        """The columns that answers add to the requests."""
        return added_columns(self.queries, self.layout)


def answered(query: Query) -> tuple[LookupWindow, ...]:
    """Return the windows of a query that have an answer per request."""
    return tuple(each for window in query.over for each in _one_by_one(window))


def features(queries: Iterable[Query]) -> tuple[tuple[str, str, str, str], ...]:
    """Return the columns of the wide layout: query, window, output column, and the name of the result column."""
    return tuple((query.name, *names) for query in queries for names in wide_names(query.over, query.columns))


def added_columns(queries: Sequence[Query], layout: LookupLayout) -> tuple[str, ...]:
    """Return the columns that the answers of queries add to the requests."""
    if layout == "wide":
        return tuple(name for *_, name in features(queries))
    return ("query", "window_name", *dict.fromkeys(column for query in queries for column in query.columns))


def declare_lookup(
    queries: Sequence[Query], *, at: str | None = None, delay: DurationLike | None = None, layout: LookupLayout = "wide"
) -> LookupDeclaration:
    """Check the arguments of ``plan.lookup``.

    Examples
    --------
    >>> import panes as pn
    >>> card = pn.query(by="card", at="paid", select={"n": pn.count()}, over=[pn.sliding("1 h"), pn.tumbling("1 d")])
    >>> lookup = declare_lookup([card], at="ts", delay="1 min")
    >>> lookup.added, lookup.parts[0].at, lookup.parts[0].requested_at
    (('n_1h', 'n_1d'), 'paid', 'ts')
    """
    if layout not in get_args(LookupLayout):
        raise DeclarationError(
            f"layout={layout!r}: write 'wide' (a row per request) or 'long' (a row per request, query and window)."
        )
    if at is not None and (not isinstance(at, str) or not at):
        raise DeclarationError(
            f"at={at!r} is not the name of a column. It is the time column of the requests; that of the events is in "
            "the query. Write for example at='requested'."
        )
    late = 0 if delay is None else parse_duration(delay)
    if late < 0:
        raise DurationError(
            f"delay={delay!r} is negative: answers come after the end of a window. Write for example '10 min'."
        )
    for query in queries:
        _check_query(query)
        for window in query.over:
            if (why := _refused(window)) is not None:
                raise DeclarationError(f"query {query.name!r} cannot be looked up over {window.name!r}: {why}")
    if layout == "wide":
        _refuse_twins(queries)
    return LookupDeclaration(tuple(queries), _parts(queries, at, late), layout)


def _parts(queries: Sequence[Query], at: str | None, delay: int) -> tuple[LookupPart, ...]:
    found: dict[tuple[_Keys, tuple[tuple[str, ...], Expression | None] | None], list[Query]] = {}
    read: dict[tuple[_Keys, tuple[str, ...]], frozenset[str]] = {}
    for query in queries:
        keys = frozenset(key.lower() for key in query.by), query.at.lower()
        if not any(isinstance(window, RowWindow) for window in query.over):
            found.setdefault((keys, None), []).append(query)
            continue
        ties = tuple(name.lower() for name in query.ties)
        read[keys, ties] = read.get((keys, ties), frozenset()) | query.used
        # Different conditions have different last ten events.
        found.setdefault((keys, (ties, query.where)), []).append(query)
    return tuple(
        LookupPart(
            tuple(some),
            some[0].at if at is None else at,
            delay,
            frozenset() if own is None else read[keys, own[0]],
        )
        for (keys, own), some in found.items()
    )


def _one_by_one(window: AnyWindow) -> tuple[LookupWindow, ...]:
    return (window,) if isinstance(window, LookupWindow) else window.windows


def _reach(window: LookupWindow, delay: int) -> int:
    if isinstance(window, Sliding):
        return window.size + window.ago
    # The newest complete instance ended less than a pace ago.
    if isinstance(window, Window):
        return window.geometry.range + window.geometry.slide + delay
    if isinstance(window, Cumulate):
        return window.upto + window.step + delay
    return 0


# Checks


def _check_query(query: Query) -> None:
    """Reject a query with a part that has no meaning for requests."""
    name = f"query {query.name!r}"
    if not query.timed:
        raise DeclarationError(
            f"{name} has no at=, and a request asks about a point in time. Write for example at='ts'."
        )
    for what, given, why in (
        ("having", query.having, "a lookup answers every request. Leave it out and filter the result"),
        ("groups", query.groups, "a request has one answer per window, not one per group. Move them to by="),
        ("evict", query.evict, "a lookup sees all earlier events and evicts no key. Leave it out"),
    ):
        if given:
            raise DeclarationError(f"{name} has {what}=, but {why}.")
    if query.refers_to(NUMBER):
        raise DeclarationError(
            f"{name} asks for {NUMBER!r}, which depends on where the extract of events begins. Leave it out."
        )


def _refused(window: AnyWindow) -> str | None:
    """Return why a window cannot be looked up and what to write instead, or None if it can be."""
    if not isinstance(window, RowWindow):
        return None
    phase = "depends on where the extract of events begins, so that a training set would differ from the stream"
    write = "Write pn.sliding(pn.rows(10)) for the last rows, or pn.sliding('1 hour')."
    if window.kind == "session":
        return f"which session a request falls into is known only when it has ended. {write}"
    if window.deltas:
        return f"it is measured in the column {window.deltas[0].column!r}, and a request has no value of it. {write}"
    if window.origin != "epoch":
        return (
            f"where a window with origin={window.origin!r} begins {phase}. Leave origin= out for the grid of the "
            "clock, or write pn.sliding('1 hour')."
        )
    if window.every is None or (isinstance(window.every, Rows) and not window.per_row):
        return f"after which row it is answered {phase}. {write}"
    if not isinstance(window.size, Rows):
        return f"it is answered with every row, and a request is not a row. {write}"
    assert not isinstance(window.every, Delta)
    return None


def _refuse_twins(queries: Sequence[Query]) -> None:
    owners: dict[str, str] = {}
    for query, window, column, name in features(queries):
        owner = f"{column!r} over {window!r}" + (f" of query {query!r}" if len(queries) > 1 else "")
        if name.lower() in owners:
            raise DeclarationError(
                f"the lookup would have two columns called {name!r} ({owners[name.lower()]}, and {owner}). Rename an "
                "output column, give a window a name=, or take layout='long'."
            )
        owners[name.lower()] = owner
