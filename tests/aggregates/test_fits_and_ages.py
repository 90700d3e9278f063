"""``corr``, ``trend`` and ``aged`` in this process against brute force, near the epoch and far from it.

Brute force is exact (fractions), so that a tolerance is what rounding may do and no more. The dangers: times of 16
digits whose differences matter, constants that must not vary, weights that vanish, infinities that meet them.
"""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import panes as pn
from panes.engine.program import Reading
from panes.errors import DeclarationError, DurationError, PanesError, SchemaError
from panes.queries.catalogue_entries import registration
from panes.state.registered_queries import Offer, bind_entry
from panes.testing import assert_same_answers, brute_force, check_aggregate
from panes.timeline import MINUTE, Edges
from tests.local.test_against_brute_force import CASES, NAN, NUMERIC, VALUES, cases, check, exact_float, one_of

YEARS = [datetime(year, 1, 1, tzinfo=UTC) for year in (1970, 2026, 9000)]
ORIGINS = [(year - YEARS[0]) // timedelta(microseconds=1) for year in YEARS]
KERNELS = [None, "naive", "landmark", "dyadic"]


def at(origin, table):
    """The same events, so many µs later."""
    instants = pc.add(table["ts"].cast(pa.int64()), origin)
    return table.set_column(0, "ts", instants.cast(table["ts"].type))


FITS = {"slope": "line.slope", "intercept": "line.intercept", "r2": "line.r2", "together": pn.corr("x", "y")}
# Slopes are per second, and here of values up to 1000 over as little as a µs.
ROUNDING = {"slope": 1e-2, "intercept": 1e-6, "r2": 1e-9, "together": 1e-9}


@cases(150)
@given(CASES, st.sampled_from(ORIGINS), st.sampled_from(KERNELS), st.sampled_from([None, "y > 0"]))
def test_lines_and_correlations(case, origin, kernel, where):
    few = one_of(0.1, 0.1, 0.1, 0.25, None)
    number = case.choose([exact_float, few, lambda rng: rng.randint(-8000, 8000) / 8])
    columns = {("k", pa.string()): one_of("a", "b"), ("x", pa.float64()): number, ("y", pa.float64()): exact_float}
    table = at(origin, case.table(columns))
    asked = {"select": FITS, "hidden": {"line": pn.trend("x")}, "over": case.over(), "where": where}
    query = pn.query("q", at="ts", by="k", **asked)
    # A second query over all events, so that a condition makes conditional components.
    check([query, pn.query("p", at="ts", **asked | {"where": None})], table, case.beliefs, kernel, absolute=ROUNDING)


@cases(60)
@given(CASES)
def test_fits_of_every_type(case):
    type_ = case.choose([t for t in NUMERIC if t != pa.decimal128(38, 3)])
    small = {pa.int32(): one_of(*range(-999, 999)), pa.int64(): one_of(*range(-999, 999))}
    value = small.get(type_, VALUES[type_])
    table = case.table({("k", pa.string()): one_of("a", "b"), ("x", type_): value, ("y", type_): value})
    select = FITS | {"recent": pn.aged(pn.sum("x"), half_life="40us"), "n": pn.aged(pn.count("y"), half_life="9us")}
    query = pn.query("q", at="ts", by="k", select=select, hidden={"line": pn.trend("x")}, over=case.over())
    scale = float(max((abs(v) for v in table["x"].to_pylist() if v is not None and math.isfinite(v)), default=1))
    check([query], table, case.beliefs, absolute={**ROUNDING, "slope": 1e-5 * scale + 1e-2, "intercept": 1e-9 * scale})


@cases(150)
@given(CASES, st.sampled_from(ORIGINS), st.sampled_from(KERNELS))
def test_regular_series(case, origin, kernel):
    """Four events or so per tick of a ms where they are dense, and long gaps where they are not."""
    table = case.table({("k", pa.string()): one_of("a", "b"), ("x", pa.float64()): exact_float})
    table = at(origin, at_scale(250, table))
    rng, over = random.Random(case.seed), {}
    for _ in range(case.windows):
        size, step, offset = rng.randint(1, 40), rng.choice([1, 2, 3, 10, 40]), rng.randint(0, 9)
        shape = pn.hopping(f"{size}ms", every=f"{step}ms", offset=f"{offset}ms")
        over[shape.name] = shape
    query = pn.query(
        "q",
        at="ts",
        by="k",
        select={name: value for name, value in FITS.items() if name in ("slope", "intercept", "r2")},
        hidden={"line": pn.trend("x", every="1ms")},
        over=list(over.values()),
        where=rng.choice([None, "x > 0"]),
    )
    check([query], table, case.beliefs, kernel, absolute={"slope": 1e-4, "intercept": 1e-6, "r2": 1e-9})


def at_scale(factor, table):
    instants = pc.multiply(table["ts"].cast(pa.int64()), factor)
    return table.set_column(0, "ts", instants.cast(table["ts"].type))


def ages(half_life, power=None):
    return {
        "n": pn.aged(pn.count(), half_life=half_life, power=power),
        "n_x": pn.aged(pn.count("x"), half_life=half_life, power=power),
        "total": pn.aged(pn.sum("x"), half_life=half_life, power=power),
        "mean": pn.aged(pn.mean("x"), half_life=half_life, power=power),
    }


@cases(150)
@given(CASES, st.sampled_from(ORIGINS), st.sampled_from(KERNELS), st.sampled_from([None, 1, 2, 3, 4]))
def test_ages(case, origin, kernel, power):
    over = case.over()
    half_life = case.choose([1, 7, 100, 10**6, 10**12])
    if power is not None:
        # From the least half-life that has a weight for the whole window.
        widest = max(window.geometry.range for shape in over for window in shape.windows)
        half_life = math.ceil(widest * (1 - 2 ** (-1 / power))) + case.choose([0, 0, 1, 1000])
    table = at(origin, case.table({("k", pa.string()): one_of("a", "b"), ("x", pa.float64()): exact_float}))
    select = ages(timedelta(microseconds=half_life), power)
    query = pn.query("q", at="ts", by="k", select=select, over=over, where=case.choose([None, "x > 0 OR x IS NULL"]))
    # A mean of values of both signs is as exact as the mean of their sizes.
    check([query], table, case.beliefs, kernel, absolute={"total": 1e-9, "mean": 1e-9})


def line_of(seconds, values, origin=0, every=None, **shape):
    instants = pa.array([origin + round(s * 1e6) for s in seconds], pa.timestamp("us", "UTC"))
    query = pn.query("q", at="ts", select={"line": pn.trend("x", every=every)}, over=pn.tumbling("1 hour", **shape))
    return pn.plan(query).run(pa.table({"ts": instants, "x": pa.array(values, pa.float64())}))["line"].to_pylist()


@pytest.mark.parametrize("origin", ORIGINS, ids=["1970", "2026", "9000"])
def test_a_line_is_found_to_the_last_digits_whatever_the_year(origin):
    """Epoch seconds in one double would leave no digit of a slope over µs."""
    for scale in (600, 1, 1e-3, 2e-6):
        seconds = [i * scale for i in range(6)]
        (line,) = line_of(seconds, [5 + 3 * s for s in seconds], origin)
        assert line["slope"] == pytest.approx(3, rel=1e-9)
        assert line["intercept"] == pytest.approx(5, rel=1e-12)
        assert line["r2"] == pytest.approx(1, rel=1e-12)


def test_the_intercept_is_the_fitted_value_where_the_window_starts():
    later = line_of([3600 + 60, 3600 + 120], [1.0, 2.0])
    assert later == [{"slope": pytest.approx(1 / 60), "intercept": pytest.approx(0.0, abs=1e-12), "r2": 1.0}]
    # (start, end]: the same start, whatever belongs to the window.
    assert line_of([3660, 3720], [1.0, 2.0], bounds="(]")[0]["intercept"] == pytest.approx(0.0, abs=1e-12)


def test_where_there_is_no_line():
    assert line_of([1, 1, 1], [1.0, 2.0, 3.0]) == [None]
    assert line_of([1], [1.0]) == [None]
    assert line_of([1, 2], [1.0, None]) == [None]
    assert line_of([1, 2, 3], [0.1, 0.1, 0.1]) == [{"slope": 0.0, "intercept": 0.1, "r2": 1.0}]
    (line,) = line_of([1, 2, 3], [1.0, NAN, 2.0])
    assert all(math.isnan(part) for part in line.values())


def test_a_regular_series_weighs_how_long_a_value_holds():
    """Three values in the first minute, one after 50 minutes: 50 ticks of 2.0 and 10 ticks of 5.0, as listed here."""
    (line,) = line_of([0, 1, 2, 3000], [1.0, 2.0, 3.0, 5.0], every="1 min")
    (listed,) = line_of([60 * m for m in range(60)], [2.0 if m < 50 else 5.0 for m in range(60)])
    assert line == pytest.approx(listed, rel=1e-12)
    assert line_of([59 * 60 + 1], [1.0], every="1 min") == [None]  # a single tick
    assert line_of([60], [4.0], every="1 min") == [{"slope": 0.0, "intercept": 4.0, "r2": 1.0}]


def aged_of(seconds, values, over="1 hour", **how):
    instants = pa.array([round(s * 1e6) for s in seconds], pa.timestamp("us", "UTC"))
    query = pn.query("q", at="ts", select=ages(**how), over=pn.tumbling(over))
    (answer,) = pn.plan(query).run(pa.table({"ts": instants, "x": pa.array(values, pa.float64())})).to_pylist()
    return {name: answer[name] for name in ages("1s")}


def test_weights_at_the_half_life():
    half = aged_of([1800], [10.0], half_life="30 min")
    assert half == {"n": 0.5, "n_x": 0.5, "total": 5.0, "mean": 10.0}
    for power in (1, 2, 3, 4):
        assert aged_of([1800], [10.0], half_life="30 min", power=power) == pytest.approx(half, rel=1e-12)


def test_a_mean_of_what_has_decayed_long_ago():
    """Every weight is below the least double at the end of the hour; their quotient is not."""
    found = aged_of([0, 0.001], [1.0, 2.0], half_life="1ms")
    assert found == {"n": 0.0, "n_x": 0.0, "total": 0.0, "mean": pytest.approx(5 / 3)}


def test_what_has_faded_counts_no_more():
    found = aged_of([0, 1800], [math.inf, 4.0], half_life="30 min", power=1)
    assert found == {"n": 0.5, "n_x": 0.5, "total": 2.0, "mean": 4.0}
    assert aged_of([0], [4.0], half_life="30 min", power=1) == {"n": 0.0, "n_x": 0.0, "total": 0.0, "mean": None}
    assert aged_of([1800], [None], half_life="1h") == {
        "n": pytest.approx(2**-0.5),
        "n_x": 0,
        "total": None,
        "mean": None,
    }


def test_empty_instances():
    table = pa.table({"ts": pa.array([0, 10], pa.timestamp("us")), "x": [1.0, 2.0], "y": [1.0, 2.0]})
    select = ages("1us") | {"line": pn.trend("x"), "corr": pn.corr("x", "y")}
    query = pn.query("q", at="ts", select=select, over=pn.tumbling("1us"))
    empty = pn.plan(query).run(table, empty=True).to_pylist()[1]
    assert {name: empty[name] for name in select} == {
        "n": 0.0, "n_x": 0.0, "total": None, "mean": None, "line": None, "corr": None
    }  # fmt: skip


def test_laws_hold_on_spread_out_times():
    times = pa.array([10**15 + i * i for i in range(40)], pa.timestamp("us", "UTC"))
    values = pa.array([math.sin(i) for i in range(40)])
    for aggregate in (pn.trend("x"), pn.trend("x", every="1ms"), *ages("200us").values(), *ages("2ms", 2).values()):
        check_aggregate(aggregate, times, values)


WRONG = {
    "no half-life": (lambda: pn.aged(pn.count(), half_life="0s"), DurationError, "is not positive.*'1 hour'"),
    "negative": (lambda: pn.aged(pn.count(), half_life="-1h"), DurationError, "is not positive"),
    "bare number": (lambda: pn.aged(pn.count(), half_life=5), DurationError, "as '5 minutes'"),
    "fraction": (lambda: pn.aged(pn.sum("x"), half_life="1h", power=1.5), DeclarationError, "1, 2, 3 or 4"),
    "zero": (lambda: pn.aged(pn.sum("x"), half_life="1h", power=0), DeclarationError, "1, 2, 3 or 4"),
    "true": (lambda: pn.aged(pn.sum("x"), half_life="1h", power=True), DeclarationError, "1, 2, 3 or 4"),
    "least": (lambda: pn.aged(pn.min("x"), half_life="1h"), DeclarationError, r"min\(x\) cannot be aged.*pn.sum"),
    "column": (lambda: pn.aged("x", half_life="1h"), DeclarationError, "cannot be aged"),
    "twice": (lambda: pn.aged(pn.aged(pn.count(), half_life="1h"), half_life="1h"), DeclarationError, "cannot be aged"),
    "tick": (lambda: pn.trend("x", every="0s"), DurationError, "a millisecond or more.*'1 min'"),
    "no column": (lambda: pn.corr("x", 5), DeclarationError, "as a string"),
}


@pytest.mark.parametrize("case", WRONG)
def test_declarations(case):
    declare, error, message = WRONG[case]
    with pytest.raises(error, match=message) as raised:
        declare()
    assert isinstance(raised.value, PanesError)


def test_a_window_beyond_the_horizon_is_refused_by_the_plan():
    query = pn.query("q", at="ts", select=ages("10 min", 2), over=pn.tumbling("1 hour"))
    with pytest.raises(DeclarationError, match=r"column 'n', window '1h'.*weighs nothing.*half_life='17m35s' or more"):
        pn.plan(query)
    pn.plan(pn.query("q", at="ts", select=ages("17m35s", 2), over=pn.tumbling("1 hour")))


def test_a_running_job_refuses_a_view_beyond_the_horizon():
    fading = {"n": pn.aged(pn.count(), half_life="30 min", power=1)}
    declared, narrow, wide = (
        pn.query(name, at="ts", select=fading, over=pn.tumbling(size))
        for name, size in (("declared", "1h"), ("narrow", "30min"), ("wide", "2h"))
    )
    bound = fading["n"].bind(("ts", "1"), (pa.timestamp("us"), pa.int32()))
    offer = Offer([(declared, (Reading("n", (0,), bound),), None)], (), (Edges(30 * MINUTE),), "ts")
    assert bind_entry(registration(narrow), [offer]).views[0].readings[0].bound is bound
    with pytest.raises(DeclarationError, match="weighs nothing from an age of 1h on"):
        bind_entry(registration(wide), [offer])


def test_a_window_that_cuts_ticks_is_refused_by_the_plan():
    shapes = [pn.tumbling("90s"), pn.hopping("2min", every="30s"), pn.tumbling("1h", offset="1s")]
    for over in (*shapes, pn.tumbling("1h", bounds="(]")):
        with pytest.raises(DeclarationError, match=r"begins or ends within one.*every= that divides"):
            pn.plan(pn.query("q", at="ts", select={"line": pn.trend("x", every="1 min")}, over=over))


def test_only_numbers():
    table = pa.table({"ts": pa.array([0], pa.timestamp("us")), "s": ["a"], "x": [1.0]})
    for aggregate in (pn.trend("s"), pn.corr("x", "s"), pn.aged(pn.mean("s"), half_life="1s")):
        with pytest.raises(SchemaError, match=r"needs a number.*Cast it"):
            pn.plan(pn.query("q", at="ts", select={"a": aggregate}, over=pn.tumbling("1s"))).run(table)
    counted = pn.query("q", at="ts", select={"n": pn.aged(pn.count("s"), half_life="1s")}, over=pn.tumbling("1s"))
    assert_same_answers(pn.plan(counted).run(table), brute_force(counted, table))


def test_no_plan_takes_windows_of_spark_for_what_spark_does_not_have():
    lone = {"at": "ts", "over": pn.tumbling("1 day")}
    for aggregate in (pn.trend("x"), pn.aged(pn.count(), half_life="1h")):
        (store,) = pn.plan(pn.query("q", select={"a": aggregate}, **lone)).physical_plan().stores
        assert "native" not in store.costs.by_strategy
        assert not store.from_events
    (store,) = pn.plan(pn.query("q", select={"a": pn.corr("x", "y")}, **lone)).physical_plan().stores
    assert store.strategy == "native"
    # So many half-lives do not fit a double: only Python can count from the latest event.
    (store,) = pn.plan(pn.query("q", select=ages("1s"), **lone)).physical_plan().stores
    assert store.from_events


def test_names_say_everything():
    drawn = [
        pn.trend("x"),
        pn.trend("x", every="1s"),
        pn.corr("x", "y"),
        *ages("1h").values(),
        *ages("1h", 2).values(),
        *ages("2h").values(),
    ]
    assert len({str(a) for a in drawn}) == len({a.signature for a in drawn}) == len(drawn)
    assert str(pn.aged(pn.count(), half_life="90s", power=3)) == "aged(count(), half_life=1m30s, power=3)"


def test_sql():
    (query,) = pn.sql("SELECT CORR(x, y) AS c FROM s TIMESTAMP BY ts GROUP BY TumblingWindow(minute, 5)")
    assert dict(query.aggregates) == {"c": pn.corr("x", "y")}
    assert "CORR(x, y) AS c" in pn.to_sql(query)
    for aggregate in (pn.trend("x"), pn.aged(pn.count(), half_life="1s")):
        with pytest.raises(DeclarationError, match="SQL has no"):
            pn.to_sql(pn.query("q", at="ts", select={"a": aggregate}, over=pn.tumbling("1s")))
