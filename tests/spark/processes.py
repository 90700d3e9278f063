"""Jobs in processes of their own (``job.py``): started, watched, held up, killed; and what they have written."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow as pa

from tests.spark.streams import Recorded

_PATIENCE = 900


class Job:
    """A job that reads a record and keeps everything in a folder.

    Parameters
    ----------
    options
        Those of ``job.py``.
    """

    def __init__(self, record: Recorded, folder: Path, *options: str) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        command = [sys.executable, "-m", "tests.spark.job", str(record.folder), str(folder), *options]
        self._said = folder.with_name(f"{folder.name}-{time.monotonic_ns()}.log")
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True)

    @property
    def said(self) -> str:
        return self._said.read_text(errors="replace")

    def wait(self) -> int:
        return self.process.wait(_PATIENCE)

    def finish(self) -> None:
        assert self.wait() == 0, self.said[-3000:]

    def until(self, happened: Callable[[], bool]) -> None:
        """Wait until something has happened, or the job has ended."""
        end = time.monotonic() + _PATIENCE
        while self.process.poll() is None and not happened():
            assert time.monotonic() < end, "the job does not get on"
            time.sleep(0.02)

    def until_begun(self, micro_batches: int) -> None:
        self.until(lambda: begun(self.folder) >= micro_batches)

    def hold(self) -> None:
        """Stop the driver in its tracks, as a machine that swaps or a long garbage collection does."""
        os.killpg(self.process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.killpg(self.process.pid, signal.SIGCONT)

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def begun(folder: Path, checkpoint: str = "checkpoint") -> int:
    """How many micro-batches a job has begun."""
    return len(_numbered(folder / checkpoint / "offsets"))


def committed(folder: Path, checkpoint: str = "checkpoint") -> int:
    """How many micro-batches a job has finished."""
    return len(_numbered(folder / checkpoint / "commits"))


def _numbered(folder: Path) -> list[Path]:
    return list(folder.glob("[0-9]*")) if folder.exists() else []


def answers(record: Recorded, folder: Path) -> pa.Table:
    """What a job has written to files, or micro-batch by micro-batch."""
    return record.spark.read.parquet(str(folder / "answers")).toArrow()


def early_answers(folder: Path) -> dict[tuple[str, str, str], tuple[object, ...]]:
    """What a query in update mode has written to its table, by the key of the table."""
    with closing(sqlite3.connect(folder / "early.db")) as db:
        rows = db.execute("SELECT name, start, k, n, total, mean, last FROM answers")
        return {row[:3]: row[3:] for row in rows}
