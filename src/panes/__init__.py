"""Thousands of windowed queries over one event stream for about the price of one, on Apache Spark."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from panes.algebra.aggregates import Aggregate
    from panes.algebra.declare import (
        aggregate,
        arg_max,
        arg_min,
        count,
        first,
        last,
        max,
        mean,
        min,
        std,
        sum,
        var,
    )
    from panes.api import Plan, explain, plan, show_progress, sql, to_sql
    from panes.catalogue import Catalogue
    from panes.declare.expressions import Expression
    from panes.declare.limits import Limits
    from panes.declare.query import Query, query
    from panes.declare.windows import Cumulate, Window, cumulate, hopping, tumbling
    from panes.errors import PanesError
    from panes.joining import join

# Loaded when they are first asked for: the command line and the workers of Spark start without what they do not use.
_HOMES = {
    "panes.algebra.aggregates": ("Aggregate",),
    "panes.algebra.declare": (
        *("aggregate", "arg_max", "arg_min", "count", "first", "last", "max", "mean", "min", "std", "sum", "var"),
    ),
    "panes.api": ("Plan", "explain", "plan", "show_progress", "sql", "to_sql"),
    "panes.catalogue": ("Catalogue",),
    "panes.declare.expressions": ("Expression",),
    "panes.declare.limits": ("Limits",),
    "panes.declare.query": ("Query", "query"),
    "panes.declare.windows": ("Cumulate", "Window", "cumulate", "hopping", "tumbling"),
    "panes.errors": ("PanesError",),
    "panes.joining": ("join",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Aggregate",
    "Catalogue",
    "Cumulate",
    "Expression",
    "Limits",
    "PanesError",
    "Plan",
    "Query",
    "Window",
    "aggregate",
    "arg_max",
    "arg_min",
    "count",
    "cumulate",
    "explain",
    "first",
    "hopping",
    "join",
    "last",
    "max",
    "mean",
    "min",
    "plan",
    "query",
    "show_progress",
    "sql",
    "std",
    "sum",
    "to_sql",
    "tumbling",
    "var",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'panes' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
