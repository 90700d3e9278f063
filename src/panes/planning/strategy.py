"""Queries and statistics in, the predicted cost of each strategy out, and the cheapest of them.

native
    Spark's own ``groupBy(window(...))``, once per query and window.
rewrite
    The tree of group-bys of the factor-window paper, all in the JVM.
columnar
    Panes in the JVM, then every window at once from sorted columns in Python.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from panes.planning import calibration as c
from panes.planning.forest import Forest
from panes.planning.panes import PanesColumn
from panes.planning.statistics import Keys, Statistics
from panes.queries.query import Query
from panes.timeline import SECOND, Geometry

Strategy: TypeAlias = Literal["native", "rewrite", "columnar"]
STRATEGIES: Final[tuple[Strategy, ...]] = ("native", "rewrite", "columnar")

# Users know Spark's own windows: leave them only for a clear gain. A tree of group-bys has a stage per window, which
# the model does not price: take it only if it is far cheaper than columns.
_CLEAR: Final = 0.9
_FAR: Final = 0.7


@dataclass(frozen=True)
class Costs:
    """The predicted cost of a store per second of event time (ns of one core), by strategy."""

    by_strategy: Mapping[Strategy, float]

    @property
    def cheapest(self) -> Strategy:
        """The strategy to run: Spark's own windows unless another one is clearly cheaper."""
        costs = self.by_strategy
        best: Strategy = "columnar"
        if "rewrite" in costs and costs["rewrite"] < _FAR * costs["columnar"]:
            best = "rewrite"
        return best if "native" not in costs or costs[best] < _CLEAR * costs["native"] else "native"


def cost_of_strategies(
    queries: Iterable[Query], keys: Keys, column: PanesColumn, rewrite: Forest | None, statistics: Statistics
) -> Costs:
    """Predict the cost of every strategy that can run the queries; of ``rewrite`` only if its forest is given."""
    queries = tuple(queries)
    views = [window.geometry for query in queries for window in query.windows]
    costs: dict[Strategy, float] = {"columnar": column.cost + answers_cost(views, keys, statistics)}
    if in_columns_only(queries):
        return Costs(costs)
    if all(aggregate.in_spark for query in queries for _, aggregate in query.aggregates):
        costs["native"] = sum(native_cost(window, keys, statistics) for window in views)
    if rewrite is not None and all(query.in_jvm for query in queries):
        costs["rewrite"] = _rewrite(rewrite, keys, statistics)
    return Costs({strategy: costs[strategy] for strategy in STRATEGIES if strategy in costs})


def in_columns_only(queries: Iterable[Query]) -> bool:
    """Whether only columns can run the queries: windows with an initiation time, or aggregates that compare levels."""
    queries = tuple(queries)
    return any(window.since is not None for query in queries for window in query.windows) or any(
        aggregate.levels for query in queries for _, aggregate in query.aggregates
    )


def answers_cost(views: Iterable[Geometry], keys: Keys, statistics: Statistics) -> float:
    """Return the cost of bringing the answers of columns back to the JVM."""
    return sum(_answers(window, keys, statistics) for window in views) * c.ANSWER


def native_cost(window: Geometry, keys: Keys, statistics: Statistics) -> float:
    """Return the cost of Spark's own window, which copies every event into each instance that holds it."""
    copies = math.ceil(window.range / window.slide)
    groups = _answers(window, keys, statistics)
    return statistics.rate * (c.SCAN + copies * c.GROUP_EVENT) + groups * c.GROUP_ROW


def _rewrite(forest: Forest, keys: Keys, statistics: Statistics) -> float:
    total = 0.0
    for node in forest.nodes:
        if node.provider is None:
            total += native_cost(node.window, keys, statistics)
            continue
        copies = math.ceil(node.window.range / node.window.slide)
        read = _answers(node.provider, keys, statistics) * copies
        total += read * c.TREE_ROW + _answers(node.window, keys, statistics) * c.GROUP_ROW
    return total


def _answers(window: Geometry, keys: Keys, statistics: Statistics) -> float:
    """Estimate the non-empty instances per second over all keys."""
    return statistics.rows(keys, window.range, SECOND / window.slide)
