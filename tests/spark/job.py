"""A streaming job of its own process, to be killed: ``python -m tests.spark.job EVENTS FOLDER [options]``."""

from __future__ import annotations

import argparse
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import panes as pn
from panes.spark.session import local_session

SELECT = {"n": pn.count(), "total": pn.sum("i"), "mean": pn.mean("x"), "last": pn.last("s")}
QUERY = pn.query(
    "q",
    by="k",
    at="ts",
    select=SELECT,
    over=[pn.tumbling("10s"), pn.hopping("60s", every="20s"), pn.hopping("45s", every="15s", offset="5s")],
)
ALL_KINDS = [
    pn.query(
        "clock", by="k", at="ts", select=SELECT, over=[pn.tumbling("10s"), pn.hopping("60s", every="20s")], ties="id"
    ),
    pn.query("up to", by="k", at="ts", select=SELECT, over=[pn.sliding("10s"), pn.sliding("45s", ago="5s")], ties="id"),
    pn.query("rows", by="k", at="ts", select=SELECT, over=[pn.sliding(pn.rows(5)), pn.tumbling(pn.rows(4))], ties="id"),
    pn.query("sessions", by="k", at="ts", select=SELECT, over=[pn.session("3s"), pn.session("8s")], ties="id"),
]
"""Windows on the clock, sliding, of rows, and sessions: three stateful operators."""
UPSERT = """INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET n = excluded.n, total = excluded.total, mean = excluded.mean, last = excluded.last,
        micro_batch = excluded.micro_batch WHERE excluded.micro_batch >= answers.micro_batch"""
"""A row of an earlier micro-batch, from a driver that was held up, never replaces that of a later one."""


def main(options: argparse.Namespace) -> None:
    """Read the files of a folder, one per micro-batch, and write answers beside the checkpoint."""
    spark = started(options.master)
    # On a cluster, a partition for each of its two workers.
    spark.conf.set("spark.sql.shuffle.partitions", "1" if options.master is None else "2")
    # What each micro-batch had is looked up in the end.
    spark.conf.set("spark.sql.streaming.minBatchesToRetain", "1000")
    spark.conf.set("spark.sql.streaming.stateStore.checkpointFormatVersion", options.format)
    schema = spark.read.parquet(str(options.events)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    stream = reader.parquet(str(options.events)).withWatermark("ts", "10 seconds")
    plan = pn.plan(ALL_KINDS if options.kinds == "all" else QUERY)
    folder: Path = options.folder
    writer = plan.stream(stream, shards=2).writeStream
    if options.sink == "files":
        writer = writer.format("parquet").option("path", str(folder / "answers"))
    else:
        writer = writer.foreachBatch(replace_batch(folder))
    writers = [writer.option("checkpointLocation", str(folder / "checkpoint"))]
    if options.early:
        changed = pn.plan(QUERY).stream(stream, mode="update", shards=2)
        writer = changed.writeStream.outputMode("update").foreachBatch(upsert(folder / "early.db"))
        writers.append(writer.option("checkpointLocation", str(folder / "early")))
    when = {"processingTime": "100 milliseconds"} if options.live else {"availableNow": True}
    for query in [writer.trigger(**when).start() for writer in writers]:
        query.awaitTermination()


def started(master: str | None) -> SparkSession:
    quick = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"}
    if master is None:
        return local_session("panes-job", cores=2, memory="1g", more=quick)
    builder = SparkSession.builder.master(master).appName("panes-job").config("spark.driver.host", "127.0.0.1")
    settings = {"spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.sql.session.timeZone": "UTC"}
    return builder.config(map=settings).getOrCreate()


def replace_batch(folder: Path) -> Callable[[DataFrame, int], None]:
    """Write each micro-batch to the file of its number, which a repetition replaces; ``calls`` has a line for each."""
    (folder / "answers").mkdir(exist_ok=True)

    def write(rows: DataFrame, number: int) -> None:
        with (folder / "calls").open("a") as calls:
            calls.write(f"{number}\n")
        table = rows.toArrow()
        hidden = folder / "answers" / f".{number}-{os.getpid()}"
        pq.write_table(table, hidden)
        hidden.rename(folder / "answers" / f"{number:05}.parquet")

    return write


def table_key(row: dict[str, Any]) -> tuple[str, str, str]:
    """The primary key of an answer; as text, since SQLite does not find a null again."""
    return row["window_name"], str(row["window"]["start"]), repr(row["k"])


def upsert(database: Path) -> Callable[[DataFrame, int], None]:
    """Write changed answers to a table with their primary key."""
    with closing(sqlite3.connect(database)) as db:
        db.execute(
            "CREATE TABLE IF NOT EXISTS answers (name TEXT, start TEXT, k TEXT, n, total, mean, last, micro_batch,"
            " PRIMARY KEY (name, start, k))"
        )

    def write(rows: DataFrame, number: int) -> None:
        found = [(*table_key(row), *(row[name] for name in SELECT), number) for row in rows.toArrow().to_pylist()]
        with closing(sqlite3.connect(database)) as db, db:
            db.executemany(UPSERT, found)

    return write


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("events", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--master")
    parser.add_argument("--kinds", choices=("clock", "all"), default="clock")
    parser.add_argument("--sink", choices=("files", "batches"), default="files")
    parser.add_argument("--early", action="store_true", help="also a query in update mode")
    parser.add_argument("--format", default="1", help="of Spark's checkpoints of state")
    parser.add_argument("--live", action="store_true", help="wait for more files when all are read")
    main(parser.parse_args())
