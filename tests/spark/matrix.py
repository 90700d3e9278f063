"""Runs ``test_versions.py`` and ``test_connect.py`` on every version of PySpark and Python, and prints what works.

    make matrix                                        all versions; takes about an hour
    make matrix ARGS='--spark 4.1 3.5 --python 3.12'   some of them
    make matrix ARGS=--table                           what earlier runs found, without another

Each version has an environment in ``.matrix/``, with what its run found. The table in ``docs/reliability.md`` is
written from all that is there.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reliability.md"
FOLDER = ROOT / ".matrix"
SPARKS, PYTHONS = ("4.3", "4.2", "4.1", "4.0", "3.5"), ("3.11", "3.12", "3.13")
FILES = ("tests/spark/test_versions.py", "tests/spark/test_connect.py")
PACKAGES = ("pytest", "hypothesis", "datasketches", "setuptools")
"""What tests need; PySpark 3.5 needs setuptools on Python 3.12 and newer, which has no distutils."""
COLUMNS = {
    "`run`": r"test_run_",
    "`lookup`": r"test_lookup",
    "`join`": r"test_join",
    "`apply`, `sort`": r"test_(apply|sort)",
    "streams": r"test_stream_(?!is_refused)",
    "Spark Connect": r"test_every_verb",
}
"""The tests of each column, by their names."""
BEGIN, END = "<!-- make matrix writes what follows -->", "<!-- until here -->"


def main() -> None:
    """Run the versions that are asked for, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spark", nargs="+", choices=SPARKS, default=SPARKS)
    parser.add_argument("--python", nargs="+", choices=PYTHONS, default=PYTHONS)
    parser.add_argument("--table", action="store_true", help="run nothing")
    asked = parser.parse_args()
    for spark in () if asked.table else asked.spark:
        for python in asked.python:
            run(spark, python)
    found = table(json.loads(path.read_text("utf-8")) for path in FOLDER.glob("*/found.json"))
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{found}\n{END}{rest.partition(END)[2]}", "utf-8")
    print(found)


def run(spark: str, python: str) -> None:
    """Make an environment, run the tests in it, and keep what was found; without an interpreter, do nothing."""
    place = FOLDER / f"spark-{spark}-python-{python}"
    interpreter = place / "bin" / "python"
    uv = [sys.executable, "-m", "uv"]
    if not interpreter.exists():
        made = subprocess.run([*uv, "venv", "-q", "--python", python, place], check=False)
        if made.returncode:
            print(f"no Python {python}", file=sys.stderr)
            return
    # The package of 3.5 has no server of Spark Connect, and asks for an older numpy for its client.
    extra = "" if spark == "3.5" else "[connect]"
    needed = [f"pyspark{extra}=={spark}.*", "-e", ".", *PACKAGES]
    subprocess.run([*uv, "pip", "install", "-q", "--python", interpreter, *needed], cwd=ROOT, check=True)
    print(f"PySpark {spark}, Python {python} ...", file=sys.stderr, flush=True)
    report = place / "report.xml"
    report.unlink(missing_ok=True)
    options = ["-q", "-p", "no:cacheprovider", "-m", "not soak", f"--junitxml={report}", "--tb=short"]
    with (place / "log").open("w") as log:
        command = [interpreter, "-m", "pytest", *options, *FILES]
        ended = subprocess.run(command, cwd=ROOT, env=_environment(), stdout=log, stderr=log, check=False)
        print(f"pytest ended with {ended.returncode}", file=log)
    version = [interpreter, "-c", "import pyspark; print(pyspark.__version__)"]
    exact = subprocess.run(version, capture_output=True, text=True, check=True).stdout.strip()
    found = {"spark": exact, "python": python, "cells": cells(report)}
    (place / "found.json").write_text(json.dumps(found, ensure_ascii=False, indent=1), "utf-8")


def _environment() -> dict[str, str]:
    """This process's environment, without what would lead to other packages."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}


def cells(report: Path) -> list[str]:
    """What a run found, by column: whether all of its tests passed, or none could run."""
    outcomes = {}
    # There is none if the process died.
    for case in ElementTree.parse(report).iter("testcase") if report.exists() else ():
        kinds = [kind for kind in ("failure", "error", "skipped") if case.find(kind) is not None]
        outcomes[case.get("name", "")] = kinds[0] if kinds else "passed"
    found = []
    for pattern in COLUMNS.values():
        own = {outcome for name, outcome in outcomes.items() if re.match(pattern, name)}
        found.append("✗" if not own or own & {"failure", "error"} else "—" if own == {"skipped"} else "✓")
    return found


def table(found: Iterable[dict[str, object]]) -> str:
    """A row per version of PySpark, and per Python where they differ; the newest first."""
    rows = sorted(found, key=lambda one: (_number(one["spark"]), _number(one["python"])), reverse=True)
    lines = [["PySpark", "Python", *COLUMNS], ["---"] * (2 + len(COLUMNS))]
    for (spark, outcome), alike in groupby(rows, key=lambda one: (one["spark"], one["cells"])):
        pythons = ", ".join(sorted((str(one["python"]) for one in alike), key=_number))
        lines.append([str(spark), pythons, *outcome])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _number(version: object) -> tuple[int, ...]:
    return tuple(int(part) for part in str(version).split("."))


if __name__ == "__main__":
    main()
