"""``pn.windowed`` on streams against batches of the same rows.

Catches state that does not come back after a restart, rows that arrive before the watermark says so, timers that do
not go off, and operators that forget.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import panes as pn
from panes.errors import DeclarationError, PlanError, StateError
from panes.operators import Aggregate, Join, Sort
from tests.local.test_operators_and_punctuations import OPERATORS, Counts
from tests.local.test_windowed import Changes
from tests.spark.streams import Collected, Recorded
from tests.spark.test_windowed import SELECT, events

p = pn.policy
TIME = pa.timestamp("us", "UTC")
END = 10**9


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
    assert sum(each.figures["late"] for each in found) == 0
    return [row for each in found for row in each.rows.to_pylist()]


def shown(rows):
    return sorted(map(repr, rows))


@pytest.mark.parametrize(
    ("window", "more"),
    [
        (p.tumbling(p.count(7)), {"by": "k", "group_by": "g"}),
        (p.sliding(p.time("20 s"), p.time("15 s")), {"by": "k", "where": "x > -4"}),
        (p.sliding(p.count(3), p.count(2), partitioned=p.partitions("k", count=2)), {}),
        (p.tumbling(p.punctuation()), {"by": "k", "punctuations": "stop"}),
        (p.sliding(p.count(100), p.delta("ts", "10 s")), {"by": "k"}),
        pytest.param(
            p.sliding(p.count(4), p.count(3), partitioned=p.partitions("k", age="6 s")), {}, marks=pytest.mark.soak
        ),
    ],
    ids=str,
)
def test_aggregates(spark, tmp_path, one_partition, window, more):
    table = events(5, "UTC", rows=200)
    asked = {"window": window, "at": "ts", "select": SELECT, **more}
    found = in_parts(spark, tmp_path, table, lambda stream: pn.windowed(stream, shards=2, **asked))
    # On the clock, windows go on until the watermark; a batch ends with its last row.
    end = table.slice(0, 1).set_column(0, "ts", pa.array([END], TIME)).set_column(1, "k", pa.array(["z"]))
    for name, value in {"odometer": 1e9, "stop": False, "x": 0}.items():
        end = end.set_column(end.column_names.index(name), name, pa.array([value]))
    timed = "time" in str(window)
    whole = pn.windowed(pa.concat_tables([table, end]) if timed else table, **asked).to_pylist()
    before = [row for row in whole if row["window"]["start"].timestamp() < 1000]
    assert shown(found) == shown(before)


def test_operators(spark, tmp_path, one_partition):
    table = events(6, "UTC", rows=120).drop_columns(["odometer", "stop"])
    window = p.sliding(p.count(3))
    schema = pa.schema({"k": pa.string(), "x": pa.int64(), "held": pa.int64()})
    asked = {"window": window, "by": "k", "at": "ts", "operator": Changes, "schema": schema}
    found = in_parts(spark, tmp_path, table, lambda stream: pn.windowed(stream, shards=2, **asked))
    whole = pn.windowed(table, **asked)
    assert shown(found) == shown(whole.to_pylist())
    again = spark.readStream.schema("ts TIMESTAMP, k STRING, g INT, x BIGINT").parquet(str(tmp_path / "events"))
    again = again.withWatermark("ts", "0 seconds")
    others = (
        ("window", {"window": p.sliding(p.count(4))}),
        ("shards", {"shards": 3}),
        ("operator", {"operator": lambda window, clock: Sort(window, by="x", clock=clock)}),
        ("operator", {"operator": None, "schema": None, "select": {"n": pn.count()}}),
    )
    for known, other in others:
        with pytest.raises(StateError, match=f"the checkpoint was written with {known}="):
            pn.windowed(again, **{"shards": 2, **asked, **other}, checkpoint=str(tmp_path / "checkpoint"))


@pytest.mark.parametrize("by", [(), "k"], ids=str)
def test_operators_and_punctuations(spark, tmp_path, one_partition, by):
    """The first micro-batch begins with punctuations."""
    table = events(9, "UTC", rows=60).select(["ts", "k", "x", "stop"])
    table = table.filter(pa.compute.field("ts").is_valid()).sort_by("ts")
    stops = pa.array([i < 2 or i % 9 == 0 for i in range(len(table))])
    table = table.set_column(3, "stop", stops)
    asked = {"window": p.tumbling(p.punctuation()), "by": by, "at": "ts", "operator": Counts, "punctuations": "stop"}
    asked["schema"] = OPERATORS[Counts]
    found = in_parts(spark, tmp_path, table, lambda stream: pn.windowed(stream, shards=2, **asked))
    assert shown(found) == shown(pn.windowed(table, **asked).to_pylist())


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
        return Join(window, p.sliding(p.time("9 s")), on="k", outer="left", select=pair, clock=clock)

    def pair(left, right):
        return {"left": left and left["item"], "right": right and right["item"]}

    schema = pa.schema({"left": pa.int64(), "right": pa.int64()})
    asked = {"window": p.sliding(p.time("5 s")), "at": "ts", "operator": join, "schema": schema, "port": "side"}
    found = in_parts(spark, tmp_path, table, lambda stream: pn.windowed(stream, **asked))
    later = pa.table({"ts": pa.array([END], TIME), "k": ["z"], "side": pa.array([1], pa.int32()), "item": [-1]})
    whole = pn.windowed(pa.concat_tables([table, later]), **asked).to_pylist()
    batch = pn.windowed(spark.createDataFrame(pa.concat_tables([table, later])), **asked).toArrow().to_pylist()
    assert shown(batch) == shown(whole)
    assert shown(found) == shown(whole)
    assert any(row["right"] is None for row in whole)


def test_an_aggregate_of_the_library_keeps_its_summaries(spark, tmp_path, one_partition):
    """Its state are accumulators, not tuples."""
    table = events(8, "UTC", rows=120).select(["ts", "k", "x"])
    schema = pa.schema({"k": pa.string(), "n": pa.int64(), "mean": pa.float64()})

    def totals(window, clock):
        return Aggregate(window, {"n": pn.count(), "mean": pn.mean("x")}, clock=clock)

    asked = {"window": p.tumbling(p.count(9)), "by": "k", "at": "ts", "operator": totals, "schema": schema}
    found = in_parts(spark, tmp_path, table, lambda stream: pn.windowed(stream, shards=2, **asked))
    assert shown(found) == shown(pn.windowed(table, **asked).to_pylist())


def test_mistakes(spark, tmp_path):
    record = Recorded(spark, tmp_path, pa.schema([("ts", TIME), ("x", pa.int64())]))
    record.add(pa.table({"ts": pa.array([1], TIME), "x": [1]}))
    stream, window = record.stream(delay="0 seconds"), p.tumbling(p.count(2))
    bare = spark.readStream.schema("ts TIMESTAMP, x BIGINT").parquet(str(tmp_path / "events"))
    select = {"n": pn.count()}
    with pytest.raises(PlanError, match="no watermark on 'ts'"):
        pn.windowed(bare, window=window, at="ts", select=select)
    with pytest.raises(PlanError, match="Write at= with their time"):
        pn.windowed(stream, window=window, select=select)
    with pytest.raises(PlanError, match="shards=0"):
        pn.windowed(stream, window=window, at="ts", select=select, shards=0)
    with pytest.raises(PlanError, match="what the operator submits"):
        pn.windowed(stream, window=p.sliding(p.count(2)), at="ts", operator=Changes)
    with pytest.raises(DeclarationError, match="port= is for operator="):
        pn.windowed(stream, window=window, at="ts", select=select, port="x")
