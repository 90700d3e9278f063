"""Names: spelling, reserved words, key sets, and declarations that are not what they should be."""

from __future__ import annotations

import ast
import datetime as dt
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import panes as pn
from panes.errors import DeclarationError, DurationError, PlanError

OVER = pn.tumbling("10 min")
SHARED_NAMES = {"Aggregate": "what a query declares, and the operator of the windowing paper that computes it"}
EVENTS = pa.table({"ts": [dt.datetime(2026, 1, 1)], "k": ["a"], "window_end": [1]})


def counting(name: str, **changes: Any) -> pn.Query:
    return pn.query(name, **{"at": "ts", "select": {"n": pn.count()}, "over": OVER, **changes})


def test_one_name_is_spelt_one_way() -> None:
    with pytest.raises(DeclarationError, match="'N' is also spelt 'n'"):
        pn.plan([counting("a"), counting("b", select={"N": pn.count()})])
    with pytest.raises(DeclarationError, match="'K' is also spelt 'k'"):
        pn.plan([counting("a", by="k"), counting("b", by="K")])
    with pytest.raises(DeclarationError, match="its own time column"):
        counting("a", by="TS")


def test_key_sets_are_found_in_any_order_and_case() -> None:
    plan = pn.plan(counting("a", by=["symbol", "exch"]), keys={("Symbol", "exch"): 52})
    assert "52 keys" in plan.explain()


def test_the_wide_form_has_a_window_end_of_its_own() -> None:
    with pytest.raises(PlanError, match="window_end"):
        pn.plan(counting("a", by="window_end")).run(EVENTS, layout="wide")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"select": ["n"]}, "names no columns"),
        ({"by": 5}, "not the name of a column"),
        ({"over": "10 min"}, "pn.tumbling"),
        ({"select": {"__view": pn.count()}}, "begin with '__'"),
        ({"by": ["{b}", "{b}"]}, "names '{b}' twice in by=: name it once"),
    ],
)
def test_declarations_that_are_no_declarations(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        counting("a {name}", **changes)


def test_figures_that_are_no_figures() -> None:
    with pytest.raises(PlanError, match="rate is 'fast': write a positive number"):
        pn.plan(counting("a"), rate="fast")  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="keys is -5: write a positive number"):
        pn.plan(counting("a"), keys=-5)
    with pytest.raises(PlanError, match=r"keys={device: \.\.\.} is nan: write a positive number"):
        pn.plan(counting("a"), keys={"device": float("nan")})
    assert pn.plan(counting("a"), keys=np.int64(100)).statistics.default_keys == 100
    with pytest.raises(DurationError, match="longer than"):
        pn.tumbling(dt.timedelta.max)


def test_what_only_spark_can_do_is_refused_in_process() -> None:
    with pytest.raises(PlanError, match="Spark DataFrames only"):
        pn.plan(counting("a")).run(EVENTS, strategy="native")
    with pytest.raises(PlanError, match="Spark DataFrames only"):
        pn.plan(counting("a"), strategy="rewrite").run(EVENTS)


def test_a_strategy_that_cannot_run_an_aggregate_is_refused_when_it_is_planned() -> None:
    def planned(aggregate: Any, strategy: Any) -> pn.Plan:
        return pn.plan(pn.query("q", at="ts", select={"x": aggregate}, over=pn.tumbling("1 min")), strategy=strategy)

    with pytest.raises(PlanError, match="'q': Spark has no trend"):
        planned(pn.trend("x"), "native")
    with pytest.raises(PlanError, match="'q': only Python can compute quantile"):
        planned(pn.quantile("x", 0.5), "rewrite")
    # Spark has it; nobody knows what it costs there.
    assert "cost unknown" in planned(pn.quantile("x", 0.5), "native").explain()


def test_a_class_name_means_one_thing() -> None:
    """Private classes are known in one file; everything else is found by its name."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in Path(pn.__file__).parent.rglob("*.py")]
    names = Counter(node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef))
    twice = {name for name, count in names.items() if count > 1 and not name.startswith("_")}
    assert twice == set(SHARED_NAMES)
