"""Run thousands of windowed queries over one event stream for about the price of one, on Apache Spark.

``import panes as pn`` gives everything that most programs need. ``panes.operators`` (windows tuple by tuple) and
``panes.testing`` (generators, oracles, laws) are imported by name. To read the code, start with ``panes.api.plan``,
which has the verbs; ``docs/architecture.md`` walks each of them through the rooms.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pkgutil import get_data
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what panes exports: a line here is all that a name needs
    from panes.aggregates.aged import aged as aged
    from panes.aggregates.aggregate import Aggregate as Aggregate
    from panes.aggregates.approximate import approx_count_distinct as approx_count_distinct
    from panes.aggregates.approximate import approx_quantile as approx_quantile
    from panes.aggregates.approximate import top as top
    from panes.aggregates.collecting import count_distinct as count_distinct
    from panes.aggregates.collecting import distinct as distinct
    from panes.aggregates.collecting import quantile as quantile
    from panes.aggregates.collecting import recurring as recurring
    from panes.aggregates.custom import aggregate as aggregate
    from panes.aggregates.extrema import max as max
    from panes.aggregates.extrema import min as min
    from panes.aggregates.moments import corr as corr
    from panes.aggregates.moments import std as std
    from panes.aggregates.moments import var as var
    from panes.aggregates.picks import arg_max as arg_max
    from panes.aggregates.picks import arg_min as arg_min
    from panes.aggregates.picks import first as first
    from panes.aggregates.picks import last as last
    from panes.aggregates.sums import count as count
    from panes.aggregates.sums import mean as mean
    from panes.aggregates.sums import sum as sum
    from panes.aggregates.trend import trend as trend
    from panes.api.apply import apply as apply
    from panes.api.apply import sort as sort
    from panes.api.join import join as join
    from panes.api.plan import Plan as Plan
    from panes.api.plan import plan as plan
    from panes.api.sql import explain as explain
    from panes.api.sql import sql as sql
    from panes.api.sql import to_sql as to_sql
    from panes.api.streams import Catalogue as Catalogue
    from panes.api.streams import show_progress as show_progress
    from panes.errors import PanesError as PanesError
    from panes.expressions.expression import Expression as Expression
    from panes.queries.eviction import Limits as Limits
    from panes.queries.eviction import evict as evict
    from panes.queries.measures import delta as delta
    from panes.queries.measures import punctuation as punctuation
    from panes.queries.measures import rows as rows
    from panes.queries.nested import nested as nested
    from panes.queries.query import Query as Query
    from panes.queries.query_constructor import query as query
    from panes.queries.window_constructors import cumulate as cumulate
    from panes.queries.window_constructors import hopping as hopping
    from panes.queries.window_constructors import session as session
    from panes.queries.window_constructors import sliding as sliding
    from panes.queries.window_constructors import tumbling as tumbling

__version__ = "0.1.0"


# A name is imported when it is first used, so that the command line and Spark's workers load only what they need.


def _modules() -> dict[str, str]:
    """Return the module of every name that is exported above, read from the source of this file."""
    module = ast.parse(get_data(__name__, "__init__.py") or b"")
    block = next(statement for statement in module.body if isinstance(statement, ast.If))
    return {line.names[0].name: str(line.module) for line in block.body if isinstance(line, ast.ImportFrom)}


_MODULE_OF = _modules()
if not TYPE_CHECKING:
    __all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        from panes.suggestions import missing

        raise AttributeError(missing(name, _MODULE_OF))
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*_MODULE_OF, "__version__"]
