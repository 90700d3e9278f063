"""``pn.windowed`` on Spark against the same call in this process.

Catches an order of rows that Spark makes otherwise, keys split between tasks, and clocks that end with a task's rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import panes as pn
from panes.errors import PlanError, SchemaError
from panes.operators import Aggregate, Join
from tests.local.test_operators_and_punctuations import OPERATORS, Counts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

p = pn.policy
SELECT = {
    "n": pn.count(),
    "total": pn.sum("x * 2"),
    "first": pn.first("x"),
    "middle": pn.quantile("x", 0.5),
    "wide": "total - n",
}
WINDOWS = [
    p.tumbling(p.count(7)),
    p.tumbling(p.delta("ts", "9 s")),
    p.tumbling(p.time("11 s")),
    p.sliding(p.count(5), p.count(3)),
    p.sliding(p.count(4), p.delta("odometer", 2.5)),
    p.sliding(p.delta("odometer", 4), p.time("30 s")),
    p.sliding(p.time("20 s"), p.count(2)),
    p.sliding(p.time("20 s"), p.time("15 s")),
]


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


def both(spark: SparkSession, table: pa.Table, **options: Any) -> tuple[list[Any], list[Any]]:
    frame = spark.createDataFrame(table).repartition(3)
    found = pn.windowed(frame, **options)
    here = pn.windowed(table, **options)
    assert found.columns == here.column_names
    theirs = found.toArrow()
    assert [str(t) for t in theirs.schema.types if not pa.types.is_struct(t)] == [
        str(t) for t in here.schema.types if not pa.types.is_struct(t)
    ]
    return tuple(sorted(map(str, t.cast(here.schema).to_pylist())) for t in (theirs, here))  # type: ignore[return-value]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_aggregates(spark: SparkSession, window: Any) -> None:
    for seed, (by, group_by, partial) in enumerate([("k", (), True), (["k", "g"], (), False), ("k", "g", True)]):
        table = events(seed, "UTC" if seed else None)
        options = {"window": window, "by": by, "at": "ts", "select": SELECT, "group_by": group_by, "partial": partial}
        found, expected = both(spark, table, **options)
        assert found == expected
        assert expected


def test_one_window_for_all(spark: SparkSession) -> None:
    window = p.sliding(p.time("20 s"), p.time("15 s"))
    found, expected = both(spark, events(5), window=window, at="ts", select=SELECT, where="x > -2")
    assert found == expected
    assert len(expected) > 10


def test_evicted_partitions(spark: SparkSession) -> None:
    window = p.sliding(p.count(3), partitioned=p.partitions("k", count=2))
    found, expected = both(spark, events(6), window=window, at="ts", select=SELECT)
    assert found == expected
    assert expected


def test_punctuations(spark: SparkSession) -> None:
    window = p.tumbling(p.punctuation())
    found, expected = both(spark, events(7), window=window, by="k", at="ts", select=SELECT, punctuations="stop")
    assert found == expected
    assert expected


@pytest.mark.parametrize("limit", [{}, {"count": 4}])
def test_an_operator(spark: SparkSession, limit: dict[str, int]) -> None:
    def longest(window: Any, clock: Any) -> Aggregate:
        return Aggregate(window, {"longest": lambda rows: max(row["odometer"] for row in rows)}, clock=clock)

    schema = pa.schema({"k": pa.string(), "longest": pa.float64()})
    window = p.sliding(p.time("20 s"), p.time("2 s"), partitioned=p.partitions("k", **limit))
    found, expected = both(spark, events(8), window=window, at="ts", operator=longest, schema=schema)
    assert found == expected
    assert expected


@pytest.mark.parametrize("partitioned", [None, p.partitions("k"), p.partitions("k", count=2)], ids=str)
def test_operators_and_punctuations(spark: SparkSession, partitioned: Any) -> None:
    """Also of a table that begins with punctuations, and of one that has nothing else."""
    window, schema = p.tumbling(p.punctuation(), partitioned=partitioned), OPERATORS[Counts]
    table = events(11, "UTC", rows=60).sort_by("ts")
    stops = pa.array([i < 2 or i % 9 == 0 for i in range(len(table))])
    table = table.set_column(table.column_names.index("stop"), "stop", stops)
    asked = {"window": window, "at": "ts", "operator": Counts, "schema": schema, "punctuations": "stop"}
    for some in (table, table.filter(stops)):
        found, expected = both(spark, some, **asked)
        assert found == expected
    assert bool(expected) == (partitioned is None)


@pytest.mark.parametrize("limit", [{}, {"count": 3}], ids=str)
def test_an_operator_whose_second_window_goes_by_time(spark: SparkSession, limit: dict[str, int]) -> None:
    """The clock ends with the last row of all, not with that of a task; and evicted partitions are in one task.

    Some keys have right rows only, which are never matched; the last of them leave after the last row of their task.
    """
    right = p.sliding(p.time("9 s"), partitioned=p.partitions("k", **limit))

    def join(window: Any, clock: Any) -> Join:
        return Join(window, right, outer="right", select=pair, clock=clock)

    def pair(left: Any, right: Any) -> dict[str, Any]:
        return {"left": left and left["item"], "right": right and right["item"]}

    rows = 40
    table = pa.table(
        {
            "ts": pa.array(np.arange(rows) * 1_000_000, pa.timestamp("us", "UTC")),
            "k": [f"k{i % 8}" for i in range(rows)],
            "side": pa.array(np.arange(rows) % 8 < 4, pa.int32()),
            "item": np.arange(rows),
        }
    )
    # Long after the last row of every other key.
    later = {"ts": pa.array([10**9], pa.timestamp("us", "UTC")), "k": ["z"], "side": pa.array([1], pa.int32())}
    table = pa.concat_tables([table, pa.table({**later, "item": [-1]})])
    schema = pa.schema({"left": pa.int64(), "right": pa.int64()})
    asked = {"window": p.sliding(p.count(5)), "by": "k", "at": "ts", "operator": join, "port": "side"}
    # Small tasks would be made one.
    several = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "5"}
    before = {name: spark.conf.get(name) for name in several}
    try:
        for name, value in several.items():
            spark.conf.set(name, value)
        found, expected = both(spark, table, **asked, schema=schema)
    finally:
        for name, value in before.items():
            spark.conf.set(name, value or "")
    assert found == expected
    assert any("'left': None" in row for row in expected)


def test_tuples_have_their_times_in_utc(spark: SparkSession) -> None:
    """Whatever the zone of the session is: an operator may ask for the hour."""

    def hours(window: Any, clock: Any) -> Aggregate:
        return Aggregate(window, {"hour": lambda rows: rows[-1]["ts"].hour}, clock=clock)

    zone = spark.conf.get("spark.sql.session.timeZone") or ""
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        schema = pa.schema({"hour": pa.int64()})
        found, expected = both(
            spark, events(8, "UTC"), window=p.tumbling(p.count(9)), at="ts", operator=hours, schema=schema
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert found == expected


def test_no_rows(spark: SparkSession) -> None:
    empty = events(9).slice(0, 0)
    for window in (p.tumbling(p.time("11 s")), p.tumbling(p.count(2))):
        found, expected = both(spark, empty, window=window, by="k", at="ts", select=SELECT)
        assert found == expected == []


def test_mistakes(spark: SparkSession) -> None:
    frame = spark.createDataFrame(events(10))
    window = p.tumbling(p.count(2))
    with pytest.raises(PlanError, match="a DataFrame has no order"):
        pn.windowed(frame, window=window, select=SELECT)
    with pytest.raises(PlanError, match="Write schema= with the columns"):
        pn.windowed(
            frame,
            window=window,
            at="ts",
            operator=lambda window, clock: Aggregate(window, {"n": pn.count()}, clock=clock),
        )
    with pytest.raises(SchemaError, match="delta='odo' is not a column"):
        pn.windowed(frame, window=p.tumbling(p.delta("odo", 2)), at="ts", select=SELECT)
    stream = spark.readStream.format("rate").load()
    with pytest.raises(PlanError, match="the stream has no watermark on 'timestamp'"):
        pn.windowed(stream, window=window, at="timestamp", select={"n": pn.count()})
