"""The in-process join against a double loop: ties, nulls, duplicates, empty sides, times before the epoch."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.errors import PlanError
from panes.frames.matching import near
from panes.testing import assert_same_answers
from panes.testing.reference import comparable

TIME = pa.timestamp("us", "UTC")
HOWS = ("inner", "left", "right", "full")
CONDITIONS = {
    None: lambda a, b: True,
    "v_left < v_right": lambda a, b: None not in (a["v"], b["v"]) and a["v"] < b["v"],
    "ts_right >= ts_left": lambda a, b: b["ts"] >= a["ts"],
    "w IS NULL OR w > 0": lambda a, b: b["w"] is None or b["w"] > 0,
}
KEYS = {
    "string": (pa.string(), ["a", "b", "", None]),
    "double": (pa.float64(), [0.0, -0.0, float("nan"), 1.5, None]),
    "struct": (pa.struct([("x", pa.int32())]), [{"x": 1}, {"x": None}, {"x": 2}, None]),
    "list": (pa.list_(pa.int64()), [[1], [], [1, None], None]),
}


def side(rng, rows, key, more):
    type_, pool = KEYS[key]
    drawn = {
        "ts": pa.array([rng.choice([None, *[rng.randint(-30, 30)] * 9]) for _ in range(rows)], TIME),
        "k": pa.array([rng.choice(pool) for _ in range(rows)], type_),
        "v": pa.array([rng.choice([None, 1, 2, 3]) for _ in range(rows)], pa.int32()),
    }
    return pa.table(drawn | {more: pa.array([rng.choice([None, -1, 1]) for _ in range(rows)], pa.int64())})


def rows_of(table):
    times = table["ts"].cast(pa.int64()).to_pylist()
    return [row | {"ts": t} for row, t in zip(table.to_pylist(), times, strict=True)]


def double_loop(left, right, over, how, condition, layout):
    """Every window on its own, every pair of rows of it."""
    found = []
    lefts, rights = rows_of(left), rows_of(right)

    def matching(size):
        return [
            (i, j)
            for i, a in enumerate(lefts)
            for j, b in enumerate(rights)
            if None not in (a["ts"], b["ts"], a["k"], b["k"])
            and comparable(a["k"]) == comparable(b["k"])
            and abs(a["ts"] - b["ts"]) < size
            and CONDITIONS[condition](a, b)
        ]

    def add(name, level, i, j, expires):
        a, b = (None if i is None else lefts[i]), (None if j is None else rights[j])
        head = {"window_name": name} | ({} if layout == "long" else {"level": level})
        values = [("ts_left", a and a["ts"]), ("v_left", a and a["v"]), ("u", a and a["u"])]
        values += [("ts_right", b and b["ts"]), ("v_right", b and b["v"]), ("w", b and b["w"])]
        found.append(head | {"k": (a or b)["k"]} | dict(values) | {"expires": expires})

    def alone(name, level, pairs):
        if how in ("left", "full"):
            for i in set(range(len(lefts))) - {i for i, _ in pairs}:
                add(name, level, i, None, None)
        if how in ("right", "full"):
            for j in set(range(len(rights))) - {j for _, j in pairs}:
                add(name, level, None, j, None)

    seen = set()
    for level, (name, size) in enumerate(over.items()):
        pairs = matching(size)
        for i, j in pairs:
            if layout == "long" or (i, j) not in seen:
                add(name, level, i, j, min(lefts[i]["ts"], rights[j]["ts"]) + size)
        seen |= set(pairs)
        if layout == "long":
            alone(name, level, pairs)
    if layout == "matches":
        alone(None, len(over), seen)
    labels = [("window_name", pa.string())] + ([] if layout == "long" else [("level", pa.int32())])
    own = [("ts_left", TIME), ("v_left", pa.int32()), ("u", pa.int64())]
    own += [("ts_right", TIME), ("v_right", pa.int32()), ("w", pa.int64())]
    schema = pa.schema([*labels, ("k", left.schema.field("k").type), *own, ("expires", TIME)])
    return pa.Table.from_pylist(found, schema=schema)


@settings(max_examples=100)
@given(
    seed=st.integers(0, 2**32),
    rows=st.tuples(st.integers(0, 12), st.integers(0, 12)),
    key=st.sampled_from(sorted(KEYS)),
    how=st.sampled_from(HOWS),
    condition=st.sampled_from(list(CONDITIONS)),
    layout=st.sampled_from(["long", "matches"]),
    sizes=st.sets(st.integers(1, 70), min_size=1, max_size=4),
)
def test_equals_a_double_loop(seed, rows, key, how, condition, layout, sizes):
    rng = random.Random(seed)
    left, right = side(rng, rows[0], key, "u"), side(rng, rows[1], key, "w")
    over = {f"{size}us": size for size in sorted(sizes)}
    found = pn.join(left, right, on="k", at="ts", over=list(over), where=condition, how=how, layout=layout)
    assert_same_answers(found, double_loop(left, right, over, how, condition, layout))


@given(seed=st.integers(0, 2**32), at_once=st.integers(1, 20))
def test_pairs_come_in_parts(seed, at_once):
    """However many pairs are spelt out at a time, all of them come, in one order; no part is much too large."""
    rng = np.random.default_rng(seed)
    left, right = ((rng.integers(0, 3, n), rng.integers(-20, 20, n)) for n in rng.integers(0, 15, 2))
    whole = [(int(i), int(j)) for a, b in near(left, right, 7) for i, j in zip(a, b, strict=True)]
    parts = list(near(left, right, 7, at_once=at_once))
    assert [(int(i), int(j)) for a, b in parts for i, j in zip(a, b, strict=True)] == whole
    assert all(len(a) <= at_once or len(set(a.tolist())) == 1 for a, _ in parts)


def table(**columns):
    instants = pa.array(columns.pop("ts"), pa.timestamp("us"))
    return pa.table({"ts": instants, **columns})


def test_a_match_is_a_result_of_its_window_and_of_all_wider_ones():
    """n − k results, each with an expiry of its own; a time exactly one size away is outside.

    left   0
    right  0  4  5  9  10
    """
    left, right = table(ts=[0], k=["a"]), table(ts=[0, 4, 5, 9, 10], k=["a"] * 5)
    over = [pn.sliding("10us", name="wide"), pn.sliding("5us", name="narrow")]
    found = pn.join(left, right, on="k", at="ts", over=over)
    rows = [(r["window_name"], r["ts_right"].microsecond, r["expires"].microsecond) for r in found.to_pylist()]
    assert rows == [("narrow", 0, 5), ("narrow", 4, 5), *[("wide", t, 10) for t in (0, 4, 5, 9)]]
    once = pn.join(left, right, on="k", at="ts", over=over, layout="matches")
    assert once["level"].to_pylist() == [0, 0, 1, 1]
    assert once["window_name"].to_pylist() == ["narrow", "narrow", "wide", "wide"]
    assert [t.microsecond for t in once["expires"].to_pylist()] == [5, 5, 10, 10]


def test_columns_keep_their_order_and_what_both_sides_have_gets_a_suffix():
    left = pa.table({"V": [1], "sold": pa.array([0], TIME), "b": [1], "a": ["x"], "mine": [1.0]})
    right = pa.table({"yours": [2], "A": ["x"], "bought": pa.array([0], TIME), "v": [2], "B": [1]})
    found = pn.join(left, right, on=["a", "b"], at=("sold", "bought"), over="1s", suffixes=("", "_2"))
    assert found.column_names == ["window_name", "a", "b", "V", "sold", "mine", "yours", "bought", "v_2", "expires"]
    assert found.num_rows == 1


def test_any_arrow_data():
    polars = pytest.importorskip("polars")
    left = polars.DataFrame({"ts": [0, 5], "k": ["a", "b"]}).with_columns(polars.col("ts").cast(polars.Datetime("ns")))
    right = pa.table({"ts": pa.array([0], pa.timestamp("ms")), "k": pa.array(["b"]).dictionary_encode()})
    found = pn.join(left, right, on="k", at="ts", over="1s")
    assert found["k"].to_pylist() == ["b"]
    assert found.schema.field("expires").type == pa.timestamp("us")


def test_absurd_times_are_refused():
    for one, other in ((2**62, 0), (0, -(2**62))):
        sides = (pa.table({"ts": pa.array([t], TIME), "k": [1]}) for t in (one, other))
        with pytest.raises(PlanError, match="36,000 years"):
            pn.join(*sides, on="k", at="ts", over="1s")
