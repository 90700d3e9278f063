"""The way through the shards of a stream, on the driver: events packed, one stateful operator, answers unpacked.

The streams of all kinds of windows are made of these functions; ``stream.py`` and ``rows_stream.py`` call them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from panes.errors import PlanError
from panes.queries.catalogue_entries import LONGEST
from panes.spark.naming import quoted
from panes.spark.output_mode import check_output_modes
from panes.spark.packing import Packer, packing, shard_labels
from panes.spark.processor import DATA, HIGHEST, METRIC_NAMES, OUTPUT, Job
from panes.spark.versions import check_streams
from panes.spark.workers import map_in_python
from panes.state import stream_options
from panes.state.stream_options import Mode

METRICS = "panes"
"""The name of a micro-batch's metrics among the observed metrics of a query."""

_LOG = logging.getLogger("panes")
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_DEFAULT = "HDFSBackedStateStoreProvider"
"""Spark's default provider."""
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


def check_shards(session: SparkSession, shards: object) -> None:
    """Reject an invalid number of shards, and a session that ``transformWithState`` cannot run in."""
    stream_options.check_shards(shards)
    check_session(session)


def check_session(session: SparkSession) -> None:
    """Reject a session that ``transformWithState`` cannot run in."""
    check_streams()
    if find_spec("google") is None or find_spec("google.protobuf") is None:
        raise PlanError("streams need the package protobuf: pip install 'protobuf>=6.33.5'.")
    provider = session.conf.get(_PROVIDER) or ""
    if not provider.endswith((_DEFAULT, "RocksDBStateStoreProvider")):
        raise PlanError(f"{_PROVIDER} is {provider}, but the state of Panes needs {_ROCKSDB}. Set that.")


def shard_sql(keys: Sequence[str], shards: int, keyless: int = 0) -> str:
    """Return SQL for the number of the shard of a key.

    Parameters
    ----------
    keyless
        A number from which the shard follows where there are no keys.
    """
    hashed = f"pmod(xxhash64({', '.join(map(quoted, keys))}), {shards})" if keys else str(keyless % shards)
    return f"CAST({hashed} AS INT)"


def pack_events(events: DataFrame, packer: Callable[[], Packer], columns: Mapping[str, str], shards: int) -> DataFrame:
    """Pack events for shards where they are read."""
    return map_in_python(events, packing(packer, columns, shards), ", ".join(map(" ".join, columns.items())))


def read_changes(session: SparkSession, folder: str, shards: int) -> DataFrame:
    """Read the catalogue as a stream: every change reaches every shard.

    Files are read whole, whatever is in them, but of one that is too large to be an entry only the beginning goes on.
    Bytes that are not UTF-8 become replacement characters, which the shards refuse. Names of files are numbers in
    order, and a replay reads the same files in the same micro-batch again.
    """
    files = session.readStream.format("text").option("wholetext", "true").load(folder)
    return files.selectExpr(
        f"explode(array({', '.join(map(str, shard_labels(shards)))})) AS shard",
        "-1 AS store",
        "CAST(NULL AS BINARY) AS keys",
        "CAST(NULL AS BINARY) AS panes",
        "_metadata.file_name AS place",
        f"make_valid_utf8(substring(value, 1, {LONGEST + 1})) AS change",
    )


def metrics_name(number: int) -> str:
    """The name of the metrics of a query's n-th operator, from 0: Spark refuses two observed metrics of one name."""
    return f"{METRICS}_{number}" if number else METRICS


def run_shards(packed: DataFrame, job: Job, mode: Mode, metrics: str = METRICS) -> DataFrame:
    """Run packed events through the stateful operator; its answers are still packed.

    Parameters
    ----------
    metrics
        The name of its observed metrics, which no other operator of the query may have.
    """
    _use_rocksdb(packed.sparkSession)
    check_output_modes(packed.sparkSession)
    # Older versions of PySpark, which run batches only, cannot import it.
    from panes.spark.stateful_operator import ShardProcessor

    operator = ShardProcessor(cloudpickle.dumps(job))  # type: ignore[no-untyped-call]
    found = packed.groupBy("shard").transformWithState(operator, OUTPUT, mode, "EventTime")
    totals = [(F.max if name in HIGHEST else F.sum)(name).alias(name) for name in METRIC_NAMES]
    return found.observe(metrics, *totals).where(f"{DATA} IS NOT NULL").select(DATA)


def _use_rocksdb(session: SparkSession) -> None:
    """Set what ``transformWithState`` needs, unless a user has set it already."""
    if (session.conf.get(_PROVIDER) or "").endswith(_DEFAULT):
        # The default has no map state. With RocksDB, write changes and not whole snapshots.
        session.conf.set(_PROVIDER, _ROCKSDB)
        session.conf.set(_CHANGELOG, "true")
        _LOG.warning("set %s to RocksDB, which streams of Panes need, and %s to true", _PROVIDER, _CHANGELOG)
