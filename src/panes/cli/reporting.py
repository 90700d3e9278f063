"""What a command shows while it works: a line that moves, with the tasks of Spark that are done."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Event, Thread
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

_LOOK_EVERY = 0.3


@cache
def console() -> Console:
    """Where results of commands are said; wide where nobody looks, so that lines stay whole."""
    return Console(width=None if sys.stdout.isatty() else 160, highlight=False)


@contextmanager
def working(what: str) -> Iterator[Callable[[str, Any], None]]:
    """Show that something is being done, until it is; call what comes out of it to say what is done now."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    said = Console(stderr=True)
    done, seen = Event(), list[Any]()
    with Progress(*columns, console=said, transient=True, disable=not said.is_terminal) as progress:
        task = progress.add_task(what, total=None)
        watcher = Thread(target=_watch, args=(progress, task, seen, done), daemon=True)
        watcher.start()

        def step(now: str, spark: Any = None) -> None:
            seen[:] = [] if spark is None else [spark]
            progress.update(task, description=now, total=None, completed=0)

        try:
            yield step
        finally:
            done.set()
            watcher.join()


def _watch(progress: Progress, task: TaskID, seen: list[Any], done: Event) -> None:
    """Follow the tasks of the stages that run."""
    while not done.wait(_LOOK_EVERY):
        for spark in seen[:1]:
            try:
                tracker = spark.sparkContext.statusTracker()
                stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
            except Exception:  # Spark Connect has no such thing, and nothing depends on it.
                return
            total = sum(stage.numTasks for stage in stages if stage is not None)
            if total:
                finished = sum(stage.numCompletedTasks for stage in stages if stage is not None)
                progress.update(task, total=total, completed=finished)
