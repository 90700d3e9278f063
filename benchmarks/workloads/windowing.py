"""Windows for any operator: what it costs to keep windows and operators apart, and 100,000 partitions that come and go.

Paper: Gedik 2014, section 6.2 and figures 3 and 4. Its library runs beside an operator in which window and logic are
mixed; here ``Aggregate`` runs beside a loop that somebody would write for exactly one window and one aggregate. All of
it is one thread of Python, so figures are processor time.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import panes as pn
from benchmarks.report import Timings
from benchmarks.runner import Bench
from panes.windowing import PUNCTUATION, Aggregate, EventClock
from panes.windowing.declarations import Count, Delta, Sliding, Time, Tumbling

SIZES = (10, 100, 1_000, 10_000)
SLIDING_SIZES = (10, 100, 1_000)
POLICIES = ("count", "delta", "time")
KEYS = 100
Row = dict[str, Any]


def windowing(bench: Bench) -> None:
    """The two figures, then the long run."""
    rows = _rows(bench.events(200_000))
    _figure(bench, "Tumbling windows, average (figure 3)", rows, bench.few(SIZES), tumbling_window, tumbling_loop)
    title, fewer = "Sliding windows, 90th percentile (figure 4)", rows[: max(len(rows) // 10, 1000)]
    _figure(bench, title, fewer, bench.few(SLIDING_SIZES), sliding_window, sliding_loop)
    _many_partitions(bench)


def _rows(count: int) -> list[Row]:
    """One tuple per µs and partition, on average; timestamps go up by one, so that policies mean the same."""
    rng = np.random.default_rng(1)
    values, keys = rng.normal(100, 10, count).tolist(), rng.integers(0, KEYS, count).tolist()
    return [{"ts": ts, "key": key, "value": value} for ts, (key, value) in enumerate(zip(keys, values, strict=True))]


def _policy(kind: str, size: int) -> Any:
    return {
        "count": lambda: Count(size),
        "delta": lambda: Delta("ts", size - 1),
        "time": lambda: Time(size),
    }[kind]()


def tumbling_window(kind: str, size: int, partitioned: bool) -> tuple[Any, Any]:
    """A tumbling window, and what is computed over it."""
    by = pn.policy.partitions("key") if partitioned else None
    return Tumbling(_policy(kind, size), by), pn.mean("value")


def sliding_window(kind: str, size: int, partitioned: bool) -> tuple[Any, Any]:
    """A sliding window that is processed with every tuple, and what is computed over it."""
    by = pn.policy.partitions("key") if partitioned else None
    return Sliding(_policy(kind, size), Count(1), by), pn.quantile("value", 0.9)


def through_library(rows: list[Row], declared: Any, function: Any) -> list[Row]:
    """The operator of the library."""
    clock, out = EventClock(0), []
    aggregate = Aggregate(declared, {"answer": function}, clock=clock)
    aggregate.connect(out.append)
    process = aggregate.process
    if declared.evict.kind == "time":
        for row in rows:
            clock.advance(row["ts"])
            process(row)
    else:
        for row in rows:
            process(row)
    return [row for row in out if row is not PUNCTUATION]


def tumbling_loop(rows: list[Row], kind: str, size: int, partitioned: bool) -> list[Row]:
    """Written by hand: totals by key, each emitted when its window is full."""
    out: list[Row] = []
    open_: dict[Any, list[Any]] = {}
    due: deque[tuple[int, Any]] = deque()  # by time: when each window that is open ends, in that order
    period = None if partitioned else 0
    for row in rows:
        ts, key, value = row["ts"], row["key"] if partitioned else 0, row["value"]
        while due and due[0][0] <= ts:
            end, ended = due.popleft()
            total, n, _ = open_.pop(ended)
            if n:
                out.append({"key": ended, "answer": total / n})
            if period is not None:
                open_[ended] = [0, 0, end]
                due.append((end + size, ended))
        state = open_.get(key)
        if state is None:
            state = open_[key] = [0, 0, ts]
            if kind == "time":
                due.append((ts + size, key))
        elif kind == "delta" and ts - state[2] > size - 1:
            out.append({"key": key, "answer": state[0] / state[1]})
            state[0], state[1], state[2] = 0, 0, ts
        state[0] += value
        state[1] += 1
        if kind == "count" and state[1] == size:
            out.append({"key": key, "answer": state[0] / size})
            del open_[key]
    return out


def sliding_loop(rows: list[Row], kind: str, size: int, partitioned: bool) -> list[Row]:
    """Written by hand: the last rows by key, sorted anew with every tuple."""
    out: list[Row] = []
    held: dict[Any, deque[Row]] = {}
    for row in rows:
        key = row["key"] if partitioned else 0
        last = held.setdefault(key, deque())
        if kind == "count":
            if len(last) == size:
                last.popleft()
        else:
            # The age invariant of time allows a tuple as old as the period, the delta here one less.
            oldest = row["ts"] - (size if kind == "time" else size - 1)
            while last and last[0]["ts"] < oldest:
                last.popleft()
        last.append(row)
        values = sorted([each["value"] for each in last])
        place = (len(values) - 1) * 0.9
        low = int(place)
        between = low != place
        answer = (low + 1 - place) * values[low] + (place - low) * values[low + 1] if between else values[low]
        out.append({"key": key, "answer": answer})
    return out


def _figure(
    bench: Bench,
    title: str,
    rows: list[Row],
    sizes: Any,
    window: Callable[[str, int, bool], tuple[Any, Any]],
    loop: Callable[[list[Row], str, int, bool], list[Row]],
) -> None:
    table = bench.report.table(
        f"{title}; thousand tuples per second, {len(rows):,} tuples",
        f"Medians of processor time, side by side. Partitioned: {KEYS} partitions.",
        "By hand: a loop for this window and aggregate only.",
    )
    for partitioned in (False, True):
        for kind in POLICIES:
            for size in sizes:
                declared, function = window(kind, size, partitioned)
                contenders = {
                    "library": lambda declared=declared, function=function: through_library(rows, declared, function),
                    "by hand": lambda what=(kind, size, partitioned): loop(rows, *what),
                }
                case = f"{declared}, {size}"
                _compare(case, contenders["library"](), contenders["by hand"]())
                seconds: dict[str, list[float]] = {name: [] for name in contenders}
                for _ in range(bench.repeats):
                    for name, run in contenders.items():
                        seconds[name].append(_processor_time(run))
                timings = Timings(seconds)
                bench.report.record(case, f"{len(rows)} tuples", timings)
                rates = {name: len(rows) / 1000 / (timings.median(name) or 1) for name in contenders}
                table.rows.append(
                    {
                        "evicted by": kind,
                        "partitioned": partitioned,
                        "window": size,
                        **rates,
                        "library / by hand": rates["library"] / rates["by hand"],
                    }
                )


def _compare(case: str, found: list[Row], expected: list[Row]) -> None:
    pairs = [[(row.get("key", 0), row["answer"]) for row in rows] for rows in (found, expected)]
    if len(found) != len(expected) or not np.allclose(*pairs, rtol=1e-9):
        raise AssertionError(f"{case}: the library does not give the answers of the loop")


def _many_partitions(bench: Bench) -> None:
    """Keys drift: each is seen for a while and never again. Age eviction has to keep what is held within bounds."""
    alive = 2_000 if bench.options.quick else 100_000
    steps, per_step = (6, 10_000) if bench.options.quick else (12, 500_000)
    table = bench.report.table(
        f"About {alive:,} partitions at a time, each evicted when it was not updated for a while",
        "sliding, partitioned, count(3), count(1000), partition age; mean. Keys drift, so that all partitions are "
        "replaced again and again.",
        "Memory: resident, of the whole process, which ran the tables above before.",
    )
    # About four in seven keys that could be held are: the others have not come yet, or came early and are gone.
    age = alive * 7 // 4
    clock = EventClock(0)
    window = pn.policy.sliding(
        pn.policy.count(3), pn.policy.count(1000), partitioned=pn.policy.partitions("key", age=f"{age} us")
    )
    aggregate = Aggregate(window, {"mean": pn.mean("value")}, clock=clock)
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
