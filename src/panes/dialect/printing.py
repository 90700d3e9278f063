"""A query as SQL: text that reads back as an equal query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from panes.aggregates.aggregates import Aggregate, CountOf, MaxOf, MeanOf, MinOf, PickOf, SumOf, VarianceOf
from panes.aggregates.approximate import ApproxCountDistinctOf, ApproxQuantileOf, TopOf
from panes.aggregates.collecting import CountDistinctOf, DistinctOf, QuantileOf
from panes.aggregates.fits import CorrelationOf
from panes.dialect.selecting import label
from panes.dialect.statement import read_statements
from panes.dialect.tokens import tokenized
from panes.dialect.window_syntax import UNITS
from panes.errors import DeclarationError, SqlError
from panes.expressions.expression import Expression, column, literal
from panes.queries.measures import Delta, Punctuation, Rows
from panes.queries.query import Query
from panes.queries.windows import AnyWindow, Cumulate, Nested, RowWindow, Sliding, Window
from panes.timeline import format_instant

_SIMPLE: Mapping[type[Aggregate], str] = {
    SumOf: "SUM",
    MeanOf: "AVG",
    MinOf: "MIN",
    MaxOf: "MAX",
    DistinctOf: "COLLECT_SET",
    CorrelationOf: "CORR",
}


def printed(query: Query, stream: str) -> str:
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
    arguments = ", ".join(aggregate.arguments)
    if isinstance(aggregate, CountOf):
        return "COUNT(*)" if aggregate.arguments == ("1",) else f"COUNT({arguments})"
    if isinstance(aggregate, CountDistinctOf):
        return f"COUNT(DISTINCT {arguments})"
    if isinstance(aggregate, QuantileOf) and not aggregate.element:
        return f"PERCENTILE({arguments}, {aggregate.q!r})"
    if type(aggregate) in _SIMPLE:
        return f"{_SIMPLE[type(aggregate)]}({arguments})"
    if isinstance(aggregate, VarianceOf) and aggregate.ddof in (0, 1):
        return f"{'STDDEV' if aggregate.root else 'VAR'}_{'SAMP' if aggregate.ddof else 'POP'}({arguments})"
    if isinstance(aggregate, PickOf):
        if aggregate.timed:
            return f"{'LAST' if aggregate.largest else 'FIRST'}({arguments})"
        return f"{'MAX' if aggregate.largest else 'MIN'}_BY({arguments})"
    if isinstance(aggregate, ApproxCountDistinctOf):
        return f"APPROX_COUNT_DISTINCT({arguments})"
    if isinstance(aggregate, ApproxQuantileOf):
        return f"APPROX_PERCENTILE({arguments}, {aggregate.q!r})"
    if isinstance(aggregate, TopOf):
        return f"APPROX_TOP_K({arguments}, {aggregate.n})"
    raise DeclarationError(f"query {query.name!r}: SQL has no {aggregate}, so the query cannot be written as text.")


def _windows(query: Query) -> tuple[str, list[str]]:
    """What stands behind the stream, and what in ``GROUP BY``: a window in brackets alone is behind the stream."""
    spelt = [_window(query, window) for window in query.over]
    if len(spelt) > 1 or spelt[0].startswith("Window("):
        return "", [f"Windows({', '.join(spelt)})"]
    return (f" {spelt[0]}", []) if spelt[0].startswith("[") else ("", spelt)


def _window(query: Query, window: AnyWindow) -> str:
    """A window as a member of a list, under its name."""
    text = _function(window) or _brackets(window)
    read = None if text is None else _read(text)
    if text is None or read is None or _renamed(read, window) != window:
        raise DeclarationError(
            f"query {query.name!r}: SQL has no words for the window {str(window)!r}, for {_unsaid(window)}. Keep the "
            "query as it is: pn.plan takes it beside SQL text."
        )
    return text if read == window else f"Window({literal(_label(window))}, {text})"


def _read(text: str) -> AnyWindow | None:
    """The window that a text is read back as."""
    try:
        return read_statements(f"SELECT COUNT(*) FROM s TIMESTAMP BY t GROUP BY Windows({text})")[0].query.over[0]
    except SqlError:
        return None


def _unsaid(window: AnyWindow) -> str:
    """What no dialect can say of a window that cannot be written."""
    if isinstance(window, Sliding):
        return f"bounds={window.bounds!r}; a frame that ends before the event holds both its ends, bounds='[]'"
    if not isinstance(window, RowWindow):
        return "its offset or bounds"
    measures = (window.size, window.every)
    if any(isinstance(each, Delta) for each in measures):
        return "a size or a pace in a column"
    if any(isinstance(each, Punctuation) for each in measures):
        return "marks that end it"
    if window.origin != "epoch":
        return f"origin={window.origin!r}"
    if window.before:
        return "bounds='[)'; a frame of rows ends with a row, and not before an instant"
    if not window.partial:
        return "partial=False"
    if window.size == window.every:
        return "a pace as long as its size, where SQL has pn.tumbling"
    return "its offset or bounds"


def _label(window: AnyWindow) -> str:
    return (window.given_name or window.name) if isinstance(window, Nested) else window.name


def _renamed(read: AnyWindow, window: AnyWindow) -> AnyWindow:
    """What was read, under the name that a window has."""
    if isinstance(read, Nested):
        return replace(read, given_name=window.given_name) if isinstance(window, Nested) else read
    return replace(read, name=window.name)


def _brackets(window: AnyWindow) -> str | None:
    """A window in brackets, without its name."""
    if isinstance(window, Sliding):
        if window.bounds == "(]" and not window.ago:
            return f"[RANGE {_counted(window.size)}]"
        last = f"{_interval(window.ago)} PRECEDING" if window.ago else "CURRENT ROW"
        return f"[RANGE BETWEEN {_interval(window.size + window.ago)} PRECEDING AND {last}]"
    if isinstance(window, RowWindow):
        if any(isinstance(each, (Delta, Punctuation)) for each in (window.size, window.every)):
            return None
        if window.ago:
            assert isinstance(window.size, Rows)
            return f"[ROWS BETWEEN {window.size.n + window.ago - 1} PRECEDING AND {window.ago} PRECEDING]"
        size = f"ROWS {window.size.n}" if isinstance(window.size, Rows) else f"RANGE {_measured(window.size)}"
        every = window.size if window.every is None else window.every
        if window.kind == "sliding":
            return f"[{size}]"
        if isinstance(window.size, Rows) and isinstance(every, Rows):
            return f"[{size} SLIDE {every.n}]"
        return f"[{size} SLIDE {_measured(every)}]"
    if isinstance(window, Nested):
        ranges, slides = (", ".join(map(_counted, reversed(lengths))) for lengths in (window.ranges, window.slides))
        since = "" if window.since is None else f" SINCE {literal(format_instant(window.since))}"
        return f"[RANGES {ranges} SLIDES {slides}{since}]"
    return None


def _function(window: AnyWindow) -> str | None:
    """A window as a function, without its name."""
    if isinstance(window, RowWindow) and window.kind == "session":
        assert isinstance(window.size, int)
        unit, factor = _unit(window.size)
        return f"SessionWindow({unit}, {window.size // factor})"
    if isinstance(window, Cumulate):
        lengths, offset = [window.upto, window.step], window.offset
        name, parts = "CumulateWindow", ("Duration", "Step")
    elif isinstance(window, Window):
        geometry = window.geometry
        offset = (geometry.offset - window.shift) % geometry.slide
        lengths = [geometry.range] if geometry.tumbling else [geometry.range, geometry.slide]
        name, parts = ("TumblingWindow" if geometry.tumbling else "HoppingWindow"), ("Duration", "Hop")
    else:
        return None
    if window.bounds == "[)":
        lengths += [offset] if offset else []
        unit, factor = _unit(*lengths)
        return f"{name}({unit}, {', '.join(str(length // factor) for length in lengths)})"
    said = [_part(part, length) for part, length in zip(parts, lengths, strict=False)]
    said += [_part("Offset", offset)] if offset else []
    said.append(f"Bounds('{window.bounds}')")
    return f"{name}({', '.join(said)})"


def _measured(value: object) -> str:
    if isinstance(value, Rows):
        return f"{value.n} ROW{'' if value.n == 1 else 'S'}"
    assert isinstance(value, int)
    return _counted(value)


def _interval(length: int) -> str:
    unit, factor = _unit(length)
    return f"INTERVAL '{length // factor}' {unit.upper()}S"


def _part(name: str, length: int) -> str:
    unit, factor = _unit(length)
    return f"{name}({unit}, {length // factor})"


def _counted(length: int) -> str:
    unit, factor = _unit(length)
    number = length // factor
    return f"{number} {unit.upper()}{'' if number == 1 else 'S'}"


def _unit(*lengths: int) -> tuple[str, int]:
    """The largest unit in which all lengths are whole."""
    return next((name, factor) for name, factor in UNITS.items() if all(length % factor == 0 for length in lengths))


def _name(text: str) -> str:
    return column(text).sql
