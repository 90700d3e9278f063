"""Which keys have many events in a window: the collective index beside looking at every key.

Paper: Arasu and Widom, Resource Sharing in Continuous Sliding-Window Aggregates (2004), section 6.3 and figure 12. All
contenders read the same batches and number the same keys; they differ in what they keep beside the events, and in the
keys that a lookup looks at. Lookups are exact. All runs in one process, without Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import panes as pn
from benchmarks import data
from benchmarks.report import Timings
from benchmarks.runner import Bench, timed
from panes.live.collective_levels import Integers, Levels
from panes.live.threshold_history import Grouped
from panes.live.threshold_measures import Active, Counts, Measure, Window
from panes.live.threshold_ranges import Asked, WholeRange
from panes.timeline import HOUR, MINUTE

SUBSTREAMS = (5_000, 20_000, 100_000, 500_000, 1_000_000, 2_000_000)
PLACES = (1, 2, 4, 8, 16, 32)
RATIOS = (1, 10, 100, 1_000, 10_000)
_EVENTS_EACH = 10
_KEEP = 3 * HOUR
_INPUTS = 50
"""A batch of so many events is followed by so many lookups."""

_SKEW = 1.5


class EveryKey(Counts):
    """R-INT over every substream, as the paper's naive approach: no index."""

    def extend(self, keys: int) -> None:
        self.history.extend(keys)
        self.keys = keys

    def renewed(self, values: object) -> Measure:
        return type(self)(Levels(1))

    def forget(self, keys: Integers) -> None:
        self.history.forget(keys)

    def insert(self, new: Grouped) -> None:
        self.history.append(new)

    def candidates(self, asked: Asked, window: Window, active: Active) -> Integers:
        return np.arange(self.keys)


class LongKeys(EveryKey):
    """The same, but for substreams that have too few events altogether."""

    def candidates(self, asked: Asked, window: Window, active: Active) -> Integers:
        return np.flatnonzero(self.history.sizes(np.arange(self.keys)) >= (WholeRange.of(asked).at_least or 0))


class EveryEvent(EveryKey):
    """No substreams at all: the events of the window are counted by key whenever somebody asks."""

    def __init__(self, levels: Levels) -> None:
        super().__init__(levels)
        self._times = self._keys = np.zeros(1 << 16, np.int64)
        self._length = 0

    def insert(self, new: Grouped) -> None:
        self.history.append(new)
        until = self._length + len(new.times)
        if until > len(self._times):
            self._times, self._keys = (np.resize(array, 2 * until) for array in (self._times, self._keys))
        order = np.argsort(new.times, kind="stable")
        self._times[self._length : until] = new.times[order]
        self._keys[self._length : until] = np.repeat(new.keys, new.counts)[order]
        self._length = until

    def candidates(self, asked: Asked, window: Window, active: Active) -> Integers:
        first = int(np.searchsorted(self._times[: self._length], window.first))
        counts = np.bincount(self._keys[first : self._length], minlength=self.keys)
        return np.flatnonzero(counts >= (WholeRange.of(asked).at_least or 0))


class Other(pn.Threshold):
    """A threshold that finds its candidates another way."""

    def __init__(self, measure: type[EveryKey]) -> None:
        super().__init__(pn.count(), by="key", at="ts", keep="3 hours")
        self._kind = measure

    def _bind(self, schema: pa.Schema) -> None:
        first = self._schema is None
        super()._bind(schema)
        if first:
            self._measure = self._kind(Levels(1))


@dataclass(frozen=True)
class Ask:
    """A lookup: its window and its threshold."""

    over: int
    above: int

    def of(self, index: pn.Threshold) -> pa.Table:
        return index.lookup(over=f"{self.over} us", above=self.above)


@dataclass(frozen=True)
class Stream:
    """Events of many substreams: some to begin with, and then batches, with lookups for after each of them."""

    first: pa.Table
    batches: Sequence[pa.Table]
    asks: Sequence[Sequence[Ask]]

    def started(self, index: pn.Threshold) -> pn.Threshold:
        """An index that has seen the first events and one lookup of each kind, which sorts what they left."""
        index.update(self.first)
        for asks in self.asks:
            for ask in asks:
                ask.of(index)
        return index

    def run(self, index: pn.Threshold, lookups: int | None = None) -> int:
        """Take in all batches, with lookups in between (all, or the first few of each): the number of keys found."""
        found = 0
        for batch, asks in zip(self.batches, self.asks, strict=True):
            index.update(batch)
            for ask in asks[:lookups]:
                found += ask.of(index).num_rows
        return found


def thresholds(bench: Bench) -> None:
    """Figure 12, more and more substreams, more events for each lookup, and real events."""
    _figure_12(bench)
    _substreams(bench)
    _ratios(bench)
    _real(bench)


def _figure_12(bench: Bench) -> None:
    keys = 500 if bench.options.quick else SUBSTREAMS[0]
    stream = _synthetic(keys, selectivity=(0.03, 0.05), rounds=2 if bench.options.quick else 8)
    table = bench.report.table(
        f"Figure 12: {keys:,} substreams, windows of 15 min to 3 h, selectivity 0.03 to 0.05; inputs per second",
        f"An input is an event or a lookup: {_INPUTS} events in one batch, then {_INPUTS} lookups. Median of rounds.",
    )
    naive = _raced(bench, f"{keys} substreams", stream, {"every key": Other(EveryKey)})["every key"]
    table.rows.append({"": "every key (R-INT)", "inputs/s": 2 * _INPUTS * len(stream.batches) / naive, "faster ×": 1.0})
    for p in bench.few(PLACES):
        index = pn.Threshold(pn.count(), by="key", at="ts", keep="3 hours", p=p)
        took = _raced(bench, f"{keys} substreams", stream, {f"p={p}": index})[f"p={p}"]
        asks = stream.asks[-1]
        exact = sum(ask.of(index).num_rows for ask in asks)
        some = sum(index.lookup(over=f"{a.over} us", above=a.above, exact=False).num_rows for a in asks)
        table.rows.append(
            {
                "": f"index, p = {p}",
                "ε": index.epsilon,
                "inputs/s": 2 * _INPUTS * len(stream.batches) / took,
                "faster ×": naive / took,
                "candidates per key found": some / max(1, exact),
            }
        )


def _substreams(bench: Bench) -> None:
    for few, selectivity in ((True, (2e-5, 2e-4)), (False, (0.03, 0.05))):
        table = bench.report.table(
            f"Substreams; {'few' if few else 'many'} keys qualify ({selectivity[0]:g} to {selectivity[1]:g} of them); "
            "microseconds per input",
            f"{_INPUTS} events in one batch, then {_INPUTS} lookups (of those that look at every key, the first 5, "
            f"and their time counts ten times); {_EVENTS_EACH} events for each substream in three hours. p = 4.",
        )
        for keys in (200, 1000) if bench.options.quick else SUBSTREAMS:
            stream = _synthetic(keys, selectivity=selectivity, rounds=2 if bench.options.quick else 6)
            took = {}
            for name, index in _contenders().items():
                took[name] = _per_input(bench, f"{keys} substreams, {selectivity}", stream, name, index)
            row: dict[str, object] = {"substreams": keys, **{name: 1e6 * seconds for name, seconds in took.items()}}
            others = {name: seconds for name, seconds in took.items() if name != "index"}
            row["faster than every key ×"] = took["every key"] / took["index"]
            row["than the best other ×"] = min(others.values()) / took["index"]
            table.rows.append(row)


def _ratios(bench: Bench) -> None:
    keys = 1000 if bench.options.quick else 1_000_000
    table = bench.report.table(
        f"{keys:,} substreams, few keys qualify, more events for each lookup; milliseconds for a batch and a lookup",
    )
    for events in bench.few(RATIOS):
        stream = _synthetic(keys, selectivity=(2e-5, 2e-4), rounds=6, size=events, lookups=1)
        took = {
            name: _raced(bench, f"{events} events per lookup", stream, {name: index})[name] / len(stream.batches)
            for name, index in _contenders().items()
        }
        row: dict[str, object] = {"events per lookup": events, **{name: 1e3 * each for name, each in took.items()}}
        row["faster than every key ×"] = took["every key"] / took["index"]
        table.rows.append(row)


def _real(bench: Bench) -> None:
    table = bench.report.table(
        "Real events, selectivity 0.03 to 0.05; inputs per second",
        f"{_INPUTS} events in one batch, then {_INPUTS} lookups of windows of 15 min to 3 h.",
    )
    for name, events in _real_events():
        stream = _replayed(events, rounds=2 if bench.options.quick else 20)
        row: dict[str, object] = {"": name}
        for contender, index in _contenders().items():
            took = _raced(bench, name, stream, {contender: index})[contender]
            row[contender] = 2 * _INPUTS * len(stream.batches) / took
        table.rows.append(row)
    if not table.rows:
        table.notes = ("Skipped: the data are not beside the checkout.",)


def _contenders() -> dict[str, pn.Threshold]:
    return {
        "every key": Other(EveryKey),
        "long keys": Other(LongKeys),
        "every event": Other(EveryEvent),
        "index": pn.Threshold(pn.count(), by="key", at="ts", keep="3 hours"),
    }


def _per_input(bench: Bench, case: str, stream: Stream, name: str, index: pn.Threshold) -> float:
    """Seconds per event or lookup; where lookups are dear only some are made."""
    if name == "index":
        return _raced(bench, case, stream, {name: index})[name] / (2 * _INPUTS * len(stream.batches))
    lookups = 5
    stream.started(index)
    updating = median(timed(index.update, batch)[0] for batch in stream.batches)
    looking = [timed(ask.of, index)[0] for asks in stream.asks for ask in asks[:lookups]]
    bench.report.record(case, "synthetic", Timings({f"{name}, update": [updating], f"{name}, lookup": looking}))
    return (updating + _INPUTS * median(looking)) / (2 * _INPUTS)


def _raced(bench: Bench, case: str, stream: Stream, contenders: dict[str, pn.Threshold]) -> dict[str, float]:
    """Seconds that all batches and lookups take: medians over the batches, times their number."""
    medians = {}
    for name, index in contenders.items():
        stream.started(index)
        took = []
        for batch, asks in zip(stream.batches, stream.asks, strict=True):
            took.append(timed(Stream(stream.first, [batch], [asks]).run, index)[0])
        bench.report.record(case, "events", Timings({name: took}))
        medians[name] = median(took) * len(took)
    return medians


def _synthetic(
    keys: int, *, selectivity: tuple[float, float], rounds: int, size: int = _INPUTS, lookups: int = _INPUTS
) -> Stream:
    """Substreams of very different rates."""
    rng = np.random.default_rng(keys)
    events = keys * _EVENTS_EACH
    rates = np.cumsum(rng.lognormal(0, _SKEW, keys))
    total = events + rounds * size
    drawn = np.searchsorted(rates, rng.uniform(0, rates[-1], total))
    # The first three hours, and then at the same pace.
    times = data.START + np.sort(rng.uniform(0, _KEEP * total / events, total)).astype(np.int64)
    table = pa.table({"ts": pa.array(times).cast(pa.timestamp("us", "UTC")), "key": drawn})
    first = table.slice(0, events)
    batches = [table.slice(events + i * size, size) for i in range(rounds)]
    # As many kinds of lookups as a batch is followed by; their thresholds come from the first events.
    asks = _asks(drawn[:events], times[:events], keys, selectivity, lookups, rng)
    return Stream(first, batches, [asks] * rounds)


def _asks(
    keys: Integers,
    times: Integers,
    distinct: int,
    selectivity: tuple[float, float],
    lookups: int,
    rng: np.random.Generator,
) -> list[Ask]:
    asks = []
    for _ in range(lookups):
        over = int(rng.uniform(15 * MINUTE, _KEEP))
        counts = np.bincount(keys[np.searchsorted(times, times[-1] - over, side="right") :], minlength=distinct)
        wanted = max(1, int(distinct * rng.uniform(*selectivity)))
        # So many keys have more than this, ties aside.
        asks.append(Ask(over, int(np.partition(counts, -wanted - 1)[-wanted - 1])))
    return asks


def _real_events() -> Iterator[tuple[str, pa.Table]]:
    trades = data.trades()
    if trades is not None:
        table = pq.read_table(trades.path, columns=["ts", "symbol", "exch"])
        days = table["ts"].cast(pa.date32())
        table = table.filter(pa.compute.equal(days, days[0]))
        joined = pa.compute.binary_join_element_wise(table["symbol"], table["exch"].cast(pa.string()), "/")
        yield "trades of a day by symbol and exchange", pa.table({"ts": table["ts"], "key": joined})
    options = data.SHARED / "goog_option_quotes.parquet"
    if options.exists():
        table = pq.read_table(options, columns=["ts", "contract"]).sort_by("ts")
        yield "option quotes by contract", pa.table({"ts": table["ts"], "key": table["contract"]})


def _replayed(events: pa.Table, rounds: int) -> Stream:
    """Real events: all but the last, then batches of the last."""
    split = events.num_rows - rounds * _INPUTS
    first = events.slice(0, split)
    coded = first["key"].combine_chunks().dictionary_encode()
    keys, distinct = coded.indices.to_numpy().astype(np.int64), len(coded.dictionary)
    times = first["ts"].cast(pa.timestamp("us", first["ts"].type.tz)).cast(pa.int64()).to_numpy()
    asks = _asks(keys, times, distinct, (0.03, 0.05), _INPUTS, np.random.default_rng(0))
    return Stream(first, [events.slice(split + i * _INPUTS, _INPUTS) for i in range(rounds)], [asks] * rounds)
