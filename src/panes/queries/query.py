"""A query: which aggregates, over which windows, per which keys, of which events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from panes.aggregates.aged import LevelledOf
from panes.aggregates.aggregates import Aggregate, CustomOf
from panes.errors import DeclarationError, nearest
from panes.expressions.expression import Expression, expression
from panes.queries.eviction import BY_OPERATOR, Evict
from panes.queries.measures import Delta, Punctuation, Rows
from panes.queries.windows import AnyWindow, DeclaredWindow, Nested, RowWindow, Sliding, Window
from panes.suggestions import attribute, each_of, helpful, shown
from panes.timeline import format_duration, parse_duration

RESERVED = ("query", "window_name", "window")
"""The columns that every result begins with."""

EXPIRES = "expires"
"""What expressions over answers call the instant until which an answer is the latest of its window."""

NUMBER = "number"
"""What expressions over answers of windows by rows call which window of its key it is, from 0."""

ARRIVAL = "__panes_arrival"
"""Stands for the column of time where there is none: rows arrive in the order of the table."""

UNNAMED = "query"
"""What a query is called that was given no name."""


_OF_PLANS = {
    **dict.fromkeys(("run", "execute", "collect"), "pn.plan(query).run(data)"),
    **dict.fromkeys(("stream", "start"), "pn.plan(query).stream(events)"),
    "lookup": "pn.plan(query).lookup(events, requests)",
    "live": "pn.plan(query).live()",
    "explain": "pn.plan(query).explain()",
    "to_sql": "pn.to_sql(query)",
}
"""What a query is asked for, and a plan does."""


@dataclass(frozen=True, slots=True)
class Query:
    """Aggregates over windows, per key. Made by :func:`query`, which checks it.

    ``columns`` are the output columns after the keys, aggregates and derived ones, in the order of ``select``.
    Aggregates that are not among them only serve derived columns and ``having``. ``at`` is ``ARRIVAL`` where rows have
    no time and arrive as they stand.
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
            return attribute(self, name, _OF_PLANS)

    @property
    def timed(self) -> bool:
        """Whether rows have a time."""
        return self.at != ARRIVAL

    @property
    def windows(self) -> tuple[Window, ...]:
        """The windows to compute; one that was declared may be several."""
        return tuple(window for declared in self.over for window in declared.windows)

    @property
    def uses_expires(self) -> bool:
        """Whether expressions ask until when an answer stays valid."""
        return self.refers_to(EXPIRES)

    def refers_to(self, name: str) -> bool:
        """Whether expressions over answers use a name that answers have by themselves, and no column of the query."""
        own = {column.lower() for column in (*self.by, *self.groups, *dict(self.aggregates))}
        asked = [value for _, value in self.derived] + ([] if self.having is None else [self.having])
        return name not in own and any(root.lower() == name for value in asked for root in value.roots)

    @property
    def in_jvm(self) -> bool:
        """Whether Spark can build the partials of all aggregates, over all windows, without Python."""
        return all(self.builds_in_jvm(aggregate) for _, aggregate in self.aggregates)

    def builds_in_jvm(self, aggregate: Aggregate) -> bool:
        """Whether it can for one of them."""
        return aggregate.builds_in_jvm(max(window.geometry.range for window in self.windows))

    @property
    def used(self) -> frozenset[str]:
        """The columns of the data that the query needs."""
        values = [expression(a) for _, aggregate in self.aggregates for a in aggregate.arguments]
        values += [] if self.where is None else [self.where]
        named = (*self.by, *self.groups, *self.ties, *((self.at,) if self.timed else ()))
        return frozenset((*named, *(root for value in values for root in value.roots)))


@helpful(
    "pn.query('spend', by='card', at='ts', select={'n': pn.count()}, over=pn.tumbling('1 hour'))",
    more="all but the name of the query is written by name.",
    **dict.fromkeys(("on", "keys", "key", "partition_by", "entity", "entities", "index"), "by"),
    **dict.fromkeys(("time", "ts", "timestamp", "event_time", "time_column", "timestamp_field"), "at"),
    **dict.fromkeys(("window", "windows", "rolling"), "over"),
    **dict.fromkeys(("aggregates", "agg", "aggs", "aggregations", "columns", "features"), "select"),
    **dict.fromkeys(("filter", "condition"), "where"),
    group_by="keys of windows are called by=; groups= groups the rows inside a window of rows.",
    **dict.fromkeys(
        ("watermark", "delay", "lateness"),
        "a stream has its watermark before, as events.withWatermark('ts', '10 minutes'), and a lookup has delay=.",
    ),
    **dict.fromkeys(("every", "slide"), "the pace stands on the window, as over=pn.hopping('1 hour', every='5 min')."),
    **dict.fromkeys(("data", "events", "df", "table"), "a query knows no data: pn.plan(query).run(data) answers it."),
    order_by="write ties= for the order of rows of one instant.",
    partial="it stands on the window, as pn.hopping(pn.rows(100), every=pn.rows(10), partial=False).",
)
def query(
    name: str | None = None,
    *,
    by: str | Iterable[str] = (),
    at: str | None = None,
    select: Mapping[str, Aggregate | str | Expression],
    over: AnyWindow | Iterable[AnyWindow],
    where: str | Expression | None = None,
    having: str | Expression | None = None,
    groups: str | Iterable[str] = (),
    ties: str | Iterable[str] = (),
    evict: Evict | None = None,
    hidden: Mapping[str, Aggregate] | None = None,
) -> Query:
    """Declare a query: keys, event time, aggregates and windows.

    Parameters
    ----------
    name
        What the column ``query`` of the results shows.
    by
        The key columns; none for one answer per window.
    at
        The column of event time. Rows without a time are in no window. Without it, the rows of a table arrive as they
        stand, and windows go by rows.
    select
        Output columns: an aggregate each, or an expression over the aggregates' names, the keys, ``window``,
        ``window_name`` and, on the clock, ``expires``: when the next instance of the same size ends, until which the
        answer is valid; of windows by rows ``number``, which one of its key it is, from 0.
    over
        The windows, of any kinds.
    where
        Which events count.
    having
        Which answers come out; an expression over output columns, keys, ``window``, ``window_name`` and the others.
    groups
        Columns that group the rows inside a window of rows, an answer for each group. On the clock they are further
        keys.
    ties
        Columns that order the rows of one instant, for windows by rows and for ``first`` and ``last`` over any window.
        Without it windows by rows order them by all columns of the data, by the names of these, and ``first`` and
        ``last`` are the smallest and the largest value of their instant.
    evict
        ``pn.evict(...)``: which keys windows by rows forget.
    hidden
        Aggregates that only derived columns and ``having`` use; results do not show them.

    Examples
    --------
    >>> import panes as pn
    >>> temps = pn.query("temps", by="device", at="ts",
    ...     select={"low": pn.min("temp"), "high": pn.max("temp"), "spread": "high - low"},
    ...     over=[pn.tumbling("20 min"), pn.hopping("1 hour", every="5 min"), pn.sliding(pn.rows(10))],
    ...     where="temp > -60", having="spread > 1")
    >>> temps.columns
    ('low', 'high', 'spread')
    """
    name = UNNAMED if name is None else name
    if not isinstance(name, str) or not name.strip():
        raise DeclarationError(f"a query needs a name, not {name!r}: it is what its results are called.")
    if not isinstance(select, Mapping):
        first = next(iter(each_of(select)), None)
        write = f"'total': pn.sum({first!r})" if isinstance(first, str) else "'n': pn.count()"
        if isinstance(first, Aggregate):
            word = str(first).partition("(")[0]
            write = f"'{word}': pn.{word}(...)"
        raise DeclarationError(f"query {name!r}: select={shown(select)} names no columns. Write select={{{write}}}.")
    keys, inside, order = (
        _columns(name, what, some) for what, some in (("by", by), ("groups", groups), ("ties", ties))
    )
    windows = _listed(name, over)
    _check_keys(name, keys, at)
    _check_windows(name, windows)
    _check_inside(name, keys, inside, at)
    if evict is not None and not isinstance(evict, Evict):
        raise DeclarationError(f"query {name!r}: evict={evict!r} evicts nothing. Write evict=pn.evict(keys=1000).")
    every = {**select, **_only_aggregates(name, hidden or {}, select)}
    aggregates = tuple(
        (alias, _with_parsed_arguments(value)) for alias, value in every.items() if isinstance(value, Aggregate)
    )
    derived = tuple(
        (alias, _derived(name, alias, value)) for alias, value in select.items() if not isinstance(value, Aggregate)
    )
    _check_select(name, (*keys, *inside), aggregates, derived)
    _check_levels(name, windows, aggregates)
    known = [*keys, *inside, *(alias for alias, _ in aggregates), "window", "window_name", EXPIRES, NUMBER]
    for alias, value in derived:
        _check_references(name, f"the derived column {alias!r}", value, known)
        known.append(alias)
    filtered = None if having is None else expression(having)
    if filtered is not None:
        _check_references(name, "having", filtered, known)
    _check_hidden(name, hidden or {}, [*dict(derived).values(), *([] if filtered is None else [filtered])])
    made = Query(
        name=name,
        by=keys,
        at=ARRIVAL if at is None else at,
        aggregates=aggregates,
        derived=derived,
        over=windows,
        columns=tuple(select),
        where=None if where is None else expression(where),
        having=filtered,
        groups=inside,
        ties=order,
        evict=evict,
    )
    _check_expiring(made)
    _check_rows(made)
    _check_ties(made)
    return made


def check_names(queries: Iterable[Query]) -> tuple[Query, ...]:
    """Refuse an empty list, and two queries of one name."""
    queries = tuple(queries)
    if not queries:
        raise DeclarationError("there is no query to plan. Give at least one pn.query(...).")
    for value in queries:
        if not isinstance(value, Query):
            raise DeclarationError(f"{shown(value)} is not a query. Make one with pn.query(name, at=..., ...).")
    _refuse_duplicates([value.name for value in queries], "two queries are called {}; give each a name of its own.")
    _refuse_two_meanings(queries)
    spelt: dict[str, str] = {}
    for column in (column for value in queries for column in (*value.by, *value.columns)):
        if spelt.setdefault(column.lower(), column) != column:
            raise DeclarationError(
                f"the column {column!r} is also spelt {spelt[column.lower()]!r}; upper and lower case count as equal. "
                "Spell it one way."
            )
    return queries


def _refuse_two_meanings(queries: tuple[Query, ...]) -> None:
    """Answers of all queries share one schema, so that a name means one thing."""
    asking = next((query.name for query in queries if query.uses_expires), None)
    for query in queries:
        if asking is not None and EXPIRES in {name.lower() for name in (*query.by, *dict(query.aggregates))}:
            raise DeclarationError(
                f"query {asking!r} asks when answers expire, and {query.name!r} has a column {EXPIRES!r} of its own. "
                "Rename that, or plan them apart."
            )
    keys = {key for query in queries for key in query.by}
    for query in queries:
        taken = next((alias for alias in (*dict(query.aggregates), *query.columns) if alias in keys), None)
        if taken is not None:
            raise DeclarationError(
                f"query {query.name!r} calls a column {taken!r}, which is a key of another query; results share one "
                "schema. Rename it."
            )


def _with_parsed_arguments(aggregate: Aggregate) -> Aggregate:
    return aggregate.with_arguments(tuple(expression(argument).sql for argument in aggregate.arguments))


def _derived(query_name: str, alias: str, value: object) -> Expression:
    called = getattr(value, "__name__", None)
    if callable(value) and called is not None:
        raise DeclarationError(
            f"query {query_name!r} selects {alias!r} = {called}, a function and not what it gives. Write "
            f"pn.{called}(...) with parentheses; an aggregate of your own is made by pn.aggregate(...)."
        )
    if not isinstance(value, (str, Expression)):
        raise DeclarationError(
            f"query {query_name!r} selects {alias!r} = {shown(value)}, neither an aggregate nor an expression. "
            "Write for example pn.sum('amount'), or 'high - low' over other selected columns."
        )
    return expression(value)


def _columns(name: str, what: str, value: object) -> tuple[str, ...]:
    found = each_of(value)
    for column in found:
        if not isinstance(column, str) or not column:
            raise DeclarationError(
                f"query {name!r}: {what}={shown(column)} is not the name of a column. Write it as a string."
            )
    _refuse_duplicates(found, f"query {name!r} names {{}} twice in {what}=: name it once.")
    return found


def _listed(name: str, over: object) -> tuple[AnyWindow, ...]:
    """The windows as a user writes them: one, or several."""
    if isinstance(over, Mapping):
        called, window = next(iter(over.items()), ("day", "1 day"))
        size = (
            repr(window) if isinstance(window, str) else "pn.rows(10)" if isinstance(window, RowWindow) else "'1 day'"
        )
        raise DeclarationError(
            f"query {name!r}: over={{...}} maps names to windows. Write a list, and each name on its window, as "
            f"over=[pn.sliding({size}, name={called!r})]."
        )
    if isinstance(over, DeclaredWindow):
        return (over,)  # type: ignore[return-value]
    return each_of(over)


def _no_window(name: str, value: object) -> str:
    """Why something is not a window. A bare duration has no pace, which differs from verb to verb elsewhere."""
    if isinstance(value, (str, timedelta)):
        micros = parse_duration(value)
        size = repr(value if isinstance(value, str) else format_duration(micros))
        return (
            f"query {name!r}: {size} is a duration, and a window needs a pace, too. Write pn.tumbling({size}) for one "
            f"after another, pn.hopping({size}, every='1 min'), or pn.sliding({size}) for one up to each event."
        )
    if isinstance(value, int) and not isinstance(value, bool):
        return (
            f"query {name!r}: {value!r} has no unit. Write pn.sliding(pn.rows({value!r})) for the last {value!r} rows."
        )
    if isinstance(value, Rows):
        size = f"pn.rows({value.n})"
        return (
            f"query {name!r}: {size} is a size, and a window needs a pace, too. Write pn.sliding({size}) for the last "
            f"rows up to each event, pn.hopping({size}, every='1 min'), or pn.tumbling({size})."
        )
    if isinstance(value, (Delta, Punctuation)):
        size = f"pn.{type(value).__name__.lower()}({value.column!r}{', ...' if isinstance(value, Delta) else ''})"
        return f"query {name!r}: {size} is a size, and a window needs a pace, too. Write pn.tumbling({size})."
    if isinstance(value, Aggregate):
        return (
            f"query {name!r}: over={value} is an aggregate, which goes into select=. Write over=pn.tumbling('1 hour')."
        )
    return f"query {name!r}: {shown(value)} is not a window. Write pn.tumbling(size) or pn.hopping(size, every=...)."


def _check_keys(name: str, keys: tuple[str, ...], at: object) -> None:
    if at is not None and (not isinstance(at, str) or not at):
        raise DeclarationError(f"query {name!r}: at={shown(at)} is not the name of a column. Write it as a string.")
    if at is not None and str(at).lower() in {key.lower() for key in keys}:
        raise DeclarationError(
            f"query {name!r} groups by its own time column {at!r}: every event would be a group. Leave it out of by=."
        )


def _check_inside(name: str, keys: tuple[str, ...], groups: tuple[str, ...], at: object) -> None:
    taken = {column.lower() for column in (*keys, *((str(at),) if at is not None else ()))}
    for column in groups:
        if column.lower() in taken:
            raise DeclarationError(
                f"query {name!r}: groups= names {column!r}, which all rows of a window share. Leave it out."
            )


def _check_rows(query: Query) -> None:
    """Refuse what windows by rows cannot do, and what only they can."""
    rows = [window for window in query.over if isinstance(window, RowWindow)]
    clock = next((window for window in query.over if not isinstance(window, RowWindow)), None)
    if not query.timed:
        timed = clock or next((window for window in rows if _goes_by_time(window)), None)
        if timed is not None:
            raise DeclarationError(
                f"query {query.name!r}: the window {timed} goes by time, and rows have none. Write at= with their time."
            )
        if query.evict is not None and query.evict.age is not None:
            raise DeclarationError(
                f"query {query.name!r}: evict=pn.evict(age=...) goes by time, and rows have none. Write at= with their "
                "time, or pn.evict(keys=1000)."
            )
    for window in rows:
        if window.size == Rows(0):
            raise DeclarationError(
                f"query {query.name!r}: {window} holds no row, which only one side of a join has a use for."
            )
    if query.evict is not None and clock is not None:
        raise DeclarationError(
            f"query {query.name!r}: evict= forgets keys of windows by rows, and {clock} is on the clock. Declare it in "
            "a query of its own; a stream bounds its state with limits=pn.Limits(...)."
        )
    before = next((window for window in rows if window.before), None)
    if query.evict is not None and before is not None:
        raise DeclarationError(
            f"query {query.name!r}: evict= forgets keys row by row, and {before} leaves out all rows of an instant at "
            "once. Leave evict= out, or declare the window in a query of its own."
        )
    if query.evict is not None and not query.by:
        raise DeclarationError(f"query {query.name!r}: evict= forgets keys, and there are none. Write by='device'.")
    slid = next((window for window in query.over if isinstance(window, Sliding)), None)
    if query.groups and slid is not None:
        raise DeclarationError(
            f"query {query.name!r}: {slid} answers each event about its own key, so there is nothing to group inside. "
            f"Write by=({', '.join(map(repr, (*query.by, *query.groups)))}), or "
            f"pn.hopping({format_duration(slid.size)!r}, every=pn.rows(1)) for all groups with each event."
        )
    session = next((window for window in rows if window.kind == "session"), None)
    if session is not None and query.evict is not None:
        raise DeclarationError(
            f"query {query.name!r}: a session forgets its key when it ends, so that evict= has nothing to do. Leave it "
            "out."
        )
    unnumbered = clock or session
    if unnumbered is not None and query.refers_to(NUMBER):
        raise DeclarationError(
            f"query {query.name!r} asks for {NUMBER!r}, which windows on the clock and sessions do not have, and "
            f"{unnumbered} is one. Declare it in a query of its own."
        )
    if query.evict is not None and (callable(query.evict.choose) or query.evict.choose == BY_OPERATOR):
        raise DeclarationError(
            f"query {query.name!r}: keys that a function or an operator chooses are chosen by their rows, and "
            "aggregates are computed from columns. Write pn.apply(data, operator=...) with one of your own."
        )


def _check_ties(query: Query) -> None:
    """Refuse an order of one instant where windows on the clock combine values in an order of their own."""
    clock = next((window for window in query.over if not isinstance(window, RowWindow)), None)
    own = next((value for _, value in query.aggregates if isinstance(value, CustomOf)), None)
    if query.ties and clock is not None and own is not None:
        raise DeclarationError(
            f"query {query.name!r}: ties= does not reach {own} over {clock}: on the clock, an aggregate of your own "
            "sees the rows of one instant by their values. Declare it without ties=, in a query of its own, or over "
            "windows of rows."
        )


def _goes_by_time(window: RowWindow) -> bool:
    return window.kind == "session" or isinstance(window.size, int) or isinstance(window.every, int)


def _only_aggregates(
    name: str, hidden: Mapping[str, Aggregate], select: Mapping[str, object]
) -> Mapping[str, Aggregate]:
    for alias, value in hidden.items():
        if not isinstance(value, Aggregate):
            raise DeclarationError(
                f"query {name!r}: hidden {alias!r} = {value!r} is not an aggregate. Select it instead."
            )
        if alias in select:
            raise DeclarationError(f"query {name!r}: {alias!r} is both selected and hidden. Leave it out of hidden=.")
    return dict(sorted(hidden.items()))


def _check_hidden(name: str, hidden: Iterable[str], expressions: Iterable[Expression]) -> None:
    used = {root.lower() for value in expressions for root in value.roots}
    for alias in hidden:
        if alias.lower() not in used:
            raise DeclarationError(f"query {name!r}: nothing uses the hidden aggregate {alias!r}. Select or drop it.")


def _check_windows(name: str, windows: tuple[AnyWindow, ...]) -> None:
    if not windows:
        raise DeclarationError(f"query {name!r} has no window. Write over=[pn.tumbling('5 min'), ...].")
    for window in windows:
        if not isinstance(window, DeclaredWindow):
            raise DeclarationError(_no_window(name, window))
    _refuse_duplicates(
        [name for window in windows for name in window.names],
        f"query {name!r} has two windows called {{}}; drop one, or tell them apart with name=.",
    )


def _check_levels(name: str, windows: tuple[AnyWindow, ...], aggregates: tuple[tuple[str, Aggregate], ...]) -> None:
    """Refuse aggregates that look at levels apart where there are none, or where levels do not end together."""
    found = next((aggregate for _, aggregate in aggregates if aggregate.levels), None)
    for window in windows if found is not None else ():
        if not isinstance(window, Nested):
            raise DeclarationError(
                f"query {name!r}: {found} compares the levels of a nested window, and {window} has none. Write for "
                "example over=pn.nested(ranges=['1 hour', '10 min'], slides=['10 min', '1 min'])."
            )
        if any(coarser % finer for finer, coarser in pairwise(window.slides)):
            raise DeclarationError(
                f"query {name!r}: {found} compares the levels of {window}, which do not slide in step. Make every "
                "slide a multiple of the next shorter one (symmetric=True checks it)."
            )
        for _, aggregate in aggregates:
            if isinstance(aggregate, LevelledOf) and len(aggregate.weights) != len(window.ranges):
                raise DeclarationError(
                    f"query {name!r}: {aggregate} has {len(aggregate.weights)} weights, and {window} has "
                    f"{len(window.ranges)} levels. Give one weight per level, the finest first."
                )


def _check_expiring(query: Query) -> None:
    """Refuse to tell until when an answer is valid where that depends on events: the next one is not known."""
    found = next((window for window in query.over if isinstance(window, (Sliding, RowWindow))), None)
    if found is not None and query.uses_expires:
        raise DeclarationError(
            f"query {query.name!r} asks when answers expire, and those of the window {found} do with the next event, "
            "which nobody knows yet. Declare that window in a query of its own, without it, or take a hopping window "
            "on the clock."
        )


def _check_select(
    name: str,
    keys: tuple[str, ...],
    aggregates: tuple[tuple[str, Aggregate], ...],
    derived: tuple[tuple[str, Expression], ...],
) -> None:
    if not aggregates:
        raise DeclarationError(f"query {name!r} selects no aggregate. Write select={{'n': pn.count()}}.")
    for alias in (*keys, *(a for a, _ in aggregates), *(a for a, _ in derived)):
        if not isinstance(alias, str) or not alias:
            raise DeclarationError(f"query {name!r}: {alias!r} cannot name an output column. Write it as a string.")
        if alias.startswith("__"):
            raise DeclarationError(f"query {name!r}: names that begin with '__', as {alias!r}, are taken. Rename it.")
        if alias.lower() in RESERVED:
            raise DeclarationError(
                f"query {name!r}: the column {alias!r} would hide one that every result has "
                f"({', '.join(RESERVED)}). Give it another name."
            )
    own = {key.lower() for key in keys}
    key = next((alias for alias in (*dict(aggregates), *dict(derived)) if alias.lower() in own), None)
    if key is not None:
        raise DeclarationError(
            f"query {name!r} has two output columns called {key!r}: the key, which results show by themselves, and "
            "that of select=. Leave it out there, or rename it."
        )
    # Spark resolves names without regard to case, so names that differ only in case would be ambiguous.
    _refuse_duplicates(
        [alias.lower() for alias in (*keys, *dict(aggregates), *dict(derived))],
        f"query {name!r} has two output columns called {{}} (upper and lower case count as equal); rename one.",
    )


def _check_references(name: str, what: str, value: Expression, known: list[str]) -> None:
    lowered = {column.lower() for column in known}
    for column in value.roots:
        if column.lower() not in lowered:
            raise DeclarationError(
                f"query {name!r}: {what} refers to {column!r}, which is neither a key nor a selected column "
                f"({nearest(column, known)}). Select what it needs under a name first."
            )


def _refuse_duplicates(names: Iterable[str], message: str) -> None:
    seen: set[str] = set()
    for value in names:
        if value in seen:
            raise DeclarationError(message.replace("{}", repr(value)))
        seen.add(value)
