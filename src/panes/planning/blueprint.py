"""All queries planned together: which stores exist, how each is run, which window is read from which.

Queries with the same time column and the same keys share a store; their windows with an answer per event share another
one, of single events, so that the panes of the others stay as wide as they can be. A store with coarser keys is fed by
one with finer keys where that moves fewer rows than the events are. Each step is a function on values; the trace says
what was tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from panes.errors import DeclarationError, PlanError
from panes.expressions.expression import Expression, disjunction
from panes.planning import calibration as c
from panes.planning.cost import CostModel
from panes.planning.coverage import Semantics
from panes.planning.forest import Forest, Node, piggyback
from panes.planning.optimize import optimize
from panes.planning.panes import PaneCost, events_cost, finest_column
from panes.planning.statistics import Keys, Statistics
from panes.planning.strategy import Costs, Strategy, answers_cost, cost_of_strategies, in_columns_only
from panes.queries.query import Query, check_queries
from panes.queries.windows import Sliding, geometry_name
from panes.timeline import SECOND, Edges, Geometry

Numbered = tuple[tuple[int, Query], ...]

# A tree of more group-bys than this is never the best plan, and finding it would take long.
_MOST_GROUP_BYS = 64


@dataclass(frozen=True)
class StorePlan:
    """One store and how it is run.

    Parameters
    ----------
    keys, at
        Its key columns, and the column of event time.
    queries
        The queries it answers, with their numbers in the plan.
    kept
        The condition that all its events fulfil; queries with another one get conditional components.
    strategy, costs
        How it runs, and what each way was predicted to cost.
    edges, lanes
        Where its panes begin and end (``columnar``), and how many of them lie side by side in a row.
    from_events
        Whether ``columnar`` sorts the events themselves, since panes would hardly be fewer.
    forest
        Which window is read from which: from panes (``columnar``) or from events (``rewrite``).
    source
        The index of the store with finer keys that feeds it, or None for the events.
    per_event
        Whether its windows have an answer per event, from columns with a row per instant.
    """

    keys: Keys
    at: str
    queries: Numbered
    kept: Expression | None
    strategy: Strategy
    costs: Costs
    edges: tuple[Edges, ...]
    lanes: int
    from_events: bool
    forest: Forest
    source: int | None = None
    trace: tuple[str, ...] = ()
    per_event: bool = False

    @property
    def windows(self) -> tuple[Geometry, ...]:
        """The distinct windows of its queries."""
        return _distinct_windows(self.queries)

    @property
    def views(self) -> tuple[Geometry, ...]:
        """The windows of its queries, one for each query that asks for it."""
        return tuple(window.geometry for _, query in self.queries for window in query.windows)


@dataclass(frozen=True)
class ByEvents:
    """The windows of a query that go by its events; there is nothing to decide, but pictures tell of them.

    Parameters
    ----------
    query, keys, at
        Its name, its keys and its column of time.
    windows
        What they are called.
    column
        The number of the sorted column that they are read from: the same one for all that share it.
    sessions
        Which of the windows are sessions, which end by themselves.
    """

    query: str
    keys: Keys
    at: str
    windows: tuple[str, ...]
    column: int = 0
    sessions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Blueprint:
    """What the planner decided for all queries; ``queries`` have their windows over time alone."""

    queries: tuple[Query, ...]
    stores: tuple[StorePlan, ...]
    statistics: Statistics
    by_events: tuple[ByEvents, ...] = ()


def plan_queries(
    queries: Iterable[Query], statistics: Statistics, strategy: Strategy | None = None, *, factor_windows: bool = True
) -> Blueprint:
    """Plan all queries together.

    Parameters
    ----------
    strategy
        Run every store this way instead of the cheapest.
    factor_windows
        Whether the planner may add windows that nobody asked for.
    """
    checked = check_queries(queries)
    for query in checked:
        _check_misfits(query)
    groups: dict[tuple[str, Keys, bool], list[tuple[int, Query]]] = {}
    for number, query in enumerate(checked):
        for per_event, part in _by_kind(query):
            groups.setdefault((query.at, tuple(sorted(query.by)), per_event), []).append((number, part))
    # Finest keys first, so that a store can only be fed by one before it.
    ordered = sorted(groups.items(), key=lambda item: (-len(item[0][1]), item[0][2]))
    stores: list[StorePlan] = []
    for (at, keys, per_event), members in ordered:
        if per_event:
            stores.append(_store_of_events(at, keys, tuple(members), statistics, strategy))
        else:
            stores.append(_store(at, keys, tuple(members), statistics, strategy, factor_windows))
    return Blueprint(checked, _feed_coarser_keys(stores, statistics, factor_windows), statistics)


def _store(
    at: str, keys: Keys, queries: Numbered, statistics: Statistics, strategy: Strategy | None, factor_windows: bool
) -> StorePlan:
    windows = _distinct_windows(queries)
    _check_strategy(queries, strategy)
    in_jvm = _in_jvm(queries)
    column = finest_column(windows, _stored_columns(queries), PaneCost(statistics, keys), in_jvm=in_jvm)
    semantics = Semantics.COVERED_BY if _all_idempotent(queries) else Semantics.PARTITIONED_BY
    distinct = statistics.distinct(keys)
    eta = statistics.rate / distinct / SECOND
    tree = None
    if strategy == "rewrite" or (strategy is None and len(windows) <= _MOST_GROUP_BYS and in_jvm):
        tree = piggyback(
            windows,
            lambda some: optimize(some, semantics, eta, factors=factor_windows, describe=geometry_name),
            overlapping=True,
        )
    costs = cost_of_strategies((q for _, q in queries), keys, column, tree, statistics)
    chosen = strategy or costs.cheapest
    trace = [_compared(costs, chosen, asked=strategy is not None)]
    if chosen == "columnar":
        forest = _over_panes(windows, column.edges, statistics, keys, factor_windows)
        trace.insert(0, _uncut(column.edges))
    elif chosen == "rewrite" and tree is not None:
        forest = tree
    else:
        forest = _alone(windows, semantics, eta)
    return StorePlan(
        keys=keys,
        at=at,
        queries=queries,
        kept=_kept(queries),
        strategy=chosen,
        costs=costs,
        edges=column.edges,
        lanes=column.lanes,
        from_events=column.from_events,
        forest=forest,
        trace=(*trace, *forest.trace),
    )


def _check_strategy(queries: Numbered, strategy: Strategy | None) -> None:
    """Refuse a strategy that was asked for and cannot run some of the queries."""
    if strategy in ("native", "rewrite") and in_columns_only(query for _, query in queries):
        raise PlanError(
            "since= of a nested window, and aggregates that compare its levels, run in columns only: leave "
            f"strategy={strategy!r} out."
        )
    asked = [(query, aggregate) for _, query in queries for _, aggregate in query.aggregates]
    for query, aggregate in asked:
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


def _by_kind(query: Query) -> Iterator[tuple[bool, Query]]:
    """A query over its windows that have an answer per event, and over the others, where there are any."""
    for per_event in (False, True):
        over = tuple(window for window in query.over if isinstance(window, Sliding) == per_event)
        if over:
            yield per_event, query if over == query.over else replace(query, over=over)


def _store_of_events(
    at: str, keys: Keys, queries: Numbered, statistics: Statistics, strategy: Strategy | None
) -> StorePlan:
    """The store of windows that have an answer per event: events in the order of time, each window read from them."""
    if strategy in ("native", "rewrite"):
        raise PlanError(
            f"sliding windows have an answer per event, which no group-by gives: leave strategy={strategy!r} out. They "
            "run in columns."
        )
    views = sum(len(query.windows) for _, query in queries)
    cost = events_cost(statistics, _stored_columns(queries)) + views * statistics.rate * c.ANSWER
    per_key = statistics.rate / statistics.distinct(keys) / SECOND
    nodes = tuple(Node(window, None, per_key, factor=False) for window in _distinct_windows(queries))
    return StorePlan(
        keys=keys,
        at=at,
        queries=queries,
        kept=_kept(queries),
        strategy="columnar",
        costs=Costs({"columnar": cost}),
        edges=(Edges(1),),
        lanes=1,
        from_events=True,
        forest=Forest(nodes, Semantics.PARTITIONED_BY, per_key * len(nodes)),
        trace=("an answer per event: each is two places in the order of time, whatever the size of its window",),
        per_event=True,
    )


def _check_misfits(query: Query) -> None:
    """Refuse windows that an aggregate of theirs makes no sense for."""
    for alias, aggregate in query.aggregates:
        for window in query.windows:
            reason = aggregate.misfit(window.geometry)
            if window.per_event and aggregate.in_order:
                reason = (
                    f"{aggregate} has a value per tick, and a sliding window begins at any instant, within a tick too. "
                    "Take a hopping window, or leave every= out."
                )
            if reason is not None:
                raise DeclarationError(f"query {query.name!r}, column {alias!r}, window {window.name!r}: {reason}")


def _alone(windows: tuple[Geometry, ...], semantics: Semantics, eta: float) -> Forest:
    """Every window from the events."""
    model = CostModel(eta)
    nodes = tuple(Node(window, None, model.cost(window, None), factor=False) for window in windows)
    return Forest(nodes, semantics, model.naive(windows))


def _over_panes(
    windows: tuple[Geometry, ...], edges: tuple[Edges, ...], statistics: Statistics, keys: Keys, factor_windows: bool
) -> Forest:
    """The forest over a column of panes: the same theory, with panes in the place of events.

    Rows of a column must not overlap, so windows are read from windows that partition them.
    """
    panes_per_key = PaneCost(statistics, keys).rows(edges) / statistics.distinct(keys) / SECOND

    def optimized(some: tuple[Geometry, ...]) -> Forest:
        forest = optimize(some, Semantics.PARTITIONED_BY, panes_per_key, factors=factor_windows, describe=geometry_name)
        return _without_cut_panes(forest, edges, CostModel(panes_per_key))

    return piggyback(windows, optimized, overlapping=False)


def _without_cut_panes(forest: Forest, edges: tuple[Edges, ...], model: CostModel) -> Forest:
    """Drop factor windows that panes are cut by: not every edge of theirs need be one of the panes' edges."""
    nodes = forest.nodes
    while cut := {n.window for n in nodes if n.factor and n.provider is None and not _on_edges(n.window, edges)}:
        nodes = tuple(
            replace(n, provider=None, cost=model.cost(n.window, None)) if n.provider in cut else n
            for n in nodes
            if n.window not in cut
        )
    return replace(forest, nodes=nodes)


def _on_edges(window: Geometry, edges: tuple[Edges, ...]) -> bool:
    return all(any(edge.within(kept) for kept in edges) for edge in window.edges())


def _feed_coarser_keys(stores: list[StorePlan], statistics: Statistics, factor_windows: bool) -> tuple[StorePlan, ...]:
    """Feed stores from the panes of finer ones where those are fewer than the events.

    A feeding store keeps the panes of both: its edges become those of all windows it serves.
    """
    for coarse in range(len(stores)):
        for fine in range(coarse):
            fed = _fed(stores, fine, coarse, statistics, factor_windows)
            if fed is not None:
                stores = fed
                break
    return tuple(_share_condition(stores))


def _fed(
    stores: list[StorePlan], at: int, number: int, statistics: Statistics, factor_windows: bool
) -> list[StorePlan] | None:
    """The stores with one more of them fed by the panes of another; None where that is impossible or dearer."""
    fine, coarse = stores[at], stores[number]
    shareable = (
        fine.at == coarse.at
        and not coarse.per_event
        and set(coarse.keys) < set(fine.keys)
        and fine.source is None
        and fine.strategy == "columnar"
        and not fine.from_events
        and _in_jvm(fine.queries + coarse.queries)
    )
    if not shareable:
        return None
    # The panes have to serve those that it feeds already, too.
    family = [i for i, store in enumerate(stores) if i in (at, number) or store.source == at]
    queries = tuple(query for i in family for query in stores[i].queries)
    cost = PaneCost(statistics, fine.keys)
    together = finest_column(_distinct_windows(queries), _stored_columns(queries), cost)
    before = finest_column(fine.windows, _stored_columns(fine.queries), cost)
    merging = cost.rows(together.edges, together.lanes) * c.TREE_ROW
    extra = together.cost - before.cost + merging + answers_cost(coarse.views, coarse.keys, statistics)
    if together.from_events or extra >= coarse.costs.by_strategy[coarse.strategy]:
        return None
    note = f"fed by the panes of ({', '.join(fine.keys)}): fewer rows than the events"

    def over_shared_panes(store: StorePlan) -> StorePlan:
        forest = _over_panes(store.windows, together.edges, statistics, store.keys, factor_windows)
        return replace(
            store,
            strategy="columnar",
            edges=together.edges,
            lanes=together.lanes,
            from_events=False,
            forest=forest,
            trace=(_uncut(together.edges), *forest.trace),
        )

    shared = [over_shared_panes(store) if i in family else store for i, store in enumerate(stores)]
    costs = Costs({**coarse.costs.by_strategy, "columnar": extra})
    shared[number] = replace(shared[number], source=at, costs=costs, trace=(note, *shared[number].trace))
    return shared


def _share_condition(stores: list[StorePlan]) -> list[StorePlan]:
    """A store and those it feeds keep the events that any of their queries wants."""
    result = []
    for number, store in enumerate(stores):
        root = number if store.source is None else store.source
        family = [q for i, s in enumerate(stores) if root in (i, s.source) for q in s.queries]
        result.append(replace(store, kept=_kept(tuple(family))))
    return result


def _kept(queries: Numbered) -> Expression | None:
    """What every query's events fulfil: the common condition, or any of them, or nothing."""
    conditions = list(dict.fromkeys(query.where for _, query in queries))
    if any(condition is None for condition in conditions):
        return None
    if len(conditions) == 1:
        return conditions[0]
    return disjunction([condition for condition in conditions if condition is not None])


def _distinct_windows(queries: Numbered) -> tuple[Geometry, ...]:
    return tuple(dict.fromkeys(window.geometry for _, query in queries for window in query.windows))


def _all_idempotent(queries: Numbered) -> bool:
    return all(aggregate.idempotent for _, query in queries for _, aggregate in query.aggregates)


def _in_jvm(queries: Numbered) -> bool:
    return all(query.in_jvm for _, query in queries)


def _stored_columns(queries: Numbered) -> int:
    """About how many of Spark's aggregates build a pane: what two of ours share is not counted out."""
    distinct = {(aggregate, query.where) for _, query in queries for _, aggregate in query.aggregates}
    return sum(aggregate.weight for aggregate, _ in distinct)


def _uncut(edges: tuple[Edges, ...]) -> str:
    panes = " and ".join(f"every {geometry_name(Geometry(e.period, e.period, e.offset))}" for e in edges)
    return f"panes {panes} are cut by no window"


def _compared(costs: Costs, chosen: Strategy, *, asked: bool) -> str:
    figures = ", ".join(f"{name} {cost / 1e6:.3g}" for name, cost in costs.by_strategy.items())
    return f"strategies, predicted core-ms per second of events: {figures}; {'asked for' if asked else 'took'} {chosen}"
