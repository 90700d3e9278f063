"""Checks of a checkpoint before a stream starts, rather than in its first micro-batch."""

from __future__ import annotations

import json
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from panes.spark.stateful_operator import MANIFEST
from panes.spark.time_job import TimeJob
from panes.state.manifest import check_state, read_manifest

_OPERATOR = "transformWithState"


def check_checkpoint(session: SparkSession, place: str, job: TimeJob) -> None:
    """Reject a checkpoint that was written by other queries or with other options; a missing one is fine."""
    manifests = _manifests(session, place)
    # The others are of windows of rows of the same plan.
    for data in [data for data in manifests if _declared(data) is None] or manifests:
        read_manifest(data, job.stores, job.options)


def check_declared(session: SparkSession, place: str, declared: dict[str, Any]) -> None:
    """Do the same for windows of rows or an operator; the error is about the most similar manifest."""
    manifests = _manifests(session, place)
    if manifests:
        check_state(min(manifests, key=lambda data: _differences(data, declared)), declared)


def _declared(data: bytes) -> dict[str, Any] | None:
    found: dict[str, Any] | None = json.loads(data).get("declared")
    return found


def _differences(data: bytes, declared: dict[str, Any]) -> int:
    was = _declared(data) or {}
    return sum(was.get(name) != now for name, now in declared.items())


def _manifests(session: SparkSession, place: str) -> list[bytes]:
    """Return the manifests of all shards of a stream; none where they cannot be read.

    The checkpoint may not exist yet, have no finished micro-batch, or not be of Panes: the stream itself finds out.
    """
    found = []
    try:
        for operator in session.read.format("state-metadata").load(place).collect():
            if operator.operatorName.startswith(_OPERATOR):
                reader = session.read.format("statestore").option("operatorId", operator.operatorId)
                rows = reader.option("stateVarName", MANIFEST).load(place).selectExpr("value.data").collect()
                found += [bytes(row.data) for row in rows]
    except PySparkException:
        return []
    return found
