"""What a stream keeps: state and time for thousands of windows.

Paper: Subsuming Multiple Sliding Windows, section 5 (figures 10, 11 and 12). One shard runs in this process, with a
state store in memory that counts bytes: what is measured is the shard, without Spark around it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.state.memory_blob_store import MemoryBlobStore

import panes as pn
from benchmarks import data
from benchmarks.report import Timings
from benchmarks.runner import Bench, timed
from benchmarks.workloads.planning import windows
from panes.engine.bind_program import bind_store, types_in
from panes.state.granules import pack_panes, unpack_panes
from panes.state.job import JobStore
from panes.state.registered_queries import Offer
from panes.state.shard import Shard
from panes.state.stream_options import StreamOptions
from panes.testing import sliding_class
from panes.testing.window_sets import LONGEST_RANGE, LONGEST_SLIDE
from panes.timeline import SECOND, Geometry

COUNTS = (1000, 2000, 5000, 10_000)
RATES = (1000, 10_000, 100_000)
_TIMESTAMPS = 10


def state(bench: Bench) -> None:
    """The two tables."""
    _classes(bench)
    _rates(bench)


class Stream:
    """A stream of one shard."""

    def __init__(self, queries: Sequence[pn.Query], schema: pa.Schema) -> None:
        plan = pn.plan(list(queries), strategy="columnar").physical_plan().stores[0]
        program = bind_store(plan, types_in(schema))
        read = {view.query: (view.readings, view.exists) for view in program.views}
        offer = Offer(tuple((query, *read[i]) for i, query in plan.queries), plan.keys, program.edges, plan.at)
        self.store = JobStore(program, pa.schema([schema.field(name) for name in plan.keys]), offer)
        self.blob_store = MemoryBlobStore()
        self.held = 0

    def step(self, events: pa.Table, watermark: int) -> int:
        """One micro-batch; says how many answers came out."""
        program = self.store.program
        batch = events.combine_chunks().to_batches()[0]
        keys = batch.select(self.store.keys.names)
        arguments = {sql: batch.column(sql) for sql in program.arguments}
        instants = batch.column("ts").cast(pa.int64()).to_numpy()
        news = [
            (0, unpack_panes(packed.keys, packed.panes, program.components, program.edges))
            for packed in pack_panes(program, keys, np.zeros(len(batch), np.int32), instants, arguments)
        ]
        shard = Shard([self.store], self.blob_store, StreamOptions(), lambda *_: np.zeros(0, bool))
        answers = sum(len(answered.answers.start) for answered in shard.step(news, watermark))
        self.held = shard.metrics.bytes
        return answers


def _classes(bench: Bench) -> None:
    table = bench.report.table(
        "Windows of three classes over real trades, SUM of quantity by symbol, 1000 events per second",
        f"step: a micro-batch of one second, median of {_TIMESTAMPS}, when the widest window is full. "
        "alone: every window keeps a state of its own, in the same format.",
    )
    for name in LONGEST_SLIDE:
        for count in bench.few(COUNTS):
            drawn = sliding_class(name, count, rng=random.Random(count))
            took, stream = _after_a_minute(bench, drawn, RATES[0])
            bench.report.record(f"{name}, {count} windows", "trades", Timings({"step": took}))
            alone = sum(times * _alone(window) for window, times in Counter(drawn).items())
            table.rows.append(
                {
                    "class": name,
                    "windows": f"{count:,}",
                    "distinct": len(set(drawn)),
                    "state, kB": stream.held / 1000,
                    "alone, kB": alone / 1000,
                    "alone ×": alone / stream.held,
                    "step, ms": 1000 * float(np.median(took)),
                }
            )


def _rates(bench: Bench) -> None:
    table = bench.report.table(
        "Time per timestamp: a micro-batch of one second, 10,000 windows of each class, in milliseconds",
        f"Median of {_TIMESTAMPS}, after the widest window was full; every event is read, every window answered.",
    )
    for name in bench.few(tuple(LONGEST_SLIDE), quick=1):
        drawn = sliding_class(name, 200 if bench.options.quick else COUNTS[-1], rng=random.Random(COUNTS[-1]))
        row: dict[str, object] = {"class": name}
        for rate in bench.few(RATES):
            took, _ = _after_a_minute(bench, drawn, rate)
            bench.report.record(f"{name}, {rate} events per second", "trades", Timings({"step": took}))
            row[f"{rate:,} events/s"] = 1000 * float(np.median(took))
        table.rows.append(row)


def _after_a_minute(bench: Bench, drawn: Sequence[Geometry], rate: int) -> tuple[list[float], Stream]:
    """Seconds that a micro-batch of one second takes, once all windows are full."""
    events = _at_rate(rate, LONGEST_RANGE + _TIMESTAMPS)
    stream = Stream(_every_one_asked(drawn), events.schema)
    stream.step(events.slice(0, LONGEST_RANGE * rate), (LONGEST_RANGE - 1) * SECOND)
    took = []
    for second in range(LONGEST_RANGE, LONGEST_RANGE + _TIMESTAMPS):
        took.append(timed(stream.step, events.slice(second * rate, rate), second * SECOND)[0])
    return took, stream


def _every_one_asked(drawn: Sequence[Geometry]) -> list[pn.Query]:
    """Queries with all these windows: a window that was drawn n times is asked for by n queries."""
    times = Counter(drawn)
    return [
        pn.query(
            f"copy {copy}",
            at="ts",
            by="symbol",
            select={"total": pn.sum("qty")},
            over=windows([window for window, count in times.items() if count > copy]),
        )
        for copy in range(max(times.values()))
    ]


@cache
def _alone(window: Geometry) -> int:
    """The bytes that one window keeps, full, when it is the only one."""
    events = _at_rate(RATES[0], LONGEST_RANGE)
    stream = Stream(_every_one_asked([window]), events.schema)
    stream.step(events, (LONGEST_RANGE - 1) * SECOND)
    return stream.held


@cache
def _at_rate(rate: int, seconds: int) -> pa.Table:
    """Real trades in their order, so many per second from the epoch on; made up where the real ones are absent."""
    rows = rate * seconds
    trades = data.trades()
    if trades is None:
        rng = np.random.default_rng(1)
        table = pa.table({"symbol": rng.integers(0, 100, rows).astype(str), "qty": rng.integers(1, 1000, rows)})
    else:
        table = pq.read_table(trades.path, columns=["symbol", "qty"])
        table = table.take(pa.array(np.arange(rows) % len(table)))
    return table.append_column("ts", pa.array(np.arange(rows) * SECOND // rate).cast(pa.timestamp("us", "UTC")))
