"""Panes beside Spark's own windows, on a user's own data."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import panes as pn
from panes.cli.inputs import MALFORMED, Source
from panes.cli.reporting import console, working
from panes.cli.running import statements
from panes.errors import PanesError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from panes.declare.windows import Bounds

OURS, THEIRS = "Panes", "Spark's own windows"


def compare_file(
    queries: Path, source: Source, at: str | None, bounds: Bounds, rounds: int, start: Callable[[], SparkSession]
) -> None:
    """Check that answers are equal, and time both side by side."""
    from rich.table import Table

    from panes.testing import assert_same_answers

    asked = [statement.query for statement in statements(queries, at, bounds)]
    if not asked:
        return
    with working("starting Spark") as step:
        spark = start()
        events = source.read(spark)
        if MALFORMED in events.columns:
            events = events.where(f"{MALFORMED} IS NULL").drop(MALFORMED)
        plan = pn.plan(asked).with_statistics(events)
        runs = {OURS: plan.run(events), THEIRS: plan.run(events, strategy="native")}
        seconds: dict[str, list[float]] = {name: [] for name in runs}
        for turn in range(rounds + 1):
            for name, answers in runs.items():
                step(f"{name}, {f'round {turn} of {rounds}' if turn else 'warm-up'}", spark)
                began = time.perf_counter()
                answers.write.format("noop").mode("overwrite").save()
                if turn:
                    seconds[name].append(time.perf_counter() - began)
        step("comparing the answers", spark)
        found, expected = (answers.toArrow() for answers in runs.values())
        try:
            # Sums of floats may differ in their last digits: the order of addition is nobody's.
            assert_same_answers(found, expected, absolute=1e-9)
        except AssertionError as wrong:
            raise PanesError(f"the answers differ, which is a mistake of Panes: please report it.\n{wrong}") from wrong
    middle = {name: statistics.median(times) for name, times in seconds.items()}
    shown = Table("", f"median of {rounds}", "times", box=None, pad_edge=False)
    for name, median in middle.items():
        shown.add_row(name, f"{median:.2f} s", f"{median / middle[OURS]:.1f}×")
    windows = sum(len(query.windows) for query in asked)
    console().print(f"{len(asked):,} queries, {windows:,} windows: the {found.num_rows:,} answers of both are equal.")
    console().print(shown)
