"""Windows for any operator: what it costs to keep windows and operators apart, and 100,000 partitions that come and go.

Paper: Gedik 2014, section 6.2 and figures 3 and 4. Its library runs beside an operator in which window and logic are
mixed. Here ``Aggregate`` runs beside such an operator, written for exactly one window and one aggregate, and beside a
bare loop for the same. ``Aggregate`` is given single tuples, as the operator is, and lists of them, as the loop is; the
same window and aggregate also run over a table, where nothing runs for single tuples. All of it is one process, so
figures are processor time.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import panes as pn
from benchmarks.report import Timings
from benchmarks.runner import Bench
from benchmarks.workloads.windowing_by_hand import SLIDING, TUMBLING, ByHand, Row, sliding_loop, tumbling_loop
from panes.operators import PUNCTUATION, Aggregate, EventClock

SIZES = (1, 10, 100, 1_000, 10_000)
SLIDING_SIZES = (10, 100, 1_000)
POLICIES = ("count", "delta", "time")
KEYS = 100


def windowing(bench: Bench) -> None:
    """The two figures, then the long run."""
    rows = _rows(bench.events(200_000))
    title = "Tumbling windows, average (figure 3)"
    _figure(bench, title, rows, bench.few(SIZES), tumbling_window, tumbling_loop, TUMBLING)
    title, fewer = "Sliding windows, 90th percentile (figure 4)", rows[: max(len(rows) // 10, 1000)]
    _figure(bench, title, fewer, bench.few(SLIDING_SIZES), sliding_window, sliding_loop, SLIDING)
    _many_partitions(bench)


def _rows(count: int) -> list[Row]:
    """A tuple every µs, of one of the partitions."""
    rng = np.random.default_rng(1)
    values, keys = rng.normal(100, 10, count).tolist(), rng.integers(0, KEYS, count).tolist()
    return [{"ts": ts, "key": key, "value": value} for ts, (key, value) in enumerate(zip(keys, values, strict=True))]


def extent(kind: str, size: int, partitioned: bool) -> int:
    """What a policy has to say so that a window holds so many tuples, on average: a partition is one in ``KEYS``."""
    return size if kind == "count" or not partitioned else size * KEYS


@dataclass(frozen=True)
class Case:
    """A window, whether it is partitioned, and what is computed over it."""

    window: Any
    partitioned: bool
    function: Any
    timed: bool


def tumbling_window(kind: str, size: int, partitioned: bool) -> Case:
    """A tumbling window, and what is computed over it."""
    if kind == "time":
        # The paper's: without partitions one period follows on the other.
        window = pn.tumbling(f"{size} us", origin="row" if partitioned else "first")
    else:
        window = pn.tumbling(pn.rows(size) if kind == "count" else pn.delta("ts", size - 1))
    return Case(window, partitioned, pn.mean("value"), kind == "time")


def sliding_window(kind: str, size: int, partitioned: bool) -> Case:
    """A sliding window that is processed with every tuple, and what is computed over it."""
    if kind == "time":
        window = pn.hopping(f"{size} us", every=pn.rows(1), bounds="[]")
    else:
        window = pn.sliding(pn.rows(size) if kind == "count" else pn.delta("ts", size - 1))
    return Case(window, partitioned, pn.quantile("value", 0.9), kind == "time")


def _aggregate(case: Case, out: list[Any]) -> tuple[Aggregate, EventClock]:
    clock = EventClock(0)
    by = "key" if case.partitioned else None
    aggregate = Aggregate(case.window, {"answer": case.function}, by=by, clock=clock)
    aggregate.connect(out.append)
    return aggregate, clock


def through_library(rows: list[Row], case: Case) -> list[Row]:
    """The operator of the library, given single tuples."""
    out: list[Any] = []
    aggregate, clock = _aggregate(case, out)
    _feed(rows, aggregate.process, clock.advance if case.timed else None)
    return [row for row in out if row is not PUNCTUATION]


def through_lists(rows: list[Row], instants: list[int], case: Case) -> list[Row]:
    """The operator of the library, given lists."""
    out: list[Any] = []
    aggregate, _ = _aggregate(case, out)
    aggregate.process_all(rows, at=instants if case.timed else None)
    return [row for row in out if row is not PUNCTUATION]


def through_operator(rows: list[Row], made: type[ByHand], kind: str, size: int, partitioned: bool) -> list[Row]:
    """The operator written by hand, given single tuples."""
    out: list[Any] = []
    operator = made(size, partitioned, out.append)
    _feed(rows, operator.process, operator.advance if kind == "time" else None)
    return [row for row in out if row is not PUNCTUATION]


def through_columns(table: pa.Table, case: Case) -> pa.Table:
    """The same window and aggregate over a table."""
    by = "key" if case.partitioned else ()
    query = pn.query(by=by, at="at", select={"answer": case.function}, over=case.window)
    return pn.plan(query).run(table)


def _feed(rows: list[Row], process: Callable[[Row], None], advance: Callable[[int], None] | None) -> None:
    if advance is None:
        for row in rows:
            process(row)
    else:
        for row in rows:
            advance(row["ts"])
            process(row)


def _figure(
    bench: Bench,
    title: str,
    rows: list[Row],
    sizes: Any,
    window: Callable[[str, int, bool], Case],
    loop: Callable[[list[Row], str, int, bool], list[Row]],
    operators: dict[str, type[ByHand]],
) -> None:
    table = bench.report.table(
        f"{title}; thousand tuples per second, {len(rows):,} tuples",
        f"Medians of processor time, side by side. Partitioned: {KEYS} partitions. Window: tuples in it, on average.",
        "Operator and loop: by hand, for this window and aggregate only. Lists: the library, given tuples in lists. "
        "Columns: the same window over an Arrow table.",
    )
    instants, columns = [row["ts"] for row in rows], _columns(rows)
    for partitioned, kind, size in product((False, True), POLICIES, sizes):
        wide = extent(kind, size, partitioned)
        declared = window(kind, wide, partitioned)
        contenders: dict[str, Callable[[], list[Row] | pa.Table]] = {
            "library": partial(through_library, rows, declared),
            "operator": partial(through_operator, rows, operators[kind], kind, wide, partitioned),
            "lists": partial(through_lists, rows, instants, declared),
            "columns": partial(through_columns, columns, declared),
            "loop": partial(loop, rows, kind, wide, partitioned),
        }
        keyed = " of a key" if partitioned else ""
        case, expected = f"{declared.window}{keyed}, {size}", contenders["loop"]()
        for name, run in contenders.items():
            _compare(f"{case}, {name}", run(), expected, len(rows))
        seconds: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(bench.repeats):
            for name, run in contenders.items():
                seconds[name].append(_processor_time(run))
        timings = Timings(seconds)
        rates = {name: len(rows) / 1000 / (timings.median(name) or 1) for name in contenders}
        table.rows.append(
            {
                "evicted by": kind,
                "partitioned": partitioned,
                "window": size,
                **rates,
                "library / operator": rates["library"] / rates["operator"],
                "lists / loop": rates["lists"] / rates["loop"],
                "columns / loop": rates["columns"] / rates["loop"],
            }
        )
        bench.report.write()


def _columns(rows: list[Row]) -> pa.Table:
    table = pa.Table.from_pylist(rows)
    return table.append_column("at", table.column("ts").cast(pa.timestamp("us")))


def _compare(case: str, found: list[Row] | pa.Table, expected: Any, tuples: int) -> None:
    if isinstance(found, pa.Table):
        # In the order of partitions; within each in the order of time, as the others. Its clock goes on for a µs.
        end = pc.struct_field(found.column("window"), "end").cast(pa.int64())
        found = found.filter(pc.less(end, tuples)).to_pylist()
        expected = sorted(expected, key=lambda row: row.get("key", 0))
    pairs = [[(row.get("key", 0), row["answer"]) for row in rows] for rows in (found, expected)]
    if len(found) != len(expected) or not np.allclose(*pairs, rtol=1e-9):
        raise AssertionError(f"{case}: not the answers of the loop")


def _many_partitions(bench: Bench) -> None:
    """Keys drift: each is seen for a while and never again. Age eviction has to keep what is held within bounds."""
    alive = 2_000 if bench.options.quick else 100_000
    steps, per_step = (6, 10_000) if bench.options.quick else (12, 500_000)
    table = bench.report.table(
        f"About {alive:,} partitions at a time, each evicted when it was not updated for a while",
        "The last 3 of a key, after every 1000; mean. Keys drift, so that all partitions are replaced again and again.",
        "Memory: resident, of the whole process, which ran the tables above before.",
    )
    # About four in seven keys that could be held are: the others have not come yet, or came early and are gone.
    age = alive * 7 // 4
    clock = EventClock(0)
    window = pn.hopping(pn.rows(3), every=pn.rows(1000))
    aggregate = Aggregate(window, {"mean": pn.mean("value")}, by="key", evict=pn.evict(age=f"{age} us"), clock=clock)
    number = 0
    for _ in range(steps):
        begun = time.process_time()
        seen = _drift(aggregate, clock, number, per_step, age)
        took = time.process_time() - begun
        number += per_step
        table.rows.append(
            {
                "tuples": number,
                "keys so far, at most": seen,
                "partitions held": len(aggregate.windows[0].subwindows),
                "tuples held": len(aggregate.windows[0]),
                "resident, MB": _resident(),
                "thousand tuples per second": per_step / took / 1000,
            }
        )
    held = [row["partitions held"] for row in table.rows[2:]]
    if max(held) > 1.1 * min(held):
        raise AssertionError(f"the number of partitions is not steady: {held}")


def _drift(aggregate: Aggregate, clock: EventClock, number: int, count: int, age: int) -> int:
    """A tuple every µs, of one of the keys that are current: a range that moves on by one with every second tuple."""
    lags = np.random.default_rng(number).integers(0, age // 2, count).tolist()
    for at, lag in enumerate(lags, start=number):
        clock.advance(at)
        aggregate.process({"key": at // 2 + lag, "value": 1.0})
    return (number + count) // 2 + age // 2


def _processor_time(run: Callable[[], object]) -> float:
    gc.collect()
    begun = time.process_time()
    run()
    return time.process_time() - begun


def _resident() -> float | None:
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * 4096 / 1e6 if statm.exists() else None
