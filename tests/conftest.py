"""What all tests share: one Spark session per process, and how many examples Hypothesis draws."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

import pytest
from hypothesis import is_hypothesis_test, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

USUAL = 50
"""The number of examples that the numbers tests set for themselves are relative to."""
FEWEST = 4
"""The first example is the simplest, often an empty table: alone it would compare nothing with nothing."""
# No deadlines: an import or a busy machine would fail a test. Every run draws other examples.
settings.register_profile("panes", deadline=None, max_examples=USUAL)
settings.register_profile("check", deadline=None, max_examples=USUAL // 5)
settings.register_profile("soak", deadline=None, max_examples=USUAL * 20)
settings.load_profile("panes")

SPARK = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # Most code of a test runs once: compiling it twice costs more than it saves.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
}
CODEGEN = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
NO_CODEGEN = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def pytest_configure(config: pytest.Config) -> None:
    # Sockets and files that PySpark itself leaves to the garbage collector.
    config.addinivalue_line("filterwarnings", "ignore:unclosed.*:ResourceWarning")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _needs_spark(item):
            item.add_marker("spark")
        if isinstance(item, pytest.Function) and not item.get_closest_marker("soak"):
            _scale_examples(item.obj)
    # The longest first, so that no process waits for it at the end.
    items.sort(key=lambda item: not any(name in item.nodeid for name in ("test_faults", "test_support")))


def _needs_spark(item: pytest.Item) -> bool:
    """Whether a test takes the fixture ``spark``, or is a doctest that asks for a session."""
    if isinstance(item, pytest.DoctestItem):
        return any("spark = " in example.source for example in item.dtest.examples)
    return "spark" in getattr(item, "fixturenames", ())


def _scale_examples(test: object) -> None:
    """Scale the number of examples that a test sets for itself with the profile's."""
    function = getattr(test, "__func__", test)
    if not is_hypothesis_test(function) or hasattr(function, "scaled"):
        return
    own = function._hypothesis_internal_use_settings
    if own is not settings.default:
        scaled = own.max_examples * settings.default.max_examples // USUAL
        count = max(scaled, min(own.max_examples, FEWEST))
        function._hypothesis_internal_use_settings = settings(own, max_examples=count)
    function.scaled = True


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Run a doctest in the shared session, which its ``getOrCreate`` finds, and undo what it configures."""
    if not (isinstance(item, pytest.DoctestItem) and item.get_closest_marker("spark")):
        yield
        return
    conf = _session().conf
    before = conf.getAll
    yield
    for name, _ in conf.getAll.items() - before.items():
        if name in before:
            conf.set(name, before[name])
        else:
            conf.unset(name)


def pytest_sessionfinish() -> None:
    if _session.cache_info().currsize:
        _session().stop()


@cache
def _session() -> SparkSession:
    """A small local Spark, or the server of Spark Connect at ``PANES_TESTS_REMOTE``.

    PySpark is imported here, so that pure tests never wait for a JVM.
    """
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = SPARK | (CODEGEN if os.environ.get("PANES_TESTS_CODEGEN") else NO_CODEGEN)
    if remote := os.environ.get("PANES_TESTS_REMOTE"):
        own = {name: value for name, value in settings.items() if name.startswith("spark.sql.")}
        return SparkSession.builder.remote(remote).config(map=own).getOrCreate()
    session = SparkSession.builder.master("local[2]").appName("panes-tests").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The session that all tests of a process share.

    It interprets expressions: to generate and compile Java for queries of a few rows takes most of a test's time. Tests
    of what Spark computes for us ask for ``codegen``, and `make soak` runs all of them with it.
    """
    return _session()


def configured(spark: SparkSession, changes: dict[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name) or "" for name in changes}
    for name, value in changes.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.fixture
def one_partition(spark: SparkSession) -> Iterator[None]:
    """For streams: Spark opens a state store per partition, in every micro-batch."""
    yield from configured(spark, {"spark.sql.shuffle.partitions": "1"})


@pytest.fixture
def codegen(spark: SparkSession) -> Iterator[None]:
    """Generated code, as users have it."""
    yield from configured(spark, CODEGEN)
