"""A query as SQL: text that reads back as an equal query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from panes.aggregates.aggregate import Aggregate
from panes.aggregates.registry import to_sql
from panes.dialect.selecting import label
from panes.dialect.statement import read_statements
from panes.dialect.tokens import tokenized
from panes.dialect.window_kinds import write_window
from panes.errors import DeclarationError, SqlError
from panes.expressions.expression import Expression, column
from panes.expressions.writing import quoted
from panes.queries.measures import Delta, Punctuation
from panes.queries.query import Query
from panes.queries.windows import AnyWindow, RowWindow, Sliding


def write_statement(query: Query, stream: str) -> str:
    """A query as a statement."""
    if "\n" in query.name or "\r" in query.name or query.name != query.name.strip():
        raise DeclarationError(f"query {query.name!r}: a name of several lines, or with blanks around it, has no SQL.")
    _refuse_unsaid(query)
    aggregates, derived = dict(query.aggregates), dict(query.derived)
    hidden = [alias for alias in aggregates if alias not in query.columns]
    in_place = {alias.lower(): _in_place(query, alias, aggregates[alias]) for alias in hidden}
    items = [_name(key) for key in query.by]
    for alias in query.columns:
        value = _call(query, aggregates[alias]) if alias in aggregates else _spelt(derived[alias], in_place)
        items.append(f"{value} AS {_name(alias)}")
    behind, windows = _windows(query)
    clauses = [f"SELECT {', '.join(items)}", f"FROM {_name(stream)} TIMESTAMP BY {_name(query.at)}{behind}"]
    if query.where is not None:
        clauses.append(f"WHERE {query.where.sql}")
    groups = [*(_name(key) for key in query.by), *windows]
    if groups:
        clauses.append(f"GROUP BY {', '.join(groups)}")
    if query.having is not None:
        clauses.append(f"HAVING {_spelt(query.having, in_place)}")
    text = "\n".join([f"-- name: {query.name}", *clauses])
    if _read_back(text) != query:
        raise DeclarationError(
            f"query {query.name!r} has no SQL of its own: what comes nearest reads back as another query. Aggregates "
            "that are hidden twice, or shown and hidden, and sketches of other than the usual size are such cases."
        )
    return text


def _refuse_unsaid(query: Query) -> None:
    """Refuse what no statement can say."""
    unsaid = {
        "no time (at=)": not query.timed,
        "groups=": query.groups,
        "ties=": query.ties,
        "evict=": query.evict,
    }
    for what, given in unsaid.items():
        if given:
            raise DeclarationError(
                f"query {query.name!r} has {what}, for which SQL has no words. Keep the query as it is: pn.plan takes "
                "it beside SQL text."
            )


def _read_back(text: str) -> Query | None:
    try:
        return read_statements(text)[0].query
    except SqlError:
        return None


def _in_place(query: Query, alias: str, aggregate: Aggregate) -> str:
    """A hidden aggregate, as it stands in expressions."""
    if alias != label(aggregate):
        raise DeclarationError(
            f"query {query.name!r}: the hidden aggregate {alias!r} has no name in SQL. Call it {label(aggregate)!r}."
        )
    return _call(query, aggregate)


def _spelt(value: Expression, in_place: Mapping[str, str]) -> str:
    """An expression over aggregates, with those that have no column of their own written out."""
    text, at = "", 0
    for token in tokenized(value.sql):
        if token.token_type is TokenType.IDENTIFIER and token.text.lower() in in_place:
            text += value.sql[at : token.start] + in_place[token.text.lower()]
            at = token.end + 1
    return text + value.sql[at:]


def _call(query: Query, aggregate: Aggregate) -> str:
    text = to_sql(aggregate)
    if text is None:
        raise DeclarationError(f"query {query.name!r}: SQL has no {aggregate}, so the query cannot be written as text.")
    return text


def _windows(query: Query) -> tuple[str, list[str]]:
    """What goes after the stream, and what in ``GROUP BY``. A single window in brackets goes after the stream."""
    texts = [_window(query, window) for window in query.over]
    if len(texts) > 1 or texts[0].startswith("Window("):
        return "", [f"Windows({', '.join(texts)})"]
    return (f" {texts[0]}", []) if texts[0].startswith("[") else ("", texts)


def _window(query: Query, window: AnyWindow) -> str:
    """A window as a member of a list, with its name if it has one."""
    text = write_window(window)
    read = None if text is None else _read_window(text)
    if text is not None and read == window:
        return text
    if text is not None and read is not None and _without_name(read) == _without_name(window):
        return f"Window({quoted(window.name)}, {text})"
    raise DeclarationError(
        f"query {query.name!r}: SQL has no words for the window {str(window)!r}, for {_unsaid(window)}. Keep the query "
        "as it is: pn.plan takes it beside SQL text."
    )


def _read_window(text: str) -> AnyWindow | None:
    try:
        return read_statements(f"SELECT COUNT(*) FROM s TIMESTAMP BY t GROUP BY Windows({text})")[0].query.over[0]
    except SqlError:
        return None


def _without_name(window: AnyWindow) -> tuple[str, dict[str, Any]]:
    return window.kind, {argument: value for argument, value in window.arguments.items() if argument != "name"}


def _unsaid(window: AnyWindow) -> str:
    """What SQL cannot say about a window that has no text."""
    arguments = window.arguments
    measures = [arguments[name] for name in ("size", "every") if name in arguments]
    if any(isinstance(each, Delta) for each in measures):
        return "a size or a pace in a column"
    if any(isinstance(each, Punctuation) for each in measures):
        return "marks that end it"
    if isinstance(window, Sliding):
        return f"bounds={window.bounds!r}; a frame that ends before the event includes both its bounds, bounds='[]'"
    if isinstance(window, RowWindow) and window.before:
        return "bounds='[)'; a frame of rows ends with a row, and not before an instant"
    if isinstance(window, RowWindow) and window.kind == "hopping" and window.size == window.every:
        return "a pace as long as its size, for which SQL has pn.tumbling"
    others = [f"{name}={value!r}" for name, value in arguments.items() if name in ("origin", "partial")]
    return others[0] if others else "its offset or bounds"


def _name(text: str) -> str:
    return column(text).sql
