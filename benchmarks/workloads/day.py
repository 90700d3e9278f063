"""A stream with a very wide window that slides often: a day every minute, beside one of a second.

Hours of events fill the day, a micro-batch each; then come micro-batches of a minute. Spark's own windows do not run
here: every event would be in 1440 windows.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import panes as pn
from benchmarks import data
from benchmarks.runner import Bench
from benchmarks.workloads.streaming import a_file_at_a_time, prepare
from panes.timeline import SECOND

HOURS, MINUTES = 26, 5
_RECORDS = 64  # micro-batches of which a streaming query keeps the figures
_TIME = pa.timestamp("us", "UTC")


def day(bench: Bench) -> None:
    """Run the stream once, and tell what each micro-batch did."""
    keys, rate = (1000, 10) if bench.options.quick else (bench.options.keys or 100_000, 1000)
    spark = bench.spark
    prepare(spark)
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", str(_RECORDS))
    events = data.kept(f"day-{keys}-keys-{rate}-per-second", {("key",): keys}, lambda: _files(keys, rate))
    over = [pn.tumbling("1 second"), pn.hopping("1 day", every="1 minute")]
    query = pn.query("q", at="ts", by="key", select={"total": pn.sum("units")}, over=over)
    answers = pn.plan(query).stream(a_file_at_a_time(spark, events, "1 second"))
    table = bench.report.table(
        f"SUM over a day every minute and over a second, {keys:,} keys, {rate:,} events per second of event time, "
        f"{HOURS} micro-batches of an hour, then {MINUTES} of a minute",
        "written: by all state stores in this micro-batch. workers: the most memory that all Python workers together "
        "have had by the end.",
    )
    checkpoint = Path(tempfile.mkdtemp(prefix="panes-day-"))
    try:
        writer = answers.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
        running = writer.trigger(availableNow=True).start()
        running.awaitTermination()
        steps = [progress for progress in running.recentProgress if progress["numInputRows"]]
    finally:
        shutil.rmtree(checkpoint, ignore_errors=True)
    chosen = [i for i in range(len(steps)) if i % 4 == 0 or i >= HOURS - 1]
    table.rows += [{"micro-batch": i, **_row(steps[i])} for i in chosen]
    table.rows[-1]["workers, MB"] = _workers_peak() / 1000


def _row(progress: Any) -> dict[str, object]:
    figures = progress["observedMetrics"]["panes"].asDict()
    written = sum(operator["customMetrics"]["rocksdbTotalBytesWritten"] for operator in progress["stateOperators"])
    return {
        "events": figures["events"],
        "answers": figures["answers"],
        "seconds": progress["durationMs"]["triggerExecution"] / 1000,
        "granules": figures["granules"],
        "state, MB": figures["bytes"] / 1e6,
        "written, MB": written / 1e6,
        "workers, MB": None,
    }


def _files(keys: int, rate: int) -> Iterator[pa.Table]:
    rng = np.random.default_rng(1)
    begin = 0
    for seconds in [3600] * HOURS + [60] * MINUTES:
        rows = seconds * rate
        instants = (begin * rate + np.arange(rows)) * (SECOND // rate)
        yield pa.table(
            {
                "ts": pa.array(data.START + instants).cast(_TIME),
                "key": rng.integers(0, keys, rows, dtype=np.int32),
                "units": rng.integers(0, 1000, rows, dtype=np.int32),
            }
        )
        begin += seconds


def _workers_peak() -> int:
    """The kilobytes that Python workers had at most, added up; 0 where the system does not say."""
    peak = 0
    for process in Path("/proc").glob("[0-9]*") if os.name == "posix" else ():
        try:
            if b"pyspark" in (process / "cmdline").read_bytes() and b"daemon" in (process / "cmdline").read_bytes():
                status = (process / "status").read_text()
                peak += int(status.partition("VmHWM:")[2].split()[0])
        except (OSError, IndexError):
            continue
    return peak
