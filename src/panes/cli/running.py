"""Answering the queries of a file: a batch with a summary, or a stream until it is stopped."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Literal

import panes as pn
from panes.cli.reporting import console, working
from panes.dialect.statement import read_statements
from panes.planning.explanation import counted
from panes.spark.files import columns_of, counting, part_malformed
from panes.spark.progress import Totals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from panes.queries.windows import Bounds
    from panes.spark.files import Sink, Source

_LOOK_EVERY, _LAST_WORDS = 0.5, 10.0


@dataclass(frozen=True)
class Batch:
    """How a batch is to run."""

    layout: Literal["long", "wide"]
    empty: bool
    strategy: Literal["native", "rewrite", "columnar"] | None


@dataclass(frozen=True)
class Streaming:
    """How a stream is to run."""

    watermark: str
    mode: Literal["append", "update"]
    empty: bool
    late: Literal["count", "emit"]
    shards: int
    catalogue: str | None
    history: str | None
    checkpoint: str | None
    once: bool


def queries_of(file: Path, at: str | None, bounds: Bounds) -> list[pn.Query]:
    """The queries of a file; statements that ask for a plan get it here, and are left out."""
    found = read_statements(file.read_text(encoding="utf-8-sig"), at=at, bounds=bounds)
    explained = [statement.query for statement in found if statement.explain]
    if explained:
        console().print(pn.plan(explained).explain(), markup=False)
    return [statement.query for statement in found if not statement.explain]


def run_batch(
    queries: Sequence[pn.Query],
    source: Source,
    sink: Sink,
    asked: Batch,
    start: Callable[[], SparkSession],
) -> None:
    """Read, answer, write, and say what was done."""
    plan = pn.plan(queries)
    with working("starting Spark") as step:
        spark = start()
        step("reading the schema", spark)
        sink.check(spark)
        malformed, events = part_malformed(source.read(spark))
        read = counting()
        answers = plan.run(events, layout=asked.layout, empty=asked.empty, strategy=asked.strategy, observation=read)
        step("answering", spark)
        began = time.perf_counter()
        count = sink.write(answers)
        took = time.perf_counter() - began
        step("looking for malformed rows", spark)
        captured = sink.capture(malformed)
    found, missing = read.get["events"], read.get["null_timestamps"]
    lines = [
        f"{counted(count, 'answer')} to {counted(len(queries), 'query', 'queries')}, from {counted(found, 'event')}, "
        f"in {took:.1f} s"
    ]
    if source.infers:
        lines.append(f"columns as inferred (--schema gives others): {columns_of(events)}")
    if missing:
        lines.append(f"{counted(missing, 'event')} without a time, in no window")
    if captured:
        lines.append(f"{counted(captured, 'malformed row')} left out; see {sink.malformed}")
    console().print("\n".join([*lines, f"written to {sink.place}"]), markup=False)


def run_stream(
    queries: Sequence[pn.Query], source: Source, sink: Sink, asked: Streaming, start: Callable[[], SparkSession]
) -> None:
    """Read and answer until everything there is read, or until Ctrl-C."""
    plan = pn.plan(queries)
    with working("starting Spark"):
        spark = start()
    malformed, events = part_malformed(source.stream(spark))
    catalogue = None if asked.catalogue is None else pn.Catalogue(asked.catalogue, history=asked.history)
    watermarked = events.withWatermark(plan.queries[0].at, asked.watermark)
    checkpoint = asked.checkpoint or sink.beside("checkpoint")
    answers = plan.stream(
        watermarked,
        mode=asked.mode,
        empty=asked.empty,
        late=asked.late,
        shards=asked.shards,
        catalogue=catalogue,
        checkpoint=checkpoint,
    )
    said, totals = console(), Totals()
    listeners = [pn.show_progress(spark, lambda line: said.print(line, markup=False)), totals]
    spark.streams.addListener(totals)
    stops = "" if asked.once else "; Ctrl-C stops it"
    running: list[StreamingQuery] = []
    try:
        with _until_interrupted() as interrupted:
            running.append(sink.start(answers, asked.mode, checkpoint, once=asked.once))
            running += sink.keep(malformed, checkpoint, once=asked.once)
            said.print(f"writing to {sink.place}, with the state in {checkpoint}{stops}", markup=False)
            while any(stream.isActive for stream in running) and not interrupted.wait(_LOOK_EVERY):
                _raise_failure(running)
            _raise_failure(running)
        if interrupted.is_set():
            said.print("stopped; the same command goes on from here")
    finally:
        for stream in running:
            stream.stop()
        totals.wait(len(running), _LAST_WORDS)
        for listener in listeners:
            spark.streams.removeListener(listener)
    figures = totals.metrics
    found, read = counted(figures["answers"], "answer"), counted(figures["events"], "event")
    said.print(f"{found}, from {read}, written to {sink.place}", markup=False)
    if figures["malformed"]:
        lost = counted(figures["malformed"], "malformed row")
        said.print(f"{lost} left out; see {sink.malformed}", markup=False)


@contextmanager
def _until_interrupted() -> Iterator[Event]:
    """Something that Ctrl-C sets. An exception could come within a call of Java, and would leave it in disorder."""
    interrupted = Event()
    before = signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def _raise_failure(running: Sequence[StreamingQuery]) -> None:
    for stream in running:
        failure = stream.exception()
        if failure is not None:
            raise failure
