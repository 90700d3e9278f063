"""Streams: all windows in one stateful operator, beside one native streaming query per window.

A stream reads a file per micro-batch and writes to ``noop``. Every run has a checkpoint of its own and includes
starting the query. Spark's own windows run with the same state store provider (RocksDB) and number of partitions.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

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
NATIVE_UP_TO = 10
ONE, OWN = "one native query", "a native query per window"
PARTITIONS = "2"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def streaming(bench: Bench) -> None:
    """Race streams for every number of windows and keys."""
    spark = bench.spark
    spark.conf.set("spark.sql.shuffle.partitions", PARTITIONS)
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", _ROCKSDB)
    spark.conf.set("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
    for keys in bench.few((100, 1_000_000), quick=1) if bench.options.keys is None else (bench.options.keys,):
        events = data.synthetic(bench.events(4_000_000), keys)
        table = bench.report.table(
            f"MIN by key over N tumbling windows (20 s, 30 s, ...) of a stream, {events.events:,} events in "
            f"{MICRO_BATCHES} micro-batches, {keys:,} keys, append mode; seconds",
            f"× is times {ONE} (20 s), timed in the same rounds. Blank: not run.",
        )
        for count in bench.few(COUNTS):
            queries = lowest(sequential(count))
            contenders = [_panes(spark, queries), _native(spark, lowest(sequential(1)), ONE)]
            if count <= NATIVE_UP_TO:
                contenders.append(_native(spark, queries, OWN))
                bench.check(f"{keys} keys, {count} windows", [contenders[-1], contenders[0]], events)
            timings = bench.race(f"{keys} keys, {count} windows", contenders, events)
            row: dict[str, object] = {"windows": count}
            for name in ("Panes", ONE, OWN):
                row[name] = timings.median(name)
                if name != ONE:
                    row[f"{name} ×"] = timings.ratio(name, ONE)
            table.rows.append(row)


def _panes(spark: SparkSession, queries: Sequence[pn.Query]) -> Contender:
    return _contender("Panes", spark, lambda stream: [pn.plan(queries).run(stream)])


def _native(spark: SparkSession, queries: Sequence[pn.Query], name: str) -> Contender:
    alone = [pn.query(q.name, at=q.at, by=q.by, select=dict(q.aggregates), over=w) for q in queries for w in q.over]
    return _contender(name, spark, lambda stream: [spark_answers(query, stream) for query in alone])


def _contender(name: str, spark: SparkSession, ask: Callable[[DataFrame], list[DataFrame]]) -> Contender:
    return Contender(
        name,
        lambda events: _written(ask(_stream(spark, events)), "noop", lambda _: None),
        lambda events: _written(
            ask(_stream(spark, events)), "parquet", lambda folder: spark.read.parquet(f"{folder}/answers/*").toArrow()
        ),
    )


def _written(streams: Sequence[DataFrame], sink: str, read: Callable[[Path], T]) -> T:
    """Run streams side by side until all files have been read, and read what they have written."""
    folder = Path(tempfile.mkdtemp(prefix="panes-stream-"))
    try:
        started = [
            stream.writeStream.format(sink)
            .outputMode("append")
            .option("path", str(folder / "answers" / str(i)))
            .option("checkpointLocation", str(folder / "checkpoints" / str(i)))
            .trigger(availableNow=True)
            .start()
            for i, stream in enumerate(streams)
        ]
        for query in started:
            query.awaitTermination()
        return read(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _stream(spark: SparkSession, events: Dataset) -> DataFrame:
    folder = _in_micro_batches(events)
    schema = spark.read.parquet(str(folder)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder)).withWatermark("ts", "10 seconds")


def _in_micro_batches(events: Dataset) -> Path:
    """The same events, a file per micro-batch."""
    folder = events.path.with_name(f"{events.path.name}-in-{MICRO_BATCHES}")
    if not folder.exists():
        making = folder.with_name(f"{folder.name}.making")
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(parents=True)
        table = pq.read_table(events.path).sort_by("ts")
        size = -(-table.num_rows // MICRO_BATCHES)
        for i in range(MICRO_BATCHES):
            pq.write_table(table.slice(i * size, size), making / f"{i:03}.parquet")
        making.rename(folder)
    return folder
