"""All queries planned together: who shares a store, how it runs, and who is fed by whom."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.errors import PlanError
from panes.planning.physical_plan import PhysicalPlan, StorePlan
from panes.planning.plan_queries import plan_queries
from panes.planning.statistics import Statistics
from panes.planning.strategy import STRATEGIES, Costs, Strategy
from panes.queries.windows import Window
from panes.timeline import SECOND, Edges, Geometry
from tests.planning.definitions import partitioned_by

windows_in = st.lists(
    st.builds(
        lambda r, s, o: Window(Geometry(r * SECOND, s * SECOND, o * SECOND), f"{r}/{s}+{o}"),
        st.integers(1, 60),
        st.integers(1, 30),
        st.integers(0, 5),
    ),
    min_size=1,
    max_size=8,
    unique_by=(lambda window: window.geometry, lambda window: window.name),
)
MINUTES = [pn.tumbling(f"{m} min") for m in range(1, 21)]


def declared(name: str, *over: Window, by: str | tuple[str, ...] = "device", **more: str) -> pn.Query:
    return pn.query(name, at=more.pop("at", "ts"), by=by, select={"n": pn.count()}, over=over or MINUTES[9:11], **more)


def planned(
    *queries: pn.Query, rate: float = 100, keys: object = None, strategy: Strategy | None = None, **more: bool
) -> PhysicalPlan:
    return plan_queries(queries, Statistics.given(rate, keys), strategy, **more)


def numbers(store: StorePlan) -> list[int]:
    return [number for number, _ in store.queries]


def uncut(window: Geometry, edges: tuple[Edges, ...]) -> bool:
    return all(any(edge.within(kept) for kept in edges) for edge in window.edges())


def test_queries_of_the_same_keys_share_a_store() -> None:
    plan = planned(
        declared("a", by=("device", "user")),
        declared("b"),
        declared("c", by=("user", "device")),
        declared("d", by=()),
        declared("e", at="sent"),
    )
    assert {(store.at, store.keys): numbers(store) for store in plan.stores} == {
        ("ts", ("device", "user")): [0, 2],
        ("ts", ("device",)): [1],
        ("ts", ()): [3],
        ("sent", ("device",)): [4],
    }
    assert [len(store.keys) for store in plan.stores] == [2, 1, 1, 0], "finest keys first"


@pytest.mark.parametrize(
    ("conditions", "kept"),
    [
        (("x > 1", "x > 1"), "x > 1"),
        (("x > 1", "X>1"), "x > 1 OR X > 1"),
        (("x > 1", "y > 1", "x > 1"), "x > 1 OR y > 1"),
        (("x > 1", None), None),
        ((None, None), None),
    ],
)
def test_a_store_keeps_the_events_that_any_query_wants(conditions: tuple[str | None, ...], kept: str | None) -> None:
    (store,) = planned(*(declared(f"q{i}", where=where) for i, where in enumerate(conditions))).stores
    assert (None if store.kept is None else str(store.kept)) == kept


def test_a_feeding_store_keeps_what_the_fed_ones_want() -> None:
    fine, coarse = declared("fine", by=("device", "user"), where="x > 1"), declared("coarse", where="y > 1")
    stores = planned(fine, coarse, rate=1e4).stores
    assert stores[1].source == 0
    assert {str(store.kept) for store in stores} == {"x > 1 OR y > 1"}


def test_coarser_keys_are_fed_by_finer_ones_where_that_pays() -> None:
    fine = declared("fine", pn.tumbling("20 min"), pn.hopping("1 h", every="20 min"), by=("device", "user"))
    coarse = declared("coarse", pn.tumbling("30 min"), pn.tumbling("45 min"))
    plan = planned(coarse, fine, rate=1e4, keys={("user", "device"): 1000, "device": 10})
    first, second = plan.stores
    assert (first.source, second.source) == (None, 0)
    assert (first.strategy, second.strategy) == ("columnar", "columnar")
    assert (first.edges, first.lanes) == (second.edges, second.lanes)
    for window in first.windows + second.windows:
        assert uncut(window, first.edges)
    alone = planned(coarse, rate=1e4, keys={"device": 10}).stores[0]
    assert second.costs.by_strategy["columnar"] < min(alone.costs.by_strategy.values())


def test_without_feeding_every_store_has_panes_of_its_own() -> None:
    fine = declared("fine", pn.tumbling("20 min"), by=("device", "user"), where="x > 1")
    coarse = declared("coarse", pn.tumbling("45 min"), where="y > 1")
    for store in planned(fine, coarse, rate=1e4, keys={("user", "device"): 1000, "device": 10}, feed=False).stores:
        assert store.source is None
        assert store.edges == tuple(edge for window in store.windows for edge in window.edges())
        assert str(store.kept) in ("x > 1", "y > 1")


@pytest.mark.parametrize(
    ("rate", "keys", "coarse"),
    [
        # Panes of so many keys would hardly be fewer than events.
        pytest.param(100, {("device", "user"): 1e7, "device": 10}, declared("coarse"), id="sparse"),
        # The finer keys would need a pane every second for the sake of the coarser ones.
        pytest.param(
            1e5,
            {("device", "user"): 1e5, "device": 10},
            declared("coarse", pn.tumbling("1 s"), pn.tumbling("2 s")),
            id="short",
        ),
        pytest.param(1e4, None, declared("coarse", by="host"), id="other keys"),
        pytest.param(1e4, None, declared("coarse", at="sent"), id="other time"),
    ],
)
def test_coarser_keys_are_not_fed_where_it_does_not_pay(rate: float, keys: object, coarse: pn.Query) -> None:
    fine = declared("fine", pn.tumbling("1 h"), pn.hopping("2 h", every="1 h"), by=("device", "user"))
    plan = planned(fine, coarse, rate=rate, keys=keys)
    assert [store.source for store in plan.stores] == [None, None]


def test_one_tumbling_window_is_left_to_spark() -> None:
    (store,) = planned(declared("a", pn.tumbling("1 h"))).stores
    assert store.strategy == "native"
    assert store.forest.factors == ()


@pytest.mark.parametrize("over", [[pn.hopping("1 h", every="1 min")], MINUTES], ids=["hopping", "twenty"])
def test_what_spark_would_do_again_and_again_runs_on_columns(over: list[Window]) -> None:
    (store,) = planned(declared("a", *over)).stores
    assert store.strategy == store.costs.cheapest == "columnar"
    assert store.costs.by_strategy["columnar"] < store.costs.by_strategy["native"] / 10


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("over", [[pn.tumbling("1 h")], MINUTES], ids=["one", "twenty"])
def test_a_forced_strategy_is_respected(strategy: Strategy, over: list[Window]) -> None:
    (store,) = planned(declared("a", *over), strategy=strategy).stores
    assert store.strategy == strategy
    assert store.forest.windows == tuple(window.geometry for window in over)
    assert any(f"forced {strategy}" in line for line in store.trace)
    if strategy == "native":
        assert {node.provider for node in store.forest.nodes} == {None}


def test_factor_windows_can_be_refused() -> None:
    over = [pn.tumbling(f"{m} min") for m in (20, 30, 40)]
    with_factors, without = (
        planned(declared("a", *over), rate=1e4, strategy="rewrite", factor_windows=wanted).stores[0].forest
        for wanted in (True, False)
    )
    assert with_factors.factors
    assert not without.factors


def test_a_tree_of_many_group_bys_is_not_even_priced() -> None:
    over = [pn.tumbling(f"{m} min") for m in range(1, 66)]
    assert "rewrite" in planned(declared("a", *over[:64])).stores[0].costs.by_strategy
    assert "rewrite" not in planned(declared("a", *over)).stores[0].costs.by_strategy


@settings(max_examples=150)
@given(windows_in, windows_in, st.floats(0.1, 1e5), st.floats(1, 1e5))
def test_panes_are_cut_by_no_window_and_by_no_provider(
    fine: list[Window], coarse: list[Window], rate: float, keys: float
) -> None:
    plan = planned(declared("fine", *fine, by=("device", "user")), declared("coarse", *coarse), rate=rate, keys=keys)
    for store in plan.stores:
        assert set(store.forest.windows) == set(store.windows)
        if store.strategy != "columnar":
            continue
        for node in store.forest.nodes:
            if node.provider is None:
                assert uncut(node.window, store.edges)
            else:
                assert node.provider.tumbling, "rows of a column do not overlap"
                same_range = node.provider.range == node.window.range
                assert same_range or partitioned_by(node.window, node.provider)
                assert Edges(node.window.slide, node.window.offset).within(
                    Edges(node.provider.slide, node.provider.offset)
                )
        if store.source is not None:
            assert store.edges == plan.stores[store.source].edges
            assert plan.stores[store.source].source is None


@pytest.mark.parametrize(
    ("costs", "cheapest"),
    [
        ({"native": 100.0, "columnar": 95.0}, "native"),  # not clearly cheaper
        ({"native": 100.0, "columnar": 89.0}, "columnar"),
        ({"native": 100.0, "rewrite": 50.0, "columnar": 60.0}, "columnar"),  # not far cheaper
        ({"native": 100.0, "rewrite": 40.0, "columnar": 60.0}, "rewrite"),
        ({"native": 100.0, "rewrite": 95.0, "columnar": 200.0}, "native"),
        ({"columnar": 1e9}, "columnar"),
    ],
)
def test_the_cheapest_strategy(costs: dict[Strategy, float], cheapest: Strategy) -> None:
    assert Costs(costs).cheapest == cheapest


def test_known_keys_are_found_in_any_order() -> None:
    known = Statistics.given(None, {("user", "device"): 7, "device": 3})
    assert known.distinct(("device", "user")) == known.distinct(("user", "device")) == 7
    assert known.distinct(("device",)) == 3
    assert known.distinct(("user",)) == known.default_keys
    assert known.distinct(()) == 1
    assert (known.origin, Statistics.given(None, None).origin) == ("given", "assumed")
    (store,) = planned(declared("a", *MINUTES, by=("user", "device")), keys={("user", "device"): 1e7}).stores
    assert store.from_events, "the planner looked it up"


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf")])
def test_figures_are_positive_numbers(wrong: float) -> None:
    for given_figures in ((wrong, None), (None, wrong), (None, {"device": wrong})):
        with pytest.raises(PlanError, match="positive number"):
            Statistics.given(*given_figures)
