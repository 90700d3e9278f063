"""What executors load: they start for every job, so that whatever they import is paid again and again."""

from __future__ import annotations

import subprocess
import sys


def test_executors_do_not_import_the_sql_parser() -> None:
    needed = "import panes.spark.batches, panes.spark.chunks, panes.spark.lanes, panes.engine.run, sys"
    asked = f"{needed}; print('sqlglot' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
