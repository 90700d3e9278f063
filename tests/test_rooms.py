"""What a batch loads, and which way its calls go: down the layers of the import contract in pyproject.toml.

Catches a batch that pays for the code of streams, a room that calls back into one above it, and tests without a room.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from types import FrameType

import pyarrow as pa
import pytest

import panes as pn
from tests.conftest import NO_CODEGEN, SPARK

SOURCES = Path(pn.__file__).parent
HEAVY = ("applying", "dialect", "live", "operators", "row_windows", "state", "testing")
HEAVY_WITH_ROWS = tuple(room for room in HEAVY if room not in ("operators", "row_windows"))
"""Windows of rows are declared as policies, which the room of operators has."""

RUN = """
import sys, pyarrow as pa, panes as pn
events = pa.table({"ts": pa.array([1, 2, 3], pa.timestamp("s", "UTC")), "k": ["a", "b", "a"], "x": [1, 2, 3]})
over = [pn.tumbling("1 s"), pn.sliding("1 min")]
"""
OF_ROWS = """
over.append(pn.sliding(pn.rows(2)))
"""
ON_SPARK = f"""
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config(map={SPARK | NO_CODEGEN!r}).getOrCreate()
events = spark.createDataFrame(events)
"""
TELL = """
query = pn.query(by="k", at="ts", select={"total": pn.sum("x")}, over=over)
pn.plan(query).run(events)
print(*{name.split(".")[1] for name in sys.modules if name.startswith("panes.")})
"""


def told(program: str) -> list[set[str]]:
    """The rooms that a program has loaded in a fresh Python, whenever it tells."""
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    return [set(line.split()) for line in found.stdout.splitlines()]


def test_a_batch_in_this_process_loads_no_code_of_streams() -> None:
    alone, with_rows = told(RUN + TELL + OF_ROWS + TELL)
    assert not alone & {*HEAVY, "spark"}
    assert "row_windows" in with_rows
    assert not with_rows & {*HEAVY_WITH_ROWS, "spark"}


@pytest.mark.spark
def test_a_batch_on_spark_loads_no_code_of_streams() -> None:
    alone, with_rows = told(RUN + ON_SPARK + TELL + OF_ROWS + TELL)
    assert "spark" in alone
    assert not alone & {*HEAVY, "local"}
    assert {"row_windows", "spark"} <= with_rows
    assert not with_rows & {*HEAVY_WITH_ROWS, "local"}


def room_of(frame: FrameType | None) -> str | None:
    """The room that a call is in, or the nearest one that called it."""
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(SOURCES):
            return file.relative_to(SOURCES).parts[0].removesuffix(".py")
        frame = frame.f_back
    return None


def crossings(verb) -> set[tuple[str, str]]:
    """From which room into which other one calls go while a verb runs."""
    found = set()

    def watch(frame, event, _):
        one, other = room_of(frame.f_back), room_of(frame)
        # A generator is a value that was passed down.
        calls = event == "call" and frame.f_code.co_name not in ("<module>", "<genexpr>")
        if calls and one is not None and other is not None and one != other:
            found.add((one, other))

    sys.setprofile(watch)
    try:
        verb()
    finally:
        sys.setprofile(None)
    return found


def test_calls_go_down() -> None:
    """Except that steps are carried out by whoever holds their list, and that keywords are checked around a call."""
    contracts = tomllib.loads((SOURCES.parents[1] / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    level = {room.strip(): i for i, rooms in enumerate(contracts[0]["layers"]) for room in rooms.split("|")}
    events = pa.table({"ts": pa.array([1, 2, 3], pa.timestamp("s")), "k": ["a", "b", "a"], "x": [1, 2, 3]})
    over = [pn.tumbling("1 s"), pn.sliding("1 min"), pn.sliding(pn.rows(2))]
    plan = pn.plan(pn.query(by="k", at="ts", select={"total": pn.sum("x")}, over=over))
    for verb in (lambda: plan.run(events), lambda: plan.lookup(events, events.select(["ts", "k"]))):
        up = {(one, other) for one, other in crossings(verb) if level[one] >= level[other] and one != "suggestions"}
        assert up == {("planning", "local")}


def test_tests_are_in_the_rooms_of_the_package() -> None:
    def rooms(folder: Path) -> set[str]:
        return {file.parent.name for file in folder.glob("*/*.py") if file.name != "__init__.py"}

    assert rooms(Path(__file__).parent) - rooms(SOURCES) == {"docs", "fuzz", "model", "recipes"}
