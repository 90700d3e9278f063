"""Which keys have many events in a window: the collective index beside looking at every key.

Paper: Arasu and Widom, Resource Sharing in Continuous Sliding-Window Aggregates (2004), section 6.3 and figure 12. All
contenders are live plans that take in the same batches; they differ in what they keep beside the events, and in the
keys that a lookup looks at. Lookups are exact. All runs in one process, without Spark, and figures are its processor
time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean, median
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.random import Generator

import panes as pn
from benchmarks import data
from benchmarks.runner import Bench
from panes.aggregates.operations import State
from panes.frames.positions import Integers
from panes.live.collective import Levels
from panes.live.conditions import Range
from panes.live.part import Part
from panes.live.rings import RowRuns, SlotColumn
from panes.live.store import Instants, Store
from panes.live.threshold_index import AmountIndex, ThresholdIndex, threshold_index
from panes.timeline import HOUR, MINUTE

SUBSTREAMS = (5_000, 50_000, 250_000, 1_000_000, 2_000_000)
PLACES = (1, 2, 4, 8, 16, 32)
RATIOS = (1, 10, 100, 1_000, 10_000)
_EVENTS_EACH = 10
_KEEP = 3 * HOUR
_INPUTS = 50
"""A batch of so many events is followed by so many lookups."""

FEW, MANY = (2e-5, 2e-4), (0.03, 0.05)
_SKEW = 1.5
_DEAR = 5
"""So many of the lookups are made after each batch where a lookup is dear."""

_CHECKED = 3
T = TypeVar("T")


class EveryKey:
    """A search in the events of every key, as the paper's naive approach: no index."""

    def __init__(self, aggregate: Any = None) -> None:
        select = {"value": pn.count() if aggregate is None else aggregate}
        query = pn.query("query", by="key", at="ts", select=select, over=pn.sliding("3 hours"))
        self.query, self.live = query, pn.plan(query).live("3 hours")
        self.part: Part = self.live._parts[0]
        self.update = self.live.update

    def candidates(self, ask: Ask, first: int, last: int) -> Integers:
        """Keys to look at; none that qualifies is missing."""
        return self.part.occupied()

    def find(self, ask: Ask) -> pa.Array:
        """The keys with enough events up to the latest one."""
        store = self.part.store
        assert store.newest is not None
        first = store.newest - ask.over + 1
        keys = self.candidates(ask, first, store.newest)
        counts = store.rings.end[keys] - store.instants.search(keys, first)
        [found] = self.part.keys(keys[counts > ask.above])
        return found


class LongKeys(EveryKey):
    """The same, but for keys that have too few events altogether."""

    def candidates(self, ask: Ask, first: int, last: int) -> Integers:
        rings = self.part.store.rings
        return np.flatnonzero(rings.end - rings.first > ask.above)


class EveryEvent(EveryKey):
    """Counts the events of the window by key in each lookup."""

    def __init__(self) -> None:
        super().__init__()
        self._events = Listing(dict(self.query.aggregates)["value"])
        self.part.add_index("query", "value", self._events)

    def candidates(self, ask: Ask, first: int, last: int) -> Integers:
        return np.flatnonzero(self._events.column.counts_since(first) > ask.above)


class Indexed(EveryKey):
    """A collective index."""

    def __init__(self, aggregate: Any = None, p: int | None = None) -> None:
        super().__init__(aggregate)
        index = threshold_index(self.query, "value", p)
        assert isinstance(index, AmountIndex)
        self.index = index
        self.part.add_index("query", "value", index)

    def candidates(self, ask: Ask, first: int, last: int) -> Integers:
        return self.index.candidates(Range("value", above=ask.above), first, last)

    @property
    def nbytes(self) -> int:
        """Memory of the index, without the events and without the orders that lookups make."""
        return sum(array.nbytes for array in self.index._collective._running)


class Listing(ThresholdIndex):
    """No index: all events by time."""

    column: EventList

    def bind(self, store: Store) -> EventList:
        self.column = EventList(store.instants)
        return self.column

    def read(self, table: pa.Table) -> State:
        return (np.zeros(len(table), np.int64),)

    def candidates(self, answers: Range, first: int, last: int) -> Integers:
        return np.arange(len(self.column.rings))


class EventList(SlotColumn):
    """All events by time; none is late."""

    def __init__(self, instants: Instants) -> None:
        super().__init__(instants.rings)
        self._instants = instants
        self._times, self._keys = np.zeros(1 << 16, np.int64), np.zeros(1 << 16, np.int64)
        self._length = 0

    def resize(self, slots: int) -> None:
        pass

    def elements(self, rows: RowRuns) -> State:
        return (np.zeros(rows.rows, np.int64),)

    def move(self, rows: RowRuns, state: State) -> None:
        pass

    def append(self, rows: RowRuns, state: State) -> None:
        until = self._length + rows.rows
        if until > len(self._times):
            self._times, self._keys = (np.resize(array, 2 * until) for array in (self._times, self._keys))
        [times] = self._instants.elements(rows)
        order = np.argsort(times, kind="stable")
        self._times[self._length : until] = times[order]
        self._keys[self._length : until] = np.repeat(rows.key, rows.width)[order]
        self._length = until

    def counts_since(self, first: int) -> Integers:
        """How many events each key has from an instant on."""
        begin = int(np.searchsorted(self._times[: self._length], first))
        return np.bincount(self._keys[begin : self._length])


@dataclass(frozen=True)
class Ask:
    """A lookup: its window and its threshold."""

    over: int
    above: int


@dataclass(frozen=True)
class Phase:
    """Batches of events, each followed by the same lookups."""

    name: str
    batches: Sequence[pa.Table]
    asks: Sequence[Ask]


@dataclass(frozen=True)
class Stream:
    """Events of many substreams: some to begin with, and then phase after phase."""

    name: str
    first: pa.Table
    phases: Sequence[Phase]


@dataclass
class Took:
    """Seconds of processor time: of each batch, and of each lookup."""

    updates: list[float] = field(default_factory=list)
    lookups: list[float] = field(default_factory=list)
    found: list[list[object]] = field(default_factory=list)

    def per_input(self, events: int, lookups: int) -> float:
        """Of a batch and so many lookups, divided by the number of events and lookups."""
        return (median(self.updates) + lookups * mean(self.lookups)) / (events + lookups)


def thresholds(bench: Bench) -> None:
    """Figure 12, more and more substreams, more events for each lookup, and real events."""
    _figure_12(bench)
    _updates(bench)
    _substreams(bench)
    _real(bench)


def _figure_12(bench: Bench) -> None:
    keys = 500 if bench.options.quick else SUBSTREAMS[0]
    stream = _synthetic(keys, [("many", MANY, _INPUTS, _INPUTS)], rounds=2 if bench.options.quick else 10)
    table = bench.report.table(
        f"Figure 12: {keys:,} substreams, windows of 15 min to 3 h, selectivity 0.03 to 0.05; inputs per second",
        f"An input is an event or a lookup: {_INPUTS} events in one batch, then {_INPUTS} lookups.",
    )
    others = {"every key": EveryKey(), "long keys": LongKeys(), "every event": EveryEvent()}
    indexes = {f"index, p = {p}": Indexed(p=p) for p in PLACES}
    contenders: dict[str, EveryKey] = {**others, **dict(bench.few(list(indexes.items())))}
    took = {name: _run(bench, stream, name, contender)["many"] for name, contender in contenders.items()}
    _agree(took)
    rates = {name: 1 / each.per_input(_INPUTS, _INPUTS) for name, each in took.items()}
    for name, contender in contenders.items():
        row: dict[str, object] = {"": name, "inputs/s": rates[name], "faster ×": rates[name] / rates["every key"]}
        if isinstance(contender, Indexed):
            found = sum(len(contender.find(ask)) for ask in stream.phases[0].asks)
            newest = contender.part.store.newest or 0
            candidates = sum(
                len(contender.candidates(ask, newest - ask.over + 1, newest)) for ask in stream.phases[0].asks
            )
            assert contender.index.levels is not None
            row |= {
                "ε": contender.index.levels.epsilon,
                "candidates per key found": candidates / max(1, found),
                "update, µs per event": 1e6 * median(took[name].updates) / _INPUTS,
                "lookup, µs": 1e6 * mean(took[name].lookups),
            }
        table.rows.append(row)


def _updates(bench: Bench) -> None:
    keys, size = (500, 1000) if bench.options.quick else (100_000, 10_000)
    stream = _synthetic(keys, [("updates", FEW, size, 0)], rounds=2 if bench.options.quick else 10)
    table = bench.report.table(
        f"What an index adds to an update: {keys:,} substreams, batches of {size:,} events; microseconds per event",
        "Values of sums are 1 to 1000. Memory is that of the index, without the events. Nobody looks anything up. The "
        "first line has no index: reading a batch, finding its keys and keeping its events.",
    )
    rng = np.random.default_rng(0)

    def valued(events: pa.Table) -> pa.Table:
        return events.append_column("x", pa.array(rng.integers(1, 1001, events.num_rows)))

    first, batches = valued(stream.first), [valued(batch) for batch in stream.phases[0].batches]

    def per_event(contender: EveryKey) -> float:
        contender.update(first)
        took = [_seconds(contender.update, batch)[0] for batch in batches[1:]]
        return 1e6 * median(took) / size

    table.rows.append({"p": "none", "count": per_event(EveryKey())})
    for p in bench.few(PLACES):
        row: dict[str, object] = {"p": p, "ε": Levels(p).epsilon}
        for name, aggregate in (("count", pn.count()), ("sum", pn.sum("x"))):
            contender = Indexed(aggregate, p)
            row[name] = per_event(contender)
            row[f"{name}, bytes per substream"] = contender.nbytes / keys
        table.rows.append(row)


def _substreams(bench: Bench) -> None:
    inputs = f"{_INPUTS} events in one batch, then {_INPUTS} lookups; {_EVENTS_EACH} events for each substream in 3 h."
    tables = {
        name: bench.report.table(
            f"Substreams; {name} keys qualify ({low:g} to {high:g} of them); microseconds per input", inputs
        )
        for name, (low, high) in (("few", FEW), ("many", MANY))
    }
    ratios = bench.report.table(
        "The most substreams but one, few keys qualify, more events for each lookup; milliseconds for both"
    )
    sizes = (200, 1000) if bench.options.quick else SUBSTREAMS
    for keys in sizes:
        phases = [("few", FEW, _INPUTS, _INPUTS), ("many", MANY, _INPUTS, _INPUTS)]
        if keys == sizes[-2]:
            phases += [(f"{events:,} events", FEW, events, 1) for events in bench.few(RATIOS)]
        stream = _synthetic(keys, phases, rounds=2 if bench.options.quick else 6)
        took = {name: _run(bench, stream, name, make()) for name, make in _CONTENDERS.items()}
        for name, _, events, lookups in phases:
            _agree({contender: each[name] for contender, each in took.items()})
            seconds = {contender: each[name].per_input(events, lookups) for contender, each in took.items()}
            row: dict[str, object] = {"substreams" if name in tables else "events per lookup": keys}
            scale = 1e6 if name in tables else 1e3 * (events + 1)
            if name not in tables:
                row["events per lookup"] = events
            row |= {contender: scale * each for contender, each in seconds.items()}
            row["faster than every key ×"] = seconds["every key"] / seconds["index"]
            row["than the best other ×"] = min(v for n, v in seconds.items() if n != "index") / seconds["index"]
            tables.get(name, ratios).rows.append(row)


def _real(bench: Bench) -> None:
    table = bench.report.table(
        "Real events, selectivity 0.03 to 0.05; inputs per second",
        f"{_INPUTS} events in one batch, then {_INPUTS} lookups of windows of 15 min to 3 h.",
    )
    for name, events in _real_events():
        stream = _replayed(name, events.slice(0, bench.events(events.num_rows)), 2 if bench.options.quick else 10)
        took = {contender: _run(bench, stream, contender, make())["many"] for contender, make in _CONTENDERS.items()}
        _agree(took)
        rates = {contender: 1 / each.per_input(_INPUTS, _INPUTS) for contender, each in took.items()}
        table.rows.append({"": name, **rates, "faster than every key ×": rates["index"] / rates["every key"]})
    if not table.rows:
        table.notes = ("Skipped: the data are not beside the checkout.",)


_CONTENDERS: dict[str, Callable[[], EveryKey]] = {
    "every key": EveryKey,
    "long keys": LongKeys,
    "every event": EveryEvent,
    "index": Indexed,
}


def _run(bench: Bench, stream: Stream, name: str, contender: EveryKey) -> dict[str, Took]:
    """Take in all phases: a first batch and its lookups to warm up, then the others. Few lookups suffice if dear."""
    contender.update(stream.first)
    took: dict[str, Took] = {}
    for phase in stream.phases:
        found = took[phase.name] = Took()
        asks = phase.asks if name.startswith("index") else phase.asks[:_DEAR]
        for number, batch in enumerate(phase.batches):
            updating, _ = _seconds(contender.update, batch)
            looking = [_seconds(contender.find, ask) for ask in asks]
            if number:
                found.updates.append(updating)
                found.lookups += [seconds for seconds, _ in looking]
                found.found += [sorted(keys.to_pylist()) for _, keys in looking[:_CHECKED]]
    bench.report.write()
    return took


def _agree(took: Mapping[str, Took]) -> None:
    """Stop the benchmark unless everybody has found the same."""
    reference, *others = took.items()
    for name, each in others:
        if each.found != reference[1].found:
            raise AssertionError(f"{name} finds other keys than {reference[0]}")


def _seconds(work: Callable[..., T], *arguments: object) -> tuple[float, T]:
    """Seconds of processor time that some work takes, and its result."""
    start = time.process_time()
    result = work(*arguments)
    return time.process_time() - start, result


def _synthetic(keys: int, phases: Sequence[tuple[str, tuple[float, float], int, int]], rounds: int) -> Stream:
    """Substreams of very different rates; a phase has a name, a selectivity, and a number of events and lookups."""
    rng = np.random.default_rng(keys)
    first = keys * _EVENTS_EACH
    total = first + sum((rounds + 1) * events for _, _, events, _ in phases)
    rates = np.cumsum(rng.lognormal(0, _SKEW, keys))
    drawn = np.searchsorted(rates, rng.uniform(0, rates[-1], total))
    # The first three hours, and then at the same pace.
    times = data.START + np.sort(rng.uniform(0, _KEEP * total / first, total)).astype(np.int64)
    table = pa.table({"ts": pa.array(times).cast(pa.timestamp("us", "UTC")), "key": drawn})
    found, at = [], first
    for name, selectivity, events, lookups in phases:
        batches = [table.slice(at + i * events, events) for i in range(rounds + 1)]
        found.append(Phase(name, batches, _asks(drawn[:first], times[:first], keys, selectivity, lookups, rng)))
        at += (rounds + 1) * events
    return Stream(f"{keys} substreams", table.slice(0, first), found)


def _asks(
    keys: Integers, times: Integers, distinct: int, selectivity: tuple[float, float], lookups: int, rng: Generator
) -> list[Ask]:
    """Lookups whose thresholds so many keys exceed."""
    asks = []
    for _ in range(lookups):
        over = int(rng.uniform(15 * MINUTE, _KEEP))
        counts = np.bincount(keys[np.searchsorted(times, times[-1] - over, side="right") :], minlength=distinct)
        wanted = max(1, int(distinct * rng.uniform(*selectivity)))
        asks.append(Ask(over, int(np.partition(counts, -wanted - 1)[-wanted - 1])))
    return asks


def _real_events() -> Iterator[tuple[str, pa.Table]]:
    trades = data.trades()
    if trades is not None:
        table = pq.read_table(trades.path, columns=["ts", "symbol", "exch"])
        days = table["ts"].cast(pa.date32())
        table = table.filter(pc.equal(days, days[0]))
        joined = pc.binary_join_element_wise(*(table[name].cast(pa.string()) for name in ("symbol", "exch")), "/")
        yield "trades of a day by symbol and exchange", pa.table({"ts": table["ts"], "key": joined})
    options = data.SHARED / "goog_option_quotes.parquet"
    if options.exists():
        table = pq.read_table(options, columns=["ts", "contract"]).sort_by("ts")
        yield "option quotes by contract", pa.table({"ts": table["ts"], "key": table["contract"]})


def _replayed(name: str, events: pa.Table, rounds: int) -> Stream:
    """Real events: all but the last, then batches of the last."""
    split = events.num_rows - (rounds + 1) * _INPUTS
    first = events.slice(0, split)
    coded = first["key"].combine_chunks().dictionary_encode()
    keys, distinct = coded.indices.to_numpy().astype(np.int64), len(coded.dictionary)
    times = first["ts"].cast(pa.timestamp("us", first["ts"].type.tz)).cast(pa.int64()).to_numpy()
    asks = _asks(keys, times, distinct, MANY, _INPUTS, np.random.default_rng(0))
    batches = [events.slice(split + i * _INPUTS, _INPUTS) for i in range(rounds + 1)]
    return Stream(f"{name}, {distinct} substreams", first, [Phase("many", batches, asks)])
