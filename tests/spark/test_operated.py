"""``pn.apply`` with operators on Spark: batches and streams against this process.

Catches an order of rows that Spark makes otherwise, keys split between tasks, clocks that end with a task's rows, state
that does not come back after a restart, timers that do not go off, and operators that forget.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import panes as pn
from panes.errors import DeclarationError, PlanError, SchemaError, StateError
from panes.operators import Aggregate, Join, Sort
from panes.operators.policies import policies_of
from tests.applying.test_operators_on_tables import Changes
from tests.applying.test_punctuations import OPERATORS, Counts, totals
from tests.spark.streams import Collected, Recorded

TIME = pa.timestamp("us", "UTC")
END = 10**9


def events(seed: int, zone: str | None = None, rows: int = 400) -> pa.Table:
    """Seconds with ties, null keys and null values, and a few rows without a time."""
    rng = np.random.default_rng(seed)
    seconds = np.sort(rng.integers(0, 300, rows))
    odometer = np.cumsum(rng.choice([0.0, 0.5, 1.25], rows))
    order = rng.permutation(rows)

    def some(values: Any, type_: pa.DataType, share: float) -> pa.Array:
        return pa.array(values, type_, mask=rng.random(rows) < share)

    table = pa.table(
        {
            "ts": some(seconds * 1_000_000, pa.timestamp("us", zone), 0.02),
            "k": some(rng.choice(["a", "b", "ü", "d"], rows), pa.string(), 0.1),
            "g": some(rng.integers(0, 3, rows), pa.int32(), 0.1),
            "odometer": odometer,
            "x": some(rng.integers(-5, 5, rows), pa.int64(), 0.2),
            "stop": rng.random(rows) < 0.05,
        }
    )
    return table.take(pa.array(order))


def shown(rows):
    return sorted(map(repr, rows))


def both(spark, table, **options):
    found = pn.apply(spark.createDataFrame(table).repartition(3), **options).toArrow()
    here = pn.apply(table, **options)
    assert found.schema.names == here.schema.names
    return shown(found.cast(here.schema).to_pylist()), shown(here.to_pylist())


@pytest.mark.parametrize("evict", [None, pn.evict(keys=4)], ids=str)
def test_an_operator(spark, evict):
    def longest(window, clock):
        return Aggregate(window, {"longest": lambda rows: max(row["odometer"] for row in rows)}, clock=clock)

    schema = pa.schema({"k": pa.string(), "longest": pa.float64()})
    over = pn.hopping("20 s", every="2 s", origin="first")
    asked = {"operator": longest, "over": over, "by": "k", "at": "ts", "evict": evict, "schema": schema}
    found, expected = both(spark, events(8), **asked)
    assert found == expected
    assert expected


@pytest.mark.parametrize(("by", "evict"), [((), None), ("k", None), ("k", pn.evict(keys=2))], ids=str)
def test_operators_and_punctuations(spark, by, evict):
    """Also of a table that begins with punctuations, and of one that has nothing else."""
    table = events(11, "UTC", rows=60).sort_by("ts")
    stops = pa.array([i < 2 or i % 9 == 0 for i in range(len(table))])
    table = table.set_column(table.column_names.index("stop"), "stop", stops)
    over = pn.tumbling(pn.punctuation("stop"))
    asked = {"over": over, "by": by, "at": "ts", "evict": evict, "operator": Counts, "schema": OPERATORS[Counts]}
    for some in (table, table.filter(stops)):
        found, expected = both(spark, some, **asked)
        assert found == expected
    assert bool(expected) == (by == ())


def test_marks_of_a_key(spark):
    asked = {"over": pn.tumbling(pn.punctuation("stop", scope="key")), "by": "k", "at": "ts", "where": "x > -4"}
    found, expected = both(spark, events(12), operator=totals, schema=OPERATORS[totals], **asked)
    assert found == expected
    assert len(expected) > 5


@pytest.mark.parametrize("evict", [None, pn.evict(keys=3)], ids=str)
def test_an_operator_whose_second_window_goes_by_time(spark, evict):
    """The clock ends with the last row of all, not with that of a task; and evicted keys are in one task.

    Some keys have right rows only, which are never matched; the last of them leave after the last row of their task.
    """
    right = policies_of(pn.hopping("9 s", every=pn.rows(1), bounds="[]"), ["k"], evict)

    def join(window, clock):
        return Join(window, right, outer="right", select=pair, clock=clock)

    def pair(left, right):
        return {"left": left and left["item"], "right": right and right["item"]}

    rows = 40
    table = pa.table(
        {
            "ts": pa.array(np.arange(rows) * 1_000_000, TIME),
            "k": [f"k{i % 8}" for i in range(rows)],
            "side": pa.array(np.arange(rows) % 8 < 4, pa.int32()),
            "item": np.arange(rows),
        }
    )
    # Long after the last row of every other key.
    later = pa.table({"ts": pa.array([END], TIME), "k": ["z"], "side": pa.array([0], pa.int32()), "item": [rows]})
    schema = pa.schema({"left": pa.int64(), "right": pa.int64()})
    asked = {"operator": join, "over": pn.sliding(pn.rows(5)), "by": "k", "at": "ts", "port": "side", "schema": schema}
    found, expected = both(spark, pa.concat_tables([table, later]), **asked)
    assert found == expected
    assert any("'left': None" in row for row in expected)


def in_parts(spark, folder, table, run):
    """What comes out when rows come in three micro-batches of two runs, from one checkpoint, and then time passes."""
    table = table.filter(pa.compute.field("ts").is_valid()).sort_by("ts")
    record, found = Recorded(spark, folder, table.schema), []
    size = -(-len(table) // 3)
    parts = [table.slice(i * size, size) for i in range(3)]
    parts = [part.take(np.random.default_rng(1).permutation(len(part))) for part in parts]
    end = table.slice(0, 1).set_column(table.column_names.index("ts"), "ts", pa.array([END], TIME))
    parts.append(end.set_column(table.column_names.index("k"), "k", pa.array(["z"])))
    for some in (parts[:2], parts[2:]):
        record.add(*some)
        found.append(Collected(run(record.stream(delay="0 seconds")), folder / "checkpoint").finish())
    assert sum(each.metrics["late"] for each in found) == 0
    return [row for each in found for row in each.rows.to_pylist()]


def test_a_stream(spark, tmp_path, one_partition):
    table = events(6, "UTC", rows=120).drop_columns(["odometer", "stop"])
    schema = pa.schema({"k": pa.string(), "x": pa.int64(), "held": pa.int64()})
    asked = {"over": pn.sliding(pn.rows(3)), "by": "k", "at": "ts", "operator": Changes, "schema": schema}
    found = in_parts(spark, tmp_path, table, lambda stream: pn.apply(stream, shards=2, **asked))
    assert shown(found) == shown(pn.apply(table, **asked).to_pylist())
    again = spark.readStream.schema("ts TIMESTAMP, k STRING, g INT, x BIGINT").parquet(str(tmp_path / "events"))
    again = again.withWatermark("ts", "0 seconds")
    others = (
        ("window", {"over": pn.sliding(pn.rows(4))}),
        ("shards", {"shards": 3}),
        ("ties", {"ties": "x"}),
        ("operator", {"operator": lambda window, clock: Sort(window, order="x", clock=clock)}),
    )
    for known, other in others:
        with pytest.raises(StateError, match=f"the checkpoint was written with {known}="):
            pn.apply(again, **{"shards": 2, **asked, **other}, checkpoint=str(tmp_path / "checkpoint"))
    counted = pn.plan(pn.query(by="k", at="ts", select={"n": pn.count()}, over=asked["over"]))
    with pytest.raises(StateError, match="the checkpoint was written with"):
        counted.stream(again, shards=2, checkpoint=str(tmp_path / "checkpoint"))


@pytest.mark.parametrize(("by", "scope"), [((), "stream"), ("k", "stream"), ("k", "key")], ids=str)
def test_punctuations_of_a_stream(spark, tmp_path, one_partition, by, scope):
    """The first micro-batch begins with punctuations."""
    table = events(9, "UTC", rows=60).select(["ts", "k", "x", "stop"])
    table = table.filter(pa.compute.field("ts").is_valid()).sort_by("ts")
    stops = pa.array([i < 2 or i % 9 == 0 for i in range(len(table))])
    table = table.set_column(3, "stop", stops)
    over = pn.tumbling(pn.punctuation("stop", scope=scope))
    asked = {"over": over, "by": by, "at": "ts", "operator": Counts, "schema": OPERATORS[Counts]}
    found = in_parts(spark, tmp_path, table, lambda stream: pn.apply(stream, shards=2, **asked))
    assert shown(found) == shown(pn.apply(table, **asked).to_pylist())


def test_a_join_of_rows_that_say_their_side(spark, tmp_path, one_partition):
    """The second port of an outer join: rows tagged by side; those without a match leave when they are evicted."""
    rng = np.random.default_rng(7)
    rows = 80
    table = pa.table(
        {
            "ts": pa.array(np.sort(rng.integers(0, 300, rows)) * 1_000_000, TIME),
            "k": rng.choice(["a", "b"], rows),
            "side": pa.array(rng.integers(0, 2, rows), pa.int32()),
            "item": np.arange(rows),
        }
    )

    def join(window, clock):
        return Join(window, pn.sliding("9 s"), on="k", outer="left", select=pair, clock=clock)

    def pair(left, right):
        return {"left": left and left["item"], "right": right and right["item"]}

    schema = pa.schema({"left": pa.int64(), "right": pa.int64()})
    asked = {"over": pn.sliding("5 s"), "at": "ts", "operator": join, "schema": schema, "port": "side"}
    found = in_parts(spark, tmp_path, table, lambda stream: pn.apply(stream, **asked))
    later = pa.table({"ts": pa.array([END], TIME), "k": ["z"], "side": pa.array([1], pa.int32()), "item": [-1]})
    whole = pn.apply(pa.concat_tables([table, later]), **asked).to_pylist()
    batch = pn.apply(spark.createDataFrame(pa.concat_tables([table, later])), **asked).toArrow().to_pylist()
    assert shown(batch) == shown(whole)
    assert shown(found) == shown(whole)
    assert any(row["right"] is None for row in whole)


def test_an_aggregate_of_the_library_keeps_its_summaries(spark, tmp_path, one_partition):
    """Its state is accumulators, not tuples."""
    table = events(8, "UTC", rows=120).select(["ts", "k", "x"])
    schema = pa.schema({"k": pa.string(), "n": pa.int64(), "mean": pa.float64()})

    def means(window, clock):
        return Aggregate(window, {"n": pn.count(), "mean": pn.mean("x")}, clock=clock)

    asked = {"over": pn.tumbling(pn.rows(9)), "by": "k", "at": "ts", "operator": means, "schema": schema}
    found = in_parts(spark, tmp_path, table, lambda stream: pn.apply(stream, shards=2, **asked))
    assert shown(found) == shown(pn.apply(table, **asked).to_pylist())


def test_mistakes(spark, tmp_path):
    record = Recorded(spark, tmp_path, pa.schema([("ts", TIME), ("k", pa.string()), ("x", pa.int64())]))
    record.add(pa.table({"ts": pa.array([1], TIME), "k": ["a"], "x": [1]}))
    stream = record.stream(delay="0 seconds")
    bare = spark.readStream.schema("ts TIMESTAMP, k STRING, x BIGINT").parquet(str(tmp_path / "events"))
    schema = pa.schema({"k": pa.string(), "x": pa.int64(), "held": pa.int64()})
    asked = {"over": pn.sliding(pn.rows(2)), "at": "ts", "operator": Changes, "schema": schema}
    with pytest.raises(PlanError, match="no watermark on 'ts'"):
        pn.apply(bare, **asked)
    for data in (stream, spark.createDataFrame(events(1, "UTC", rows=3))):
        with pytest.raises(PlanError, match="Write at= with the column of their time"):
            pn.apply(data, **{**asked, "at": None})
        with pytest.raises(PlanError, match="what the operator submits"):
            pn.apply(data, **{**asked, "schema": None})
        with pytest.raises(SchemaError, match="by='kk' is not a column"):
            pn.apply(data, **asked, by="kk")
        with pytest.raises(DeclarationError, match="is a session"):
            pn.apply(data, **{**asked, "over": pn.session("1 s")})
    with pytest.raises(PlanError, match="shards=0"):
        pn.apply(stream, **asked, shards=0)
