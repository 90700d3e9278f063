"""Joins over windows of rows against a loop over rows as they come: every window kept by hand.

Catches windows that are kept over both sides or over all keys, rows that meet twice or only one way, an order within an
instant that depends on the side of a table, null keys that meet, and conditions that are looked at too late for rows
without a match.
"""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panes as pn
from panes.applying.joined_rows import AT, PORT, Condition, both_sides
from panes.applying.operator_shard import OperatedShard
from panes.applying.user_operators import operator_of
from panes.engine.input_columns import join_columns
from panes.engine.keys import INSTANT
from panes.errors import OrderError, SchemaError
from panes.queries.join_declarations import declare_join
from panes.queries.measures import Delta
from panes.state.held_rows import no_marks
from panes.testing import assert_same_answers
from panes.testing.reference import comparable
from tests.applying.test_joined_tables import CONDITIONS, HOWS, KEYS, TIME, double_loop, rows_of, side
from tests.state.memory_blob_store import MemoryBlobStore

WINDOWS = {
    "1row": (pn.sliding(pn.rows(1)), lambda kept: kept[-1:]),
    "3rows": (pn.hopping(pn.rows(3), every=pn.rows(1)), lambda kept: kept[-3:]),
    "o_4": (pn.sliding(pn.delta("o", 4)), lambda kept: [row for row in kept if row["o"] >= kept[-1]["o"] - 4]),
    "mine": (pn.sliding(pn.delta("o", 0), name="mine"), lambda kept: [r for r in kept if r["o"] == kept[-1]["o"]]),
}
NONE = lambda value: (value is not None, value or 0)  # noqa: E731 - nulls come first


def tables(rng, rows, key):
    """Two tables with a column that never decreases within an instant, or from one to the next."""
    for count, more in zip(rows, ("u", "w"), strict=True):
        table = side(rng, count, key, more)
        instants = table["ts"].cast(pa.int64()).to_pylist()
        yield table.append_column("o", pa.array([t and 2 * t + rng.randint(0, 1) for t in instants], pa.int64()))


def met(left, right, name, condition):
    """Which rows meet, when they come one by one; and those of a side that leave their window without a match."""
    window, hold = WINDOWS[name]
    going = isinstance(window.size, Delta)
    rows = [dict(row, port=0, number=i) for i, row in enumerate(left)]
    rows += [dict(row, port=1, number=i) for i, row in enumerate(right)]
    rows = [row for row in rows if row["ts"] is not None]

    def order(row):
        names = ("o", "u", "v") if row["port"] == 0 else ("o", "v", "w")
        return row["ts"], row["o"] if going else 0, row["port"], [NONE(row[name]) for name in names]

    kept, pairs, matched, alone = {}, [], set(), []
    for row in sorted(rows, key=order):
        sides = kept.setdefault(repr(comparable(row["k"])), ([], []))
        own, others = sides[row["port"]], sides[1 - row["port"]]
        before = list(own)
        own[:] = hold([*own, row])
        gone = [each for each in before if not any(each is one for one in own)]
        alone += [place for row in gone if (place := (row["port"], row["number"])) not in matched]
        for other in others if row["k"] is not None else ():
            one, two = (row, other) if row["port"] == 0 else (other, row)
            if CONDITIONS[condition](one, two):
                pairs.append((one["number"], two["number"]))
                matched |= {(0, one["number"]), (1, two["number"])}
    return pairs, alone


def loop(left, right, names, how, condition, *, ended=True):
    """What a join gives of all windows.

    Parameters
    ----------
    ended
        Whether no more rows come: otherwise those without a match come out when they leave their window.
    """
    found, both = [], (rows_of(left), rows_of(right))

    def add(name, i, j):
        a, b = ({} if n is None else rows[n] for n, rows in zip((i, j), both, strict=True))
        values = {f"{c}_{s}": row.get(c) for s, row in (("left", a), ("right", b)) for c in ("ts", "v", "o")}
        found.append({"window_name": name, "k": (a or b)["k"], "u": a.get("u"), "w": b.get("w"), **values})

    for name in names:
        pairs, alone = met(*both, name, condition)
        for pair in pairs:
            add(name, *pair)
        if ended:
            alone = [
                (port, n) for port, rows in enumerate(both) for n in {*range(len(rows))} - {p[port] for p in pairs}
            ]
        for port, number in alone:
            if how in (("left", "right")[port], "full"):
                add(name, *((number, None) if port == 0 else (None, number)))
    return found


def asked(names):
    return [WINDOWS[name][0] for name in names]


@settings(max_examples=150)
@given(
    seed=st.integers(0, 2**32),
    rows=st.tuples(st.integers(0, 15), st.integers(0, 15)),
    key=st.sampled_from(sorted(KEYS)),
    how=st.sampled_from(HOWS),
    condition=st.sampled_from(list(CONDITIONS)),
    names=st.lists(st.sampled_from(sorted(WINDOWS)), min_size=1, max_size=3, unique=True),
)
def test_equals_a_loop_over_rows_as_they_come(seed, rows, key, how, condition, names):
    left, right = tables(random.Random(seed), rows, key)
    found = pn.join(left, right, on="k", at="ts", over=asked(names), where=condition, how=how)
    expected = pa.Table.from_pylist(loop(left, right, names, how, condition), schema=found.drop(["expires"]).schema)
    assert found["expires"].null_count == len(found)
    assert_same_answers(found.drop(["expires"]), expected)


@given(
    seed=st.integers(0, 2**32),
    rows=st.tuples(st.integers(0, 20), st.integers(0, 20)),
    key=st.sampled_from(["double", "string"]),
    how=st.sampled_from(HOWS),
    condition=st.sampled_from(list(CONDITIONS)),
    name=st.sampled_from(sorted(WINDOWS)),
    cuts=st.lists(st.integers(-30, 30), max_size=3),
)
def test_a_stream_finds_the_same(seed, rows, key, how, condition, name, cuts):
    """Rows that come bit by bit: all matches; and of rows without one those that have left their window."""
    left, right = tables(random.Random(seed), rows, key)
    declared = declare_join(on="k", at="ts", over=WINDOWS[name][0], where=condition, how=how)
    columns = join_columns(declared, left.schema, right.schema)
    both = both_sides(declared, columns, (left.schema, right.schema), declared.rows[0])
    fulfilled = None if condition is None else Condition(declared.where, columns.match)
    made = operator_of(both.input, both.operator(fulfilled), columns.match)
    parts = []
    for port, table in enumerate((left, right)):
        arrays = {PORT: pa.array([port] * len(table), pa.int32())}
        for called, places in both.places.items():
            types = [t.schema.field(i).type for t, i in zip((left, right), places, strict=True) if i is not None]
            arrays[called] = pa.nulls(len(table), types[0]) if places[port] is None else table.column(places[port])
        parts.append(pa.table(arrays).filter(table["ts"].is_valid()))
    together, found, blob_store = pa.concat_tables(parts), [], MemoryBlobStore()
    instants, before = together[AT].cast(pa.int64()).to_numpy() + 100, 0
    for upto in [*(100 + cut for cut in sorted(cuts)), 1000]:
        came = together.add_column(0, INSTANT, pa.array(instants)).filter((instants >= before) & (instants < upto))
        shard = OperatedShard(made, together.schema, {}, blob_store)
        ((_, rows_found),) = next(shard.steps(came.combine_chunks().to_batches(), no_marks(), upto))
        found.append(rows_found)
        before = upto
    expected = loop(left, right, [name], how, condition, ended=False)
    assert_same_answers(pa.concat_tables(found), pa.Table.from_pylist(expected, schema=columns.match))


def small(**columns):
    return pa.table({"ts": pa.array(columns.pop("ts"), TIME), **columns})


def test_each_side_keeps_its_own_last_rows():
    """A row that comes meets the last rows of the other side, however long ago they came; not those of its own.

    left   0 1 2             9
    right          3 4    8
    """
    left, right = small(ts=[0, 1, 2, 9], k=["a"] * 4), small(ts=[3, 4, 8], k=["a", "a", "a"])
    found = pn.join(left, right, on="k", at="ts", over=pn.sliding(pn.rows(2)))
    pairs = [(row["ts_left"].microsecond, row["ts_right"].microsecond) for row in found.to_pylist()]
    assert pairs == [(1, 3), (2, 3), (1, 4), (2, 4), (1, 8), (2, 8), (9, 4), (9, 8)]


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32), rows=st.tuples(st.integers(0, 9), st.integers(0, 9)), how=st.sampled_from(HOWS))
def test_windows_of_all_kinds_in_one_call(seed, rows, how):
    """A window in time is its duration, whatever it was written as; with its start it is a tick wider."""
    left, right = tables(random.Random(seed), rows, "string")
    in_time = [pn.sliding("7 us"), "20us", pn.sliding("3 us", bounds="[]", name="closed")]
    in_time.append(pn.hopping("9 us", every=pn.rows(1), bounds="[]"))
    options = {"on": "k", "at": "ts", "how": how}
    found = pn.join(left, right, over=[pn.sliding(pn.rows(3)), *in_time], **options)
    alone = pn.join(left, right, over=pn.sliding(pn.rows(3)), **options)
    over = {"closed": 4, "7us": 7, "9us_by_1row_closed": 10, "20us": 20}
    expected = double_loop(left.drop(["o"]), right.drop(["o"]), over, how, None, "long")
    assert_same_answers(found.filter(pa.compute.field("window_name") == "3rows"), alone)
    rest = found.filter(pa.compute.field("window_name") != "3rows").drop(["o_left", "o_right"])
    assert_same_answers(rest, expected)
    names = found["window_name"].unique().to_pylist()
    assert names == [name for name in (*over, "3rows") if name in names]


def test_what_a_column_cannot_be():
    left, right = small(ts=[0, 1], k=["a", "a"], o=[1, 2]), small(ts=[2], k=["a"], o=[5])

    def join(one=left, other=right, column="o"):
        return pn.join(one, other, on="k", at="ts", over=pn.sliding(pn.delta(column, 3)))

    assert join().num_rows == 2
    with pytest.raises(SchemaError, match=r"pn.delta\('p', ...\) is not a column of the left side"):
        join(column="p")
    with pytest.raises(SchemaError, match=r"int64 in the left side and double in the right side.*Cast one"):
        join(other=small(ts=[2], k=["a"], o=[5.0]))
    with pytest.raises(SchemaError, match="and this one is of type string"):
        join(*(small(ts=[0], k=["a"], o=["x"]) for _ in range(2)))
    with pytest.raises(SchemaError, match=r"'o' is missing in 1 of the rows.*Leave such rows out"):
        join(other=small(ts=[2, 3], k=["a", "a"], o=[5, None]))
    with pytest.raises(OrderError, match="'o' fell from 2 to 1"):
        join(small(ts=[0, 1], k=["a", "a"], o=[2, 1]))
