"""What both sides of ``guard`` run, each on the Panes of its own tree: cases named on stdin, seconds on stdout.

It is started as a script and imports nothing of the benchmarks, whose other modules belong to one of the two trees.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

MARK = "guard-answer"


@dataclass(frozen=True)
class Case:
    """How many events, how many keys, and what to do with them; it returns seconds and a fingerprint."""

    run: Callable[[Path], tuple[float, str]]
    events: int
    keys: int = 100


def answer_of(lines: IO[str] | None) -> tuple[float, str]:
    """Read the next answer of a side; Spark may print lines of its own between."""
    for line in lines or ():
        if line.startswith(MARK):
            _, seconds, print_ = line.split()
            return float(seconds), print_
    raise AssertionError("a side of the guard has stopped; its error is above")


def plan_of(count: int) -> Any:
    """The plan of many tumbling windows: 20 s, 30 s, ..."""
    import panes as pn

    over = [pn.tumbling(f"{10 * (i + 2)} s") for i in range(count)]
    return pn.plan([pn.query("lowest", by="key", at="ts", select={"low": pn.min("value"), "n": pn.count()}, over=over)])


def hopping_plan() -> Any:
    """An hour, every minute."""
    import panes as pn

    over = pn.hopping("1 hour", every="1 min")
    return pn.plan([pn.query("total", by="key", at="ts", select={"low": pn.min("value"), "n": pn.count()}, over=over)])


def spark() -> Any:
    """The session of this side."""
    from panes.spark.session import local_session

    session = local_session("panes-guard", cores=2, memory="4g", stream=True)
    session.sparkContext.setLogLevel("ERROR")
    return session


def in_process(make: Callable[[], Any]) -> Callable[[Path], tuple[float, str]]:
    """A plan over a table, in this process."""

    def run(path: Path) -> tuple[float, str]:
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        table = pq.read_table(path, columns=["ts", "key", "value"])
        start = time.perf_counter()
        answers = make().run(table)
        took = time.perf_counter() - start
        return took, f"{answers.num_rows}/{pc.sum(answers['n']).as_py()}"

    return run


def on_spark(make: Callable[[], Any]) -> Callable[[Path], tuple[float, str]]:
    """A plan over a DataFrame: answers are counted by an aggregate that needs all columns."""

    def run(path: Path) -> tuple[float, str]:
        session = spark()
        session.conf.set("spark.sql.shuffle.partitions", "8")
        start = time.perf_counter()
        answers = make().run(session.read.parquet(str(path)))
        row = answers.selectExpr("count(*)", "sum(n)", "sum(low)", "max(window.end)").first()
        return time.perf_counter() - start, f"{row[0]}/{row[1]}"

    return run


def streamed(count: int) -> Callable[[Path], tuple[float, str]]:
    """A plan over a stream of several micro-batches, into a sink that keeps nothing."""

    def run(path: Path) -> tuple[float, str]:
        session = spark()
        session.conf.set("spark.sql.shuffle.partitions", "2")
        folder = tempfile.mkdtemp(prefix="panes-guard-")
        try:
            start = time.perf_counter()
            files = session.readStream.schema(session.read.parquet(str(path)).schema).option("maxFilesPerTrigger", 1)
            answers = plan_of(count).stream(files.parquet(str(path)).withWatermark("ts", "10 seconds"), shards=2)
            query = answers.writeStream.format("noop").option("checkpointLocation", f"{folder}/checkpoint")
            query = query.trigger(availableNow=True).start()
            query.awaitTermination()
            took = time.perf_counter() - start
            given = sum(p.observedMetrics["panes"]["answers"] or 0 for p in query.recentProgress if p.observedMetrics)
            return took, str(given)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    return run


def looked_up(path: Path) -> tuple[float, str]:
    """Lookups of twenty sliding windows in this process."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    import panes as pn

    table = pq.read_table(path, columns=["ts", "key", "value"])
    requests = table.select(["ts", "key"]).take(list(range(0, table.num_rows, 10)))
    over = [pn.sliding(f"{10 * (i + 2)} s") for i in range(20)]
    plan = pn.plan([pn.query("spend", by="key", at="ts", select={"n": pn.count(), "s": pn.sum("value")}, over=over)])
    start = time.perf_counter()
    answers = plan.lookup(table, requests, layout="long")
    return time.perf_counter() - start, f"{answers.num_rows}/{pc.sum(answers['n']).as_py()}"


CASES = {
    "batch, 20 windows": Case(on_spark(lambda: plan_of(20)), 4_000_000),
    "batch, 100 windows": Case(on_spark(lambda: plan_of(100)), 4_000_000),
    "batch, an hour every minute": Case(on_spark(hopping_plan), 4_000_000),
    "in process, 1 window": Case(in_process(lambda: plan_of(1)), 3_000_000),
    "in process, 20 windows": Case(in_process(lambda: plan_of(20)), 3_000_000),
    "lookup, 20 windows": Case(looked_up, 500_000),
    "stream, 10 windows": Case(streamed(10), 2_000_000),
    "stream, 100 windows": Case(streamed(100), 2_000_000),
}


def main() -> None:
    """Carry out cases until stdin ends."""
    import panes

    source = os.environ["PANES_GUARD_SOURCE"]
    assert Path(panes.__file__).is_relative_to(source), f"Panes comes from {panes.__file__}, not from {source}"
    for line in sys.stdin:
        case, path = line.rstrip("\n").split("\t")
        seconds, print_ = CASES[case].run(Path(path))
        print(MARK, seconds, print_, flush=True)


if __name__ == "__main__":
    main()
