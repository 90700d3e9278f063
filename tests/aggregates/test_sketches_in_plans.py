"""Sketches through plans, panes and kernels in process: every answer is within the bounds of its window's values."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import panes as pn
from panes.aggregates.sketches import objects
from panes.local.run import run_steps
from panes.testing.reference import comparable
from tests.aggregates.test_sketches import assert_rank, assert_top
from tests.local.test_against_brute_force import CASES, NUMERIC, VALUES, cases, one_of

datasketches = pytest.importorskip("datasketches")


def counted_alone(values, lg_k=12):
    """What one sketch of all values says: merging must not change it."""
    sketch, union = datasketches.cpc_sketch(lg_k), datasketches.cpc_union(lg_k)
    for value in values:
        if isinstance(value, float):
            sketch.update(value)
        else:
            sketch.update(int(value)) if isinstance(value, int) else sketch.update(f"'{value}")
    union.update(sketch)
    return round(union.get_result().get_estimate())


def check(answers, table, windows, by, *, n=3, lg_k=10, k=200):
    """Every answer against the values that its window and key really have."""
    table = table.filter(pc.and_(table["ts"].is_valid(), table["x"].is_valid()))
    instants, values = table["ts"].cast(pa.int64()).to_numpy(), objects(table["x"].to_pylist())
    keys = objects(table[by].to_pylist() if by else [None] * len(table))
    bounds = answers["window"].combine_chunks()
    edges = zip(*(bounds.field(name).cast(pa.int64()).to_pylist() for name in ("start", "end")), strict=True)
    shift = {window.name: window.shift for window in windows}
    for answer, (start, end) in zip(answers.to_pylist(), edges, strict=True):
        at = instants - shift[answer["window_name"]]
        inside = values[(start <= at) & (at < end) & ((keys == answer[by]) if by else True)].tolist()
        if "distinct" in answer:
            true = len({comparable(x) for x in inside})
            assert abs(answer["distinct"] - true) <= max(1, 0.033 * true)
        if "top" in answer:
            assert answer["top"] is None if not inside else assert_top(inside, answer["top"], n, lg_k) is None
        for q, name in ((0, "low"), (0.5, "mid"), (0.9, "high")):
            if name in answer:
                numbers = [float(x) for x in inside if not math.isnan(x)]
                error = 3 * datasketches.kll_doubles_sketch.get_normalized_rank_error(k, False) if q else 0
                allowed = 0 if len(numbers) <= k // 2 else error
                found = answer[name]
                assert found is None if not numbers else assert_rank(numbers, found, q, allowed) is None


QUANTILES = {
    "low": pn.approx_quantile("x", 0),
    "mid": pn.approx_quantile("x", 0.5),
    "high": pn.approx_quantile("x", 0.9),
}
OTHERS = {"distinct": pn.approx_count_distinct("x"), "top": pn.top("x", 3)}


@cases(120)
@given(CASES, st.sampled_from(["k", ()]), st.sampled_from([None, "naive", "landmark", "dyadic"]))
def test_small_windows_of_every_type(case, by, kernel):
    type_ = case.choose(VALUES)
    table = case.table({("k", pa.string()): one_of("a", "b"), ("x", type_): VALUES[type_]})
    select = OTHERS | (QUANTILES if type_ in NUMERIC else {}) | {"n": pn.count("x")}
    query = pn.query("q", at="ts", by=by, select=select, over=case.over())
    answers = run_steps(
        pn.plan(query, **case.beliefs).physical_plan(strategy="columnar"), table, kernel=kernel
    ).carry_out()
    check(answers, table, query.windows, by)


@cases(60)
@given(CASES, st.sampled_from([None, "overlapping"]))
def test_distinct_counts_where_windows_are_read_from_overlapping_ones(case, kernel):
    table = case.table({("x", pa.int32()): one_of(*range(9))})
    query = pn.query("q", at="ts", select={"distinct": pn.approx_count_distinct("x")}, over=case.over(kernel=kernel))
    answers = run_steps(
        pn.plan(query, **case.beliefs).physical_plan(strategy="columnar"), table, kernel=kernel
    ).carry_out()
    check(answers, table, query.windows, ())


def large(rows=12_000, seed=0):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": pa.array(np.sort(rng.integers(0, 3_600_000_000, rows)), pa.timestamp("us")),
            "k": pa.array(rng.integers(0, 2, rows)),
            "x": pa.array(rng.zipf(1.2, rows) % 10**6, mask=rng.random(rows) < 0.1),
        }
    )


WINDOWS = [
    *(pn.tumbling(size) for size in ("1 min", "10 min", "1 h")),
    *(pn.hopping(size, every=slide) for size, slide in (("5 min", "1 min"), ("30 min", "5 min"), ("20 min", "4 min"))),
]


@pytest.mark.parametrize("kernel", [None, "naive", "landmark", "dyadic"])
def test_large_windows(kernel):
    table = large()
    select = OTHERS | QUANTILES | {"top": pn.top("x", 3, lg_k=6)}
    query = pn.query("q", at="ts", by="k", select=select, over=WINDOWS)
    answers = run_steps(pn.plan(query).physical_plan(strategy="columnar"), table, kernel=kernel).carry_out()
    assert len(answers) > 200
    check(answers, table, WINDOWS, "k", lg_k=6)


def test_a_distinct_count_does_not_depend_on_the_plan():
    table = large()
    select = {"distinct": pn.approx_count_distinct("x")}
    found = [
        run_steps(
            pn.plan(pn.query("q", at="ts", by="k", select=select, over=over)).physical_plan(strategy="columnar"), table
        ).carry_out()
        for over in (WINDOWS, *([window] for window in WINDOWS))
    ]
    rows = [
        {(row["window_name"], row["window"]["start"], row["k"]): row["distinct"] for row in answers.to_pylist()}
        for answers in found
    ]
    alone = {key: value for answers in rows[1:] for key, value in answers.items()}
    assert rows[0] == alone
    hour = table.filter(pc.equal(table["k"], 1))["x"].drop_null().to_pylist()
    assert alone["1h", table["ts"][0].as_py().replace(minute=0, second=0, microsecond=0), 1] == counted_alone(hour)


def test_conditions_derived_columns_and_having():
    table = large(2_000)
    query = pn.query(
        "q",
        at="ts",
        select={"few": pn.approx_count_distinct("x"), "n": pn.count("x"), "part": "few / n", "top": pn.top("x", 1)},
        over=pn.tumbling("10 min"),
        where="x < 100",
        having="few > 10",
    )
    other = pn.query("p", at="ts", select={"few": pn.approx_count_distinct("x")}, over=pn.tumbling("20 min"))
    answers = pn.plan([query, other]).run(table).to_pylist()
    assert {row["query"] for row in answers} == {"q", "p"}
    for row in answers:
        if row["query"] == "q":
            assert 10 < row["few"] <= 100
            assert row["part"] == row["few"] / row["n"]
            assert row["top"][0]["item"] == 1
            assert row["top"][0]["error"] == 0


def test_instances_without_events_or_without_values():
    table = pa.table({"ts": pa.array([5, 35, 45], pa.timestamp("us")), "x": pa.array([7, None, 8])})
    query = pn.query("q", at="ts", select=OTHERS | QUANTILES | {"n": pn.count()}, over=pn.tumbling("10us"))
    answers = pn.plan(query).run(table, empty=True).sort_by([("n", "ascending")]).to_pylist()
    found = {row["window"]["start"].microsecond: row for row in answers}
    assert [found[at]["n"] for at in (0, 10, 20, 30, 40)] == [1, 0, 0, 1, 1]
    assert [found[at]["distinct"] for at in (0, 10, 20, 30, 40)] == [1, 0, 0, 0, 1]
    assert [found[at]["mid"] for at in (0, 10, 20, 30, 40)] == [7.0, None, None, None, 8.0]
    assert [found[at]["top"] for at in (10, 30)] == [None, None]
    assert found[0]["top"] == [{"item": 7, "count": 1, "error": 0}]


def test_a_table_without_rows_has_the_schema_of_one_with_rows():
    query = pn.query("q", at="ts", by="k", select=OTHERS | QUANTILES, over=pn.tumbling("1h"))
    table = large(10)
    for layout in ("long", "wide"):
        full, empty = (pn.plan(query).run(part, layout=layout) for part in (table, table.slice(0, 0)))
        assert empty.schema.equals(full.schema)
        assert not len(empty)
