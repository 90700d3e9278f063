"""``pn.query``: check a declaration, and reject what cannot be answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from itertools import pairwise
from typing import Any

from panes.aggregates.aggregate import Aggregate
from panes.errors import DeclarationError
from panes.expressions.expression import Expression, expression
from panes.queries.eviction import BY_OPERATOR, Evict
from panes.queries.measures import Delta, Punctuation, Rows
from panes.queries.query import ARRIVAL, EXPIRES, NUMBER, RESERVED, Query, refuse_duplicates
from panes.queries.windows import AnyWindow, DeclaredWindow, Nested, RowWindow, Sliding
from panes.suggestions import each_of, helpful, nearest, shown
from panes.timeline import format_duration, parse_duration

UNNAMED = "query"
"""The name of a query that was declared without one."""


@helpful(
    "pn.query('spend', by='card', at='ts', select={'n': pn.count()}, over=pn.tumbling('1 hour'))",
    more="everything but the name of the query is written by name.",
    **dict.fromkeys(("on", "keys", "key", "partition_by", "entity", "entities", "index"), "by"),
    **dict.fromkeys(("time", "ts", "timestamp", "event_time", "time_column", "timestamp_field"), "at"),
    **dict.fromkeys(("window", "windows", "rolling"), "over"),
    **dict.fromkeys(("aggregates", "agg", "aggs", "aggregations", "columns", "features"), "select"),
    **dict.fromkeys(("filter", "condition"), "where"),
    group_by="keys are called by=; groups= groups the rows inside a window of rows.",
    **dict.fromkeys(
        ("watermark", "delay", "lateness"),
        "a watermark belongs to the stream, as events.withWatermark('ts', '10 minutes'); a lookup has delay=.",
    ),
    **dict.fromkeys(("every", "slide"), "the pace belongs to the window, as over=pn.hopping('1 hour', every='5 min')."),
    **dict.fromkeys(
        ("data", "events", "df", "table"), "a query does not hold data: pn.plan(query).run(data) answers it."
    ),
    order_by="write ties= for the order of rows of one instant.",
    partial="it belongs to the window, as pn.hopping(pn.rows(100), every=pn.rows(10), partial=False).",
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
        The name in the column ``query`` of results.
    by
        The key columns; without them there is one answer per window.
    at
        The column of event time. Rows without a time are in no window. If omitted, the rows of a table arrive in its
        order, and all windows must be windows of rows.
    select
        Output columns: each an aggregate, or an expression over the aggregates' names, the keys, ``window``,
        ``window_name`` and, on the clock, ``expires``: when the next instance of the same size ends, until which the
        answer is valid. For windows of rows also ``number``: the number of the window within its key, from 0.
    over
        The windows, of any kinds.
    where
        Which events count.
    having
        Which answers are in the result; an expression over output columns, keys, ``window``, ``window_name`` and so on.
    groups
        Columns that group the rows inside a window of rows, with an answer for each group. On the clock they are
        further keys.
    ties
        Columns that order the rows of one instant, for windows of rows and for ``first`` and ``last`` over any window.
        Without it, windows of rows order them by all columns of the data, in the order of their names, and ``first``
        and ``last`` are the smallest and the largest value of their instant.
    evict
        ``pn.evict(...)``: which keys of windows of rows are evicted.
    hidden
        Aggregates that only derived columns and ``having`` use; they are not in the result.

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
        raise DeclarationError(f"name={name!r} is not the name of a query. Write for example pn.query('spend', ...).")
    keys, inside, order = _columns(name, "by", by), _columns(name, "groups", groups), _columns(name, "ties", ties)
    windows = _windows(name, over)
    _check_keys(name, keys, inside, at)
    aggregates, derived = _selected(name, select, hidden or {})
    filtered = None if having is None else expression(having)
    if evict is not None and not isinstance(evict, Evict):
        raise DeclarationError(f"query {name!r}: evict={evict!r} is not an eviction. Write evict=pn.evict(keys=1000).")
    declared = Query(
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
    for check in (
        _check_names,
        _check_levels,
        _check_references,
        _check_expires,
        _check_time,
        _check_row_windows,
        _check_eviction,
        _check_ties,
    ):
        check(declared)
    _check_hidden(declared, hidden or {})
    return declared


# Reading what users write


def _columns(name: str, parameter: str, value: object) -> tuple[str, ...]:
    columns = each_of(value)
    for column in columns:
        if not isinstance(column, str) or not column:
            raise DeclarationError(
                f"query {name!r}: {parameter}={shown(column)} is not the name of a column. Write it as a string."
            )
    refuse_duplicates(columns, f"query {name!r} names {{}} twice in {parameter}=: name it once.")
    return columns


def _windows(name: str, over: Any) -> tuple[AnyWindow, ...]:
    """Return the windows, one or several."""
    if isinstance(over, Mapping):
        label, window = next(iter(over.items()), ("day", "1 day"))
        call = repr(window) if isinstance(window, DeclaredWindow) else f"pn.sliding({shown(window)})"
        raise DeclarationError(
            f"query {name!r}: over={{...}} maps names to windows. Write a list, with each name on its window, as "
            f"over=[{call[:-1]}, name={label!r})]."
        )
    windows: tuple[AnyWindow, ...] = (over,) if isinstance(over, DeclaredWindow) else each_of(over)
    if not windows:
        raise DeclarationError(f"query {name!r} has no window. Write over=[pn.tumbling('5 min'), ...].")
    for window in windows:
        if not isinstance(window, DeclaredWindow):
            raise DeclarationError(f"query {name!r}: {_not_a_window(window)}")
    refuse_duplicates(
        [label for window in windows for label in window.names],
        f"query {name!r} has two windows called {{}}; drop one, or distinguish them with name=.",
    )
    return windows


def _not_a_window(value: object) -> str:
    """Return why a value is not a window. A bare duration has no pace."""
    if isinstance(value, (str, timedelta)):
        micros = parse_duration(value)
        size = repr(value if isinstance(value, str) else format_duration(micros))
        return (
            f"{size} is a duration, and a window also needs a pace. Write pn.tumbling({size}) for one after another, "
            f"pn.hopping({size}, every='1 min'), or pn.sliding({size}) for one up to each event."
        )
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value!r} has no unit. Write pn.sliding(pn.rows({value!r})) for the last {value!r} rows."
    if isinstance(value, Rows):
        return (
            f"{value!r} is a size, and a window also needs a pace. Write pn.sliding({value!r}) for the last rows up to "
            f"each event, pn.hopping({value!r}, every='1 min'), or pn.tumbling({value!r})."
        )
    if isinstance(value, (Delta, Punctuation)):
        return f"{value!r} is a size, and a window also needs a pace. Write pn.tumbling({value!r})."
    if isinstance(value, Aggregate):
        return f"over={value} is an aggregate, which goes into select=. Write over=pn.tumbling('1 hour')."
    return f"{shown(value)} is not a window. Write pn.tumbling(size) or pn.hopping(size, every=...)."


def _selected(
    name: str, select: Any, hidden: Mapping[str, Aggregate]
) -> tuple[tuple[tuple[str, Aggregate], ...], tuple[tuple[str, Expression], ...]]:
    """Return the aggregates, shown and hidden, and the derived columns."""
    if not isinstance(select, Mapping):
        first = next(iter(each_of(select)), None)
        write = f"'total': pn.sum({first!r})" if isinstance(first, str) else "'n': pn.count()"
        if isinstance(first, Aggregate):
            word = str(first).partition("(")[0]
            write = f"'{word}': pn.{word}(...)"
        raise DeclarationError(f"query {name!r}: select={shown(select)} names no columns. Write select={{{write}}}.")
    for alias, value in hidden.items():
        if not isinstance(value, Aggregate):
            raise DeclarationError(
                f"query {name!r}: hidden {alias!r} = {value!r} is not an aggregate. Select it instead."
            )
        if alias in select:
            raise DeclarationError(f"query {name!r}: {alias!r} is both selected and hidden. Leave it out of hidden=.")
    aggregates = tuple(
        (alias, value.with_arguments(tuple(expression(argument).sql for argument in value.arguments)))
        for alias, value in (*select.items(), *sorted(hidden.items()))
        if isinstance(value, Aggregate)
    )
    derived = tuple(
        (alias, _derived(name, alias, value)) for alias, value in select.items() if not isinstance(value, Aggregate)
    )
    if not aggregates:
        raise DeclarationError(f"query {name!r} selects no aggregate. Write select={{'n': pn.count()}}.")
    return aggregates, derived


def _derived(name: str, alias: str, value: object) -> Expression:
    function = getattr(value, "__name__", None)
    if callable(value) and function is not None:
        raise DeclarationError(
            f"query {name!r} selects {alias!r} = {function}, a function that was not called. Write "
            f"pn.{function}(...) with parentheses; pn.aggregate(...) makes an aggregate of your own."
        )
    if not isinstance(value, (str, Expression)):
        raise DeclarationError(
            f"query {name!r} selects {alias!r} = {shown(value)}, neither an aggregate nor an expression. "
            "Write for example pn.sum('amount'), or 'high - low' over other selected columns."
        )
    return expression(value)


def _check_keys(name: str, keys: tuple[str, ...], groups: tuple[str, ...], at: object) -> None:
    if at is not None and (not isinstance(at, str) or not at):
        raise DeclarationError(f"query {name!r}: at={shown(at)} is not the name of a column. Write it as a string.")
    time = set() if at is None else {str(at).lower()}
    lowered = {key.lower() for key in keys}
    if time & lowered:
        raise DeclarationError(
            f"query {name!r} groups by its own time column {at!r}: every event would be a group. Leave it out of by=."
        )
    for column in groups:
        if column.lower() in lowered | time:
            raise DeclarationError(
                f"query {name!r}: groups= names {column!r}, which all rows of a window share. Leave it out."
            )


# Checks of a query as a whole


def _check_names(query: Query) -> None:
    """Output columns have distinct, unreserved names."""
    keys = (*query.by, *query.groups)
    selected = (*dict(query.aggregates), *dict(query.derived))
    for alias in (*keys, *selected):
        if not isinstance(alias, str) or not alias:
            raise DeclarationError(
                f"query {query.name!r}: {alias!r} cannot name an output column. Write it as a string."
            )
        if alias.startswith("__"):
            raise DeclarationError(
                f"query {query.name!r}: names that begin with '__', as {alias!r}, are reserved. Rename it."
            )
        if alias.lower() in RESERVED:
            raise DeclarationError(
                f"query {query.name!r}: the column {alias!r} would hide one that every result has "
                f"({', '.join(RESERVED)}). Give it another name."
            )
    lowered = {key.lower() for key in keys}
    key = next((alias for alias in selected if alias.lower() in lowered), None)
    if key is not None:
        raise DeclarationError(
            f"query {query.name!r} has two output columns called {key!r}: the key, which results always show, "
            "and that of select=. Leave it out there, or rename it."
        )
    # Spark resolves names without regard to case, so names that differ only in case would be ambiguous.
    refuse_duplicates(
        [alias.lower() for alias in (*keys, *selected)],
        f"query {query.name!r} has two output columns called {{}} (upper and lower case count as equal); rename one.",
    )


def _check_levels(query: Query) -> None:
    """Aggregates that compare levels need windows with levels that end together."""
    levelled = next((aggregate for _, aggregate in query.aggregates if aggregate.levels), None)
    for window in query.over if levelled is not None else ():
        if not isinstance(window, Nested):
            raise DeclarationError(
                f"query {query.name!r}: {levelled} compares the levels of a nested window, and {window} has none. "
                "Write for example over=pn.nested(ranges=['1 hour', '10 min'], slides=['10 min', '1 min'])."
            )
        if any(coarser % finer for finer, coarser in pairwise(window.slides)):
            raise DeclarationError(
                f"query {query.name!r}: {levelled} compares the levels of {window}, which do not slide in step. Make "
                "every slide a multiple of the next shorter one (symmetric=True checks it)."
            )
        for _, aggregate in query.aggregates:
            if aggregate.needs_levels not in (None, len(window.ranges)):
                raise DeclarationError(
                    f"query {query.name!r}: {aggregate} has {aggregate.needs_levels} weights, and {window} has "
                    f"{len(window.ranges)} levels. Give one weight per level, the finest first."
                )


def _check_references(query: Query) -> None:
    """Expressions over answers refer to columns that come before them."""
    known = [*query.by, *query.groups, *dict(query.aggregates), "window", "window_name", EXPIRES, NUMBER]
    expressions = [(f"the derived column {alias!r}", alias, value) for alias, value in query.derived]
    if query.having is not None:
        expressions.append(("having", "", query.having))
    for what, alias, value in expressions:
        lowered = {column.lower() for column in known}
        for column in value.roots:
            if column.lower() not in lowered:
                raise DeclarationError(
                    f"query {query.name!r}: {what} refers to {column!r}, which is neither a key nor a selected column "
                    f"({nearest(column, known)}). Select what it needs under a name first."
                )
        known.append(alias)


def _check_hidden(query: Query, hidden: Iterable[str]) -> None:
    used = {root.lower() for value in query.answer_expressions for root in value.roots}
    for alias in hidden:
        if alias.lower() not in used:
            raise DeclarationError(
                f"query {query.name!r}: nothing uses the hidden aggregate {alias!r}. Select or drop it."
            )


def _check_expires(query: Query) -> None:
    """An answer that depends on the next event has no known end of validity."""
    window = next((window for window in query.over if isinstance(window, (Sliding, RowWindow))), None)
    if window is not None and query.uses_expires:
        raise DeclarationError(
            f"query {query.name!r} refers to the instant when answers expire, but answers of the window {window} "
            "expire with the next event, which is not known yet. Declare that window in a query of its own, without "
            "it, or take a hopping window on the clock."
        )


def _check_time(query: Query) -> None:
    if query.timed:
        return
    for window in query.over:
        if not isinstance(window, RowWindow) or (
            window.kind == "session" or isinstance(window.size, int) or isinstance(window.every, int)
        ):
            raise DeclarationError(
                f"query {query.name!r}: the window {window} is measured in time, and rows have none. Write at= with "
                "their time column."
            )
    if query.evict is not None and query.evict.age is not None:
        raise DeclarationError(
            f"query {query.name!r}: evict=pn.evict(age=...) is measured in time, and rows have none. Write at= with "
            "their time column, or pn.evict(keys=1000)."
        )


def _check_row_windows(query: Query) -> None:
    """Check what only some kinds of windows support: ``pn.rows(0)``, ``groups=`` and ``number``."""
    for window in query.row_windows:
        if window.size == Rows(0):
            raise DeclarationError(
                f"query {query.name!r}: {window} holds no row, which is useful only for one side of a join."
            )
    sliding = next((window for window in query.over if isinstance(window, Sliding)), None)
    if query.groups and sliding is not None:
        raise DeclarationError(
            f"query {query.name!r}: {sliding} answers each event about its own key, so there is nothing to group "
            f"inside. Write by=({', '.join(map(repr, (*query.by, *query.groups)))}), or "
            f"pn.hopping({format_duration(sliding.size)!r}, every=pn.rows(1)) for all groups with each event."
        )
    unnumbered = _on_the_clock(query) or _session(query)
    if unnumbered is not None and query.refers_to(NUMBER):
        raise DeclarationError(
            f"query {query.name!r} refers to {NUMBER!r}, which windows on the clock and sessions do not have, and "
            f"{unnumbered} is one. Declare it in a query of its own."
        )


def _check_eviction(query: Query) -> None:
    """``evict=`` needs keys, and windows that are updated row by row."""
    if query.evict is None:
        return
    clock, session = _on_the_clock(query), _session(query)
    if clock is not None:
        raise DeclarationError(
            f"query {query.name!r}: evict= forgets keys of windows of rows, and {clock} is on the clock. Declare it in "
            "a query of its own; a stream bounds its state with limits=pn.Limits(...)."
        )
    before = next((window for window in query.row_windows if window.before), None)
    if before is not None:
        raise DeclarationError(
            f"query {query.name!r}: evict= forgets keys row by row, and {before} leaves out all rows of an instant at "
            "once. Leave evict= out, or declare the window in a query of its own."
        )
    if not query.by:
        raise DeclarationError(f"query {query.name!r}: evict= forgets keys, and there are none. Write by='device'.")
    if session is not None:
        raise DeclarationError(
            f"query {query.name!r}: a session forgets its key when it ends, so evict= has nothing to do. Leave it out."
        )
    if callable(query.evict.choose) or query.evict.choose == BY_OPERATOR:
        raise DeclarationError(
            f"query {query.name!r}: a function or an operator chooses keys by their rows, but aggregates are computed "
            "from columns. Write pn.apply(data, operator=...) with an operator of your own."
        )


def _check_ties(query: Query) -> None:
    """On the clock, ``ties=`` does not order the rows that an aggregate of the user's own sees."""
    clock = _on_the_clock(query)
    custom = next((value for _, value in query.aggregates if value.by_order), None)
    if query.ties and clock is not None and custom is not None:
        raise DeclarationError(
            f"query {query.name!r}: ties= does not reach {custom} over {clock}: on the clock, an aggregate of your own "
            "sees the rows of one instant by their values. Declare it without ties=, in a query of its own, or over "
            "windows of rows."
        )


def _on_the_clock(query: Query) -> AnyWindow | None:
    return next((window for window in query.over if not isinstance(window, RowWindow)), None)


def _session(query: Query) -> RowWindow | None:
    return next((window for window in query.row_windows if window.kind == "session"), None)
