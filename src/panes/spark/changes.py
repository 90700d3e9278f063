"""The catalogue as a stream: every change reaches every shard, in the order in which it was written."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from panes.spark.placing import labels


def changes(session: SparkSession, folder: str, shards: int) -> DataFrame:
    """A row per change and shard; files are read whole, whatever is in them."""
    files = session.readStream.format("text").option("wholetext", "true").load(folder)
    return files.selectExpr(
        f"explode(array({', '.join(map(str, labels(shards)))})) AS shard",
        "-1 AS store",
        "CAST(NULL AS BINARY) AS keys",
        "CAST(NULL AS BINARY) AS panes",
        # Names are numbers in order; replay reads the same files in the same micro-batch again.
        "_metadata.file_name AS place",
        "value AS change",
    )
