"""Any window of a live stream: updates and lookups per second of each algorithm, and of the index on real trades.

Paper: Resource Sharing in Continuous Sliding-Window Aggregates (Arasu & Widom, VLDB 2004), figures 9, 10 and 11, with
its parameters. It takes one input at a time in C++; here inputs come in batches, the size of which is said. All figures
are inputs per second of processor time, the median of some rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, partial
from statistics import median
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import panes as pn
from benchmarks import data
from benchmarks.baselines import Materialised, SearchTree
from benchmarks.runner import Bench
from panes.aggregates.extrema import LARGEST
from panes.aggregates.integers import MACHINE
from panes.aggregates.operations import Array, Operations, State
from panes.live.algorithm import Elements, LiveAlgorithm
from panes.live.dyadic import BaseIntervals
from panes.live.landmark import LandmarkIntervals
from panes.live.quantiles import SortedIntervals
from panes.live.rings import Rings
from panes.live.running import RunningIntervals

OPERATORS: Final = 1000
"""Of figure 9: the sums over the last N rows, N = 0 .. 999."""

SHARES: Final = (0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
"""Of updates among all inputs."""

BATCHES: Final = (100, 10_000)
REACHES: Final = (1_000, 10_000, 100_000, 1_000_000)
"""Nmax of figure 10."""

WIDTHS: Final = (10, 100, 1_000, 10_000, 99_000)
"""W of figure 11, where Nmax is 100,000."""

_SECONDS: Final = 0.3
"""How long a round lasts, about."""

Make = Callable[[Operations, State, Rings], LiveAlgorithm]

CONTENDERS: Final[dict[str, Make]] = {
    "R-INT": RunningIntervals,
    "B-INT": BaseIntervals,
    "L-INT": LandmarkIntervals,
    "PSoup": SearchTree,
    "materialise all": lambda *arguments: Materialised(*arguments, [(n, 0) for n in range(1, OPERATORS)]),
    "materialise none": Elements,
}


def asw(bench: Bench) -> None:
    """The three figures, then the index."""
    _check()
    for size in bench.few(BATCHES, 1):
        _mixes(bench, size)
    _updates(bench)
    _lookups(bench)
    _trades(bench)
    _many_keys(bench)


class One:
    """A full ring of one key behind an algorithm."""

    def __init__(self, make: Callable[[Rings], Any], rows: int) -> None:
        self.rings, self.rows = Rings(), rows
        self.column = make(self.rings)
        self.rings.add(self.column)
        self.append(_values(rows))

    def append(self, values: Array) -> None:
        """The next rows; as many expire, and before, so that the ring stays as it is.

        No more at once than are kept, so that every row is taken in.
        """
        key = np.zeros(1, np.int64)
        self.rings.grow(1)
        for at in range(0, len(values), self.rows):
            some = values[at : at + self.rows]
            self.rings.expire(key, self.rings.end + len(some) - self.rows)
            self.rings.append(key, np.array([len(some)]), {self.column: (some,)})

    def lookup(self, lo: Array, hi: Array) -> State:
        """The answers of windows of rows."""
        answers: State = self.column.lookup(np.zeros(len(lo), np.int64), lo, hi)
        return answers


def _check() -> None:
    """All contenders give the same answers."""
    windows = np.random.default_rng(1).integers(0, OPERATORS, 2000)
    answers = []
    for make in CONTENDERS.values():
        one = _summing(make)
        one.append(_values(500))
        end = int(one.rings.end[0])
        answers.append(one.lookup(end - windows, np.full(len(windows), end))[0])
    for other in answers[1:]:
        np.testing.assert_array_equal(answers[0], other)


def _mixes(bench: Bench, size: int) -> None:
    table = bench.report.table(
        f"Figure 9: million inputs per second, by the share of updates; 1000 sums over the last 0 to 999 rows, batches "
        f"of {size:,} inputs",
        "An input is an update or the lookup of a random operator. The updates of a batch come first, 1000 at once; "
        "materialise all brings its answers up to date once for these.",
    )
    for share in bench.few(SHARES):
        updates, rng = round(size * share), np.random.default_rng(2)
        widths, row = rng.integers(0, OPERATORS, size - updates), {"updates": f"{share:.0%}"}
        for name, make in CONTENDERS.items():
            one, values = _summing(make), _values(updates)
            every, end = np.arange(OPERATORS), int(one.rings.end[0])
            one.lookup(end - every, np.full(OPERATORS, end))  # so that L-INT has all its partitions

            def batch(one: One = one, values: Array = values, widths: Array = widths) -> None:
                if len(values):
                    one.append(values)
                if len(widths):
                    end = int(one.rings.end[0])
                    one.lookup(end - widths, np.full(len(widths), end))

            row[name] = _rate(bench, batch, size) / 1e6
        table.rows.append(row)


def _updates(bench: Bench) -> None:
    size = 10_000
    table = bench.report.table(
        f"Figure 10: million updates per second, by the rows that are kept (Nmax); batches of {size:,}, at most Nmax"
    )
    for rows in bench.few(REACHES):
        row: dict[str, object] = {"Nmax": rows}
        for name, make in _three().items():
            one, values = One(make, rows), _values(min(size, rows))
            row[name] = _rate(bench, partial(one.append, values), len(values)) / 1e6
        table.rows.append(row)


def _lookups(bench: Bench) -> None:
    rows, size = 10_000 if bench.options.quick else 100_000, 10_000
    table = bench.report.table(
        f"Figure 11: million lookups per second, by the width of windows (W); Nmax = {rows:,}, windows anywhere, "
        f"batches of {size:,}"
    )
    held = {name: One(make, rows) for name, make in _three().items()}
    held["L-INT, MAX"] = One(lambda rings: LandmarkIntervals(LARGEST, _values(0, state=True), rings), rows)
    for width in bench.few(WIDTHS):
        rng = np.random.default_rng(3)
        row: dict[str, object] = {"W": width}
        for name, one in held.items():
            lo = int(one.rings.first[0]) + rng.integers(0, rows - width, size)
            key, hi, rank = np.zeros(size, np.int64), lo + width, rng.integers(0, width, size)
            column = one.column

            def lookup(
                column: Any = column, lo: Array = lo, hi: Array = hi, key: Array = key, rank: Array = rank
            ) -> None:
                column.at(key, lo, hi, rank) if isinstance(column, SortedIntervals) else column.lookup(key, lo, hi)

            row[name] = _rate(bench, lookup, size) / 1e6
        table.rows.append(row)


def _trades(bench: Bench) -> None:
    """The index by symbol and exchange: the whole feed, then lookups of a quarter of an hour at random trades."""
    found = data.trades()
    if found is None:
        bench.report.table("Real trades", "Skipped: the data are not beside the checkout.")
        return
    trades = pq.read_table(found.path, columns=["ts", "symbol", "exch", "price", "qty"])
    if bench.options.quick:
        trades = trades.slice(0, bench.events(trades.num_rows))
    size, asked = 50_000, 100_000
    table = bench.report.table(
        f"The index on {trades.num_rows:,} trades by symbol and exchange, keeping 8 hours; batches of {size:,} trades",
        f"count, sum(qty), max(price), mean(price), median of price. Lookups: batches of {asked:,}, (t - 15 min, t] at "
        "the instants of random trades of the last 7 hours.",
    )
    select = {"n": pn.count(), "volume": pn.sum("qty"), "top": pn.max("price"), "mean": pn.mean("price")}
    for label, aggregates, algorithm in (
        ("adviser", select, None),
        ("dyadic", select, "dyadic"),
        ("landmark", select, "landmark"),
        ("median", {"median": pn.quantile("price", 0.5)}, None),
    ):
        traded = pn.query(by=["symbol", "exch"], at="ts", select=aggregates, over=pn.sliding("15 min"))
        index = pn.plan(traded).live(keep="8 hours", algorithm=algorithm)
        start = time.process_time()
        for at in range(0, trades.num_rows, size):
            index.update(trades.slice(at, size))
        took = time.process_time() - start
        recent = trades["ts"].cast(pa.int64()).to_numpy()
        recent = np.flatnonzero(recent > recent[-1] - 7 * 3_600_000_000)
        some = np.random.default_rng(4).choice(recent, asked)
        requests = trades.select(["ts", "symbol", "exch"]).take(pa.array(some))
        for _ in range(1 if bench.options.quick else 10):
            index.lookup(requests, over="15 min", at="ts")  # until the adviser has settled
        looked = _rate(bench, partial(index.lookup, requests, over="15 min", at="ts"), asked)
        table.rows.append(
            {
                "index": label,
                "million trades / s": trades.num_rows / took / 1e6,
                "million lookups / s": looked / 1e6,
                "events held": index.rows,
                "algorithms": "; ".join(line.strip().split(" (")[0] for line in index.explain().splitlines()[1:]),
            }
        )


def _many_keys(bench: Bench) -> None:
    """The index with one key and with very many: the same events."""
    rows, size = 200_000 if bench.options.quick else 2_000_000, 50_000
    table = bench.report.table(
        f"The index by number of keys: {rows:,} events of random keys, keeping the last 100 rows of each (one key: "
        f"100,000); batches of {size:,}",
        "count, sum and max of integers. Lookups: batches of 50,000 random keys, the last 50 rows.",
    )
    rng = np.random.default_rng(5)
    for keys in bench.few((1, 1000, 100_000)):
        key = rng.integers(0, keys, rows)
        ts = pa.array(data.START + np.arange(rows) * 1000).cast(pa.timestamp("us", "UTC"))
        events = pa.table({"ts": ts, "key": key, "v": _values(rows)})
        select = {"n": pn.count(), "total": pn.sum("v"), "top": pn.max("v")}
        query = pn.query(by="key", at="ts", select=select, over=pn.sliding(pn.rows(50)))
        index = pn.plan(query).live(keep=pn.rows(100_000 if keys == 1 else 100))
        start = time.process_time()
        for at in range(0, rows, size):
            index.update(events.slice(at, size))
        took = time.process_time() - start
        requests = pa.table({"key": rng.integers(0, keys, 50_000)})
        looked = _rate(bench, partial(index.lookup, requests, over=pn.rows(50)), 50_000)
        table.rows.append({"keys": keys, "million events / s": rows / took / 1e6, "million lookups / s": looked / 1e6})


def _three() -> dict[str, Callable[[Rings], Any]]:
    like = _values(0, state=True)
    return {
        "R-INT, SUM": lambda rings: RunningIntervals(MACHINE, like, rings),
        "B-INT, MAX": lambda rings: BaseIntervals(LARGEST, like, rings),
        "B-INT-QNT": lambda rings: SortedIntervals(like, rings),
    }


def _summing(make: Make) -> One:
    return One(lambda rings: make(MACHINE, _values(0, state=True), rings), OPERATORS)


def _values(rows: int, *, state: bool = False) -> Any:
    values = _drawn()[np.arange(rows) % len(_drawn())]
    return (values,) if state else values


@cache
def _drawn() -> Array:
    return np.random.default_rng(0).integers(0, 1_000_000, 1 << 16)


def _rate(bench: Bench, work: Callable[[], Any], inputs: int) -> float:
    """Inputs per second: the median of some rounds, each of as many calls as fill its time."""
    work()
    start = time.process_time()
    work()
    once = time.process_time() - start
    calls = max(1, round((0.01 if bench.options.quick else _SECONDS) / max(once, 1e-6)))
    rounds = []
    for _ in range(bench.repeats):
        start = time.process_time()
        for _ in range(calls):
            work()
        rounds.append((time.process_time() - start) / calls)
    bench.report.write()
    return inputs / median(rounds)
