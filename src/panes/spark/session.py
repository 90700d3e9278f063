"""A Spark session for one machine, for what Panes starts itself. Users' own sessions are left as they are."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from pyspark.sql import SparkSession

from panes.spark.java import find_java

_ZONE = "spark.sql.session.timeZone"
# Spark asks whether a value is there before it reads it; Arrow need not ask again.
_UNCHECKED = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"


def session(master: str | None, settings: Mapping[str, str], *, stream: bool = False) -> SparkSession:
    """Spark in this process, or where ``master`` says; under ``spark-submit``, the Spark that was asked for there."""
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not submitted and (master is None or master.startswith("local")):
        more = ({} if master is None else {"spark.master": master}) | dict(settings)
        return local_session("panes", stream=stream, more=more)
    builder = SparkSession.builder.appName("panes")
    if master is not None:
        builder = builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    if not made.sparkContext.getConf().contains(_ZONE):
        # Times without a zone mean the same wherever a command runs.
        made.conf.set(_ZONE, "UTC")
    return made


def local_session(
    name: str = "panes",
    *,
    cores: int | None = None,
    memory: str = "4g",
    stream: bool = False,
    more: Mapping[str, str] | None = None,
) -> SparkSession:
    """A local session that suits one machine: few shuffle partitions, cheap ways to Python, a quiet console.

    Parameters
    ----------
    stream
        Whether it is for streams, which open a state store per shuffle partition in every micro-batch.
    more
        Settings beside these, or instead of them.
    """
    if SparkSession.getActiveSession() is None:
        find_java()
    count = cores or os.cpu_count() or 2
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # As an address: the JVM's options are split at blanks, and a path may have some.
    quiet = Path(str(files("panes.spark").joinpath("log4j2.properties"))).as_uri()
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet} {_UNCHECKED}",
        # With a limit of bytes, Spark measures the batch after every row: half of the way to Python.
        "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "5000",
        # Panes of a task are kept in a fast table of so many places (a power of two), and the rest in a slow one.
        "spark.sql.codegen.aggregate.fastHashMap.capacityBit": "18",
        _ZONE: "UTC",
        "spark.sql.shuffle.partitions": str(count if stream else 8 * count),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(f"local[{count}]").appName(name)
    for key, value in (settings | dict(more or {})).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
