"""Streams: all windows in one stateful operator, beside one native streaming query per window.

A stream reads a file per micro-batch and writes to ``noop``. Every run has a checkpoint of its own and includes
starting the query; just before it, the same stream runs on few events, so that Python workers exist. Spark's own
windows run with the same state store provider (RocksDB) and number of partitions; Panes has a shard for each.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

import panes as pn
from benchmarks import data
from benchmarks.contenders import Contender
from benchmarks.data import Dataset
from benchmarks.runner import Bench
from benchmarks.workloads.price import lowest, sequential
from panes.testing import spark_answers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")

COUNTS = (1, 10, 100, 1000)
MICRO_BATCHES = 11
NATIVE_UP_TO, NATIVE_KEYS = 10, 1000
ONE, OWN, IN_TURN = "one native query", "a native query per window", "one after another"
PARTITIONS, DELAY = "2", "10 seconds"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def streaming(bench: Bench) -> None:
    """Race streams for every number of windows and keys."""
    spark = bench.spark
    prepare(spark)
    for keys in bench.few((100, 1_000_000), quick=1) if bench.options.keys is None else (bench.options.keys,):
        events = data.synthetic(bench.events(4_000_000), keys)
        table = bench.report.table(
            f"MIN by key over N tumbling windows (20 s, 30 s, ...) of a stream, {events.events:,} events in "
            f"{MICRO_BATCHES} micro-batches, {keys:,} keys, append mode; seconds",
            f"× is times {ONE} (20 s), timed in the same rounds. {OWN.capitalize()}: all at the same time, and "
            f"{IN_TURN}. Blank: not run.",
        )
        for count in bench.few(COUNTS):
            if keys > NATIVE_KEYS and count > NATIVE_UP_TO and not bench.options.full:
                continue  # Hardly two events share a key and a window: every window answers every event.
            queries = lowest(sequential(count))
            contenders = [_panes(spark, queries), _native(spark, lowest(sequential(1)), ONE)]
            if count <= NATIVE_UP_TO and keys <= NATIVE_KEYS:
                contenders.append(_native(spark, queries, OWN))
                bench.check(f"{keys} keys, {count} windows", [contenders[-1], contenders[0]], events)
                if count > 1:
                    contenders.append(_native(spark, queries, IN_TURN, in_turn=True))
            timings = bench.race(f"{keys} keys, {count} windows", contenders, events, prepared=True)
            row: dict[str, object] = {"windows": count}
            for name in ("Panes", ONE, OWN, IN_TURN):
                row[name] = timings.median(name)
                if name != ONE:
                    row[f"{name} ×"] = timings.ratio(name, ONE)
            table.rows.append(row)


def prepare(spark: SparkSession) -> None:
    """The settings of all streams."""
    spark.conf.set("spark.sql.shuffle.partitions", PARTITIONS)
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", _ROCKSDB)
    spark.conf.set("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")


def _panes(spark: SparkSession, queries: Sequence[pn.Query]) -> Contender:
    return _contender("Panes", spark, lambda stream: [pn.plan(queries).stream(stream, shards=int(PARTITIONS))])


def _native(spark: SparkSession, queries: Sequence[pn.Query], name: str, *, in_turn: bool = False) -> Contender:
    alone = [pn.query(q.name, at=q.at, by=q.by, select=dict(q.aggregates), over=w) for q in queries for w in q.over]
    return _contender(name, spark, lambda stream: [spark_answers(query, stream) for query in alone], in_turn=in_turn)


def _contender(
    name: str, spark: SparkSession, ask: Callable[[DataFrame], list[DataFrame]], *, in_turn: bool = False
) -> Contender:
    def streams(events: Dataset) -> list[DataFrame]:
        return ask(a_file_at_a_time(spark, _in_micro_batches(events), DELAY))

    return Contender(
        name,
        lambda events: _written(streams(events), "noop", lambda _: None, in_turn),
        lambda events: _written(
            streams(events), "parquet", lambda folder: spark.read.parquet(f"{folder}/answers/*").toArrow(), in_turn
        ),
    )


def _written(streams: Sequence[DataFrame], sink: str, read: Callable[[Path], T], in_turn: bool) -> T:
    """Run streams side by side, or in turn, until all files have been read, and read what they have written."""
    folder = Path(tempfile.mkdtemp(prefix="panes-stream-"))
    try:
        started = []
        for i, stream in enumerate(streams):
            writer = stream.writeStream.format(sink).outputMode("append")
            writer = writer.option("path", str(folder / "answers" / str(i)))
            writer = writer.option("checkpointLocation", str(folder / "checkpoints" / str(i)))
            started.append(writer.trigger(availableNow=True).start())
            if in_turn:
                started[-1].awaitTermination()
        for query in started:
            query.awaitTermination()
        return read(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def a_file_at_a_time(spark: SparkSession, events: Dataset, delay: str) -> DataFrame:
    """A stream of events, a file per micro-batch."""
    schema = spark.read.parquet(str(events.path)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(events.path)).withWatermark("ts", delay)


def _in_micro_batches(events: Dataset) -> Dataset:
    """The same events, a file per micro-batch."""

    def parts() -> Iterator[pa.Table]:
        table = pq.read_table(events.path).sort_by("ts")
        size = -(-table.num_rows // MICRO_BATCHES)
        return (table.slice(i * size, size) for i in range(MICRO_BATCHES))

    return data.kept(f"{events.name}-in-{MICRO_BATCHES}", events.keys, parts)
