"""What all tests share: one Spark session for those that need it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Tests do not time: an import or a busy machine would fail them.
# Every run draws other examples: few are enough for each, and `make soak` draws many.
settings.register_profile("panes", deadline=None, max_examples=50)
settings.register_profile("soak", deadline=None, max_examples=1000)
settings.load_profile("panes")


def pytest_configure(config: pytest.Config) -> None:
    # Sockets and files that PySpark itself leaves to the garbage collector.
    config.addinivalue_line("filterwarnings", "ignore:unclosed.*:ResourceWarning")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _needs_spark(item):
            item.add_marker("spark")
    # The longest first, so that no process waits for it at the end.
    items.sort(key=lambda item: not any(name in item.nodeid for name in ("test_faults", "test_support")))


def _needs_spark(item: pytest.Item) -> bool:
    """Whether a test takes the fixture ``spark``, or is a doctest that starts a session of its own."""
    if isinstance(item, pytest.DoctestItem):
        return any("SparkSession" in example.source for example in item.dtest.examples)
    return "spark" in getattr(item, "fixturenames", ())


@pytest.fixture
def one_partition(spark: SparkSession) -> Iterator[None]:
    """For streams: Spark opens a state store per partition, in every micro-batch."""
    before = spark.conf.get("spark.sql.shuffle.partitions") or ""
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", before)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A small local Spark; imported here, so that pure tests never wait for a JVM."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("panes-tests")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        # Most code of a test runs once: compiling it twice costs more than it saves.
        .config(
            "spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
        )
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
