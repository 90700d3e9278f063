"""The catalogue as a stream: every change reaches every shard, in the order in which it was written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from panes.aggregates.operations import Array
from panes.engine.keys import one_zero
from panes.engine.program import Program
from panes.frames.positions import FARTHEST
from panes.spark.batches import large_batches
from panes.state.blob_store import pack
from panes.state.granules import pack_panes

# Which numbers stand for shards, so that Spark's partitions get equally many of them.
#
# Spark puts a row into the partition ``pmod(murmur3(key), partitions)``. Shards called 0, 1, 2, ... would fall at
# random, three into one of two partitions and one into the other. So the i-th shard is called by the smallest number
# whose hash ends in the bits of i. It depends on nothing but i: a checkpoint finds its shards again, whatever changes.


_SEED = 42
_ENDS_IN = 1 << 12
_WORD = 0xFFFFFFFF


def murmur3(number: int) -> int:
    """Spark's ``hash`` of an INT, as an unsigned number.

    Examples
    --------
    >>> murmur3(1) - 2**32
    -559580957
    """
    mixed = number * 0xCC9E2D51 & _WORD
    mixed = _turned(mixed, 15) * 0x1B873593 & _WORD
    hashed = _turned(_SEED ^ mixed, 13) * 5 + 0xE6546B64 & _WORD
    hashed ^= 4  # bytes
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B & _WORD
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & _WORD
    return hashed ^ hashed >> 16


def _turned(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _WORD


@cache
def labels(shards: int) -> tuple[int, ...]:
    """What each shard is called.

    Examples
    --------
    >>> [murmur3(label) % 4 for label in labels(6)]
    [0, 1, 2, 3, 0, 1]
    """
    wanted, found, number = set(range(shards)), dict[int, int](), 0
    while wanted:
        ending = murmur3(number) % _ENDS_IN
        if ending in wanted:
            wanted.remove(ending)
            found[ending] = number
        number += 1
    return tuple(found[i] for i in range(shards))


# Events where they are read: panes of every store, packed for shards.
#
# Executors import this module, so it imports nothing that only the driver needs.


READ = ("events", "null_timestamps", "absurd_timestamps")
"""What is counted of the events themselves: those that some query wants; without a time; with an impossible one."""

TRAVELLING = {"shard": "INT", "store": "INT", "keys": "BINARY", "panes": "BINARY", "place": "STRING"}
TRAVELLING |= {"change": "STRING", **dict.fromkeys(READ, "BIGINT")}
"""Rows on their way to shards: packed panes, changes of the catalogue, counts."""

EVENTS = -2
"""The store of rows that carry events themselves, which come out again if they are too late."""

INSTANT, EVENT, EVERYTHING = "__panes_instant", "__panes_event", "__panes_everything"
_TYPES = {"INT": pa.int32(), "BIGINT": pa.int64(), "BINARY": pa.binary(), "STRING": pa.string()}
_ROWS = 1 << 16


@dataclass(frozen=True)
class Intake:
    """Which columns the events of a store come in: keys (and what they are really called), arguments, the shard of
    the key, and whether any of its queries wants the event.
    """

    program: Program
    keys: tuple[str, ...]
    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    arguments: Mapping[str, str]
    shard: str
    kept: str | None


def packing(
    intakes: Sequence[Intake], shards: int, *, themselves: bool
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What to do with the events of a partition.

    Parameters
    ----------
    themselves
        Whether events travel too, as text: they come out again if they are late.
    """
    names = np.array(labels(shards), np.int32)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        counts = dict.fromkeys(READ, 0)
        for everything in large_batches(batches, _ROWS):
            table = sensible(everything, counts, INSTANT)
            for number, intake in enumerate(intakes):
                yield from _packed(table, number, intake, names)
            if themselves:
                yield from _themselves(table, intakes, names)
        # One row for every shard, whatever came: all of them see every micro-batch. The first one counts.
        nothing = np.zeros(shards, np.int64)
        first = np.arange(shards) == 0
        yield _batch(shard=names, store=nothing, **{name: nothing + count * first for name, count in counts.items()})

    return run


def sensible(events: pa.RecordBatch, counts: dict[str, int], at: str) -> pa.RecordBatch:
    """The events that have a time, in µs in some column, and a possible one; all are counted."""
    counts["events"] += len(events)
    instants = events.column(at)
    if instants.null_count:
        counts["null_timestamps"] += instants.null_count
        events = events.filter(instants.is_valid())
        instants = events.column(at)
    times = instants.to_numpy()
    if len(times) and not -FARTHEST <= times.min() <= times.max() <= FARTHEST:
        possible = (times >= -FARTHEST) & (times <= FARTHEST)
        counts["absurd_timestamps"] += int((~possible).sum())
        events = events.filter(pa.array(possible))
    return events


def _packed(table: pa.RecordBatch, number: int, intake: Intake, names: Array) -> Iterator[pa.RecordBatch]:
    if intake.kept is not None:
        table = table.filter(table.column(intake.kept))
    instants = table.column(INSTANT).to_numpy()
    if intake.keys:
        found = (typed(table.column(alias), type_) for alias, type_ in zip(intake.keys, intake.types, strict=True))
        columns = [one_zero(column) for column in found]
        keys = pa.RecordBatch.from_arrays(columns, names=list(intake.names))
    else:
        keys = pa.RecordBatch.from_pydict({EVERYTHING: pa.array(np.zeros(len(instants), np.int32))})
    expected = {sql: type_ for c in intake.program.components for sql, type_ in zip(c.arguments, c.types, strict=True)}
    arguments = {sql: typed(table.column(alias), expected[sql]) for sql, alias in intake.arguments.items()}
    packed = list(pack_panes(intake.program, keys, table.column(intake.shard).to_numpy(), instants, arguments))
    if packed:
        yield _batch(
            shard=names[[part.shard for part in packed]],
            store=np.full(len(packed), number),
            keys=[part.keys for part in packed],
            panes=[part.panes for part in packed],
        )


def typed(column: pa.Array, type_: pa.DataType) -> pa.Array:
    """A column of the type that was planned: times come in the zone of the session, and are kept in UTC."""
    return column if column.type == type_ else column.cast(type_)


def _themselves(table: pa.RecordBatch, intakes: Sequence[Intake], names: Array) -> Iterator[pa.RecordBatch]:
    """The events that any store keeps, as text, for the shards of the first store."""
    wanted = [table.column(intake.kept) for intake in intakes if intake.kept is not None]
    if len(wanted) == len(intakes):
        table = table.filter(reduce(pc.or_, wanted))
    shard = table.column(intakes[0].shard).to_numpy()
    events = pa.RecordBatch.from_arrays([table.column(INSTANT), table.column(EVENT)], names=["instant", "event"])
    for number in np.unique(shard):
        some = pack(events.filter(pa.array(shard == number)))
        yield _batch(shard=names[[number]], store=np.array([EVENTS]), panes=[some])


def _batch(**columns: Array | list[bytes]) -> pa.RecordBatch:
    """Rows for shards; what is not given is null."""
    rows = len(columns["shard"])
    arrays = [
        pa.array(columns[name], _TYPES[type_]) if name in columns else pa.nulls(rows, _TYPES[type_])
        for name, type_ in TRAVELLING.items()
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(TRAVELLING))


def changes(session: SparkSession, folder: str, shards: int) -> DataFrame:
    """A row per change and shard; files are read whole, whatever is in them."""
    files = session.readStream.format("text").option("wholetext", "true").load(folder)
    return files.selectExpr(
        f"explode(array({', '.join(map(str, labels(shards)))})) AS shard",
        "-1 AS store",
        "CAST(NULL AS BINARY) AS keys",
        "CAST(NULL AS BINARY) AS panes",
        # Names are numbers in order; replay reads the same files in the same micro-batch again.
        "_metadata.file_name AS place",
        "value AS change",
    )
