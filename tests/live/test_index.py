"""Lookups over any window against brute force: each as if its events were filtered and aggregated alone.

Keys of any type with nulls, nulls and NaN among the values, several events at one instant, batches of all sizes, events
that come behind later ones; windows of time and of rows, empty ones, and ones that are not held any more.
"""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from threading import Thread

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.errors import (
    AlgebraError,
    AnswerOverflowError,
    DeclarationError,
    DurationError,
    PlanError,
    SchemaError,
    StateError,
)
from panes.live.column import ALGORITHMS
from panes.queries.measures import Rows
from panes.testing import assert_same_answers, events
from panes.testing.reference import answers_of, comparable

SECOND = 1_000_000
INSTANT = pa.timestamp("us", "UTC")
VALUES = {"i": pa.int32(), "x": pa.float64(), "s": pa.string(), "d": pa.decimal128(10, 2), "b": pa.binary()}
ALTERNATING = pn.aggregate(
    "x", name="halved", state={"total": np.float64, "scale": np.float64}, identity=(0.0, 1.0),
    lift=lambda x: (np.nan_to_num(x), np.full(len(x), 0.5)), combine=lambda a, b: (a[0] * b[1] + b[0], a[1] * b[1]),
    lower=lambda total, scale: total,
)  # fmt: skip
ANY = {
    "n": pn.count(),
    "some": pn.count("i"),
    "low": pn.min("x"),
    "high": pn.max("i"),
    "word": pn.max("s"),
    "least": pn.min("b"),
    "cheap": pn.min("d"),
    "total": pn.sum("i"),
    "exact": pn.sum("d"),
    "floating": pn.sum("x"),
    "mean": pn.mean("i"),
    "price": pn.mean("d"),
    "spread": pn.std("i"),
    "together": pn.corr("i", "i * i"),
    "first": pn.first("s"),
    "last": pn.last("x"),
    "where_low": pn.arg_min("d", "x"),
    "where_high": pn.arg_max("s", "i"),
    "line": pn.trend("i"),
    "recent": pn.aged(pn.sum("i"), half_life="10s"),
    "median": pn.quantile("x", 0.5),
    "third": pn.quantile("i", 0.3),
    "tenth": pn.quantile("d", 0.1),
    "middle": pn.quantile("s", 0.5, method="element"),
}
TIMED = {name: ANY[name] for name in ANY if name not in ("line", "recent")}


def live_of(select, *, at, keep, by=(), where=None, algorithm=None):
    """A live plan of one query; its own window does not matter here."""
    over = pn.sliding(pn.rows(1)) if isinstance(keep, Rows) else pn.sliding("1 us")
    return pn.plan(pn.query(by=by, at=at, select=select, over=over, where=where)).live(keep, algorithm=algorithm)


def batches(table, rng, jitter=0.0):
    """A table in batches of all sizes, roughly in the order of time."""
    instants = table["ts"].cast(pa.int64()).fill_null(0).to_numpy()
    late = np.array([rng.random() * jitter if rng.random() < 0.3 else 0.0 for _ in instants])
    table = table.take(pa.array(np.argsort(instants + late, kind="stable")))
    at = 0
    while at < table.num_rows:
        size = rng.choice([0, 1, 1, 3, 20, 60])
        yield table.slice(at, size)
        at += size


class Model:
    """Every event that has come, in the order in which it came."""

    def __init__(self, index, select, table, by=("k",)):
        self.index, self.select, self.by = index, select, by
        self.table = table.slice(0, 0)
        self._rows = {}

    def update(self, batch):
        self.index.update(batch)
        self.table = pa.concat_tables([self.table, batch]).combine_chunks()
        self._rows = {}

    @property
    def instants(self):
        return self.table["ts"].cast(pa.int64()).to_pylist()

    def rows_of(self, key):
        """The events of a key by time, and among those of one instant by all columns, by the names of these."""
        found = self._rows.get(comparable(key))
        if found is None:
            found = self._rows[comparable(key)] = self._sorted(key)
        return found

    def _sorted(self, key):
        keys = zip(*(self.table[name].to_pylist() for name in self.by), strict=True) if self.by else []
        keys = [comparable(one) for one in keys] or [()] * self.table.num_rows
        instants = self.instants
        own = [i for i, one in enumerate(keys) if one == comparable(key) and instants[i] is not None]
        names = sorted(name for name in self.table.column_names if name not in ("ts", *self.by))
        ties = [
            [(v is not None, comparable(v) if v is not None else 0) for v in self.table[n].to_pylist()] for n in names
        ]
        return sorted(own, key=lambda i: (instants[i], [column[i] for column in ties]))

    def expected(self, requests, windows):
        """From each request's rows and bounds to the answers."""
        for alias, aggregate in self.select.items():
            requests = requests.append_column(alias, answers_of(aggregate, self.table, windows, at="ts"))
        return requests

    def check(self, requests, spans, **options):
        """Windows of time ``[begin, end)`` of each request's key, with the bounds that aggregates are told."""
        answers = self.index.lookup(requests, **options)
        instants = self.instants
        keys = list(zip(*(requests[name].to_pylist() for name in self.by), strict=True)) or [()] * requests.num_rows
        windows = [
            ([i for i in self.rows_of(key) if begin <= instants[i] < end], begin - shift, end - shift)
            for key, (begin, end, shift) in zip(keys, spans, strict=True)
        ]
        assert_same(answers, self.expected(requests, windows))

    def check_last(self, requests, last, skip):
        answers = self.index.lookup(requests, over=pn.rows(last), ago=pn.rows(skip))
        keys = list(zip(*(requests[name].to_pylist() for name in self.by), strict=True)) or [()] * requests.num_rows
        windows = []
        for key in keys:
            rows = self.rows_of(key)
            rows = rows[max(len(rows) - skip - last, 0) : max(len(rows) - skip, 0)]
            windows.append((rows, *([self.instants[rows[0]], self.instants[rows[-1]]] if rows else [0, 0])))
        assert_same(answers, self.expected(requests, windows))


def assert_same(answers, expected):
    assert answers.schema.names == expected.schema.names
    numbered = [t.append_column("request", pa.array(range(t.num_rows))) for t in (answers, expected)]
    assert_same_answers(*numbered, relative=1e-9, absolute=1e-7)


def requests_of(keys, instants, rng, rows=12):
    """Some known keys, and one that nobody knows."""
    return pa.table(
        {"k": pa.array([rng.choice([*keys, "nobody"]) for _ in range(rows)], pa.string()), "when": instants(rows)}
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("algorithm", [None, *ALGORITHMS])
def test_windows_of_time(algorithm, seed):
    rng = random.Random(seed)
    # Running intervals need exact differences.
    chosen = {k: v for k, v in ANY.items() if algorithm != "running" or k in ("n", "some", "total", "exact")}
    some = {k: chosen[k] for k in rng.sample(list(chosen), min(8, len(chosen)))}
    table = events(
        250, keys={"k": pa.string()}, values=VALUES, special=0.05 if seed % 2 else 0.0, null_times=0.05, seed=seed
    )
    index = live_of(some, by="k", at="ts", keep="90 s", algorithm=algorithm)
    model = Model(index, some, table)
    for batch in batches(table, rng, jitter=5e7 * (seed // 2)):
        model.update(batch)
        known = [t for t in model.instants if t is not None]
        if not known or rng.random() < 0.5:
            continue
        newest = max(known)
        now = [newest - rng.choice([0, 0, 1, rng.randrange(60 * SECOND)]) for _ in range(12)]
        keys = model.table["k"].to_pylist()
        requests = requests_of(keys, lambda rows: pa.array(now, INSTANT), rng)
        over = rng.choice([1, 7, 20, 25])
        spans = [(t - over * SECOND - 5 * SECOND + 1, t - 5 * SECOND + 1, 1) for t in now]
        model.check(requests, spans, over=f"{over}s", ago="5s", at="when")
        begin = [newest - rng.randrange(90 * SECOND) for _ in range(12)]
        end = [b + rng.randrange(-SECOND, 60 * SECOND) for b in begin]
        explicit = requests.append_column("from", pa.array(begin, INSTANT)).append_column("to", pa.array(end, INSTANT))
        model.check(explicit, [(a, b, 0) for a, b in zip(begin, end, strict=True)], over=("from", "to"))
        model.check(requests, [(newest - 90 * SECOND + 1, newest + 1, 1)] * 12, over="90s")
    assert index.null_times == table["ts"].null_count
    assert index.rows < table.num_rows


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("algorithm", [None, "landmark", "dyadic"])
def test_the_last_rows(algorithm, seed):
    rng = random.Random(seed)
    some = {k: TIMED[k] for k in rng.sample(list(TIMED), 7)} | {"n": pn.count()}
    table = events(220, keys={"k": pa.string()}, values=VALUES, null_times=0.03, seed=seed)
    index = live_of(some, by="k", at="ts", keep=pn.rows(25), algorithm=algorithm)
    model = Model(index, some, table)
    for batch in batches(table, rng, jitter=1e8 * seed):
        model.update(batch)
        if index.rows and rng.random() < 0.4:
            requests = requests_of(model.table["k"].to_pylist(), lambda rows: pa.nulls(rows, INSTANT), rng)
            for last, skip in ((1, 0), (25, 0), (rng.randint(1, 12), rng.randint(0, 13))):
                model.check_last(requests, last, skip)
    held = [len(model.rows_of((key,))) for key in {comparable(k): k for k in model.table["k"].to_pylist()}.values()]
    assert index.rows == sum(min(25, rows) for rows in held)


@pytest.mark.parametrize("seed", range(2))
def test_time_over_an_index_that_keeps_rows(seed):
    rng = random.Random(seed)
    table = events(200, keys={"k": pa.string()}, values=VALUES, seed=seed)
    some = {"n": pn.count(), "line": pn.trend("i"), "recent": pn.aged(pn.mean("i"), half_life="10s")}
    model = Model(live_of(some, by="k", at="ts", keep=pn.rows(20)), some, table)
    refused = answered = 0
    for batch in batches(table, rng):
        model.update(batch)
        for key in {comparable(k): k for k in model.table["k"].to_pylist()}.values():
            rows = [model.instants[i] for i in model.rows_of((key,))]
            begin = rng.choice(rows) + rng.choice([0, 0, 1])
            request = pa.table({"k": pa.array([key], pa.string()), "from": pa.array([begin], INSTANT)})
            request = request.append_column("to", pa.array([begin + 30 * SECOND], INSTANT))
            # Every row at or after the beginning is among the last twenty, or the answer would be wrong.
            if sum(t >= begin for t in rows) <= 20 and not (len(rows) > 20 and begin <= sorted(rows)[-21]):
                model.check(request, [(begin, begin + 30 * SECOND, 0)], over=("from", "to"))
                answered += 1
            else:
                with pytest.raises(PlanError, match=r"before the rows of their key that are kept .the last 20 rows"):
                    model.index.lookup(request, over=("from", "to"))
                refused += 1
    assert refused
    assert answered


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"k": pa.int64()},
        {"k": pa.float64()},
        {"k": pa.string(), "m": pa.int32()},
        {"k": pa.bool_(), "m": pa.decimal128(5, 1)},
        {"k": pa.struct([("a", pa.int32()), ("b", pa.string())])},
    ],
    ids=str,
)
def test_keys_of_any_type(keys):
    rng = random.Random(1)
    table = events(120, keys=keys, values={"i": pa.int32()}, nulls=0.3, seed=7)
    some = {"n": pn.count(), "total": pn.sum("i")}
    model = Model(live_of(some, by=list(keys), at="ts", keep="1 hour"), some, table, by=tuple(keys))
    for batch in batches(table, rng):
        model.update(batch)
    requests = table.select(list(keys)).append_column("number", pa.array(range(120)))
    newest = max(model.instants)
    model.check(requests, [(newest - 100 * SECOND + 1, newest + 1, 1)] * 120, over="100s")


def test_a_filter():
    table = events(100, keys={"k": pa.string()}, values={"i": pa.int32()}, seed=3)
    some = {"n": pn.count(), "total": pn.sum("i")}
    index = live_of(some, by="k", at="ts", keep="1 hour", where="i > 0")
    index.update(table)
    passed = table.filter(pa.compute.fill_null(pa.compute.greater(table["i"], 0), False))
    plain = live_of(some, by="k", at="ts", keep="1 hour")
    plain.update(passed)
    requests = pa.table({"k": table["k"].unique()})
    assert_same(index.lookup(requests, over="50s"), plain.lookup(requests, over="50s"))
    assert index.rows == passed.num_rows < 100


def test_order_among_events_of_one_instant_is_that_of_their_values():
    index = live_of({"halved": ALTERNATING}, at="ts", keep=pn.rows(3))
    one = pa.array([5, 5], pa.timestamp("us"))
    index.update(pa.table({"ts": one, "x": [8.0, 2.0]}))
    index.update(pa.table({"ts": one, "x": [4.0, 1.0]}))
    [row] = index.lookup(pa.table({"r": [0]}), over=pn.rows(3)).to_pylist()
    assert row["halved"] == (2.0 * 0.5 + 4.0) * 0.5 + 8.0


def test_events_behind_later_ones_are_put_in_their_place():
    """Whatever the order of batches, answers are those of the events in the order of time."""
    table = events(200, keys={"k": pa.string()}, values=VALUES, seed=5).sort_by("ts")
    some = {**TIMED, "halved": ALTERNATING}
    whole = live_of(some, by="k", at="ts", keep="1 day")
    whole.update(table)
    mixed = live_of(some, by="k", at="ts", keep="1 day")
    rows = list(range(200))
    random.Random(2).shuffle(rows)
    for at in range(0, 200, 13):
        mixed.update(table.take(sorted(rows[at : at + 13])))
    requests = pa.table({"k": table["k"].unique()})
    for over in ("20s", "200s", "1 hour"):
        first, second = (index.lookup(requests, over=over) for index in (whole, mixed))
        assert_same(first, second)


def test_quantiles_with_a_parameter_per_request():
    table = events(300, keys={"k": pa.string()}, values=VALUES, special=0.05, seed=8)
    select = {"x": pn.quantile("x", 0.5), "s": pn.quantile("s", 0.5, method="element"), "n": pn.count()}
    index = live_of(select, by="k", at="ts", keep="1 day")
    index.update(table)
    parts = [0.0, 0.29, 0.5, 1.0, 0.1234567890123456, 1 / 3] * 2
    keys = (table["k"].unique().to_pylist() * 12)[:12]
    requests = pa.table({"k": pa.array(keys, pa.string()), "part": parts})
    answers = index.lookup(requests, over="1 hour", q="part")
    model = Model(index, select, table)
    model.table = table
    for row in answers.to_pylist():
        rows = model.rows_of((row["k"],))
        for name, aggregate in (
            ("x", pn.quantile("x", row["part"])),
            ("s", pn.quantile("s", row["part"], method="element")),
        ):
            [expected] = answers_of(aggregate, table, [(rows, 0, 0)], at="ts").to_pylist()
            assert (
                comparable(row[name]) == pytest.approx(comparable(expected)) if name == "x" else row[name] == expected
            )
    only = index.lookup(requests, over="1 hour", q={"x": 0.25})
    declared = index.lookup(requests, over="1 hour")
    assert only["s"] == declared["s"]
    assert only["x"].to_pylist() != declared["x"].to_pylist()
    with pytest.raises(DeclarationError, match="from 0 to 1"):
        index.lookup(requests, over="1 hour", q=1.5)
    with pytest.raises(DeclarationError, match="the query has 'x', 's'"):
        index.lookup(requests, over="1 hour", q={"n": 0.5})
    with pytest.raises(SchemaError, match="no column 'prat'"):
        index.lookup(requests, over="1 hour", q="prat")


def seconds(*numbers):
    return pa.array([n * SECOND for n in numbers], pa.timestamp("us"))


def test_sums_beyond_64_bits():
    """A running sum may leave 64 bits while answers do not; an answer that does is an error, never wrong."""
    index = live_of({"total": pn.sum("v")}, at="ts", keep=pn.rows(4))
    large = 2**61
    request = pa.table({"r": [0]})
    for second in range(30):
        index.update(pa.table({"ts": seconds(second), "v": [large + second]}))
        if second:
            assert index.lookup(request, over=pn.rows(2))["total"].to_pylist() == [2 * large + 2 * second - 1]
    with pytest.raises(AnswerOverflowError, match=r"sum\(v\) does not fit a BIGINT"):
        index.lookup(request, over=pn.rows(4))
    index.update(pa.table({"ts": seconds(31), "v": [-large]}))
    assert index.lookup(request, over=pn.rows(4))["total"].to_pylist() == [2 * large + 27 + 28 + 29]


def test_floats_do_not_cancel():
    index = live_of({"total": pn.sum("v"), "spread": pn.var("v")}, at="ts", keep="1 day")
    index.update(pa.table({"ts": seconds(1, 2, 3), "v": [1e17, 0.1, 0.3]}))
    index.update(pa.table({"ts": seconds(4, 5), "v": [float("inf"), 0.2]}))
    requests = pa.table({"from": seconds(2, 5, 3), "to": seconds(4, 6, 6)})
    assert index.lookup(requests, over=("from", "to"))["total"].to_pylist() == [0.4, 0.2, float("inf")]


def test_integer_extremes():
    least, most = -(2**63), 2**63 - 1
    index = live_of(
        {"low": pn.min("v"), "high": pn.max("v"), "q": pn.quantile("v", 1.0, method="element")},
        at="ts",
        keep=pn.rows(9),
    )
    index.update(pa.table({"ts": seconds(1, 2, 3), "v": pa.array([most, None, least])}))
    index.update(pa.table({"ts": seconds(4, 5), "v": pa.array([None, 0])}))
    requests = pa.table({"from": seconds(1, 2, 3, 1), "to": seconds(2, 3, 6, 6)})
    answers = index.lookup(requests, over=("from", "to"))
    assert answers["low"].to_pylist() == [most, None, least, least]
    assert answers["high"].to_pylist() == [most, None, 0, most]
    assert answers["q"].to_pylist() == [most, None, 0, most]


def test_what_is_not_held_is_an_error():
    index = live_of({"n": pn.count()}, by="k", at="ts", keep="10 s")
    index.update(pa.table({"ts": seconds(1, 5, 9), "k": ["a", "a", "b"]}))
    requests = pa.table({"k": ["a"], "from": seconds(-2), "to": seconds(4)})
    with pytest.raises(PlanError, match="begins at 1969-12-31 23:59:58"):
        index.lookup(requests, over=("from", "to"))
    with pytest.raises(PlanError, match="10s are kept"):
        index.lookup(pa.table({"k": ["a"]}), over="11 s")
    with pytest.raises(PlanError, match=r"keep=pn.rows\(1000\)"):
        index.lookup(pa.table({"k": ["a"]}), over=pn.rows(3))
    # Somebody unknown may be a key that was forgotten.
    with pytest.raises(PlanError, match="10s are kept"):
        index.lookup(pa.table({"k": ["c"]}), over="11 s")
    assert index.lookup(pa.table({"k": ["c"]}), over="10 s")["n"].to_pylist() == [0]
    counted = live_of({"n": pn.count()}, by="k", at="ts", keep=pn.rows(2))
    counted.update(pa.table({"ts": seconds(1, 5, 9), "k": ["a", "a", "a"]}))
    with pytest.raises(PlanError, match="2 of each key are kept"):
        counted.lookup(pa.table({"k": ["a"]}), over=pn.rows(2), ago=pn.rows(1))


def test_events_that_are_too_old_are_left_out():
    index = live_of({"n": pn.count()}, at="ts", keep="10 s")
    index.update(pa.table({"ts": seconds(100)}))
    index.update(pa.table({"ts": seconds(89, 90, 91)}))
    assert (index.rows, index.left_out) == (2, 2)
    assert index.lookup(pa.table({"r": [1]}), over="10 s")["n"].to_pylist() == [2]


def test_keys_that_are_gone_are_forgotten():
    index = live_of({"n": pn.count(), "q": pn.quantile("k", 0.5), "top": pn.max("k")}, by="k", at="ts", keep="100 s")
    for hour in range(8):
        ts = pa.array(np.full(1000, hour * 3600 * SECOND), pa.timestamp("us"))
        index.update(pa.table({"ts": ts, "k": np.arange(1000) + 1000 * hour}))
    assert len(index._parts[0].store.rings) <= 2048
    assert index.rows == 1000
    found = index.lookup(pa.table({"k": [6999, 7000, 7999, 8000]}), over="100 s")
    assert found["n"].to_pylist() == [0, 1, 1, 0]
    assert found["q"].to_pylist() == found["top"].cast(pa.float64()).to_pylist() == [None, 7000.0, 7999.0, None]


def test_null_instants_and_empty_windows():
    faded = pn.aged(pn.count(), half_life="1 min", power=1)
    index = live_of({"n": pn.count(), "top": pn.max("v"), "faded": faded}, at="ts", keep="1 day")
    index.update(pa.table({"ts": seconds(1, 2), "v": [1, 2]}))
    requests = pa.table({"from": pa.array([0, None, 2 * SECOND, 5], pa.timestamp("us")),
                         "to": pa.array([None, 400 * SECOND, SECOND, 5], pa.timestamp("us"))})  # fmt: skip
    nothing = {"n": 0, "top": None, "faded": 0.0}
    assert index.lookup(requests, over=("from", "to")).select(list(nothing)).to_pylist() == [nothing] * 4
    assert index.lookup(requests.slice(0, 0), over=("from", "to")).num_rows == 0
    index.update(pa.table({"ts": pa.nulls(2, pa.timestamp("us")), "v": [3, 4]}))
    assert (index.null_times, index.rows) == (2, 2)


def test_only_events_without_a_time():
    index = live_of({"n": pn.count()}, at="ts", keep="1 day")
    index.update(pa.table({"ts": pa.nulls(2, pa.timestamp("us"))}))
    assert index.lookup(pa.table({"r": [1]}), over="1 h")["n"].to_pylist() == [0]


EVENTS = pa.table({"ts": seconds(1, 2), "k": ["a", "b"], "v": [1, 2], "f": [0.5, 0.25]})


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"select": {}}, DeclarationError, "selects no aggregate"),
        ({"select": {"n": "v + 1"}}, DeclarationError, "selects no aggregate"),
        ({"keep": 0}, DeclarationError, r"keep=pn.rows\(0\)"),
        ({"keep": pn.rows(0)}, DeclarationError, "how many rows"),
        ({"keep": True}, DeclarationError, "how many rows"),
        ({"keep": "0 s"}, DurationError, "is not longer than zero"),
        ({"keep": "soon"}, DurationError, "is not a duration"),
        ({"algorithm": "runing"}, PlanError, "did you mean 'running'"),
        ({"at": ""}, DeclarationError, "not the name of a column"),
    ],
)
def test_declarations_that_cannot_be(changes, error, message):
    with pytest.raises(error, match=message):
        live_of(**{"select": {"n": pn.count()}, "at": "ts", "keep": "1 h", **changes})


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"over": pn.rows(3)}, PlanError, "keep=pn.rows"),
        ({"over": 3}, DeclarationError, r"over=pn.rows\(3\)"),
        ({"last": 3}, DeclarationError, "it is called over="),
        ({"over": "1 h", "skip": 1}, DeclarationError, "ago=pn.rows"),
        ({"over": "1 h", "ago": pn.rows(1)}, DeclarationError, "Write a duration"),
        ({"over": pn.rows(1), "ago": "1 h"}, DeclarationError, "rows"),
        ({"over": pn.sliding("1 h"), "ago": "1 h"}, DeclarationError, "Write it on the window"),
        ({"over": pn.tumbling(pn.rows(3))}, DeclarationError, "cannot be looked up"),
        ({"over": pn.nested(["1 s", "1 min"], ["1 s", "1 s"])}, DeclarationError, "several windows"),
        ({"over": ("from", "to"), "at": "ts"}, DeclarationError, "both ends"),
        ({"over": ("from",)}, DeclarationError, "names of two columns"),
        ({"over": "1 h", "query": "other"}, DeclarationError, "not in the plan"),
        ({"over": "1 h", "layout": "long"}, DeclarationError, "all windows of the plan"),
        ({"ago": "1 h"}, DeclarationError, "Give over="),
        ({"over": "0 s"}, DurationError, "is not positive"),
        ({"over": ("from", "to")}, SchemaError, "over='from' is not a column"),
        ({"over": "1 s", "at": "when"}, SchemaError, "at='when' is not a column"),
        ({"over": "1 s", "at": "v"}, SchemaError, "must be a timestamp"),
    ],
)
def test_lookups_that_cannot_be(options, error, message):
    index = live_of({"n": pn.count()}, by="k", at="ts", keep="1 h")
    index.update(EVENTS)
    with pytest.raises(error, match=message):
        index.lookup(EVENTS.select(["k", "v"]), **options)


def test_data_that_do_not_fit():
    index = live_of({"n": pn.count(), "total": pn.sum("v")}, by="k", at="ts", keep="1 h")
    with pytest.raises(PlanError, match="no event has come"):
        index.lookup(EVENTS, over="1 s")
    with pytest.raises(SchemaError, match="by='k' is not a column"):
        index.update(EVENTS.drop_columns(["k"]))
    index.update(EVENTS)
    with pytest.raises(PlanError, match="Cast it first"):
        index.update(EVENTS.set_column(2, "v", pa.array(["1", "2"])))
    with pytest.raises(SchemaError, match="by='k' is not a column of the requests"):
        index.lookup(EVENTS.select(["v"]), over="1 s")
    with pytest.raises(SchemaError, match="Rename one"):
        index.lookup(EVENTS.append_column("N", pa.array([1, 2])), over="1 s")
    with pytest.raises(SchemaError, match=r"by='k' is string in the events and list"):
        index.lookup(pa.table({"k": [["a"]]}), over="1 s")
    running = live_of({"total": pn.sum("f")}, at="ts", keep="1 h", algorithm="running")
    with pytest.raises(AlgebraError, match="an exact subtract"):
        running.update(EVENTS)
    faded = live_of({"n": pn.aged(pn.count(), half_life="1 s", power=1)}, at="ts", keep="1 h")
    faded.update(EVENTS)
    with pytest.raises(PlanError, match="weighs nothing from an age of 2s"):
        faded.lookup(pa.table({"r": [1]}), over="1 min")


def test_aggregates_whose_partials_are_not_shared():
    """What needs all values at once, or whole ticks, is made of the events of the keys that are asked for."""
    table = events(150, keys={"k": pa.string()}, values=VALUES, seed=4).sort_by("ts")
    select = {"n": pn.count_distinct("s"), "all": pn.distinct("i"), "mid": pn.quantile("i", 0.5)}
    index = live_of(select, by="k", at="ts", keep="1 day")
    model = Model(index, select, table)
    for batch in batches(table, random.Random(3)):
        model.update(batch)
    newest = max(model.instants)
    requests = requests_of(table["k"].to_pylist(), lambda rows: pa.nulls(rows, INSTANT), random.Random(4))
    model.check(requests, [(newest - 50 * SECOND + 1, newest + 1, 1)] * 12, over="50 s")
    begin = [newest - s * SECOND for s in (60, 3, 90, 10, 50, 1, 7, 20, 2, 80, 30, 5)]
    explicit = requests.append_column("from", pa.array(begin, INSTANT)).append_column(
        "to", pa.array([newest] * 12, INSTANT)
    )
    model.check(explicit, [(b, newest, 0) for b in begin], over=("from", "to"))
    ticking = pn.query(by="k", at="ts", select={"line": pn.trend("i", every="1s")}, over=pn.tumbling("1 s"))
    ticks = pn.plan(ticking).live("1 day")
    ticks.update(table)
    with pytest.raises(PlanError, match="has a value per tick"):
        ticks.lookup(requests, over="50 s")
    expected = pn.plan(pn.query(by="k", at="ts", select={"line": pn.trend("i", every="1s")}, over=pn.tumbling("1 min")))
    found = ticks.lookup(requests.append_column("ts", table["ts"].slice(100, 12)), over=pn.tumbling("1 min"))
    wanted = expected.lookup(table, requests.append_column("ts", table["ts"].slice(100, 12)))
    assert_same(found, wanted.rename_columns(found.column_names))
    nested = pn.nested(["10 s", "1 min"], ["10 s", "10 s"])
    levels = pn.plan(pn.query(by="k", at="ts", select={"again": pn.recurring("s")}, over=nested)).live(keep="1 day")
    levels.update(table)
    with pytest.raises(DeclarationError, match="levels of a nested window"):
        levels.lookup(requests, over="1 min")


def test_an_update_that_breaks_off_is_not_answered_from():
    def combine(a, b):
        if (a[0] > 100).any():
            raise RuntimeError("too much")
        return (a[0] + b[0],)

    fragile = pn.aggregate("v", name="fragile", state={"v": np.int64}, identity=(0,), lift=lambda v: (v,),
                           combine=combine, lower=lambda v: v)  # fmt: skip
    index = live_of({"n": pn.count(), "f": fragile}, at="ts", keep=pn.rows(9), algorithm="dyadic")
    index.update(pa.table({"ts": seconds(1, 2), "v": [1, 2]}))
    with pytest.raises(RuntimeError, match="too much"):
        index.update(pa.table({"ts": seconds(3, 4), "v": [500, 2]}))
    for what in (
        lambda: index.lookup(EVENTS.select(["k"]), over=pn.rows(1)),
        lambda: index.update(EVENTS),
        lambda: index.save("nowhere"),
    ):
        with pytest.raises(StateError, match="failed halfway"):
            what()


def test_one_thread_feeds_while_another_asks():
    """Every lookup sees whole batches."""
    index = live_of({"n": pn.count(), "total": pn.sum("v"), "top": pn.max("v")}, by="k", at="ts", keep=pn.rows(3000))
    rows = np.arange(64)
    first = pa.table({"ts": pa.array(rows, pa.timestamp("us")), "k": rows % 4, "v": np.ones(64, np.int64)})
    index.update(first)

    def feed():
        for at in range(1, 150):
            index.update(first.set_column(0, "ts", pa.array(rows + 64 * at, pa.timestamp("us"))))

    feeder = Thread(target=feed)
    feeder.start()
    request, seen = pa.table({"k": range(4)}), []
    while feeder.is_alive() or not seen:
        answers = index.lookup(request, over=pn.rows(3000))
        seen.append(answers["n"].to_pylist())
        assert answers["total"].to_pylist() == seen[-1]
        assert len(set(seen[-1])) == 1
        assert seen[-1][0] % 16 == 0
    feeder.join()
    assert seen == sorted(seen)
    assert index.lookup(request, over=pn.rows(3000))["n"].to_pylist() == [min(150 * 16, 3000)] * 4


WHEN = st.integers(0, 30)
ROWS = st.lists(
    st.tuples(st.sampled_from(["a", "b", None]), st.one_of(st.none(), WHEN), st.integers(-5, 5)), max_size=8
)


@settings(max_examples=60)
@given(
    keep=st.sampled_from([7, 12, "9us", "25us"]),
    inputs=st.lists(
        st.tuples(ROWS, st.lists(st.tuples(st.sampled_from(["a", "b", None, "c"]), WHEN, WHEN), max_size=3)), max_size=7
    ),
)
def test_any_inputs(keep, inputs):
    """Events in any order of time, many at one instant: what is answered is right, and what is refused is not held."""
    select = {"n": pn.count(), "total": pn.sum("v"), "top": pn.max("v"), "mid": pn.quantile("v", 0.5, method="element")}
    index = live_of(select, by="k", at="ts", keep=keep if isinstance(keep, str) else pn.rows(keep))
    schema = pa.schema({"k": pa.string(), "ts": pa.timestamp("us"), "v": pa.int64()})
    came = []
    for rows, requests in inputs:
        index.update(pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema))
        came += [row for row in rows if row[1] is not None]
        for key, one, other in requests:
            begin, end = min(one, other), max(one, other)
            request = pa.table({"k": pa.array([key], pa.string()), "from": pa.array([begin], pa.timestamp("us")),
                                "to": pa.array([end], pa.timestamp("us"))})  # fmt: skip
            own = sorted((row for row in came if row[0] == key), key=lambda row: row[1:])
            known = own if isinstance(keep, str) else own[-keep:]
            newest = max((t for _, t, _ in came), default=0)
            gone = (
                begin <= newest - int(keep[:-2])
                if isinstance(keep, str)
                else any(t >= begin for _, t, _ in own[: len(own) - len(known)])
            )
            values = sorted(v for _, t, v in known if begin <= t < end)
            if gone and begin < end and came:
                # What left the last rows is not always a row of the window.
                try:
                    found = index.lookup(request, over=("from", "to"))["n"].to_pylist()
                except PlanError:
                    continue
                assert found == [sum(begin <= t < end for _, t, _ in own)]
                continue
            [row] = index.lookup(request, over=("from", "to")).to_pylist()
            middle = values[max(len(values) // 2, 1) - 1] if values else None
            expected = {"n": len(values), "total": sum(values) if values else None, "top": max(values, default=None)}
            assert row == row | expected | {"mid": middle}


def test_other_sources_of_arrow_data():
    index = live_of({"n": pn.count(), "d": pn.max("d")}, by="k", at="ts", keep="1 h")
    events_ = {"ts": [dt.datetime(2026, 1, 1)], "k": pa.array(["a"]).dictionary_encode(), "d": [Decimal("1.5")]}
    index.update(pa.RecordBatch.from_pydict(events_))
    assert index.lookup(pa.RecordBatch.from_pydict({"k": ["a"]}), over="1 s").to_pylist() == [
        {"k": "a", "n": 1, "d": Decimal("1.5")}
    ]


def test_a_batch_that_is_refused_leaves_nothing_behind():
    index = live_of({"n": pn.count()}, by="k", at="ts", keep="1 h")
    index.update(pa.table({"ts": pa.array([0], pa.timestamp("us")), "k": ["a"]}))
    with pytest.raises(PlanError, match="36,000 years"):
        index.update(pa.table({"ts": pa.array([2**61, None], pa.timestamp("us")), "k": ["new", "a"]}))
    assert index.lookup(pa.table({"k": ["new", "a"]}), over="1 s")["n"].to_pylist() == [0, 1]
    assert index.null_times == 0


@pytest.mark.parametrize("columns", [("when",), ("from", "to")])
def test_times_with_and_without_a_zone_are_not_compared(columns):
    index = live_of({"n": pn.count()}, by="k", at="ts", keep="1 h")
    index.update(pa.table({"ts": pa.array([0], pa.timestamp("us", "UTC")), "k": ["a"]}))
    times = dict.fromkeys(columns, pa.array([0], pa.timestamp("us")))
    where = {"over": "1 s", "at": "when"} if columns == ("when",) else {"over": columns}
    with pytest.raises(SchemaError, match="a time in a zone and one without"):
        index.lookup(pa.table({"k": ["a"], **times}), **where)


def test_messages_tell_of_instants_beyond_the_calendar():
    index = live_of({"n": pn.count()}, by="k", at="ts", keep="1 h")
    index.update(pa.table({"ts": pa.array([2**59], pa.timestamp("us")), "k": ["a"]}))
    with pytest.raises(PlanError, match=r"µs after 1970, but 1h are kept"):
        index.lookup(pa.table({"k": ["a"]}), over="2 h")


def test_a_column_of_quantiles_is_of_numbers_whatever_its_case():
    index = live_of({"mid": pn.quantile("x", 0.5)}, at="ts", keep="1 h")
    index.update(pa.table({"ts": pa.array([0, 1], pa.timestamp("us")), "x": [1.0, 3.0]}))
    assert index.lookup(pa.table({"Part": [0.0, 1.0]}), over="1 s", q="part")["mid"].to_pylist() == [1.0, 3.0]
    with pytest.raises(SchemaError, match="'part' is of type string"):
        index.lookup(pa.table({"part": ["half"]}), over="1 s", q="part")


@pytest.mark.parametrize("keep", ["1 h", pn.nested(["10 min", "1 h"], ["1 min", "10 min"])], ids=str)
@pytest.mark.parametrize(("missing", "more"), [("x", {}), ("y", {"where": "y > 0"}), ("z", {"ties": "z"})])
def test_a_column_that_is_not_there(keep, missing, more):
    live = pn.plan(pn.query(at="ts", select={"total": pn.sum("x")}, over=pn.sliding("1 min"), **more)).live(keep=keep)
    columns = {"ts": pa.array([1], pa.timestamp("us")), "x": [1], "y": [1], "z": [1]}
    del columns[missing]
    with pytest.raises(SchemaError, match=repr(missing)):
        live.update(pa.table(columns))
