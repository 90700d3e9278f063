"""Thousands of windowed queries over one event stream for about the price of one, on Apache Spark."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from panes.algebra.aggregates import Aggregate
    from panes.algebra.approximate import approx_count_distinct, approx_quantile, top
    from panes.algebra.declare import (
        aged,
        aggregate,
        arg_max,
        arg_min,
        corr,
        count,
        count_distinct,
        distinct,
        first,
        last,
        max,
        mean,
        min,
        quantile,
        recurring,
        std,
        sum,
        trend,
        var,
    )
    from panes.api import Plan, explain, plan, show_progress, sql, to_sql
    from panes.applying import apply, sort
    from panes.catalogue import Catalogue
    from panes.declare.eviction import evict
    from panes.declare.expressions import Expression
    from panes.declare.limits import Limits
    from panes.declare.measures import delta, punctuation, rows
    from panes.declare.nested import nested
    from panes.declare.query import Query, query
    from panes.declare.windows import cumulate, hopping, session, sliding, tumbling
    from panes.errors import PanesError
    from panes.joining import join

# Loaded when they are first asked for: the command line and the workers of Spark start without what they do not use.
_HOMES = {
    "panes.algebra.aggregates": ("Aggregate",),
    "panes.algebra.approximate": ("approx_count_distinct", "approx_quantile", "top"),
    "panes.algebra.declare": (
        "aged",
        "aggregate",
        "arg_max",
        "arg_min",
        "corr",
        "count",
        "count_distinct",
        "distinct",
        "first",
        "last",
        "max",
        "mean",
        "min",
        "quantile",
        "recurring",
        "std",
        "sum",
        "trend",
        "var",
    ),
    "panes.api": ("Plan", "explain", "plan", "show_progress", "sql", "to_sql"),
    "panes.applying": ("apply", "sort"),
    "panes.catalogue": ("Catalogue",),
    "panes.declare.eviction": ("evict",),
    "panes.declare.expressions": ("Expression",),
    "panes.declare.limits": ("Limits",),
    "panes.declare.measures": ("delta", "punctuation", "rows"),
    "panes.declare.nested": ("nested",),
    "panes.declare.query": ("Query", "query"),
    "panes.declare.windows": ("cumulate", "hopping", "session", "sliding", "tumbling"),
    "panes.errors": ("PanesError",),
    "panes.joining": ("join",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Aggregate",
    "Catalogue",
    "Expression",
    "Limits",
    "PanesError",
    "Plan",
    "Query",
    "aged",
    "aggregate",
    "apply",
    "approx_count_distinct",
    "approx_quantile",
    "arg_max",
    "arg_min",
    "corr",
    "count",
    "count_distinct",
    "cumulate",
    "delta",
    "distinct",
    "evict",
    "explain",
    "first",
    "hopping",
    "join",
    "last",
    "max",
    "mean",
    "min",
    "nested",
    "plan",
    "punctuation",
    "quantile",
    "query",
    "recurring",
    "rows",
    "session",
    "show_progress",
    "sliding",
    "sort",
    "sql",
    "std",
    "sum",
    "to_sql",
    "top",
    "trend",
    "tumbling",
    "var",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        from panes.words import missing

        raise AttributeError(missing(name, __all__))
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
