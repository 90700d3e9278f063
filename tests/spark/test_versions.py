"""Every verb on the PySpark that is installed, classic or through Spark Connect, against Spark itself and this process.

`make matrix` runs this file on every version that ``docs/reliability.md`` lists. So it uses nothing that only some of
them have: tables come and go as Parquet files. A test's name begins with the column of the table that it is for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import DataFrame, Observation, SparkSession

import panes as pn
from panes.errors import PlanError, StateWarning
from panes.operators import Aggregate
from panes.testing import assert_same_answers, events, spark_answers, spark_joins, spark_lookups
from tests.conftest import configured
from tests.spark.streams import START, Recorded, split

# Other versions warn of other things.
pytestmark = [
    pytest.mark.versions,
    pytest.mark.filterwarnings("default"),
    pytest.mark.usefixtures("plain_parquet"),
]

VERSION = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
REMOTE = "PANES_TESTS_REMOTE" in os.environ
STREAMS = pytest.mark.skipif(VERSION < (4, 1), reason="PySpark has transformWithState since 4.1")

UTC = pa.timestamp("us", "UTC")
VALUES = {
    "i": pa.int32(),
    "x": pa.float64(),
    "d": pa.decimal128(9, 2),
    "s": pa.string(),
    "b": pa.bool_(),
    "day": pa.date32(),
    "t": UTC,
}
PRODUCT = pn.aggregate(
    "i",
    name="product",
    state={"product": np.float64},
    identity=(1.0,),
    lift=lambda i: i.astype(np.float64),
    combine=lambda a, b: a[0] * b[0],
    lower=lambda p: p,
)
# Those that a tree of group-bys can feed from one another.
NATIVE = {
    "n": pn.count(),
    "known": pn.count("s"),
    "total": pn.sum("i"),
    "money": pn.sum("d"),
    "mean": pn.mean("x"),
    "low": pn.min("day"),
    "high": pn.max("s"),
    "variance": pn.var("i"),
    "spread": pn.std("x", ddof=0),
    "first": pn.first("s"),
    "last": pn.last("t"),
    "least": pn.arg_min("i", "s"),
    "most": pn.arg_max("x", "b"),
    "twice": "total * 2",
}
COLLECTED = {
    "different": pn.count_distinct("s"),
    "middle": pn.quantile("x", 0.5),
}
OWN = {
    "all": pn.distinct("i"),
    "line": pn.trend("i"),
    "fading": pn.aged(pn.sum("i"), half_life="20 s"),
    "product": PRODUCT,
}
SKETCHED = {"sketched": pn.approx_count_distinct("s"), "median": pn.approx_quantile("i", 0.5), "top": pn.top("s", 2)}
CLOCK = [
    pn.hopping("30s", every="10s"),
    pn.hopping("25s", every="4s", offset="3s", bounds="(]"),
    pn.cumulate("20s", upto="40s"),
]
BY_ROWS = [
    pn.sliding(pn.rows(5)),
    pn.tumbling(pn.rows(4)),
    pn.hopping(pn.rows(6), every="20s"),
    pn.hopping("20s", every=pn.rows(3)),
    pn.tumbling(pn.delta("odometer", 9)),
    pn.tumbling(pn.punctuation("b", scope="key")),
    pn.session("5s", name="session"),
]
STREAMED = [CLOCK[0], pn.sliding("10s"), BY_ROWS[0], BY_ROWS[-1]]
"""On the clock, per event, by rows, a session."""

NESTED = pn.nested(["40s", "20s"], ["20s", "10s"])


def drawn(seed: int, rows: int = 160) -> pa.Table:
    """Events of a few keys with ties, nulls and gaps, in no order; the odometer counts up with time."""
    rng = np.random.default_rng(seed)
    table = events(rows, keys={}, values=VALUES, null_times=0.03, start=START, seed=seed)
    odometer = np.empty(rows, np.int64)
    odometer[pa.compute.sort_indices(table["ts"]).to_numpy()] = np.cumsum(rng.integers(0, 3, rows))
    keys = pa.array(rng.choice(["a", "b", "ü"], rows), mask=rng.random(rows) < 0.1)
    return table.add_column(1, "k", keys).append_column("odometer", pa.array(odometer))


@pytest.fixture
def plain_parquet(spark: SparkSession) -> Iterator[None]:
    """Times are written as others read them."""
    yield from configured(spark, {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"})


@pytest.fixture
def frame(spark: SparkSession, tmp_path: Path) -> Callable[[pa.Table], DataFrame]:
    """What makes a DataFrame of a table."""
    made = []

    def frame(table: pa.Table) -> DataFrame:
        place = str(tmp_path / f"table{len(made)}.parquet")
        made.append(place)
        pq.write_table(table, place)
        return spark.read.parquet(place)

    return frame


@pytest.fixture
def table(tmp_path: Path) -> Callable[[DataFrame], pa.Table]:
    """What makes a table of a DataFrame."""
    made = []

    def table(rows: DataFrame) -> pa.Table:
        place = tmp_path / f"rows{len(made)}"
        made.append(place)
        rows.write.parquet(str(place))
        return read(place)

    return table


def read(place: Path) -> pa.Table:
    """What Spark has written, in the order of folders."""
    return pa.concat_tables(pq.read_table(part) for part in sorted(place.rglob("*.parquet")))


def same(found: pa.Table, wanted: pa.Table) -> None:
    assert len(wanted) > 30
    assert_same_answers(found, wanted, absolute=1e-9)


def test_run_on_the_clock(frame, table):
    rows = drawn(1)
    data = frame(rows)
    queries = [
        pn.query("by key", by="k", at="ts", select=NATIVE, over=CLOCK, having="n > 1"),
        pn.query("all", at="ts", select={"n": pn.count(), "total": pn.sum("i")}, over=CLOCK[:1], where="i > 0"),
    ]
    plan = pn.plan(queries)
    wanted = table(spark_answers(queries, data))
    for strategy in ("native", "rewrite", "columnar", None):
        same(table(plan.run(data, strategy=strategy)), wanted)
    same(plan.run(rows), wanted)
    collected = pn.query("collected", by="k", at="ts", select=COLLECTED, over=CLOCK[:2])
    same(table(pn.plan(collected).run(data)), table(spark_answers(collected, data)))
    together = pn.plan(pn.query("together", by="k", at="ts", select={"c": pn.corr("i", "x")}, over=CLOCK))
    # Spark's own corr divides by zero on a constant column before 4.3, in ANSI mode.
    same(table(together.run(data, strategy="columnar")), together.run(rows))


def test_run_up_to_each_event(frame, table):
    over = [pn.sliding("10s"), pn.sliding("30s", ago="20s")]
    query = pn.query("q", by="k", at="ts", select=NATIVE, over=over)
    data = frame(drawn(2))
    same(table(pn.plan(query).run(data)), table(spark_answers(query, data)))


def test_run_by_rows_and_sessions(frame, table):
    from pyspark.sql import functions as F

    rows = drawn(3)
    data = frame(rows)
    plan = pn.plan(
        pn.query("q", by="k", at="ts", select={**NATIVE, **COLLECTED, "all": pn.distinct("i")}, over=BY_ROWS)
    )
    found = table(plan.run(data))
    same(found, plan.run(rows))
    known = data.where("ts IS NOT NULL")
    own = known.groupBy("k", F.session_window("ts", "5 seconds").alias("window")).agg(F.count("*").alias("n"))
    sessions = found.filter(pa.compute.equal(found["window_name"], "session"))
    same(sessions.select(["k", "window", "n"]), table(own))


def test_run_aggregates_that_spark_lacks(frame, table):
    pytest.importorskip("datasketches")
    rows = drawn(4)
    queries = [
        pn.query("own", by="k", at="ts", select={**OWN, **SKETCHED}, over=CLOCK),
        pn.query("levels", by="k", at="ts", select={"weighed": pn.aged(pn.sum("i"), weights=[1.0, 0.5])}, over=NESTED),
        pn.query("common", by="k", at="ts", select={"common": pn.recurring("i")}, over=NESTED),
        pn.query("ticks", by="k", at="ts", select={"ticks": pn.trend("i", every="10s")}, over=CLOCK[0]),
    ]
    plan = pn.plan(queries)
    same(table(plan.run(frame(rows))), plan.run(rows))


def test_run_in_the_wide_layout_with_empty_windows(frame, table):
    rows = drawn(5)
    plan = pn.plan(pn.query("q", by="k", at="ts", select={"n": pn.count(), "total": pn.sum("i")}, over=CLOCK[:2]))
    found = plan.run(frame(rows), layout="wide", empty=True)
    same(table(found), plan.run(rows, layout="wide", empty=True))


@pytest.mark.skipif(VERSION == (4, 0) and REMOTE, reason="a server of Spark 4.0 may not send what a write observed")
def test_run_counts_events(frame, table):
    rows, seen = drawn(5), Observation()
    plan = pn.plan(pn.query("q", by="k", at="ts", select={"n": pn.count()}, over=CLOCK[:1]))
    table(plan.run(frame(rows), observation=seen))
    assert seen.get == {"events": len(rows), "null_timestamps": rows["ts"].null_count}


def test_lookup(frame, table):
    happened, asking = drawn(6), drawn(7, rows=60).select(["ts", "k"])
    times = pa.chunked_array([*happened["ts"].slice(0, 30).chunks, *asking["ts"].slice(30).chunks])
    asking = asking.set_column(0, "ts", times).append_column("id", pa.array(range(60)))
    select = {name: NATIVE[name] for name in ("n", "total", "mean", "high", "last")} | {
        "different": pn.count_distinct("s")
    }
    over = [pn.sliding("10s"), pn.sliding("1 min", ago="10s")]
    plan = pn.plan(pn.query("q", by="k", at="ts", select=select, over=over, where="i > -5"))
    given = frame(happened), frame(asking)
    found = plan.lookup(*given)
    same(table(found), table(spark_lookups(plan.queries[0], *given).select(*found.columns)))
    plan = pn.plan(pn.query("q", by="k", at="ts", select=select, over=[pn.sliding(pn.rows(5)), pn.tumbling("20s")]))
    for layout in ("wide", "long"):
        same(table(plan.lookup(*given, layout=layout)), plan.lookup(happened, asking, layout=layout))


@pytest.mark.parametrize("how", ["inner", "full"])
def test_join(frame, table, how):
    left, right = (drawn(seed, 70).select(["ts", "k", *some]) for seed, some in ((8, ["i", "s"]), (9, ["i", "x"])))
    sizes, data = {"short": "5s", "long": "20s"}, [frame(left), frame(right)]
    over = [pn.sliding(size, name=name) for name, size in sizes.items()]
    asked = {"on": "k", "at": "ts", "where": "i_left < i_right", "how": how}
    expected = spark_joins(*data, on="k", over=sizes, where="l.i < r.i", how=how)
    same(table(pn.join(*data, over=over, **asked)), table(expected))
    asked["over"] = [pn.sliding(pn.rows(3))]
    same(table(pn.join(*data, **asked)), pn.join(left, right, **asked))


def summed(key: dict[str, Any], window: Any, rows: pa.Table) -> dict[str, Any]:
    return {"rows": rows.num_rows, "total": pa.compute.sum(rows["odometer"]).as_py(), "number": window.number}


SUMMED = pa.schema({"rows": pa.int64(), "total": pa.int64(), "number": pa.int64()})


def longest(window: Any, clock: Any) -> Aggregate:
    return Aggregate(window, {"longest": lambda rows: max(row["odometer"] for row in rows)}, clock=clock)


def test_apply(frame, table):
    rows = drawn(10)
    asked = {"by": "k", "at": "ts", "over": [*CLOCK, *BY_ROWS], "schema": SUMMED}
    same(table(pn.apply(frame(rows), summed, **asked)), pn.apply(rows, summed, **asked))


def test_sort(frame, table):
    rows = drawn(11)
    asked = {"order": "odometer desc", "by": "k", "at": "ts", "over": pn.tumbling("20s")}
    same(table(pn.sort(frame(rows), **asked)), pn.sort(rows, **asked))


def test_apply_an_operator(frame, table):
    rows = drawn(12)
    over = pn.hopping("20 s", every="2 s", origin="first")
    schema = pa.schema({"k": pa.string(), "longest": pa.int64()})
    asked = {"operator": longest, "over": over, "by": "k", "at": "ts", "schema": schema}
    same(table(pn.apply(frame(rows), **asked)), pn.apply(rows, **asked))


# Streams


class Written:
    """A streaming query whose rows are written to files, and those of mode update to a folder per micro-batch."""

    def __init__(self, rows: DataFrame, folder: Path, mode: str = "append") -> None:
        self.folder, place = folder / "rows", str(folder / "rows")

        def write(batch: DataFrame, number: int) -> None:
            batch.write.mode("overwrite").parquet(f"{place}/{number:05}")

        writer = rows.writeStream.outputMode(mode).trigger(availableNow=True)
        writer = writer.foreachBatch(write) if mode == "update" else writer.format("parquet").option("path", place)
        self.query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
        self.query.awaitTermination()

    @property
    def rows(self) -> pa.Table:
        """The rows of all micro-batches so far, also of runs before this one."""
        return read(self.folder)


class Stream:
    """Events in the order of time, in three micro-batches, which are read in two runs from one checkpoint."""

    def __init__(self, spark: SparkSession, folder: Path, seed: int) -> None:
        self.table = drawn(seed).drop_null().sort_by("ts")
        self.record = Recorded(spark, folder, self.table.schema)
        # Far behind all windows.
        last = self.table.slice(0, 1)
        last = last.set_column(0, "ts", pa.array([START + 10**12], UTC)).set_column(1, "k", pa.array(["last"]))
        self.parts = [*split(self.table, [50, 30]), last]
        self.everything = pa.concat_tables([self.table, last])
        self.folder = folder

    def run(self, answers: Callable[[DataFrame], DataFrame], mode: str = "append", delay: str = "0 seconds") -> Written:
        for some in (self.parts[:2], self.parts[2:]):
            self.record.add(*some)
            written = Written(answers(self.record.stream(delay=delay)), self.folder, mode)
        return written

    @property
    def checkpoint(self) -> str:
        return str(self.folder / "checkpoint")


def complete(answers: pa.Table) -> pa.Table:
    """Answers without those of the last event."""
    return answers.filter(pa.compute.invert(pa.compute.equal(answers["k"], "last")).fill_null(True))


@STREAMS
def test_stream_append(spark, tmp_path, one_partition):
    stream = Stream(spark, tmp_path, 13)
    select = {"n": pn.count(), "money": pn.sum("d"), "last": pn.last("t"), "different": pn.count_distinct("s")}
    plan = pn.plan(pn.query("q", by="k", at="ts", select=select, over=STREAMED))
    with pytest.warns(StateWarning, match="keeps every different value"):
        written = stream.run(lambda events: plan.stream(events, shards=2, checkpoint=stream.checkpoint))
    same(complete(written.rows), complete(plan.run(stream.everything)))
    assert "watermark was" in plan.status(written.query)


@STREAMS
def test_stream_update(spark, tmp_path, one_partition):
    stream = Stream(spark, tmp_path, 14)
    plan = pn.plan(pn.query("q", by="k", at="ts", select={"n": pn.count(), "total": pn.sum("i")}, over=CLOCK))
    written = stream.run(lambda events: plan.stream(events, mode="update", shards=2), "update", delay="1 hour")
    rows = written.rows.to_pylist()
    latest = {(row["window_name"], row["window"]["end"], row["k"]): row for row in rows}
    assert len(rows) > len(latest)
    same(pa.Table.from_pylist(list(latest.values()), schema=written.rows.schema), plan.run(stream.everything))


@STREAMS
def test_stream_apply(spark, tmp_path, one_partition):
    stream = Stream(spark, tmp_path, 15)
    asked = {"by": "k", "at": "ts", "over": STREAMED[2:], "schema": SUMMED}
    written = stream.run(lambda events: pn.apply(events, summed, shards=2, checkpoint=stream.checkpoint, **asked))
    same(complete(written.rows), complete(pn.apply(stream.everything, summed, **asked)))


@STREAMS
@pytest.mark.parametrize("over", [pn.sliding("10s"), pn.sliding(pn.rows(3))], ids=str)
def test_stream_join(spark, tmp_path, one_partition, over):
    sides = [Stream(spark, tmp_path / side, seed) for side, seed in (("left", 16), ("right", 17))]
    tables = [side.everything.select(["ts", "k", "i"]) for side in sides]
    for side in sides:
        side.record.add(*side.parts)
    streams = [side.record.stream(delay="0 seconds").select("ts", "k", "i") for side in sides]
    asked = {"on": "k", "at": "ts", "over": over}
    found = Written(pn.join(*streams, **asked), tmp_path).rows
    same(complete(found), complete(pn.join(*tables, **asked)))


@STREAMS
def test_stream_with_a_catalogue(spark, tmp_path, one_partition):
    stream = Stream(spark, tmp_path, 18)
    plan = pn.plan(pn.query("q", by="k", at="ts", select={"n": pn.count(), "total": pn.sum("i")}, over=CLOCK))
    catalogue = pn.Catalogue(str(tmp_path / "catalogue"))
    catalogue.register(pn.query("more", by="k", at="ts", select={"total": pn.sum("i")}, over=pn.tumbling("20s")))
    written = stream.run(lambda events: plan.stream(events, shards=2, catalogue=catalogue))
    queries = written.rows["query"].to_pylist()
    assert {"q", "more"} <= set(queries)


@pytest.mark.skipif(VERSION >= (4, 1), reason="PySpark has transformWithState")
def test_stream_is_refused(spark, tmp_path):
    stream = Stream(spark, tmp_path, 19)
    plan = pn.plan(pn.query("q", by="k", at="ts", select={"n": pn.count()}, over=CLOCK))
    with pytest.raises(PlanError, match=r"streams need PySpark 4.1 or newer, and this is 3.5|4.0"):
        plan.stream(stream.record.stream())
