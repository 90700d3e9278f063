"""Answering the queries of a file: a batch with a summary, or a stream until it is stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import panes as pn
from panes.cli.inputs import MALFORMED, Source, ending_of
from panes.cli.reporting import console, working
from panes.dialect.statement import Statement, read_statements
from panes.errors import PanesError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from panes.declare.windows import Bounds

MALFORMED_ROWS = "panes_malformed"


@dataclass(frozen=True)
class Streaming:
    """How a stream is to run."""

    watermark: str
    mode: Literal["append", "update"]
    checkpoint: str | None
    catalogue: str | None
    once: bool


def statements(queries: Path, at: str | None, bounds: Bounds) -> list[Statement]:
    """The statements of a file; those that ask for a plan get it here, and are left out."""
    found = read_statements(queries.read_text(encoding="utf-8-sig"), at=at, bounds=bounds)
    explained = [statement.query for statement in found if statement.explain]
    if explained:
        console().print(pn.plan(explained).explain(), markup=False)
    return [statement for statement in found if not statement.explain]


def run_batch(
    queries: Path,
    source: Source,
    output: str,
    output_format: str | None,
    layout: Literal["long", "wide"],
    at: str | None,
    bounds: Bounds,
    start: Callable[[], SparkSession],
) -> None:
    """Read, answer, write, and say what was done."""
    asked = statements(queries, at, bounds)
    if not asked:
        return
    plan = pn.plan([statement.query for statement in asked])
    with working("starting Spark") as step:
        spark = start()
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        step("reading the schema", spark)
        events = source.read(spark)
        bad, events = _parted(events)
        read, answered = Observation("panes_read"), Observation("panes_answered")
        answers = plan.run(events, layout=layout, observation=read)
        answers = answers.observe(answered, F.count(F.lit(1)).alias("answers"))
        step("answering", spark)
        began = time.perf_counter()
        _write(answers, output, output_format)
        took = time.perf_counter() - began
        step("looking for malformed rows", spark)
        malformed = _captured(bad, output)
    found, missing = read.get["events"], read.get["null_timestamps"]
    said = console()
    lines = [f"{answered.get['answers']:,} answers to {len(asked):,} queries, from {found:,} events, in {took:.1f} s"]
    if missing:
        lines.append(f"{missing:,} events had no time, and are in no window")
    if malformed:
        lines.append(f"{malformed:,} malformed rows were left out; they are in {output.rstrip('/')}.malformed")
    said.print("\n".join([*lines, f"written to {output}"]), markup=False)


def run_stream(
    queries: Path,
    source: Source,
    output: str,
    output_format: str | None,
    at: str | None,
    bounds: Bounds,
    asked: Streaming,
    start: Callable[[], SparkSession],
) -> None:
    """Read and answer until everything there is read, or until Ctrl-C."""
    listed = [statement.query for statement in statements(queries, at, bounds)]
    if not listed:
        return
    plan = pn.plan(listed)
    with working("starting Spark"):
        spark = start()
    events = source.stream(spark)
    if MALFORMED in events.columns:
        from pyspark.sql import functions as F

        counted = events.observe(MALFORMED_ROWS, F.count_if(F.col(MALFORMED).isNotNull()).alias("rows"))
        events = counted.where(f"{MALFORMED} IS NULL").drop(MALFORMED)
    events = events.withWatermark(plan.queries[0].at, asked.watermark)
    catalogue = None if asked.catalogue is None else pn.Catalogue(asked.catalogue)
    answers = _flat(plan.run(events, mode=asked.mode, catalogue=catalogue), _format(output, output_format))
    said = console()
    totals = _totals()
    listeners = [pn.show_progress(spark, lambda line: said.print(line, markup=False)), totals]
    spark.streams.addListener(totals)
    checkpoint = asked.checkpoint or f"{output.rstrip('/')}.checkpoint"
    writer = answers.writeStream.format(_format(output, output_format)).outputMode(asked.mode)
    writer = writer.option("path", output).option("checkpointLocation", checkpoint)
    running = (writer.trigger(availableNow=True) if asked.once else writer).start()
    stops = "" if asked.once else "; Ctrl-C stops it"
    said.print(f"writing to {output}, with the state in {checkpoint}{stops}", markup=False)
    try:
        running.awaitTermination()
    except KeyboardInterrupt:
        running.stop()
        said.print("stopped; the same command goes on from here")
    finally:
        for listener in listeners:
            spark.streams.removeListener(listener)
    said.print(f"{totals.answers:,} answers, from {totals.events:,} events, written to {output}", markup=False)
    if totals.malformed:
        said.print(f"{totals.malformed:,} malformed rows were left out", markup=False)


def _totals() -> Any:
    """A listener that adds up what a stream has done."""
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class Totals(StreamingQueryListener):
        events = answers = malformed = 0

        def onQueryStarted(self, event: Any) -> None:
            pass

        def onQueryProgress(self, event: Any) -> None:
            metrics = event.progress.observedMetrics
            if "panes" in metrics:
                self.events += metrics["panes"].events or 0
                self.answers += metrics["panes"].answers or 0
            if MALFORMED_ROWS in metrics:
                self.malformed += metrics[MALFORMED_ROWS].rows or 0

        def onQueryTerminated(self, event: Any) -> None:
            pass

    return Totals()


def _parted(events: DataFrame) -> tuple[DataFrame | None, DataFrame]:
    """The rows that could not be read, if there may be any, and the others."""
    if MALFORMED not in events.columns:
        return None, events
    return events.where(f"{MALFORMED} IS NOT NULL"), events.where(f"{MALFORMED} IS NULL").drop(MALFORMED)


def _captured(bad: DataFrame | None, output: str) -> int:
    """How many rows could not be read; they are written beside the answers."""
    if bad is None:
        return 0
    # Kept: Spark refuses to read a file for nothing but its malformed rows.
    bad = bad.persist()
    try:
        count = bad.count()
        if count:
            bad.select(MALFORMED).write.text(f"{output.rstrip('/')}.malformed")
        return count
    finally:
        bad.unpersist()


def _write(answers: DataFrame, output: str, output_format: str | None) -> None:
    found = _format(output, output_format)
    _flat(answers, found).write.format(found).options(**({"header": "true"} if found == "csv" else {})).save(output)


def _flat(answers: DataFrame, output_format: str) -> DataFrame:
    """Answers without a struct, for formats that have none."""
    if output_format != "csv" or "window" not in answers.columns:
        return answers
    columns: list[Any] = []
    for name in answers.columns:
        quoted = f"`{name.replace('`', '``')}`"
        columns += ["window.start AS window_start", "window.end AS window_end"] if name == "window" else [quoted]
    return answers.selectExpr(*columns)


def _format(output: str, output_format: str | None) -> str:
    if output_format is None and output.endswith("/"):
        return "parquet"
    found = output_format or ending_of(output) or "parquet"
    if found == "console":
        raise PanesError("--output-format console shows nothing of a batch: write to a folder, and look into it.")
    return found
