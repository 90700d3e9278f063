"""Thousands of windowed queries over one event stream for about the price of one, on Apache Spark."""

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
