"""What a command prints: results on stdout, and progress on stderr while it works."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Event, Thread
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

_POLL_SECONDS = 0.3


@cache
def console() -> Console:
    """Return the console for results. Where stdout is no terminal it is wide, so that lines stay whole."""
    return Console(width=None if sys.stdout.isatty() else 160, highlight=False)


@contextmanager
def working(description: str) -> Iterator[Callable[[str, Any], None]]:
    """Show a progress line until the block ends, and yield a function that replaces its text.

    Given a Spark session too, the line shows how many tasks of its running stages are done.
    """
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    stderr = Console(stderr=True)
    done, sessions = Event(), list[Any]()
    with Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal) as progress:
        task = progress.add_task(description, total=None)
        watcher = Thread(target=_follow_stages, args=(progress, task, sessions, done), daemon=True)
        watcher.start()

        def step(now: str, spark: Any = None) -> None:
            sessions[:] = [] if spark is None else [spark]
            progress.update(task, description=now, total=None, completed=0)

        try:
            yield step
        finally:
            done.set()
            watcher.join()


def _follow_stages(progress: Progress, task: TaskID, sessions: list[Any], done: Event) -> None:
    while not done.wait(_POLL_SECONDS):
        for spark in sessions[:1]:
            try:
                tracker = spark.sparkContext.statusTracker()
                stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
            except Exception:  # Spark Connect has no status tracker; the line just shows no tasks.
                return
            total = sum(stage.numTasks for stage in stages if stage is not None)
            if total:
                completed = sum(stage.numCompletedTasks for stage in stages if stage is not None)
                progress.update(task, total=total, completed=completed)
