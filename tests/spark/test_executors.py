"""What executors load: they start for every job, so that whatever they import is paid again and again."""

from __future__ import annotations

import subprocess
import sys


def loaded(needed: str, *suspects: str) -> list[str]:
    """Which of some packages a fresh Python loads with some modules."""
    asked = f"import sys, {needed}; print(*[name for name in {suspects!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    return found.stdout.split()


def test_executors_do_not_import_parsers_and_planners() -> None:
    batch = "panes.spark.batches, panes.spark.chunks, panes.spark.lanes, panes.engine.answer"
    driver = (
        "sqlglot",
        "pandas",
        "panes.planning.physical_plan",
        "panes.expressions.parsing",
        "panes.engine.bind_program",
    )
    stream = "panes.spark.packing, panes.spark.processor, panes.spark.time_job, panes.spark.rows_job"
    assert loaded(f"{batch}, {stream}", *driver, "panes.row_windows", "panes.applying", "panes.operators") == []


def test_the_operator_of_streams_is_light() -> None:
    """Spark starts a Python on the driver for every stream, only to ask which state there is."""
    assert loaded("panes.spark.stateful_operator", "numpy", "pyarrow", "pandas", "sqlglot") == []
