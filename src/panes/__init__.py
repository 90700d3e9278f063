"""Run thousands of windowed queries over one event stream for about the price of one, on Apache Spark.

``import panes as pn`` gives everything that most programs need. ``panes.operators`` (windows tuple by tuple) and
``panes.testing`` (generators, oracles, laws) are imported by name. To read the code, start with ``panes.api.plan``,
which has the verbs; ``docs/architecture.md`` walks each of them through the rooms.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from panes.aggregates.aged import aged
    from panes.aggregates.aggregate import Aggregate
    from panes.aggregates.approximate import approx_count_distinct, approx_quantile, top
    from panes.aggregates.collecting import count_distinct, distinct, quantile, recurring
    from panes.aggregates.custom import aggregate
    from panes.aggregates.extrema import max, min
    from panes.aggregates.moments import corr, std, var
    from panes.aggregates.picks import arg_max, arg_min, first, last
    from panes.aggregates.sums import count, mean, sum
    from panes.aggregates.trend import trend
    from panes.api.apply import apply, sort
    from panes.api.catalogue import Catalogue
    from panes.api.join import join
    from panes.api.plan import Plan, plan, show_progress
    from panes.api.sql import explain, sql, to_sql
    from panes.errors import PanesError
    from panes.expressions.expression import Expression
    from panes.queries.eviction import Limits, evict
    from panes.queries.measures import delta, punctuation, rows
    from panes.queries.nested import nested
    from panes.queries.query import Query
    from panes.queries.query_constructor import query
    from panes.queries.window_constructors import cumulate, hopping, session, sliding, tumbling

__version__ = "0.1.0"

# A name is imported when it is first used, so that the command line and Spark's workers load only what they need.
_HOMES = {
    "panes.aggregates.aged": "aged",
    "panes.aggregates.aggregate": "Aggregate",
    "panes.aggregates.approximate": "approx_count_distinct approx_quantile top",
    "panes.aggregates.collecting": "count_distinct distinct quantile recurring",
    "panes.aggregates.custom": "aggregate",
    "panes.aggregates.extrema": "max min",
    "panes.aggregates.moments": "corr std var",
    "panes.aggregates.picks": "arg_max arg_min first last",
    "panes.aggregates.sums": "count mean sum",
    "panes.aggregates.trend": "trend",
    "panes.api.apply": "apply sort",
    "panes.api.catalogue": "Catalogue",
    "panes.api.join": "join",
    "panes.api.plan": "Plan plan show_progress",
    "panes.api.sql": "explain sql to_sql",
    "panes.errors": "PanesError",
    "panes.expressions.expression": "Expression",
    "panes.queries.eviction": "Limits evict",
    "panes.queries.measures": "delta punctuation rows",
    "panes.queries.nested": "nested",
    "panes.queries.query": "Query",
    "panes.queries.query_constructor": "query",
    "panes.queries.window_constructors": "cumulate hopping session sliding tumbling",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

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
        from panes.suggestions import missing

        raise AttributeError(missing(name, __all__))
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
