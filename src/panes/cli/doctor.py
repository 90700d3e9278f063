"""Is everything there that Panes needs?"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from panes.cli.reporting import console, working

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_JAVA = 17
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
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    how = "install it, for example with 'apt-get install openjdk-17-jre-headless' or 'brew install openjdk@17'"
    if java is None or not os.path.exists(java):
        where = f"JAVA_HOME is {home}, which has none" if home else "there is none on the PATH"
        raise _Wrong(f"{where}: {how}, and set JAVA_HOME if it is not on the PATH.")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    if found is None or int(found[1]) < _JAVA:
        raise _Wrong(
            f"Spark needs Java {_JAVA} or newer, and {java} is {said.splitlines()[0] if said else '?'}: {how}."
        )
    return f"{found[1]} ({java})"


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
