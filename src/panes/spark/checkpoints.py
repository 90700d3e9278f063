"""Whether a checkpoint can serve a job: asked before a stream starts, rather than in its first micro-batch."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from panes.engine.manifest import read_manifest
from panes.spark.operator import MANIFEST
from panes.spark.processor import Job

_OPERATOR = "transformWithState"


def check_checkpoint(session: SparkSession, place: str, job: Job) -> None:
    """Refuse a checkpoint that was written by other queries or for other terms; where there is none, all is well."""
    for data in _manifests(session, place):
        read_manifest(data, job.stores, job.terms)


def _manifests(session: SparkSession, place: str) -> Iterator[bytes]:
    """What the shards of a stream have written about their state."""
    try:
        operators = session.read.format("state-metadata").load(place).collect()
    except PySparkException:
        return  # no checkpoint yet, or none that Spark can read: the stream itself will say so
    for row in operators:
        if row.operatorName.startswith(_OPERATOR):
            reader = session.read.format("statestore").option("operatorId", row.operatorId)
            rows = reader.option("stateVarName", MANIFEST).load(place).selectExpr("value.data").collect()
            yield from (bytes(found.data) for found in rows)
