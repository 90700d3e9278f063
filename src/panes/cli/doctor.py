"""Check that this machine has everything Panes needs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from panes.cli.console import console, working
from panes.errors import PanesError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LEAST_MEMORY = 4 << 30


def examine(start: Callable[[], SparkSession]) -> bool:
    """Run every check, print its result, and return whether all passed."""
    checks: dict[str, Callable[[], str]] = {
        "Python": _python,
        "Java": _java,
        "packages": _packages,
        "memory": _memory,
        "a small job on Spark": lambda: _job(start),
    }
    failed: list[str] = []
    for name, check in checks.items():
        if name == "a small job on Spark" and {"Java", "packages"} & set(failed):
            console().print(f"      {name}: skipped until the above is fixed", markup=False)
            continue
        try:
            finding, mark = check(), "ok"
        except _Failed as error:
            finding, mark = str(error), "WRONG"
            failed.append(name)
        console().print(f"{mark:6}{name}: {finding}", markup=False)
    return not failed


class _Failed(Exception):
    """What is wrong, and how to fix it."""


def _python() -> str:
    version_here = ".".join(map(str, sys.version_info[:3]))
    workers = os.environ.get("PYSPARK_PYTHON")
    return version_here + (f", workers run {workers}" if workers else "")


def _java() -> str:
    from panes.spark.session import find_java

    try:
        version, java = find_java()
    except PanesError as error:
        raise _Failed(str(error)) from error
    return f"{version} ({java})"


def _packages() -> str:
    installed, missing = [], []
    for package in ("pyspark", "pyarrow", "numpy", "pandas", "protobuf", "sqlglot"):
        try:
            installed.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            missing.append(package)
    if missing:
        raise _Failed(f"{', '.join(missing)} missing: pip install {' '.join(missing)}.")
    return ", ".join(installed)


def _memory() -> str:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return "unknown on this system"
    if total < _LEAST_MEMORY:
        raise _Failed(
            f"{total / 2**30:.1f} GiB is little for Spark: use a larger machine, or --conf spark.driver.memory=1g."
        )
    return f"{total / 2**30:.1f} GiB"


def _job(start: Callable[[], SparkSession]) -> str:
    import panes as pn

    try:
        with working("running a small job"):
            spark = start()
            instants = "timestamp_seconds(id * 60) AS ts"
            events = spark.range(600).selectExpr(instants, "id % 3 AS k", "id AS x")
            query = pn.query(
                "q", by="k", at="ts", select={"n": pn.count()}, over=[pn.tumbling("1h"), pn.tumbling("2h")]
            )
            answers = pn.plan(query).run(events, strategy="columnar").count()
    except Exception as error:
        raise _Failed(f"it failed: {str(error).splitlines()[0]}") from error
    if answers != 3 * (10 + 5):
        raise _Failed(f"expected 45 answers and got {answers}.")
    return f"45 answers, on Spark {spark.version}"
