"""A streaming job of its own process, to be killed: ``python -m tests.spark.job EVENTS FOLDER [MASTER]``."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

import panes as pn
from panes.spark.session import local_session

QUERY = pn.query(
    "q",
    by="k",
    at="ts",
    select={"n": pn.count(), "total": pn.sum("i"), "mean": pn.mean("x"), "last": pn.last("s")},
    over=[pn.tumbling("10s"), pn.hopping("60s", every="20s"), pn.hopping("45s", every="15s", offset="5s")],
)


def main(events: str, folder: str, master: str | None = None) -> None:
    """Read the files of a folder, one per micro-batch, and write answers beside the checkpoint."""
    quick = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"}
    spark = local_session("panes-job", cores=2, memory="1g", more=quick) if master is None else on_cluster(master)
    # On a cluster, a partition for each of its two workers.
    spark.conf.set("spark.sql.shuffle.partitions", "1" if master is None else "2")
    schema = spark.read.parquet(events).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    stream = reader.parquet(events).withWatermark("ts", "10 seconds")
    writer = (
        pn.plan(QUERY)
        .stream(stream, shards=2)
        .writeStream.format("parquet")
        .option("path", str(Path(folder) / "answers"))
    )
    query = writer.option("checkpointLocation", str(Path(folder) / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()


def on_cluster(master: str) -> SparkSession:
    builder = SparkSession.builder.master(master).appName("panes-job").config("spark.driver.host", "127.0.0.1")
    settings = {"spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.sql.session.timeZone": "UTC"}
    return builder.config(map=settings).getOrCreate()


if __name__ == "__main__":
    main(*sys.argv[1:])
