"""A query as SQL: text that reads back as an equal query."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from panes.algebra.aggregates import Aggregate, CountOf, MaxOf, MeanOf, MinOf, PickOf, SumOf, VarianceOf
from panes.algebra.approximate import ApproxCountDistinctOf, ApproxQuantileOf, TopOf
from panes.algebra.collecting import CountDistinctOf, DistinctOf, QuantileOf
from panes.algebra.fits import CorrelationOf
from panes.declare.expressions import Expression, column, literal
from panes.declare.kinds import AnyWindow
from panes.declare.measures import Rows
from panes.declare.nested import Nested
from panes.declare.query import Query
from panes.declare.windows import Cumulate, RowWindow, Sliding, Window, cumulating_name, default_name, row_window_name
from panes.dialect.durations import UNITS
from panes.dialect.selecting import label
from panes.dialect.statement import read_statements
from panes.dialect.tokens import tokenized
from panes.errors import DeclarationError, SqlError
from panes.timeline import Geometry, format_instant

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
    aggregates, derived = dict(query.aggregates), dict(query.derived)
    hidden = [alias for alias in aggregates if alias not in query.columns]
    in_place = {alias.lower(): _in_place(query, alias, aggregates[alias]) for alias in hidden}
    items = [_name(key) for key in query.by]
    for alias in query.columns:
        value = _call(query, aggregates[alias]) if alias in aggregates else _spelt(derived[alias], in_place)
        items.append(f"{value} AS {_name(alias)}")
    clauses = [f"SELECT {', '.join(items)}", f"FROM {_name(stream)} TIMESTAMP BY {_name(query.at)}{_bracket(query)}"]
    if query.where is not None:
        clauses.append(f"WHERE {query.where.sql}")
    groups = [*(_name(key) for key in query.by), *_windows(query)]
    if groups:
        clauses.append(f"GROUP BY {', '.join(groups)}")
    if query.having is not None:
        clauses.append(f"HAVING {_spelt(query.having, in_place)}")
    text = "\n".join([f"-- name: {query.name}", *clauses])
    if _read_back(text) != query:
        raise DeclarationError(
            f"query {query.name!r} has no SQL of its own: what comes nearest reads back as another query. Aggregates "
            "that are hidden twice, or shown and hidden, windows in brackets that have a name, an offset, bounds or "
            "others beside them, and sketches of other than the usual size are such cases."
        )
    return text


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


def _windows(query: Query) -> list[str]:
    listed = [_named(window) for window in query.over if not _bracketed(window)]
    if len(listed) == 1 and not listed[0].startswith("Window("):
        return listed
    return [f"Windows({', '.join(listed)})"] if listed else []


def _bracket(query: Query) -> str:
    """CQL's windows stand behind the stream, and without a name."""
    found = [_in_brackets(window) for window in query.over if _bracketed(window)]
    return "".join(f" [{text}]" for text in found)


def _bracketed(window: AnyWindow) -> bool:
    return isinstance(window, (Sliding, Nested)) or (isinstance(window, RowWindow) and window.kind != "session")


def _in_brackets(window: AnyWindow) -> str:
    if isinstance(window, Sliding):
        return f"RANGE {_counted(window.size)}"
    if isinstance(window, RowWindow):
        if not isinstance(window.size, Rows) or not isinstance(window.every, Rows):
            raise DeclarationError(f"SQL has no window {str(window)!r}, so the query cannot be written as text.")
        return f"ROWS {window.size.n} SLIDE {window.every.n}"
    assert isinstance(window, Nested)
    ranges, slides = (", ".join(map(_counted, reversed(lengths))) for lengths in (window.ranges, window.slides))
    since = "" if window.since is None else f" SINCE {literal(format_instant(window.since))}"
    return f"RANGES {ranges} SLIDES {slides}{since}"


def _named(window: AnyWindow) -> str:
    text, usual = _function(window)
    if window.name == usual:
        return text
    return f"Window({literal(window.name)}, {text})"


def _function(window: AnyWindow) -> tuple[str, str]:
    """A window as a function, and the name it would have by itself."""
    if isinstance(window, RowWindow):
        assert isinstance(window.size, int)
        unit, factor = _unit(window.size)
        return f"SessionWindow({unit}, {window.size // factor})", row_window_name(window)
    assert isinstance(window, (Window, Cumulate))
    if isinstance(window, Cumulate):
        lengths, offset, name = [window.upto, window.step], window.offset, "CumulateWindow"
        usual = cumulating_name(window.step, window.upto, offset)
        parts = ("Duration", "Step")
    else:
        geometry = window.geometry
        offset = (geometry.offset - window.shift) % geometry.slide
        shown = Geometry(geometry.range, geometry.slide, offset)
        lengths, usual = [geometry.range] if shown.tumbling else [geometry.range, geometry.slide], default_name(shown)
        name, parts = ("TumblingWindow" if shown.tumbling else "HoppingWindow"), ("Duration", "Hop")
    if window.bounds == "[)":
        lengths += [offset] if offset else []
        unit, factor = _unit(*lengths)
        return f"{name}({unit}, {', '.join(str(length // factor) for length in lengths)})", usual
    said = [_part(part, length) for part, length in zip(parts, lengths, strict=False)]
    said += [_part("Offset", offset)] if offset else []
    said.append(f"Bounds('{window.bounds}')")
    return f"{name}({', '.join(said)})", usual


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
