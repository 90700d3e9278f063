"""Watching a stream: a line per micro-batch, and what each window is waiting for."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from threading import Condition
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from panes.frames.positions import FARTHEST
from panes.planning.physical_plan import WindowsOfRows
from panes.queries.query import Query
from panes.queries.windows import Window
from panes.spark.packing import READ
from panes.spark.shards import METRICS
from panes.timeline import format_duration

_NEXT = 12


class Progress(StreamingQueryListener):
    """Reports every micro-batch of every stream of Panes in a session, in a line.

    Parameters
    ----------
    tell
        Called with each line; by default it goes to the standard error output.
    """

    def __init__(self, tell: Callable[[str], None] | None = None) -> None:
        self._tell = tell or (lambda line: print(line, file=sys.stderr, flush=True))

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Do nothing: there is nothing to report before the first micro-batch."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Report a micro-batch; ignore streams that are not of Panes."""
        progress = event.progress
        if METRICS in progress.observedMetrics:
            self._tell(
                line_of(
                    progress.name or str(progress.id)[:8],
                    progress.batchId,
                    progress.processedRowsPerSecond,
                    progress.observedMetrics,
                )
            )

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Do nothing: Spark itself says why."""


class Totals(StreamingQueryListener):
    """Adds up the metrics of all micro-batches of a session."""

    def __init__(self) -> None:
        self.metrics: Counter[str] = Counter()
        self._ended = 0
        self._reported = Condition()

    def wait(self, ended: int, seconds: float) -> None:
        """Wait until Spark, which reports late, has reported the end of so many streams; at most so long."""
        with self._reported:
            self._reported.wait_for(lambda: self._ended >= ended, seconds)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Do nothing: there is nothing to add yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Add every observed metric, whatever observed it."""
        for metrics in event.progress.observedMetrics.values():
            self.metrics.update({name: value or 0 for name, value in _plain(metrics).items()})

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Count the end of a stream."""
        with self._reported:
            self._ended += 1
            self._reported.notify_all()


def line_of(name: str, batch: int, rate: float, metrics: dict[str, Any]) -> str:
    """Describe one micro-batch in a line.

    Examples
    --------
    >>> metrics = dict(events=100, answers=12, late=3, lost=1, null_timestamps=2, open_windows=4)
    >>> metrics |= dict(keys=5, granules=90, bytes=20_000, watermark=1_700_000_000_000_000)
    >>> line_of("temps", 7, 1234.5, {"panes": metrics})
    'temps #7: 100 events (1,234/s), watermark 2023-11-14 22:13:20, 12 answers, 4 windows open, ...'
    """
    found = _together(metrics)
    parts = [
        f"{found.get('events') or 0:,} events ({int(rate or 0):,}/s)",
        f"watermark {_instant(found.get('watermark') or 0)}",
        f"{found.get('answers') or 0:,} answers",
        f"{found.get('open_windows') or 0:,} windows open",
    ]
    if found.get("late"):
        parts.append(f"{found['late']:,} too late for a window ({found.get('lost') or 0:,} of them for all windows)")
    if found.get("null_timestamps"):
        parts.append(f"{found['null_timestamps']:,} without a time, which are in no window")
    held = f"{found.get('keys') or 0:,} keys, {found.get('granules') or 0:,} granules, {_size(found.get('bytes') or 0)}"
    return f"{name} #{batch}: {', '.join(parts)}, holding {held}"


def status(queries: Iterable[Query], row_windows: Iterable[WindowsOfRows], progress: dict[str, Any] | None) -> str:
    """Describe where a stream stands, and what each window is waiting for.

    Parameters
    ----------
    queries, row_windows
        Queries with windows over time, and those with windows of rows.
    progress
        A streaming query's ``lastProgress``.
    """
    if progress is None:
        return "The stream has not finished a micro-batch yet."
    metrics = progress["observedMetrics"]
    if METRICS not in metrics:
        return "This streaming query is not one of Panes, or its last micro-batch read nothing."
    watermark = _plain(metrics[METRICS]).get("watermark") or 0
    latest = (progress.get("eventTime") or {}).get("max")
    lines = [
        f"The watermark was {_instant(watermark)} in micro-batch {progress['batchId']}"
        + (f", whose latest event was at {latest}." if latest else ", which had no events.")
    ]
    lines += _left_out(_together(metrics), _counting_late(metrics))
    windows = {window for query in queries for window in query.windows}
    for window in sorted(windows, key=lambda w: (_next_end(w, watermark), w.geometry, w.name))[:_NEXT]:
        end = _next_end(window, watermark)
        if window.per_event:
            lines.append(
                f"  {window.name}: answers of all events before {_instant(watermark)} are out; that of a later event "
                "comes out when the watermark has passed it."
            )
            continue
        start = max(end - window.geometry.range, -FARTHEST if window.since is None else window.since)
        between = f"{_instant(start - window.shift)}, {_instant(end - window.shift)}"
        lines.append(
            f"  {window.name}: {window.bounds[0]}{between}{window.bounds[1]} is next; it comes out when the watermark "
            f"has moved on by {format_duration(end - watermark)}, which takes events that much later."
        )
    if len(windows) > _NEXT:
        lines.append(f"  and {len(windows) - _NEXT} more windows after these")
    row_windows = tuple(row_windows)
    sessions = {name for query in row_windows for name in query.sessions}
    for name in dict.fromkeys(name for query in row_windows for name in query.windows):
        ends = ", and a session is out when the watermark has reached its end" if name in sessions else ""
        lines.append(
            f"  {name}: all events before {_instant(watermark)} have been counted; a later event counts "
            f"when the watermark has passed it{ends}."
        )
    return "\n".join(lines)


def _left_out(metrics: dict[str, Any], operators: int) -> list[str]:
    """Describe which events of a micro-batch are missing from some of their windows, and what would change that.

    Parameters
    ----------
    operators
        How many operators have counted late events.
    """
    lines = []
    if late := metrics.get("late"):
        lost = metrics.get("lost") or 0
        each = f" Each of {operators} operators has counted those that it got." if operators > 1 else ""
        lines.append(
            f"  {late:,} of its events came after the watermark had passed a window of theirs, {lost:,} of them after "
            f"it had passed all.{each} Windows of rows drop them; other windows that are still open count them. A "
            "longer delay in withWatermark(...) waits for them, and answers then come that much later."
        )
    if missing := metrics.get("null_timestamps"):
        lines.append(f"  {missing:,} of its events have no time, and so are in no window.")
    if absurd := metrics.get("absurd_timestamps"):
        lines.append(f"  {absurd:,} of its events have times more than 36,000 years away, and are left out.")
    return lines


def _next_end(window: Window, watermark: int) -> int:
    """Return the first end of an instance after the watermark and after ``since``."""
    geometry = window.geometry
    after = watermark if window.since is None else max(watermark, window.since)
    base = geometry.offset + geometry.range
    return base + ((after - base) // geometry.slide + 1) * geometry.slide


def _counting_late(metrics: dict[str, Any]) -> int:
    """Return how many operators have counted late events: one that is late for two of them counts twice."""
    return sum(bool(row.get("late")) for row in _of_operators(metrics).values())


def _of_operators(metrics: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: _plain(row) for name, row in metrics.items() if name == METRICS or name.startswith(f"{METRICS}_")}


def _together(metrics: dict[str, Any]) -> dict[str, Any]:
    """Return the metrics of all operators of a query together; each of them reads all events."""
    found = _of_operators(metrics)
    together = dict(found.pop(METRICS))
    for more in found.values():
        for name, value in more.items():
            if name not in (*READ, "watermark"):
                together[name] = (together.get(name) or 0) + (value or 0)
    return together


def _plain(row: Any) -> dict[str, Any]:
    found: dict[str, Any] = row.asDict() if hasattr(row, "asDict") else dict(row)
    if found.keys() == {"values", "schema"}:
        # Through Spark Connect, rows keep the form in which they travel.
        return {field["name"]: value for field, value in zip(found["schema"]["fields"], found["values"], strict=True)}
    return found


def _instant(micros: int) -> str:
    shown = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    return shown.strftime("%Y-%m-%d %H:%M:%S.%f").removesuffix(".000000")


def _size(count: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
