"""Panes beside Spark's own windows, on a user's own data."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import panes as pn
from panes.cli.reporting import console, working
from panes.errors import PanesError, PlanError
from panes.planning.explanation import counted
from panes.queries.windows import RowWindow
from panes.spark.files import Source, part_malformed
from panes.spark.session import race

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OURS, THEIRS = "Panes", "Spark's own windows"


def compare_queries(asked: Sequence[pn.Query], source: Source, rounds: int, start: Callable[[], SparkSession]) -> None:
    """Check that answers are equal, and time both side by side."""
    from rich.table import Table

    from panes.testing import assert_same_answers

    by_events = next((str(w) for query in asked for w in query.over if isinstance(w, RowWindow)), None)
    if by_events is not None:
        raise PanesError(
            f"the window {by_events!r} goes by rows, and is not compared: Spark has no such group-by, or writes it "
            "in another way. Leave it out."
        )
    with working("starting Spark") as step:
        spark = start()
        _, events = part_malformed(source.read(spark))
        plan = pn.plan(asked).with_statistics(events)
        try:
            runs = {OURS: plan.run(events), THEIRS: plan.run(events, strategy="native")}
        except PlanError as error:
            if any(not aggregate.in_spark for query in asked for _, aggregate in query.aggregates) or any(
                window.since is not None or window.per_event for query in asked for window in query.windows
            ):
                raise PanesError(f"there is nothing to compare with, since Spark's windows cannot: {error}") from error
            raise
        seconds = race(runs, rounds, lambda now: step(now, spark))
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
    windows = counted(sum(len(query.windows) for query in asked), "window")
    queries, answers = counted(len(asked), "query", "queries"), counted(found.num_rows, "answer")
    console().print(f"{queries}, {windows}: the {answers} of both are equal.")
    console().print(shown)
