"""Spark on one machine: the Java it needs, a session that suits it, and several ways to the same answers timed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from panes.errors import PanesError

_OLDEST = 17
_HOW = "install it, for example with 'apt-get install openjdk-17-jre-headless' or 'brew install openjdk@17'"


def find_java() -> tuple[int, str]:
    """The version and the place of the Java that Spark will run; an error says what to install."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    needed = f"Spark needs Java {_OLDEST} or newer"
    if java is None or not os.path.exists(java):
        where = f"JAVA_HOME is {home}, which has none" if home else "there is none on the PATH"
        raise PanesError(f"{needed}, and {where}: {_HOW}, and set JAVA_HOME if it is not on the PATH.")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    if found is None or int(found[1]) < _OLDEST:
        raise PanesError(f"{needed}, and {java} is {said.splitlines()[0] if said else 'none'}: {_HOW}.")
    return int(found[1]), java


_ZONE = "spark.sql.session.timeZone"
# Spark asks whether a value is there before it reads it; Arrow need not ask again.
_UNCHECKED = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"


def session(master: str | None, settings: Mapping[str, str], *, stream: bool = False) -> SparkSession:
    """Spark in this process, or where ``master`` says; under ``spark-submit``, the Spark that it set up."""
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not submitted and (master is None or master.startswith("local")):
        more = ({} if master is None else {"spark.master": master}) | dict(settings)
        return local_session("panes", stream=stream, more=more)
    builder = SparkSession.builder.appName("panes")
    if master is not None:
        builder = builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if not spark.sparkContext.getConf().contains(_ZONE):
        # Times without a zone mean the same wherever a command runs.
        spark.conf.set(_ZONE, "UTC")
    return spark


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


def race(
    runs: Mapping[str, DataFrame], rounds: int, tell: Callable[[str], None], *, warm_up: bool = True
) -> dict[str, list[float]]:
    """Return the seconds that each takes in every round A B A B ..., after a first one that does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(not warm_up, rounds + 1):
        for name, answers in runs.items():
            tell(f"{name}, {f'round {turn} of {rounds}' if turn else 'warm-up'}")
            began = time.perf_counter()
            answers.write.format("noop").mode("overwrite").save()
            if turn:
                seconds[name].append(time.perf_counter() - began)
    return seconds
