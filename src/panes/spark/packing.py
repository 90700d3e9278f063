"""Events on their way to shards: each is touched once, where it is read, and travels packed with others of its shard.

Start with :func:`packing`. Windows over time send panes (:class:`PanesPacker`), windows of rows and operators send the
rows themselves (:class:`RowsPacker`). Workers import this module, so it imports nothing that only the driver needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.aggregates.operations import Array
from panes.engine.keys import INSTANT, one_zero
from panes.engine.program import Program
from panes.frames.positions import FARTHEST
from panes.spark.batches import large_batches, typed
from panes.state.blob_store import pack
from panes.state.granules import pack_panes
from panes.state.held_rows import MEASURE, no_marks
from panes.state.tally import merged, passing, tallied
from panes.timeline import Edges

READ = ("events", "null_timestamps", "absurd_timestamps")
"""What is counted of the events read: all that some query wants, those without a time, those with an impossible one."""

_COUNTS = dict.fromkeys(READ, "BIGINT")
PANES = {"shard": "INT", "store": "INT", "keys": "BINARY", "panes": "BINARY", "place": "STRING", "change": "STRING"}
PANES |= _COUNTS
"""The columns of rows for the shards of windows over time: packed panes, changes of the catalogue, counts."""
ROWS = {"shard": "INT", "rows": "BINARY", "marks": "BINARY", **_COUNTS}
"""The same for windows of rows and operators: packed rows, marks for all keys, counts."""

EVENTS, TALLY = -2, -3
"""The store numbers of rows that carry whole events, which come out again if they are late, and tallies of events."""

EVENT, EVERYTHING, SHARD, MARKS = "__panes_event", "__panes_everything", "__panes_shard", "__panes_marks"
"""What columns are called on their way to Python: a whole event, the key of a store without keys, the shard of an event
and, as a list, the numbers of the measures that it is a mark of."""

_TYPES = {"INT": pa.int32(), "BIGINT": pa.int64(), "BINARY": pa.binary(), "STRING": pa.string()}
_BATCH_ROWS = 1 << 16


class Packer(Protocol):
    """Packs the events of one partition in one micro-batch."""

    def pack(self, events: pa.RecordBatch) -> Iterator[Mapping[str, Any]]:
        """Return the columns of rows for shards; the column ``shard`` has numbers from 0 on."""

    def for_every_shard(self) -> Mapping[str, Any]:
        """Return what each shard gets at the end."""


def packing(
    packer: Callable[[], Packer], columns: Mapping[str, str], shards: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that packs the events of a partition.

    Parameters
    ----------
    packer
        Makes the packer of a partition.
    columns
        The columns of packed rows: ``PANES`` or ``ROWS``.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names, counts, partition = np.array(shard_labels(shards), np.int32), dict.fromkeys(READ, 0), packer()

        def batch(shard: Array, **values: Any) -> pa.RecordBatch:
            given = {"shard": names[shard], **values}
            arrays = [
                pa.array(given[name], _TYPES[type_]) if name in given else pa.nulls(len(shard), _TYPES[type_])
                for name, type_ in columns.items()
            ]
            return pa.RecordBatch.from_arrays(arrays, names=list(columns))

        for events in large_batches(batches, _BATCH_ROWS):
            for packed in partition.pack(_with_possible_times(events, counts)):
                yield batch(**packed)
        # A row for every shard, whatever came: each of them takes part in every micro-batch. The first one counts.
        every = np.arange(shards)
        counted = {name: count * (every == 0) for name, count in counts.items()}
        yield batch(every, **counted, **partition.for_every_shard())

    return run


def _with_possible_times(events: pa.RecordBatch, counts: dict[str, int]) -> pa.RecordBatch:
    """Return the events that have a possible time, and count all."""
    counts["events"] += len(events)
    instants = events.column(INSTANT)
    if instants.null_count:
        counts["null_timestamps"] += instants.null_count
        events = events.filter(instants.is_valid())
        instants = events.column(INSTANT)
    times = instants.to_numpy()
    if len(times) and not -FARTHEST <= times.min() <= times.max() <= FARTHEST:
        possible = (times >= -FARTHEST) & (times <= FARTHEST)
        counts["absurd_timestamps"] += int((~possible).sum())
        events = events.filter(pa.array(possible))
    return events


@dataclass(frozen=True)
class Intake:
    """Where a store finds its part of each event.

    Parameters
    ----------
    keys, names, types
        The columns of its keys, and what these are called and typed in the data.
    arguments
        The columns of the arguments of aggregates, by their SQL.
    shard
        The column with the shard of the key.
    kept
        The column that says whether any query of the store wants the event; None where all events are wanted.
    """

    program: Program
    keys: tuple[str, ...]
    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    arguments: Mapping[str, str]
    shard: str
    kept: str | None

    def wanted(self, events: pa.RecordBatch) -> pa.RecordBatch:
        """Return the events that some query of the store wants."""
        return events if self.kept is None else events.filter(events.column(self.kept))

    def keys_of(self, events: pa.RecordBatch) -> pa.RecordBatch:
        """Return the keys of events; there is always a column."""
        if not self.keys:
            return pa.RecordBatch.from_pydict({EVERYTHING: pa.array(np.zeros(len(events), np.int32))})
        columns = zip(self.keys, self.types, strict=True)
        arrays = [one_zero(typed(events.column(column), type_)) for column, type_ in columns]
        return pa.RecordBatch.from_arrays(arrays, names=list(self.names))

    def arguments_of(self, events: pa.RecordBatch) -> dict[str, pa.Array]:
        """Return the arguments of aggregates by their SQL."""
        types = {sql: type_ for c in self.program.components for sql, type_ in zip(c.arguments, c.types, strict=True)}
        return {sql: typed(events.column(column), types[sql]) for sql, column in self.arguments.items()}


@dataclass(frozen=True)
class Tallying:
    """How a task tallies its events, so that each counts once as late, however many stores get it.

    Parameters
    ----------
    edges
        Those of all stores.
    flags
        For each condition of a query the column that is true, or not null, where an event passes it; None where all
        events do.
    panes
        Whether the panes of the only store are a tally already.
    """

    edges: tuple[Edges, ...]
    flags: tuple[str | None, ...]
    panes: bool

    def passed(self, events: pa.RecordBatch) -> list[pa.Array | None]:
        """Return for each condition which events pass it; None if all do."""
        columns = (None if name is None else events.column(name) for name in self.flags)
        return [c if c is None or pa.types.is_boolean(c.type) else c.is_valid() for c in columns]

    def tally(self, events: pa.RecordBatch) -> pa.RecordBatch:
        """Return the tally of some events."""
        return tallied(self.edges, events.column(INSTANT).to_numpy(), self.passed(events))


class PanesPacker:
    """Lifts events into the panes of every store.

    Parameters
    ----------
    whole_events
        Whether events travel too, as text: they come out again if they are late.
    """

    def __init__(self, intakes: Sequence[Intake], tallying: Tallying, shards: int, whole_events: bool = False) -> None:
        self._intakes, self._tallying, self._shards, self._whole_events = intakes, tallying, shards, whole_events
        self._tallies: list[pa.RecordBatch] = []

    def pack(self, events: pa.RecordBatch) -> Iterator[Mapping[str, Any]]:
        """Return a row per store and shard with panes, and one per shard with whole events."""
        if len(events) and not self._tallying.panes:
            self._tallies.append(self._tallying.tally(events))
        for store, intake in enumerate(self._intakes):
            own = intake.wanted(events)
            shard, instants = own.column(intake.shard).to_numpy(), own.column(INSTANT).to_numpy()
            keys, arguments = intake.keys_of(own), intake.arguments_of(own)
            found = list(pack_panes(intake.program, keys, shard, instants, arguments, count=self._tallying.panes))
            if found:
                yield {
                    "shard": np.array([packed.shard for packed in found]),
                    "store": np.full(len(found), store),
                    "keys": [packed.keys for packed in found],
                    "panes": [packed.panes for packed in found],
                }
        if self._whole_events:
            yield from self._whole(events)

    def for_every_shard(self) -> Mapping[str, Any]:
        """Return the tally of the partition for the first shard, which gets the counts too."""
        if not self._tallies:
            return {}
        tally, others = merged(self._tallying.edges, self._tallies), [None] * (self._shards - 1)
        return {"store": [TALLY, *others], "panes": [pack(tally), *others]}

    def _whole(self, events: pa.RecordBatch) -> Iterator[Mapping[str, Any]]:
        """Pack the events for the shards of the first store."""
        shard = events.column(self._intakes[0].shard).to_numpy()
        columns = {INSTANT: events.column(INSTANT), EVENT: events.column(EVENT)}
        columns |= {passing(i): flags for i, flags in enumerate(self._tallying.passed(events)) if flags is not None}
        texts = pa.RecordBatch.from_pydict(columns)
        for number in np.unique(shard):
            own = pack(texts.filter(pa.array(shard == number)))
            yield {"shard": np.array([number]), "store": [EVENTS], "panes": [own]}


class RowsPacker:
    """Sends rows as they are, and the marks among them to every shard.

    Parameters
    ----------
    schema
        The columns that travel; before them come ``SHARD`` and ``MARKS``.
    operator
        A name that no other operator of the query has. Where two of them get the same rows, Spark lets them share the
        shuffle, and the second one then sees every watermark a micro-batch late.
    """

    def __init__(self, schema: pa.Schema, shards: int, operator: str) -> None:
        self._schema, self._shards = schema, shards
        self._marks = [no_marks()]

    def pack(self, events: pa.RecordBatch) -> Iterator[Mapping[str, Any]]:
        """Return a row per shard with its rows."""
        self._marks += _marks_among(events)
        if not len(events):
            return
        shard = events.column(SHARD).to_numpy()
        order = np.argsort(shard, kind="stable")
        columns = [typed(events.column(field.name), field.type) for field in self._schema]
        rows = pa.RecordBatch.from_arrays(columns, schema=self._schema).take(pa.array(order))
        present, first = np.unique(shard[order], return_index=True)
        bounds = zip(first.tolist(), [*first[1:].tolist(), len(order)], strict=True)
        yield {"shard": present, "rows": [pack(rows.slice(lo, hi - lo)) for lo, hi in bounds]}

    def for_every_shard(self) -> Mapping[str, Any]:
        """Return the marks of the partition."""
        return {"marks": [pack(joined_marks(self._marks))] * self._shards}


def _marks_among(rows: pa.RecordBatch) -> list[pa.RecordBatch]:
    """Return the marks among rows: when, and of which measure."""
    listed = rows.column(MARKS)
    if listed.null_count == len(rows):
        return []
    instants = rows.column(INSTANT).take(pc.list_parent_indices(listed))
    return [pa.record_batch({INSTANT: instants, MEASURE: listed.flatten().cast(pa.int64())})]


def joined_marks(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return marks as one batch."""
    joined = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined[0] if joined else no_marks()


# Labels of shards.
#
# Spark puts a row into the partition ``pmod(murmur3(key), partitions)``. Shards labelled 0, 1, 2, ... would fall at
# random, three into one of two partitions and one into the other. So the label of the i-th shard is the smallest number
# whose hash ends in the bits of i. It depends on nothing but i: a checkpoint finds its shards again, whatever changes.


_SEED = 42
_HASH_ENDINGS = 1 << 12
_WORD = 0xFFFFFFFF


@cache
def shard_labels(shards: int) -> tuple[int, ...]:
    """Return the label of each shard, so that Spark's partitions get equally many of them.

    Examples
    --------
    >>> [murmur3(label) % 4 for label in shard_labels(6)]
    [0, 1, 2, 3, 0, 1]
    """
    missing, found, number = set(range(shards)), dict[int, int](), 0
    while missing:
        ending = murmur3(number) % _HASH_ENDINGS
        if ending in missing:
            missing.remove(ending)
            found[ending] = number
        number += 1
    return tuple(found[i] for i in range(shards))


def murmur3(number: int) -> int:
    """Return Spark's ``hash`` of an INT, as an unsigned number.

    Examples
    --------
    >>> murmur3(1) - 2**32
    -559580957
    """
    mixed = number * 0xCC9E2D51 & _WORD
    mixed = _rotate(mixed, 15) * 0x1B873593 & _WORD
    hashed = _rotate(_SEED ^ mixed, 13) * 5 + 0xE6546B64 & _WORD
    hashed ^= 4  # bytes
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B & _WORD
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & _WORD
    return hashed ^ hashed >> 16


def _rotate(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _WORD
