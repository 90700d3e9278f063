"""Checks of a checkpoint before a stream starts, rather than in its first micro-batch."""

from __future__ import annotations

from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from panes.errors import StateError
from panes.spark.time_job import TimeJob
from panes.state.manifest import Manifest, check_state, decode_manifest, read_manifest

_OPERATOR = "transformWithState"


def check_checkpoint(session: SparkSession, place: str, job: TimeJob) -> None:
    """Reject a checkpoint that was written by other queries or with other options; a missing one is fine."""
    manifests = _manifests(session, place)
    # The others are of windows of rows of the same plan.
    for data, _ in [each for each in manifests if "declared" not in each[1]] or manifests:
        read_manifest(data, job.stores, job.options)


def check_declared(session: SparkSession, place: str, declared: dict[str, Any]) -> None:
    """Do the same for windows of rows or an operator; the error is about the most similar manifest."""
    manifests = _manifests(session, place)
    if manifests:
        check_state(min(manifests, key=lambda each: _differences(each[1], declared))[0], declared)


def _differences(manifest: Manifest, declared: dict[str, Any]) -> int:
    was = manifest.get("declared", {})
    return sum(was.get(name) != now for name, now in declared.items())


def _manifests(session: SparkSession, place: str) -> list[tuple[bytes, Manifest]]:
    """Return the manifests of all shards of a stream, as they are and decoded; none where they cannot be read.

    The checkpoint may not exist yet, have no finished micro-batch, or not be of Panes: the stream itself finds out.
    """
    # Older versions of PySpark, which run batches only, cannot import it.
    from panes.spark.stateful_operator import MANIFEST

    found: list[Row] = []
    try:
        for operator in session.read.format("state-metadata").load(place).collect():
            if operator.operatorName.startswith(_OPERATOR):
                reader = session.read.format("statestore").option("operatorId", operator.operatorId)
                rows = reader.option("stateVarName", MANIFEST).load(place)
                found += rows.selectExpr("key.shard AS shard", "value.data AS data").collect()
    except PySparkException:
        return []
    return [(bytes(row.data), _decoded(row, place)) for row in found]


def _decoded(row: Row, place: str) -> Manifest:
    try:
        return decode_manifest(bytes(row.data))
    except StateError as error:
        raise StateError(f"{place}, shard {row.shard}: {error}") from error
