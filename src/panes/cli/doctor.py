"""Is everything there that Panes needs?"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from panes.cli.reporting import console, working
from panes.errors import PanesError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MEMORY = 4 << 30


def examine(start: Callable[[], SparkSession]) -> bool:
    """Go through everything; whether all is well."""
    checks: dict[str, Callable[[], str]] = {
        "Python": _python,
        "Java": _java,
        "packages": _packages,
        "memory": _memory,
        "a small job on Spark": lambda: _job(start),
    }
    wrong: list[str] = []
    for name, check in checks.items():
        if name == "a small job on Spark" and {"Java", "packages"} & set(wrong):
            console().print(f"      {name}: not tried without the above", markup=False)
            continue
        try:
            said, mark = check(), "ok"
        except _Wrong as error:
            said, mark = str(error), "WRONG"
            wrong.append(name)
        console().print(f"{mark:6}{name}: {said}", markup=False)
    return not wrong


class _Wrong(Exception):
    """What is wrong, and how to mend it."""


def _python() -> str:
    found = ".".join(map(str, sys.version_info[:3]))
    workers = os.environ.get("PYSPARK_PYTHON")
    return f"{found}" + (f", workers run {workers}" if workers else "")


def _java() -> str:
    from panes.spark.session import find_java

    try:
        version, java = find_java()
    except PanesError as error:
        raise _Wrong(str(error)) from error
    return f"{version} ({java})"


def _packages() -> str:
    found, missing = [], []
    for package in ("pyspark", "pyarrow", "numpy", "pandas", "protobuf", "sqlglot"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            missing.append(package)
    if missing:
        raise _Wrong(f"{', '.join(missing)} missing: pip install {' '.join(missing)}.")
    return ", ".join(found)


def _memory() -> str:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return "unknown on this system"
    if total < _MEMORY:
        raise _Wrong(
            f"{total / 2**30:.1f} GiB is little for Spark: run elsewhere, or with --conf spark.driver.memory=1g."
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
            found = pn.plan(query).run(events, strategy="columnar").count()
    except Exception as error:
        raise _Wrong(f"it failed: {str(error).splitlines()[0]}") from error
    if found != 3 * (10 + 5):
        raise _Wrong(f"{found} answers came, and 45 should have.")
    return f"45 answers, on Spark {spark.version}"
