"""The in-process runner against brute force: planning, panes, frames and kernels may change nothing.

Small tables and many of them, since mistakes sit at edges: events on the edges of windows, instants before the epoch,
ties, gaps, empty columns, null and NaN keys, windows that share panes badly. The planner's beliefs are drawn too, so
that panes are merged and factor windows added for reasons that have nothing to do with the data.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import panes as pn
from panes.errors import AnswerOverflowError
from panes.local.run import NULL_TIMESTAMPS, run_steps
from panes.queries.windows import Sliding, wide_names
from panes.testing import assert_same_answers, brute_force
from panes.testing.reference import comparable

EPSILON = float(np.finfo(float).eps)
NAN, INF, WIDE = math.nan, math.inf, Context(prec=60)


def cases(number):
    return settings(max_examples=number // 2, suppress_health_check=list(HealthCheck))


# What events look like. Hypothesis draws seeds and sizes, and finds the smallest that fail; values come out of the
# seeds, since Hypothesis' own are mostly small tables of small numbers. Fewer rows are always a prefix of more rows.


def instant(rng):
    return rng.choice(
        [None, rng.choice([-1, 1]) * 10**6, *(rng.randint(-300, 300),) * 8, *(rng.randint(-40, 40),) * 10]
    )


def whole(bits, largest=2**58):
    most = min(largest, 2 ** (bits - 1) - 1)
    return lambda rng: rng.choice([rng.randint(-9, 9), rng.randint(-9, 9), rng.randint(-most, most), most, -most])


def exact_float(rng):
    return rng.choice([NAN, INF, -INF, 0.0, -0.0, *(rng.randint(-8000, 8000) / 8,) * 15])


def digits(count, scale):
    return lambda rng: Decimal(rng.choice([rng.randint(-(10**count), 10**count), rng.randint(-9, 9)])).scaleb(
        -scale, WIDE
    )


def one_of(*values):
    return lambda rng: rng.choice(values)


VALUES = {
    pa.int8(): whole(8),
    pa.int16(): whole(16),
    pa.int32(): whole(32),
    pa.int64(): whole(64),
    pa.float32(): exact_float,
    pa.float64(): exact_float,
    pa.decimal128(7, 2): digits(6, 2),
    pa.decimal128(38, 3): digits(34, 3),
    pa.string(): one_of("", "a", "A", "ab", "ä", "€", "𝒳", "\uffff", "z"),
    pa.bool_(): one_of(True, False),
    pa.date32(): one_of(date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29), date(1, 1, 1)),
    pa.timestamp("us", "UTC"): lambda rng: rng.randint(-5, 5),
    pa.timestamp("us"): lambda rng: rng.randint(-(10**15), 10**15),
    pa.binary(): one_of(b"", b"\x00", b"\x7f", b"\x80", b"\xff", b"ab"),
}
NUMERIC = [t for t in VALUES if pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_decimal(t)]
KEYS = VALUES | {
    pa.struct([("a", pa.int32()), ("b", pa.string())]): one_of(
        *({"a": a, "b": b} for a in (0, None) for b in ("", "x", None))
    ),
    pa.list_(pa.float64()): one_of([], [0.0], [-0.0], [NAN], [None], [0.0, 1.0], [1.0, 0.0]),
    pa.struct([("a", pa.list_(pa.int32()))]): one_of({"a": None}, {"a": []}, {"a": [1]}, {"a": [None]}),
}


def nested(rng):
    """Levels in step or not, from the epoch, with an offset, or since some instant among the events."""
    slide, range_, ranges, slides = 1, 0, [], []
    for _ in range(rng.randint(1, 4)):
        slide = rng.choice([slide, slide * rng.randint(1, 3), slide + rng.randint(0, 4)])
        range_ = (range_ // slide + rng.randint(1, 4)) * slide
        slides.append(slide), ranges.append(range_)
    place = rng.choice([{}, {"offset": microseconds(rng.randint(-20, 20))}, {"since": since(rng.randint(-60, 60))}])
    lengths = (list(map(microseconds, some)) for some in (ranges, slides))
    return pn.nested(*lengths, bounds=rng.choice(["[)", "(]"]), name=rng.choice([None, "levels"]), **place)


def since(micros):
    return datetime(1970, 1, 1) + timedelta(microseconds=micros)


@dataclass(frozen=True)
class Case:
    """Everything that a test draws: a table, windows, and what the planner believes."""

    seed: int
    rows: int
    windows: int

    def table(self, columns, rows=None):
        rng = random.Random(self.seed)
        share = rng.choice([0.0, 0.1, 0.5])
        drawn = [
            (instant(rng), *(None if rng.random() < share else value(rng) for value in columns.values()))
            for _ in range(min(self.rows, rows or self.rows))
        ]
        time = rng.choice([pa.timestamp("us", "UTC"), pa.timestamp("us")])
        arrays = {"ts": pa.array([row[0] for row in drawn], pa.int64()).cast(time)}
        for c, (name, type_) in enumerate(columns):
            arrays[name] = pa.array([row[c + 1] for row in drawn], type_)
        return pa.table(arrays)

    def over(self, salt=0, kernel=None):
        """Tumbling, hopping, a range that is no multiple of the slide, gaps, offsets, mutually prime, together.

        Sliding ones count events, which the kernel for what is idempotent cannot.
        """
        rng = random.Random(f"{self.seed} {salt}")
        found = {}
        for _ in range(self.windows):
            size = rng.choice([rng.randint(1, 30), rng.choice([10, 20, 30, 40, 60, 120])])
            every = rng.choice([size, size, rng.randint(1, 25), rng.choice([5, 10, 20, 60])])
            offset = rng.choice([0, 0, rng.randint(-20, 40)])
            shape = {"offset": microseconds(offset), "bounds": rng.choice(["[)", "[)", "(]"])}
            window = pn.hopping(microseconds(size), every=microseconds(every), **shape)
            if rng.random() < 0.1:
                window = pn.cumulate(microseconds(every), upto=microseconds(every * rng.randint(1, 4)), **shape)
            if rng.random() < 0.1:
                window = nested(rng)
            if rng.random() < 0.15 and kernel != "overlapping":
                window = pn.sliding(microseconds(size), ago=rng.choice([None, None, microseconds(rng.randint(0, 40))]))
            found.setdefault(window.name, window)
        taken = [name for window in found.values() for name in window.names]
        return [window for window in found.values() if all(taken.count(name) == 1 for name in window.names)] or [
            pn.tumbling("10us")
        ]

    @property
    def beliefs(self):
        rng = random.Random(self.seed)
        return {
            "rate": rng.choice([1e-3, 1.0, 1e6, 1e9]),
            "keys": rng.choice([1, 10, 10**5]),
            "factor_windows": rng.random() < 0.7,
        }

    def choose(self, options):
        return random.Random(self.seed).choice(list(options))


CASES = st.builds(Case, seed=st.integers(0, 2**60), rows=st.integers(0, 24), windows=st.integers(1, 5))


def microseconds(n):
    return timedelta(microseconds=n)


GROUPS = {"n": pn.count(), "n_x": pn.count("x"), "total": pn.sum("x")}
IDEMPOTENT = {
    "low": pn.min("x"),
    "high": pn.max("x"),
    "first": pn.first("x"),
    "last": pn.last("x"),
    "at_low": pn.arg_min("x", "o"),
    "at_high": pn.arg_max("x", "o"),
}
MOMENTS = {
    "mean": pn.mean("x"),
    "var": pn.var("x"),
    "std": pn.std("x"),
    "var_pop": pn.var("x", ddof=0),
    "std_pop": pn.std("x", ddof=0),
}


def check(queries, table, beliefs, kernel=None, **tolerance):
    physical = pn.plan(queries, **beliefs).physical_plan(strategy="columnar")
    actual = run_steps(physical, table, kernel=kernel).carry_out()
    assert_same_answers(actual, brute_force(queries, table), **tolerance)
    assert int(actual.schema.metadata[NULL_TIMESTAMPS]) == table["ts"].null_count


def bounds(table):
    """How far sums (and means) and variances of the column x may be off, whatever the order of additions."""
    values = [abs(float(x)) for x in table["x"].to_pylist() if x is not None and math.isfinite(x)]
    error = 4 * max(1, len(values)) * EPSILON * math.fsum(values)
    # A mean off by e moves a deviation by e, and so a variance v by no more than 2e·√v + e².
    spread = 2 * error * max(values, default=0.0) + error**2
    return {
        "total": error,
        "mean": error,
        "var": spread,
        "var_pop": spread,
        "std": error + 1e-9,
        "std_pop": error + 1e-9,
    }


def numbers(case):
    type_ = case.choose(NUMERIC)
    value = VALUES[type_]
    return case.table({("k", pa.string()): one_of("a", "b"), ("x", type_): value, ("o", type_): value})


@cases(350)
@given(CASES, st.sampled_from(["k", ()]))
def test_every_aggregate_of_numbers(case, by):
    table = numbers(case)
    query = pn.query("q", at="ts", by=by, select=GROUPS | IDEMPOTENT | MOMENTS, over=case.over())
    check([query], table, case.beliefs, absolute=bounds(table))


@pytest.mark.parametrize("kernel", ["naive", "landmark", "dyadic", "running", "overlapping"])
@cases(150)
@given(CASES)
def test_every_kernel_gives_the_same(kernel, case):
    table = numbers(case)
    exact = not pa.types.is_floating(table.schema.field("x").type)
    select = {
        "running": GROUPS if exact else {"n": pn.count()},
        "overlapping": IDEMPOTENT,
    }.get(kernel, GROUPS | IDEMPOTENT | MOMENTS)
    query = pn.query("q", at="ts", by="k", select=select, over=case.over(kernel=kernel))
    check([query], table, case.beliefs, kernel=kernel, absolute=bounds(table))


@cases(300)
@given(CASES, st.sampled_from([None, "naive", "overlapping", "landmark", "dyadic"]))
def test_extrema_and_picks_of_every_type(case, kernel):
    value, order = case.choose((a, b) for a in VALUES for b in VALUES)
    table = case.table({("k", pa.int8()): one_of(0, 1), ("x", value): VALUES[value], ("o", order): VALUES[order]})
    select = IDEMPOTENT if kernel == "overlapping" else IDEMPOTENT | {"n": pn.count(), "n_x": pn.count("x")}
    query = pn.query("q", at="ts", by="k", select=select, over=case.over(kernel=kernel))
    check([query], table, case.beliefs, kernel=kernel)


@cases(250)
@given(CASES, st.sampled_from([0, 0.1, 0.29, 0.5, 0.9, 1]))
def test_distinct_values_and_quantiles_of_every_type(case, q):
    type_ = case.choose(VALUES)
    table = case.table({("k", pa.int8()): one_of(0, 1), ("x", type_): VALUES[type_], ("o", pa.int8()): one_of(0, 1)})
    select = {"n": pn.count_distinct("x"), "all": pn.distinct("x"), "at": pn.quantile("x", q, method="element")}
    if type_ in NUMERIC:
        select |= {"between": pn.quantile("x", q), "median": pn.quantile("x", 0.5)}
    queries = [
        pn.query("q", at="ts", by="k", select=select | {"events": pn.count()}, over=case.over()),
        pn.query("some", at="ts", by="k", select={"n": pn.count_distinct("x")}, over=case.over(1), where="o = 1"),
    ]
    check(queries, table, case.beliefs, absolute={"between": 1e-6, "median": 1e-6})


def nested_in_step(case):
    """Two to four levels whose slides are multiples of each other, with an initiation time or without."""
    rng = random.Random(case.seed)
    slides, ranges = [rng.randint(1, 5)], []
    for _ in range(rng.randint(1, 3)):
        slides.append(slides[-1] * rng.randint(1, 4))
    for slide in slides:
        least = (ranges[-1] if ranges else 0) // slide + 1
        ranges.append(slide * rng.randint(least, least + 4))
    since = rng.choice([None, None, timedelta(microseconds=rng.randint(-100, 100)) + datetime(1970, 1, 1)])
    return pn.nested([microseconds(r) for r in ranges], [microseconds(s) for s in slides], since=since)


@cases(300)
@given(CASES)
def test_recurring_items_of_every_type(case):
    type_ = case.choose(VALUES)
    few = [VALUES[type_](random.Random(f"{case.seed} {i}")) for i in range(3)]
    table = case.table({("k", pa.int8()): one_of(0, 1), ("x", type_): one_of(*few)})
    select = {"again": pn.recurring("x"), "often": pn.recurring("x", ranked=True), "n": pn.count("x")}
    check([pn.query("q", at="ts", by="k", select=select, over=nested_in_step(case))], table, case.beliefs)


@cases(200)
@given(CASES)
def test_a_weight_per_level(case):
    table = case.table({("k", pa.int8()): one_of(0, 1), ("x", pa.float64()): lambda rng: rng.randint(-80, 80) / 8})
    over = nested_in_step(case)
    weights = [random.Random(case.seed + i).choice([0, 0.25, 1, 3]) for i in range(len(over.ranges))]
    select = {
        name: pn.aged(aggregate, weights=weights)
        for name, aggregate in {"n": pn.count(), "n_x": pn.count("x"), "sum": pn.sum("x"), "mean": pn.mean("x")}.items()
    }
    check([pn.query("q", at="ts", by="k", select=select, over=over)], table, case.beliefs, absolute=1e-9)


def keyed(case):
    types = case.choose([(), *((a,) for a in KEYS), *((a, b) for a in KEYS for b in KEYS), (pa.int8(),) * 3])
    columns = {(f"k{i}", type_): KEYS[type_] for i, type_ in enumerate(types)}
    table = case.table(columns | {("x", pa.int32()): lambda rng: rng.randint(0, 9)})
    return table, tuple(name for name, _ in columns)


@cases(300)
@given(CASES)
def test_keys_of_every_type(case):
    table, keys = keyed(case)
    query = pn.query("q", at="ts", by=keys, select={"n": pn.count(), "total": pn.sum("x")}, over=case.over())
    check([query], table, case.beliefs)


CONDITIONS = [None, "x > 0", "x > 0", "x IS NULL", "x < -1000000", "o % 2 = 0 OR x > 3", "k = 'a'"]
SELECTIONS = [
    ({"n": pn.count(), "total": pn.sum("x")}, None),
    ({"n": pn.count(), "mean": pn.mean("x"), "n2": "n * 2"}, "n > 1"),
    ({"low": pn.min("x"), "high": pn.max("x"), "spread": "high - low", "wide": "spread > 5"}, "wide"),
    ({"last": pn.last("o"), "first": pn.first("x * 2"), "var": pn.var("x")}, "last > 0 AND first IS NOT NULL"),
    ({"at": pn.arg_max("o", "x"), "n": pn.count("o"), "mean": pn.mean("x"), "n2": "n + n"}, None),
]


def query_set(case):
    rng = random.Random(case.seed)
    for i in range(rng.randint(1, 4)):
        select, having = rng.choice(SELECTIONS)
        keys = rng.choice([(), ("k",), ("j",), ("k", "j"), ("j", "k")])
        where = rng.choice(CONDITIONS)
        yield pn.query(f"q{i}", at="ts", by=keys, select=select, over=case.over(i), where=where, having=having)


@cases(300)
@given(CASES)
def test_queries_together_answer_as_each_alone(case):
    small = one_of(*range(-9, 10))
    table = case.table(
        {
            ("k", pa.string()): one_of("a", "b"),
            ("j", pa.float64()): one_of(0.0, -0.0, NAN, 1.0),
            ("x", pa.int32()): small,
            ("o", pa.int64()): small,
        }
    )
    check(list(query_set(case)), table, case.beliefs, absolute=1e-9)


def same_or_both_overflow(query, table, beliefs, message):
    try:
        expected = brute_force(query, table)
    except AnswerOverflowError:
        with pytest.raises(AnswerOverflowError, match=message):
            pn.plan(query, **beliefs).run(table)
    else:
        assert_same_answers(pn.plan(query, **beliefs).run(table), expected)


@cases(250)
@given(CASES)
def test_integer_sums_are_exact_or_fail(case):
    """A prefix may be beyond 64 bits where no answer is; an error comes exactly when an answer is."""
    value = one_of(*range(-9, 10), 2**63 - 1, -(2**63), 2**62, -(2**62))
    table = case.table({("k", pa.string()): one_of("a", "b"), ("x", pa.int64()): value}, rows=14)
    query = pn.query("q", at="ts", by="k", select={"total": pn.sum("x"), "n": pn.count()}, over=case.over())
    same_or_both_overflow(query, table, case.beliefs, "BIGINT")


@cases(200)
@given(CASES)
def test_decimal_sums_are_exact_or_fail(case):
    value = one_of(*map(Decimal, (*range(-9, 10), 10**38 - 1, 1 - 10**38, 5 * 10**37, -5 * 10**37)))
    table = case.table({("x", pa.decimal128(38, 0)): value}, rows=10)
    query = pn.query("q", at="ts", select={"total": pn.sum("x")}, over=case.over())
    same_or_both_overflow(query, table, case.beliefs, "decimal128")


@cases(300)
@given(CASES, st.sampled_from([None, "naive", "landmark", "dyadic"]))
def test_float_sums_never_cancel(case, kernel):
    """Within c·n·ε·Σ|x| of each window's own values: a huge neighbour must not leave a trace."""
    table = case.table({("x", pa.float64()): lambda rng: rng.uniform(-1, 1) * 10 ** rng.randint(-18, 18)})
    select = {"total": pn.sum("x"), "size": pn.sum("abs(x)"), "n": pn.count()}
    query = pn.query("q", at="ts", select=select, over=case.over())
    physical = pn.plan(query, **case.beliefs).physical_plan(strategy="columnar")
    actual, expected = (
        _by_window(run_steps(physical, table, kernel=kernel).carry_out()),
        _by_window(brute_force(query, table)),
    )
    assert list(actual) == list(expected)
    for at, (total, _, _) in actual.items():
        exact, size, n = expected[at]
        if exact is None:
            assert total is None
        else:
            assert abs(total - exact) <= 2 * n * EPSILON * size


def _by_window(answers):
    rows = zip(*(answers[name].to_pylist() for name in ("window_name", "window", "total", "size", "n")), strict=True)
    return dict(
        sorted(((name, window["start"], window["end"]), (total, size, n)) for name, window, total, size, n in rows)
    )


def test_variance_is_stable_far_from_zero():
    """A sum of squares would have no correct digit here: the mean is 1e9, the variance 8.25."""
    values = [1e9 + i % 10 for i in range(400)]
    table = pa.table({"ts": pa.array(range(400), pa.timestamp("us")), "x": values})
    query = pn.query("q", at="ts", select={"var": pn.var("x", ddof=0)}, over=[pn.tumbling("10us"), pn.tumbling("40us")])
    for kernel in ("naive", "landmark", "dyadic"):
        answers = run_steps(pn.plan(query).physical_plan(strategy="columnar"), table, kernel=kernel).carry_out()
        assert answers["var"].to_pylist() == pytest.approx([8.25] * 50, rel=1e-6)


@cases(250)
@given(CASES, st.sampled_from(["k", ()]))
def test_user_defined_aggregates(case, by):
    """One that neither commutes nor subtracts, one that does both; ties go in the order of values."""
    prime = 1_000_003
    horner = pn.aggregate(
        "x",
        name="horner",
        state={"factor": np.int64, "value": np.int64},
        identity=(1, 0),
        lift=lambda x: (np.full(len(x), 31), x.astype(np.int64) % prime),
        combine=lambda a, b: (a[0] * b[0] % prime, (a[1] * b[0] + b[1]) % prime),
        lower=lambda factor, value: value,
        output=np.int64,
    )
    xor = pn.aggregate(
        "x",
        "x + 1",
        name="xor",
        state={"bits": np.int64},
        identity=(0,),
        lift=lambda x, y: (x.astype(np.int64) ^ (y << 5),),
        combine=lambda a, b: (a[0] ^ b[0],),
        subtract=lambda a, b: (a[0] ^ b[0],),
        lower=lambda bits: bits,
        output=np.int64,
    )
    table = case.table({("k", pa.string()): one_of("a", "b"), ("x", pa.int32()): one_of(*range(-9, 10))})
    select = {"h": horner, "xor": xor, "n": pn.count()}
    query = pn.query("q", at="ts", by=by, select=select, over=case.over(), where="x > -8")
    check([query], table, case.beliefs)


@cases(150)
@given(CASES)
def test_wide_is_long_spread_over_columns(case):
    table, keys = keyed(case)
    windows = case.over()
    labels = {(window, column): label for window, column, label in wide_names(windows, ("n", "total", "top"))}
    # A window on the clock and one up to each event have one name at the end of a column, which is refused.
    assume(len(set(labels.values())) == len(labels))
    queries = [
        pn.query("q", at="ts", by=keys, select={"n": pn.count(), "total": pn.sum("x")}, over=windows),
        pn.query("p", at="ts", by=keys, select={"top": pn.max("x")}, over=windows, where="x > 4"),
    ]
    wide = pn.plan(queries).run(table, layout="wide")
    long = brute_force(queries, table)
    # Two events of a key at one instant have two equal answers of a sliding window, and one row of the wide form.
    per_event = {window.name for window in windows if isinstance(window, Sliding)}
    once = {
        (
            *((comparable(row[key]) for key in keys) if row["window_name"] in per_event else (number,)),
            row["query"],
            row["window_name"],
            row["window"]["end"],
        ): row
        for number, row in enumerate(long.to_pylist())
    }
    spread = [
        pa.table({"column": [labels[row["window_name"], alias]], "end": [row["window"]["end"]], "value": [row[alias]]})
        for row in once.values()
        for alias in ("n", "total", "top")
        if row[alias] is not None
    ]
    found = [
        pa.table({"column": [name], "end": [row["window_end"]], "value": [row[name]]})
        for row in wide.to_pylist()
        for name in wide.column_names[len(keys) + 1 :]
        if row[name] is not None
    ]
    assert len(spread) == len(found)
    if spread:
        assert_same_answers(
            pa.concat_tables(found, promote_options="permissive"),
            pa.concat_tables(spread, promote_options="permissive"),
        )


def test_a_table_without_rows_has_the_schema_of_one_with_rows():
    table = pa.table({"ts": pa.array([1], pa.timestamp("us")), "k": ["a"], "x": [1], "o": [2]})
    query = pn.query("q", at="ts", by="k", select=GROUPS | IDEMPOTENT | MOMENTS, over=pn.tumbling("1s"), where="x > 0")
    plan = pn.plan(query)
    for layout in ("long", "wide"):
        empty = plan.run(table.slice(0, 0), layout=layout)
        assert empty.num_rows == 0
        assert empty.schema.equals(plan.run(table, layout=layout).schema)
