"""Whether a checkpoint can serve a job: asked before a stream starts, rather than in its first micro-batch."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from panes.engine.manifest import read_manifest
from panes.spark.operator import MANIFEST
from panes.spark.processor import Job

_OPERATOR = "transformWithState"


def check_checkpoint(session: SparkSession, place: str, job: Job) -> None:
    """Refuse a checkpoint that was written by other queries or for other terms; where there is none, all is well."""
    try:
        manifests = _manifests(session, place)
    except PySparkException:
        # No checkpoint yet, one without a finished micro-batch, or none of Panes: the stream itself finds out.
        return
    for data in manifests:
        read_manifest(data, job.stores, job.terms)


def _manifests(session: SparkSession, place: str) -> list[bytes]:
    """What the shards of a stream have written about their state."""
    found = []
    for operator in session.read.format("state-metadata").load(place).collect():
        if operator.operatorName.startswith(_OPERATOR):
            reader = session.read.format("statestore").option("operatorId", operator.operatorId)
            rows = reader.option("stateVarName", MANIFEST).load(place).selectExpr("value.data").collect()
            found += [bytes(row.data) for row in rows]
    return found
