"""Plan all queries together: queries and statistics in, a physical plan out.

Queries with the same time column and the same keys share a store. Their windows with an answer per event share another
one, of single events, so that the panes of the others stay as wide as possible. A store with coarser keys is fed by one
with finer keys if that moves fewer rows than reading the events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from panes.errors import DeclarationError
from panes.planning import calibration as c
from panes.planning.panes import PaneCost, finest_column
from panes.planning.physical_plan import (
    PhysicalPlan,
    StorePlan,
    distinct_windows,
    in_jvm,
    stored_columns,
)
from panes.planning.plan_store import describe_cuts, forest_over_panes, plan_store, plan_store_of_events
from panes.planning.statistics import Keys, Statistics
from panes.planning.strategy import Costs, Strategy, answers_cost
from panes.queries.query import Query, check_queries, shared_condition
from panes.queries.windows import Sliding


def plan_queries(
    queries: Iterable[Query],
    statistics: Statistics,
    strategy: Strategy | None = None,
    *,
    factor_windows: bool = True,
    feed: bool = True,
) -> PhysicalPlan:
    """Plan all queries together.

    Parameters
    ----------
    strategy
        Run every store this way instead of the cheapest.
    factor_windows
        Whether the planner may add windows that no query declares.
    feed
        Whether a store may read the panes of one with finer keys, as batches on Spark can. Tables and streams build
        every store from events, and the panes of a store that feeds none are wider.

    Examples
    --------
    >>> import panes as pn
    >>> hour, select = pn.hopping("1 hour", every="5 min"), {"n": pn.count()}
    >>> fine = pn.query("fine", by=["card", "city"], at="ts", select=select, over=hour)
    >>> coarse = pn.query("coarse", by="card", at="ts", select=select, over=pn.tumbling("10 min"))
    >>> known = Statistics(rate=5000, keys={("card", "city"): 50, ("card",): 5})
    >>> for store in plan_queries([fine, coarse], known).stores:
    ...     print(store.keys, store.strategy, store.source)
    ('card', 'city') columnar None
    ('card',) columnar 0
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
            stores.append(plan_store_of_events(at, keys, tuple(members), statistics, strategy))
        else:
            stores.append(plan_store(at, keys, tuple(members), statistics, strategy, factor_windows))
    if feed:
        stores = _feed_coarser_keys(stores, statistics, factor_windows)
    return PhysicalPlan(checked, tuple(_share_condition(stores)), statistics)


def _by_kind(query: Query) -> Iterator[tuple[bool, Query]]:
    """Yield the query over its windows without an answer per event, and over those with one."""
    for per_event in (False, True):
        over = tuple(window for window in query.over if isinstance(window, Sliding) == per_event)
        if over:
            yield per_event, query if over == query.over else replace(query, over=over)


def _check_misfits(query: Query) -> None:
    """Reject a window over which an aggregate makes no sense."""
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


def _feed_coarser_keys(stores: list[StorePlan], statistics: Statistics, factor_windows: bool) -> list[StorePlan]:
    """Feed stores from the panes of finer ones if there are fewer panes than events.

    A feeding store keeps the panes of both: its edges become those of all windows it serves.
    """
    for coarse in range(len(stores)):
        for fine in range(coarse):
            fed = _fed(stores, fine, coarse, statistics, factor_windows)
            if fed is not None:
                stores = fed
                break
    return stores


def _fed(
    stores: list[StorePlan], at: int, number: int, statistics: Statistics, factor_windows: bool
) -> list[StorePlan] | None:
    """Return the stores with one more fed by the panes of another; None if that is impossible or more expensive."""
    fine, coarse = stores[at], stores[number]
    shareable = (
        fine.at == coarse.at
        and not coarse.per_event
        and set(coarse.keys) < set(fine.keys)
        and fine.source is None
        and fine.strategy == "columnar"
        and not fine.from_events
        and in_jvm(fine.queries + coarse.queries)
    )
    if not shareable:
        return None
    # The panes also serve the stores that it feeds already.
    family = [i for i, store in enumerate(stores) if i in (at, number) or store.source == at]
    queries = tuple(query for i in family for query in stores[i].queries)
    cost = PaneCost(statistics, fine.keys)
    together = finest_column(distinct_windows(queries), stored_columns(queries), cost)
    before = finest_column(fine.windows, stored_columns(fine.queries), cost)
    merging = cost.rows(together.edges, together.lanes) * c.TREE_ROW
    extra = together.cost - before.cost + merging + answers_cost(coarse.views, coarse.keys, statistics)
    if together.from_events or extra >= coarse.costs.by_strategy[coarse.strategy]:
        return None
    note = f"fed by the panes of ({', '.join(fine.keys)}): fewer rows than the events"

    def over_shared_panes(store: StorePlan) -> StorePlan:
        forest = forest_over_panes(store.windows, together.edges, statistics, store.keys, factor_windows)
        return replace(
            store,
            strategy="columnar",
            edges=together.edges,
            lanes=together.lanes,
            from_events=False,
            forest=forest,
            trace=(describe_cuts(together.edges), *forest.trace),
        )

    shared = [over_shared_panes(store) if i in family else store for i, store in enumerate(stores)]
    costs = Costs({**coarse.costs.by_strategy, "columnar": extra})
    shared[number] = replace(shared[number], source=at, costs=costs, trace=(note, *shared[number].trace))
    return shared


def _share_condition(stores: list[StorePlan]) -> list[StorePlan]:
    """Let a store and those it feeds keep the events that any of their queries counts."""
    result = []
    for number, store in enumerate(stores):
        root = number if store.source is None else store.source
        family = (q for i, s in enumerate(stores) if root in (i, s.source) for _, q in s.queries)
        result.append(replace(store, kept=shared_condition(family)))
    return result
