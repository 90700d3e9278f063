"""What ``explain``, ``run``, ``stream`` and ``compare`` do with the queries of a file."""

from __future__ import annotations

import json as jsons
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Literal

import panes as pn
from panes.cli.console import console, working
from panes.dialect.statement import read_statements
from panes.errors import PanesError, PlanError
from panes.planning.explanation import counted
from panes.queries.windows import RowWindow
from panes.timeline import parse_duration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from panes.queries.windows import Bounds
    from panes.spark.files import Sink, Source

    StartSpark = Callable[[], SparkSession]

_POLL_SECONDS = 0.5
# Spark reports the last micro-batches after they are done.
_LAST_REPORT_SECONDS = 10.0


def read_queries(file: Path, at: str | None, bounds: Bounds) -> list[pn.Query]:
    """Return the queries of a file, without the ``EXPLAIN`` statements: their plan is printed instead."""
    statements = read_statements(file.read_text(encoding="utf-8-sig"), at=at, bounds=bounds)
    explained = [statement.query for statement in statements if statement.explain]
    if explained:
        console().print(pn.plan(explained).explain(), markup=False)
    return [statement.query for statement in statements if not statement.explain]


def run_batch(
    queries: Sequence[pn.Query],
    source: Source,
    sink: Sink,
    start: StartSpark,
    *,
    layout: Literal["long", "wide"],
    empty: bool,
    strategy: Literal["native", "rewrite", "columnar"] | None,
) -> None:
    """Run the queries over all events, write the answers and print a summary."""
    from panes.spark.files import columns_of, counting, part_malformed

    plan = pn.plan(queries)
    with working("starting Spark") as step:
        spark = start()
        step("reading the schema", spark)
        sink.check(spark)
        malformed, events = part_malformed(source.read(spark))
        observation = counting()
        answers = plan.run(events, layout=layout, empty=empty, strategy=strategy, observation=observation)
        step("answering", spark)
        began = time.perf_counter()
        count = sink.write(answers)
        seconds = time.perf_counter() - began
        step("collecting malformed rows", spark)
        malformed_rows = sink.capture(malformed)
    read, untimed = observation.get["events"], observation.get["null_timestamps"]
    lines = [
        f"{counted(count, 'answer')} to {counted(len(queries), 'query', 'queries')}, from {counted(read, 'event')}, "
        f"in {seconds:.1f} s"
    ]
    if source.infers:
        lines.append(f"inferred columns (--schema overrides them): {columns_of(events)}")
    if untimed:
        lines.append(f"{counted(untimed, 'event')} without a time, in no window")
    if malformed_rows:
        lines.append(_left_out(malformed_rows, sink))
    console().print("\n".join([*lines, f"written to {sink.place}"]), markup=False)


def run_stream(
    queries: Sequence[pn.Query],
    source: Source,
    sink: Sink,
    start: StartSpark,
    *,
    watermark: str,
    mode: Literal["append", "update"],
    empty: bool,
    late: Literal["count", "emit"],
    shards: int,
    catalogue: str | None,
    history: str | None,
    checkpoint: str | None,
    once: bool,
) -> None:
    """Stream the queries until the input is read (``once``) or Ctrl-C is pressed, and print progress."""
    from panes.spark.files import part_malformed
    from panes.spark.progress import Totals

    plan = pn.plan(queries)
    with working("starting Spark"):
        spark = start()
    malformed, events = part_malformed(source.stream(spark))
    checkpoint = checkpoint or sink.beside("checkpoint")
    answers = plan.stream(
        events.withWatermark(plan.queries[0].at, watermark),
        mode=mode,
        empty=empty,
        late=late,
        shards=shards,
        catalogue=None if catalogue is None else pn.Catalogue(catalogue, history=history),
        checkpoint=checkpoint,
    )

    def say(line: str) -> None:
        console().print(line, markup=False)

    totals = Totals()
    listeners = [pn.show_progress(spark, say), totals]
    spark.streams.addListener(totals)
    running: list[StreamingQuery] = []
    try:
        with _ctrl_c() as interrupted:
            running.append(sink.start(answers, mode, checkpoint, once=once))
            running += sink.keep(malformed, checkpoint, once=once)
            say(f"writing to {sink.place}, with the state in {checkpoint}{'' if once else '; stop with Ctrl-C'}")
            while any(stream.isActive for stream in running) and not interrupted.wait(_POLL_SECONDS):
                _raise_failure(running)
            _raise_failure(running)
        if interrupted.is_set():
            say("stopped; run the same command again to continue")
    finally:
        for stream in running:
            stream.stop()
        totals.wait(len(running), _LAST_REPORT_SECONDS)
        for listener in listeners:
            spark.streams.removeListener(listener)
    figures = totals.metrics
    say(f"{counted(figures['answers'], 'answer')}, from {counted(figures['events'], 'event')}, written to {sink.place}")
    if figures["malformed"]:
        say(_left_out(figures["malformed"], sink))


def compare(queries: Sequence[pn.Query], source: Source, rounds: int, start: StartSpark) -> None:
    """Run the queries with Panes and with Spark's own windows, check that the answers are equal, and print times."""
    from rich.table import Table

    from panes.spark.files import part_malformed
    from panes.spark.session import race
    from panes.testing import assert_same_answers

    of_rows = next((str(w) for query in queries for w in query.over if isinstance(w, RowWindow)), None)
    if of_rows is not None:
        raise PanesError(
            f"the window {of_rows!r} is paced by rows, and Spark has no such group-by to compare with. Leave it out."
        )
    with working("starting Spark") as step:
        spark = start()
        _, events = part_malformed(source.read(spark))
        plan = pn.plan(queries).with_statistics(events)
        try:
            runs = {"Panes": plan.run(events), "Spark's own windows": plan.run(events, strategy="native")}
        except PlanError as error:
            if any(not aggregate.in_spark for query in queries for _, aggregate in query.aggregates) or any(
                window.since is not None or window.per_event for query in queries for window in query.windows
            ):
                raise PanesError(
                    f"Spark's own windows cannot answer this, so there is no comparison: {error}"
                ) from error
            raise
        timings = race(runs, rounds, lambda now: step(now, spark))
        step("comparing the answers", spark)
        answers, expected = (frame.toArrow() for frame in runs.values())
        try:
            # Spark does not fix the order of addition, so sums of floats may differ in their last digits.
            assert_same_answers(answers, expected, absolute=1e-9)
        except AssertionError as wrong:
            raise PanesError(f"the answers differ. This is a bug in Panes: please report it.\n{wrong}") from wrong
    windows = counted(sum(len(query.windows) for query in queries), "window")
    size = counted(answers.num_rows, "answer")
    console().print(f"{counted(len(queries), 'query', 'queries')}, {windows}: the {size} of both are equal.")
    medians = {name: statistics.median(seconds) for name, seconds in timings.items()}
    table = Table("", f"median of {rounds}", "times", box=None, pad_edge=False)
    for name, median in medians.items():
        table.add_row(name, f"{median:.2f} s", f"{median / medians['Panes']:.1f}×")
    console().print(table)


def explain_plan(plan: pn.Plan, *, mermaid: bool, json: bool, svg: Path | None) -> None:
    """Print the plan as text, Mermaid or JSON, and draw it if a file is given."""
    if mermaid and json:
        raise PanesError("--mermaid and --json both print the plan: give one of them.")
    if svg is not None:
        svg.write_text(plan.to_svg(), encoding="utf-8")
        print(f"wrote {svg}", file=sys.stderr)
    if mermaid:
        print(plan.to_mermaid())
    elif json:
        print(jsons.dumps(plan.to_dict(), indent=2))
    elif svg is None:
        print(plan.explain())


def explain_run(plan: pn.Plan, source: Source, start: StartSpark, watermark: str | None) -> None:
    """Print the steps of a run on these events, or of a stream if there is a watermark."""
    from panes.spark.files import part_malformed

    with working("starting Spark") as step:
        spark = start()
        step("sampling the events", spark)
        _, events = part_malformed(source.read(spark) if watermark is None else source.stream(spark))
        if watermark is not None:
            events = events.withWatermark(plan.queries[0].at, watermark)
        explanation = plan.explain(events)
    print(explanation)


def plan_file(queries: Path, at: str | None, bounds: Bounds, rate: str | None, keys: int | None) -> pn.Plan:
    """Plan all queries of a file, ``EXPLAIN`` or not."""
    statements = read_statements(queries.read_text(encoding="utf-8-sig"), at=at, bounds=bounds)
    return pn.plan([s.query for s in statements], rate=None if rate is None else per_second(rate), keys=keys)


def per_second(text: str) -> float:
    """Parse a rate.

    Examples
    --------
    >>> per_second("100/s"), per_second("6000/min"), per_second("100")
    (100.0, 100.0, 100.0)
    """
    number, slash, unit = text.partition("/")
    try:
        length = parse_duration(f"1 {unit}") if slash else 1_000_000
        return float(number.replace(",", "").replace("_", "")) * 1e6 / length
    except ValueError as error:
        raise PanesError(f"--rate {text!r} is not a rate: write 100/s, 5000/min, or a number per second.") from error


def _left_out(rows: int, sink: Sink) -> str:
    return f"{counted(rows, 'malformed row')} left out; see {sink.malformed}"


@contextmanager
def _ctrl_c() -> Iterator[Event]:
    """Yield an event that Ctrl-C sets. An exception instead could interrupt a call into Java half-way."""
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
