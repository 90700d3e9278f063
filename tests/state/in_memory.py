"""The operators of a stream in this process: everything between Spark's shuffles is what a cluster runs.

Spark's part is played here. It evaluates expressions, hands packed rows to shards, keeps a version of the state per
micro-batch, and may fail at any call to it: then the version before is restored, and the micro-batch runs again.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.pandas.types import from_arrow_schema

import panes as pn
from panes.engine.columns import whole
from panes.engine.keys import INSTANT, one_zero
from panes.expressions.evaluate import evaluate, result_type
from panes.row_windows.bound_rows import bind_rows
from panes.row_windows.rows_shard import RowsShard
from panes.spark.binding import Input
from panes.spark.packing import EVENT, MARKS, PANES, ROWS, SHARD, Packer, RowsPacker, packing, shard_labels
from panes.spark.processor import DATA, HIGHEST, METRIC_NAMES, Job, ShardRunner
from panes.spark.rows import _result, prepared_with
from panes.spark.rows_job import RowsJob
from panes.spark.rows_stream import _declared
from panes.spark.stream import bind_stream
from panes.state import blob_store
from panes.state.blob_store import BlobCache, unpack
from panes.state.manifest import decode_manifest
from panes.state.stream_options import StreamOptions
from tests.state.memory_blob_store import MemoryBlobStore


class Crash(Exception):
    """The process has died."""


@dataclass
class Faults:
    """Counts what can fail, and lets one of it fail."""

    at: int | None = None
    seen: int = 0

    def happen(self) -> None:
        self.seen += 1
        if self.seen == self.at:
            raise Crash


class FailingStore(MemoryBlobStore):
    """A blob store that fails where it is told to, and can go back to an earlier version."""

    def __init__(self, faults: Faults) -> None:
        super().__init__()
        self.faults = faults

    def version(self) -> tuple[dict[str, bytes], bytes | None]:
        return dict(self.blobs), self._manifest

    def restore(self, version: tuple[dict[str, bytes], bytes | None]) -> None:
        self.blobs, self._manifest = dict(version[0]), version[1]

    def manifest(self) -> bytes | None:
        self.faults.happen()
        return super().manifest()

    def write_manifest(self, data: bytes) -> None:
        self.faults.happen()
        super().write_manifest(data)

    def get(self, name: str) -> bytes | None:
        self.faults.happen()
        return super().get(name)

    def put(self, name: str, data: bytes) -> None:
        self.faults.happen()
        super().put(name, data)

    def remove(self, name: str) -> None:
        self.faults.happen()
        super().remove(name)


class Columns(Input):
    """Columns of a table as a DataFrame would have them."""

    def types_of(self, expressions: Any) -> dict[str, pa.DataType]:
        return {sql: result_type(sql, self.schema) for sql in expressions}


def source_of(schema: pa.Schema) -> Columns:
    return Columns(None, schema, {field.name.lower(): field.dataType for field in from_arrow_schema(schema)})


@dataclass
class Operator:
    """What packs events for an operator, and what its shards do."""

    job: Job
    shards: int
    columns: dict[str, str]
    packer: Callable[[], Packer]
    read: Callable[[pa.Table], pa.RecordBatch]

    def packed(self, parts: Sequence[pa.Table], changes: Sequence[tuple[str, str]]) -> dict[int, list[Row]]:
        """The rows of a micro-batch by the label of their shard; events come in several partitions."""
        mail: dict[int, list[Row]] = {}
        pack = packing(self.packer, self.columns, self.shards)
        for part in parts:
            for batch in pack(iter([self.read(part)])):
                for row in batch.to_pylist():
                    mail.setdefault(row["shard"], []).append(Row(**row))
        for place, change in changes:
            empty = dict.fromkeys(self.columns)
            for label in shard_labels(self.shards):
                own = {"shard": label, "store": -1, "place": place, "change": change}
                mail.setdefault(label, []).append(Row(**empty | own))
        return mail


def over_time(plan: pn.Plan, schema: pa.Schema, options: StreamOptions) -> Operator:
    """The operator of a plan's windows over time."""
    stream = bind_stream(plan._for_streams, source_of(schema), options)
    packer, columns = stream.packer
    keys = {f"__panes_shard{i}": store.keys for i, store in enumerate(plan._for_streams.stores)}
    instant = columns[INSTANT]

    def read(table: pa.Table) -> pa.RecordBatch:
        if stream.kept is not None:
            table = table.filter(whole(evaluate(stream.kept, table)).fill_null(False))
        times = whole(table.column("ts")).cast(pa.int64())
        table = table.append_column(INSTANT, times)
        found = {}
        for name, sql in columns.items():
            if name in keys:
                found[name] = pa.array(shards_of(table, keys[name], options.shards), pa.int32())
            elif name == INSTANT:
                found[name] = times
            elif name == EVENT:
                found[name] = pa.array(map(str, table.column("id").to_pylist()), pa.string())
            else:
                found[name] = whole(evaluate(sql.replace(instant, INSTANT), table))
        return pa.RecordBatch.from_pydict(found)

    return Operator(stream.job, options.shards, PANES, packer, read)


def of_rows(parts: Sequence[Any], schema: pa.Schema, shards: int) -> Operator:
    """The operator of windows of rows that share a sorted column."""
    source = source_of(schema)
    bounds = tuple(bind_rows(part, schema, lambda sql: result_type(sql, schema)) for part in parts)
    prepared = prepared_with(tuple(parts), source, bounds, _result(parts, bounds, source))
    own, by = prepared.keys.sent.schema, parts[0].input.by
    shards = 1 if parts[0].input.alone else shards
    declared = _declared(prepared, shards)
    job = RowsJob(declared, partial(RowsShard, prepared.keys, declared), prepared.answering)

    def read(table: pa.Table) -> pa.RecordBatch:
        marked = [whole(evaluate(f"coalesce(`{name}`, false)", table)) for name in prepared.marks]
        if prepared.travels is not None:
            wanted = [whole(evaluate(prepared.travels, table)).fill_null(False), *marked]
            chosen = np.logical_or.reduce([flags.to_numpy(zero_copy_only=False) for flags in wanted])
            table, marked = table.filter(pa.array(chosen)), [flags.filter(pa.array(chosen)) for flags in marked]
        listed = [[i for i, flags in enumerate(marked) if flags[row].as_py()] for row in range(len(table))]
        marks = pa.array(listed if marked else [None] * len(table), pa.list_(pa.int32()))
        columns = [
            whole(table.column("ts")).cast(pa.int64()) if field.name == INSTANT else whole(evaluate(sql, table))
            for sql, field in zip(prepared.sqls, own, strict=True)
        ]
        shard = pa.array(shards_of(table, by, shards), pa.int32())
        return pa.RecordBatch.from_arrays([shard, marks, *columns], names=[SHARD, MARKS, *own.names])

    return Operator(job, shards, ROWS, partial(RowsPacker, own, shards, "rows"), read)


def shards_of(table: pa.Table, keys: Sequence[str], shards: int) -> list[int]:
    """Some shard for each key, the same in every micro-batch; equal keys have the same."""
    columns = [one_zero(whole(table.column(name))).to_pylist() for name in keys]
    rows = zip(*columns, strict=True) if columns else [()] * len(table)
    return [zlib.crc32(repr(row).encode()) % shards for row in rows]


@dataclass
class Stream:
    """One operator with the state of its shards, from micro-batch to micro-batch."""

    operator: Operator
    faults: Faults = field(default_factory=Faults)
    stores: dict[int, FailingStore] = field(default_factory=dict)
    timers: set[int] = field(default_factory=set)
    calls: int = 0
    """How many calls the last micro-batch made that may fail."""

    def watch(self, faults: Faults) -> None:
        """Let calls fail from now on."""
        self.faults = faults
        for store in self.stores.values():
            store.faults = faults

    def version(self) -> tuple[dict[int, Any], set[int]]:
        """The state after the last micro-batch."""
        return {label: store.version() for label, store in self.stores.items()}, set(self.timers)

    def restore(self, version: tuple[dict[int, Any], set[int]]) -> None:
        """Go back to an earlier state."""
        stores, self.timers = version[0], set(version[1])
        self.stores = {label: self.stores[label] for label in stores}
        for label, own in stores.items():
            self.stores[label].restore(own)

    def step(self, mail: dict[int, list[Row]], watermark: int) -> tuple[list[pa.RecordBatch], Counter[str] | None]:
        """The answers of a micro-batch and its metrics; no metrics where no shard ran."""
        rows = list(self._rows(mail, watermark))
        answers = [unpack(row[DATA]).replace_schema_metadata(None) for row in rows if row[DATA] is not None]
        counted = [row.asDict() for row in rows if row[DATA] is None]
        if not counted:
            return answers, None
        metrics: Counter[str] = Counter()
        for name in METRIC_NAMES:
            values = [row[name] or 0 for row in counted]
            metrics[name] = max(values) if name in HIGHEST else sum(values)
        return answers, metrics

    def _rows(self, mail: dict[int, list[Row]], watermark: int) -> Iterator[Row]:
        """What shards emit: first those for which rows came, then those whose timers have expired."""
        job, done = self.operator.job, set()
        for label, came in mail.items():
            store = self.stores.setdefault(label, FailingStore(self.faults))
            runner = ShardRunner(job, store)
            yield from self._watched(runner.with_rows((label,), iter(came), watermark))
            done.add(label)
            self.timers |= {label} if runner.began else set()
        for label in sorted(self.timers - done):
            runner = ShardRunner(job, self.stores[label])
            yield from self._watched(runner.without_rows((label,), watermark))

    def _watched(self, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            self.faults.happen()
            yield row


class Processes:
    """Several processes that a task may run in, each with the blobs that it has cached."""

    def __init__(self, count: int = 2) -> None:
        self.caches = [BlobCache() for _ in range(count)]

    def take(self, number: int, *, died: bool = False) -> None:
        """Go on in a process; one that has died starts with nothing."""
        if died:
            self.caches[number] = BlobCache()
        blob_store.CACHE = self.caches[number]


def manifests(stream: Stream) -> list[dict[str, Any]]:
    return [decode_manifest(store._manifest) for store in stream.stores.values() if store._manifest is not None]
