"""What is said of a micro-batch: nothing where all is well, and what, why and what to do where it is not."""

from __future__ import annotations

import pytest

import panes as pn

pytest.importorskip("pyspark")

FIGURES = {"events": 100, "answers": 12, "watermark": 1_700_000_000_000_000, "open_windows": 4, "keys": 5, "bytes": 10}


def told(**figures: int) -> str:
    plan = pn.plan(pn.query("q", at="ts", select={"n": pn.count()}, over=pn.tumbling("5 min")))
    last = {"batchId": 3, "observedMetrics": {"panes": {**FIGURES, **figures}}, "eventTime": {}}
    return plan.status(type("Query", (), {"lastProgress": last})())


def test_a_status_explains_what_was_left_out() -> None:
    assert len(told(late=0, lost=0, null_timestamps=0).splitlines()) == 2
    late = told(late=3, lost=1)
    assert "3 of its events came after the watermark had passed a window of theirs, 1 of them after it had" in late
    assert "A longer delay in withWatermark(...) waits for them" in late
    assert "2 of its events have no time, and so are in no window" in told(null_timestamps=2)
    assert "4 of its events have times more than 36,000 years away" in told(absurd_timestamps=4)


def test_operators_count_late_events_one_by_one() -> None:
    """A line and a status have the same sums, and the status says that they are sums."""
    from panes.spark.progress import line_of, status

    metrics = {"panes": {**FIGURES, "late": 3, "lost": 1}, "panes_1": {**FIGURES, "late": 2, "lost": 2}}
    assert "5 too late for a window (3 of them for all windows)" in line_of("q", 1, 10.0, metrics)
    told_ = status([], [], {"batchId": 3, "observedMetrics": metrics})
    assert "5 of its events" in told_
    assert "3 of them after it had passed all. Each of 2 operators has counted those that it got." in told_
    metrics["panes_1"]["late"] = metrics["panes_1"]["lost"] = 0
    told_ = status([], [], {"batchId": 3, "observedMetrics": metrics})
    assert "3 of its events" in told_
    assert "operators" not in told_


def test_sessions_alone_end_by_themselves() -> None:
    over = [pn.tumbling("5 min"), pn.sliding(pn.rows(3)), pn.session("1 min", name="visit")]
    plan = pn.plan(pn.query("q", at="ts", select={"n": pn.count()}, over=over))
    last = {"batchId": 3, "observedMetrics": {"panes": FIGURES}, "eventTime": {}}
    lines = plan.status(type("Query", (), {"lastProgress": last})()).splitlines()
    [rows] = [line for line in lines if line.startswith("  3rows/event: ")]
    [visit] = [line for line in lines if line.startswith("  visit: ")]
    assert rows.endswith("when the watermark has passed it.")
    assert visit.endswith("and a session is out when the watermark has reached its end.")


def test_a_line_of_progress_says_what_its_counts_mean() -> None:
    from panes.spark.progress import line_of

    line = line_of("q", 1, 10.0, {"panes": {**FIGURES, "late": 3, "lost": 1, "null_timestamps": 2}})
    assert (
        "3 too late for a window (1 of them for all windows), 2 without a time, which are in no window, holding" in line
    )
    assert "late" not in line_of("q", 1, 10.0, {"panes": FIGURES})


def test_a_status_through_spark_connect_is_the_same() -> None:
    """Rows of observed metrics arrive there as their values, and the schema of these."""
    plan = pn.plan(pn.query("q", at="ts", select={"n": pn.count()}, over=pn.tumbling("5 min")))
    figures = {**FIGURES, "late": 3, "lost": 1}
    row = {
        "values": list(figures.values()),
        "schema": {"type": "struct", "fields": [{"name": name} for name in figures]},
    }
    last = {"batchId": 3, "observedMetrics": {"panes": row}, "eventTime": {}}
    assert plan.status(type("Query", (), {"lastProgress": last})()) == told(late=3, lost=1)
