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
from panes.api import Plan, plan, show_progress
from panes.catalogue import Catalogue
from panes.declare.expressions import Expression
from panes.declare.limits import Limits
from panes.declare.query import Query, query
from panes.declare.windows import Window, hopping, tumbling
from panes.errors import PanesError

__all__ = [
    "Aggregate",
    "Catalogue",
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
    "first",
    "hopping",
    "last",
    "max",
    "mean",
    "min",
    "plan",
    "query",
    "show_progress",
    "std",
    "sum",
    "tumbling",
    "var",
]
