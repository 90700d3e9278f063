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
    from panes.catalogue import Catalogue
    from panes.declare.counted import last
    from panes.declare.expressions import Expression
    from panes.declare.kinds import session
    from panes.declare.limits import Limits
    from panes.declare.nested import Nested, nested
    from panes.declare.query import Query, query
    from panes.declare.sliding import Sliding, sliding
    from panes.declare.windows import Cumulate, Window, cumulate, hopping, tumbling
    from panes.errors import PanesError
    from panes.joining import join
    from panes.live.index import Index
    from panes.live.threshold import Threshold
    from panes.local.stairs import Stairs
    from panes.looking import lookup
    from panes.windowed_tables import windowed
    from panes.windowing import policy

# Loaded when they are first asked for: the command line and the workers of Spark start without what they do not use.
_HOMES = {
    "panes.algebra.aggregates": ("Aggregate",),
    "panes.algebra.approximate": ("approx_count_distinct", "approx_quantile", "top"),
    "panes.algebra.declare": (
        *("aged", "aggregate", "arg_max", "arg_min", "corr", "count", "count_distinct", "distinct", "first"),
        *("max", "mean", "min", "quantile", "recurring", "std", "sum", "trend", "var"),
    ),
    "panes.api": ("Plan", "explain", "plan", "show_progress", "sql", "to_sql"),
    "panes.catalogue": ("Catalogue",),
    "panes.declare.counted": ("last",),
    "panes.declare.expressions": ("Expression",),
    "panes.declare.kinds": ("session",),
    "panes.declare.limits": ("Limits",),
    "panes.declare.nested": ("Nested", "nested"),
    "panes.declare.query": ("Query", "query"),
    "panes.declare.sliding": ("Sliding", "sliding"),
    "panes.declare.windows": ("Cumulate", "Window", "cumulate", "hopping", "tumbling"),
    "panes.errors": ("PanesError",),
    "panes.joining": ("join",),
    "panes.live.index": ("Index",),
    "panes.live.threshold": ("Threshold",),
    "panes.local.stairs": ("Stairs",),
    "panes.looking": ("lookup",),
    "panes.windowed_tables": ("windowed",),
    "panes.windowing": ("policy",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Aggregate",
    "Catalogue",
    "Cumulate",
    "Expression",
    "Index",
    "Limits",
    "Nested",
    "PanesError",
    "Plan",
    "Query",
    "Sliding",
    "Stairs",
    "Threshold",
    "Window",
    "aged",
    "aggregate",
    "approx_count_distinct",
    "approx_quantile",
    "arg_max",
    "arg_min",
    "corr",
    "count",
    "count_distinct",
    "cumulate",
    "distinct",
    "explain",
    "first",
    "hopping",
    "join",
    "last",
    "lookup",
    "max",
    "mean",
    "min",
    "nested",
    "plan",
    "policy",
    "quantile",
    "query",
    "recurring",
    "session",
    "show_progress",
    "sliding",
    "sql",
    "std",
    "sum",
    "to_sql",
    "top",
    "trend",
    "tumbling",
    "var",
    "windowed",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'panes' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
