"""Plans for people: every window shown once and by its name, nothing shown that is not planned."""

from __future__ import annotations

import re
from collections import Counter

import pytest

import panes as pn
from panes.planning.explanation import explain, mermaid, summary
from panes.planning.physical_plan import PhysicalPlan, StorePlan
from panes.planning.plan_queries import plan_queries
from panes.planning.statistics import Statistics
from panes.planning.strategy import STRATEGIES, Strategy

BRANCH = re.compile(r"^[ │]*[├└]─ (?P<name>.+?)  \(.*/s per key\)$")
NODE = re.compile(r'^  (?P<id>\w+)(?:\[|\{\{|\(\[|\[\()"(?P<label>[^"]*)"(?:\]|\}\}|\]\)|\)\])$')
EDGE = re.compile(r"^  (?P<source>\w+) --> (?P<target>\w+)$")

TEMPS = pn.query(
    "temps",
    at="ts",
    by=("device", "user"),
    select={"n": pn.count()},
    over=[pn.tumbling("20 min"), pn.tumbling("30 min", name="half an hour"), pn.tumbling("40 min", offset="10 min")],
)
TOTALS = pn.query("totals", at="ts", by="device", select={"n": pn.count()}, over=pn.hopping("1 h", every="20 min"))
ALONE = pn.query("alone", at="ts", select={"n": pn.count()}, over=pn.tumbling("1 d"))


def planned(*queries: pn.Query, strategy: Strategy | None = None, rate: float = 1e4) -> PhysicalPlan:
    return plan_queries(queries or (TEMPS, TOTALS, ALONE), Statistics(rate=rate), strategy)


def shown(text: str) -> list[list[str]]:
    """The names in each tree of an explanation."""
    return [[m["name"] for m in map(BRANCH.match, part.splitlines()) if m] for part in text.split("\n\n")[1:]]


def names(store: StorePlan) -> set[str]:
    return {window.name for _, query in store.queries for window in query.over}


@pytest.mark.parametrize("strategy", [None, *STRATEGIES])
def test_explain_shows_each_window_once_and_factor_windows_of_the_forest_only(strategy: Strategy | None) -> None:
    plan = planned(strategy=strategy)
    trees = shown(explain(plan))
    assert len(trees) == len(plan.stores)
    for store, tree in zip(plan.stores, trees, strict=True):
        factors = [name for name in tree if name.startswith("factor window ")]
        assert len(factors) == len(store.forest.factors)
        assert Counter(tree) - Counter(factors) == Counter(names(store))


def test_factor_windows_are_named_by_their_geometry() -> None:
    over = [pn.tumbling(f"{m} min") for m in (20, 30, 40)]
    query = pn.query("q", at="ts", by="device", select={"n": pn.count()}, over=over)
    (tree,) = shown(explain(planned(query, strategy="rewrite")))
    assert tree == ["factor window 10m", "20m", "40m", "30m"]
    (tree,) = shown(explain(planned(query, strategy="native")))
    assert tree == ["20m", "30m", "40m"]


def test_one_window_of_two_names_shows_both() -> None:
    first = pn.query("a", at="ts", select={"n": pn.count()}, over=pn.tumbling("1 h", name="hour"))
    second = pn.query("b", at="ts", select={"n": pn.count()}, over=pn.tumbling("60 min", name="lesson"))
    assert shown(explain(planned(first, second, strategy="columnar"))) == [["hour, lesson"]]


def test_explain_has_the_whole_trace() -> None:
    plan = planned()
    lines = explain(plan).splitlines()
    for store in plan.stores:
        assert store.trace
        assert {f"    {line}" for line in store.trace} <= set(lines)


@pytest.mark.parametrize(
    ("queries", "strategy", "passes"),
    [
        ((TEMPS,), "native", "1 query, 3 windows, 3 passes"),
        ((TEMPS,), "columnar", "1 query, 3 windows, 1 pass"),
        ((ALONE,), None, "1 query, 1 window, 1 pass"),
        ((TEMPS, TOTALS, ALONE), "native", "3 queries, 5 windows, 5 passes"),
        ((TEMPS, TOTALS, ALONE), "columnar", "3 queries, 5 windows, 1 pass"),  # all fed by the finest keys
    ],
)
def test_the_summary_counts_passes(queries: tuple[pn.Query, ...], strategy: Strategy | None, passes: str) -> None:
    plan = planned(*queries, strategy=strategy)
    first, *stores = summary(plan).splitlines()
    assert first == f"{passes} over the events"
    assert len(stores) == len(plan.stores)
    for line, store in zip(stores, plan.stores, strict=True):
        assert line.strip().startswith(f"by ({', '.join(store.keys)}): " if store.keys else "by nothing: ")
        assert f" {store.strategy} (" in line


def test_a_tree_of_group_bys_passes_over_the_events_for_each_root() -> None:
    plan = planned(TEMPS, strategy="rewrite")
    roots = sum(node.provider is None for node in plan.stores[0].forest.nodes)
    assert summary(plan).startswith(f"1 query, 3 windows, {roots} pass")


@pytest.mark.parametrize("strategy", [None, *STRATEGIES])
def test_mermaid_has_a_node_per_window_and_one_edge_into_each(strategy: Strategy | None) -> None:
    plan = planned(strategy=strategy)
    head, *lines = mermaid(plan).splitlines()
    assert head == "flowchart LR"
    nodes = {m["id"]: m["label"] for m in map(NODE.match, lines) if m}
    edges = [(m["source"], m["target"]) for m in map(EDGE.match, lines) if m]
    classes = [line for line in lines if line.startswith("  class")]
    assert len(nodes) + len(edges) + len(classes) == len(lines), "every line is understood"
    stores = sum(store.strategy == "columnar" for store in plan.stores)
    assert len(nodes) == 1 + stores + sum(len(store.forest.nodes) for store in plan.stores)
    assert Counter(target for _, target in edges) == Counter(set(nodes) - {"stream"})
    assert {source for source, _ in edges} <= set(nodes)
    factors = sum(len(store.forest.factors) for store in plan.stores)
    assert sum(label.startswith("factor window") for label in nodes.values()) == factors
    assert {name for store in plan.stores for name in names(store)} <= set(nodes.values())
    listed = [window for line in classes if line.startswith("  class ") for window in line.split()[1].split(",")]
    assert len(listed) == factors


def test_mermaid_reads_what_the_forest_reads() -> None:
    plan = planned(TEMPS, strategy="rewrite")
    lines = mermaid(plan).splitlines()
    edges = {m["target"]: m["source"] for m in map(EDGE.match, lines) if m}
    forest = plan.stores[0].forest
    ids = {node.window: f"s0w{i}" for i, node in enumerate(forest.nodes)}
    for node in forest.nodes:
        assert edges[ids[node.window]] == ("stream" if node.provider is None else ids[node.provider])
