"""The Spark session of the benchmarks: the one that Panes starts itself, with more memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import CORES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Racing plans with a stage per window would push one another's compiled code out (100 classes by default).
SETTINGS = {"spark.sql.codegen.cache.maxEntries": "2000"}


def session() -> SparkSession:
    """Start Spark."""
    from panes.spark.session import local_session

    spark = local_session("panes-benchmarks", cores=CORES, memory="8g", more=SETTINGS)
    spark.sparkContext.setLogLevel("ERROR")
    return spark
