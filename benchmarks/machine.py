"""What a result was measured on: cores, memory, versions. No host names, no paths."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from typing import TYPE_CHECKING

from benchmarks import CORES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGES = ("pyspark", "pyarrow", "numpy", "duckdb", "polars", "scipy")


def machine(spark: SparkSession | None) -> dict[str, object]:
    """The facts that a reader needs to judge a timing."""
    facts: dict[str, object] = {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "cores_used": CORES,
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "python": platform.python_version(),
        **{package: version(package) for package in _PACKAGES},
    }
    if spark is not None:
        facts["spark"] = spark.version
        facts["java"] = spark.sql("SELECT java_method('java.lang.System', 'getProperty', 'java.version')").first()[0]
    return facts


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
