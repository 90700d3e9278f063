"""Plan one store: its panes, its strategy, and the forest of its windows."""

from __future__ import annotations

from dataclasses import replace

from panes.errors import PlanError
from panes.planning import calibration as c
from panes.planning.cost import naive_cost, window_cost
from panes.planning.coverage import Semantics
from panes.planning.forest import Forest, ForestNode, piggyback
from panes.planning.optimize import optimize
from panes.planning.panes import PaneCost, describe_edges, events_cost, finest_column
from panes.planning.physical_plan import (
    Numbered,
    StorePlan,
    all_idempotent,
    distinct_windows,
    in_jvm,
    stored_columns,
)
from panes.planning.statistics import Keys, Statistics
from panes.planning.strategy import Costs, Strategy, cost_of_strategies, in_columns_only
from panes.queries.query import shared_condition
from panes.queries.windows import geometry_name
from panes.timeline import SECOND, Edges, Geometry, all_within

# A tree of more group-bys than this is never the best plan, and finding it would take long.
_MOST_GROUP_BYS = 64


def plan_store(
    at: str, keys: Keys, queries: Numbered, statistics: Statistics, strategy: Strategy | None, factor_windows: bool
) -> StorePlan:
    """Plan the store of queries over the same keys, whose windows are on the clock.

    Parameters
    ----------
    strategy
        Run it this way instead of the cheapest.
    """
    windows = distinct_windows(queries)
    _check_strategy(queries, strategy)
    native_partials = in_jvm(queries)
    column = finest_column(windows, stored_columns(queries), PaneCost(statistics, keys), in_jvm=native_partials)
    semantics = Semantics.COVERED_BY if all_idempotent(queries) else Semantics.PARTITIONED_BY
    distinct = statistics.distinct(keys)
    eta = statistics.rate / distinct / SECOND
    tree = None
    if strategy == "rewrite" or (strategy is None and len(windows) <= _MOST_GROUP_BYS and native_partials):
        tree = piggyback(
            windows,
            lambda some: optimize(some, semantics, eta, factors=factor_windows, describe=geometry_name),
            overlapping=True,
        )
    costs = cost_of_strategies((q for _, q in queries), keys, column, tree, statistics)
    chosen = strategy or costs.cheapest
    trace = [_compared(costs, chosen, forced=strategy is not None)]
    if chosen == "columnar":
        forest = forest_over_panes(windows, column.edges, statistics, keys, factor_windows)
        trace.insert(0, describe_cuts(column.edges))
    elif chosen == "rewrite" and tree is not None:
        forest = tree
    else:
        forest = _alone(windows, eta)
    return StorePlan(
        keys=keys,
        at=at,
        queries=queries,
        kept=shared_condition(query for _, query in queries),
        strategy=chosen,
        costs=costs,
        edges=column.edges,
        lanes=column.lanes,
        from_events=column.from_events,
        forest=forest,
        trace=(*trace, *forest.trace),
    )


def plan_store_of_events(
    at: str, keys: Keys, queries: Numbered, statistics: Statistics, strategy: Strategy | None
) -> StorePlan:
    """Plan the store of windows with an answer per event: each is read from the events in time order."""
    if strategy in ("native", "rewrite"):
        raise PlanError(
            f"sliding windows have an answer per event, which no group-by gives: leave strategy={strategy!r} out. They "
            "run in columns."
        )
    views = sum(len(query.windows) for _, query in queries)
    cost = events_cost(statistics, stored_columns(queries)) + views * statistics.rate * c.ANSWER
    per_key = statistics.rate / statistics.distinct(keys) / SECOND
    nodes = tuple(ForestNode(window, None, per_key, factor=False) for window in distinct_windows(queries))
    return StorePlan(
        keys=keys,
        at=at,
        queries=queries,
        kept=shared_condition(query for _, query in queries),
        strategy="columnar",
        costs=Costs({"columnar": cost}),
        edges=(Edges(1),),
        lanes=1,
        from_events=True,
        forest=Forest(nodes, per_key * len(nodes)),
        trace=("an answer per event: two positions in time order each, whatever the size of the window",),
        per_event=True,
    )


def _check_strategy(queries: Numbered, strategy: Strategy | None) -> None:
    """Reject a forced strategy that cannot run some of the queries."""
    if strategy in ("native", "rewrite") and in_columns_only(query for _, query in queries):
        raise PlanError(
            "since= of a nested window, and aggregates that compare its levels, run in columns only: leave "
            f"strategy={strategy!r} out."
        )
    aggregates = [(query, aggregate) for _, query in queries for _, aggregate in query.aggregates]
    for query, aggregate in aggregates:
        reason = None
        if strategy == "native" and not aggregate.has_native:
            reason = f"Spark has no {aggregate}"
        if strategy == "rewrite" and not query.builds_in_jvm(aggregate):
            reason = f"only Python can compute {aggregate} over these windows"
        if reason is not None:
            raise PlanError(
                f"query {query.name!r}: {reason}, so strategy={strategy!r} cannot run it. Take strategy='columnar', or "
                "let the planner choose."
            )


def _alone(windows: tuple[Geometry, ...], eta: float) -> Forest:
    """Return the forest in which every window reads the events."""
    nodes = tuple(ForestNode(window, None, window_cost(window, None, eta), factor=False) for window in windows)
    return Forest(nodes, naive_cost(windows, eta))


def forest_over_panes(
    windows: tuple[Geometry, ...], edges: tuple[Edges, ...], statistics: Statistics, keys: Keys, factor_windows: bool
) -> Forest:
    """Return the forest over a column of panes: the same theory, with panes instead of events.

    Rows of a column must not overlap, so windows are read from windows that partition them.
    """
    panes_per_key = PaneCost(statistics, keys).rows(edges) / statistics.distinct(keys) / SECOND

    def optimized(some: tuple[Geometry, ...]) -> Forest:
        forest = optimize(some, Semantics.PARTITIONED_BY, panes_per_key, factors=factor_windows, describe=geometry_name)
        return _without_cut_panes(forest, edges, panes_per_key)

    return piggyback(windows, optimized, overlapping=False)


def _without_cut_panes(forest: Forest, edges: tuple[Edges, ...], eta: float) -> Forest:
    """Drop factor windows that would cut a pane, since their edges need not be edges of panes."""
    nodes = forest.nodes
    while cut := {
        n.window for n in nodes if n.factor and n.provider is None and not all_within(n.window.edges(), edges)
    }:
        nodes = tuple(
            replace(n, provider=None, cost=window_cost(n.window, None, eta)) if n.provider in cut else n
            for n in nodes
            if n.window not in cut
        )
    return replace(forest, nodes=nodes)


def describe_cuts(edges: tuple[Edges, ...]) -> str:
    """Return the line of the trace that says where panes begin."""
    return f"panes {describe_edges(edges)} are cut by no window"


def _compared(costs: Costs, chosen: Strategy, *, forced: bool) -> str:
    figures = ", ".join(f"{name} {cost / 1e6:.3g}" for name, cost in costs.by_strategy.items())
    return f"strategies, predicted core-ms per second of events: {figures}; {'forced' if forced else 'took'} {chosen}"
