"""Streams without Spark: the shards of a plan in this process, opened anew in every micro-batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

import panes as pn
from panes.engine.bind_program import bind_store, types_in
from panes.engine.columns import column_of, counting, whole
from panes.engine.keys import INSTANT, one_zero
from panes.engine.results import table_of_view, together
from panes.engine.schema import answer_schema
from panes.expressions.evaluate import evaluate, result_type
from panes.queries.windows import RowWindow, Sliding
from panes.row_windows.bound_rows import bind_rows, labelled
from panes.row_windows.rows_shard import RowsShard
from panes.spark.binding import Input
from panes.spark.rows import _result, prepared_with
from panes.state.granules import pack_panes, unpack_panes
from panes.state.held_rows import MEASURE
from panes.state.job import JobStore
from panes.state.manifest import decode_manifest
from panes.state.registered_queries import Offer
from panes.state.shard import Shard
from panes.state.stream_options import StreamOptions
from tests.state.memory_blob_store import MemoryBlobStore

SHARDS = 2


class Stream:
    """All windows of a plan over the micro-batches that it is given."""

    def __init__(self, plan: pn.Plan, schema: pa.Schema) -> None:
        self.watermark = 0
        clock = [_OnTheClock(plan, schema)] if plan._over_time else []
        self._parts = [*clock, *(_OfRows(some, schema) for some in plan._key_sets)]

    def step(self, table: pa.Table, watermark: int) -> pa.Table:
        """The answers of a micro-batch, whose watermark passes when its rows have come."""
        self.watermark = max(watermark, self.watermark)
        return together([found for part in self._parts for found in part.step(table, self.watermark)])

    def run(self, batches: Iterable[tuple[pa.Table, int]]) -> pa.Table:
        """The answers of several, one after another."""
        return pa.concat_tables([self.step(*batch) for batch in batches])

    def granules(self, *by: str) -> list[int]:
        """How many granules each shard keeps by some keys."""
        manifests = [decode_manifest(blob_store.manifest()) for blob_store in self._parts[0].blob_stores]
        stores = [store for manifest in manifests for store in manifest["stores"]]
        return [sum(run["rows"] for run in store["runs"]) for store in stores if set(store["by"]) == set(by)]


class _OnTheClock:
    def __init__(self, plan: pn.Plan, schema: pa.Schema) -> None:
        self.plan = plan._for_streams
        self.programs = [bind_store(store, types_in(schema)) for store in self.plan.stores]
        self.schema = answer_schema(self.plan.queries, self.programs, schema)
        self.stores = [
            JobStore(
                program,
                pa.schema([schema.field(name) for name in store.keys] or [("everything", pa.int32())]),
                Offer((), store.keys, program.edges, store.at, store.per_event),
            )
            for store, program in zip(self.plan.stores, self.programs, strict=True)
        ]
        self.blob_stores = [MemoryBlobStore() for _ in range(SHARDS)]

    def step(self, table: pa.Table, watermark: int) -> list[pa.Table]:
        mail = [[] for _ in range(SHARDS)]
        for number, (plan, store) in enumerate(zip(self.plan.stores, self.stores, strict=True)):
            mine, program = counting(table, plan.at, plan.kept), store.program
            columns = [one_zero(column_of(mine, name)) for name in plan.keys]
            columns = columns or [pa.array(np.zeros(len(mine), np.int32))]
            keys = pa.RecordBatch.from_arrays(columns, schema=store.keys)
            instants = column_of(mine, plan.at).view(pa.int64()).to_numpy()
            arguments = {sql: whole(evaluate(sql, mine)) for sql in program.arguments}
            for packed in pack_panes(program, keys, _shard_of(columns, len(mine)), instants, arguments):
                news = unpack_panes(packed.keys, packed.panes, program.components, program.edges)
                mail[packed.shard].append((number, news))
        found = [self.schema.long.empty_table()]
        for blob_store, letters in zip(self.blob_stores, mail, strict=True):
            shard = Shard(
                self.stores, blob_store, StreamOptions(shards=SHARDS), lambda _, keys: np.ones(len(keys), bool)
            )
            for answered in shard.step(letters, watermark):
                program = replace(self.programs[answered.store], views=(answered.view,))
                keys = pa.Table.from_batches([answered.dictionary.keys])
                found.append(
                    table_of_view(self.plan.queries, program, replace(answered.answers, view=0), keys, self.schema)
                )
        return found


class _Columns(Input):
    """Columns of a table as a DataFrame would have them."""

    def types_of(self, expressions):
        return {sql: result_type(sql, self.schema) for sql in expressions}


def answers_by_window(shard, keys, rows, marks, watermark: int) -> list[pa.Table]:
    """The answers of a micro-batch to one shard, a table for each window."""
    found = [[bound.answers.empty_table()] for bound in keys.bounds for _ in bound.part.windows]
    for answers in shard.steps(rows, marks, watermark):
        for view, table in answers:
            found[view].append(table)
    return [pa.concat_tables(tables) for tables in found]


class _OfRows:
    def __init__(self, parts, schema: pa.Schema) -> None:
        spark_types = {field.name.lower(): field.dataType for field in from_arrow_schema(schema)}
        source = _Columns(None, schema, spark_types)
        bounds = tuple(bind_rows(part, schema, lambda sql: result_type(sql, schema)) for part in parts)
        self.prepared = prepared_with(tuple(parts), source, bounds, _result(parts, bounds, source))
        self.at = parts[0].input.at
        self.alone = parts[0].input.alone
        self.blob_stores = [MemoryBlobStore() for _ in range(1 if self.alone else SHARDS)]

    def step(self, table: pa.Table, watermark: int) -> list[pa.Table]:
        keys, schema = self.prepared.keys, self.prepared.keys.sent.schema
        table = counting(table, self.at, None)
        marks = self._marks(table)
        if self.prepared.travels is not None:
            wanted = [whole(evaluate(self.prepared.travels, table)).fill_null(False)]
            marked = [whole(evaluate(f"`{name}`", table)).fill_null(False) for name in self.prepared.marks]
            chosen = np.logical_or.reduce([array.to_numpy(zero_copy_only=False) for array in (*wanted, *marked)])
            table = table.filter(pa.array(chosen))
        columns = [
            column_of(table, self.at).view(pa.int64()) if field.name == INSTANT else whole(evaluate(sql, table))
            for sql, field in zip(self.prepared.sqls, schema, strict=True)
        ]
        rows = pa.RecordBatch.from_arrays(columns, schema=schema)
        own = [rows.column(name) for name in schema.names if name.startswith("key")]
        shard = np.zeros(len(rows), np.int64) if self.alone else _shard_of(own, len(rows))
        found = []
        for number, blob_store in enumerate(self.blob_stores):
            opened = RowsShard(keys, {"declared": "same"}, blob_store)
            mine = [rows.filter(pa.array(shard == number))]
            for view, answers in enumerate(answers_by_window(opened, keys, mine, marks, watermark)):
                part, window = self._window(view)
                found.append(labelled(keys.bounds[part], window, answers))
            assert opened.metrics.late == 0
        return found

    def _marks(self, table: pa.Table) -> pa.RecordBatch:
        instants, which = [], []
        for number, name in enumerate(self.prepared.marks):
            marked = table.filter(whole(evaluate(f"coalesce(`{name}`, false)", table)))
            instants += column_of(marked, self.at).view(pa.int64()).to_pylist()
            which += [number] * len(marked)
        return pa.record_batch({INSTANT: pa.array(instants, pa.int64()), MEASURE: pa.array(which, pa.int64())})

    def _window(self, view: int) -> tuple[int, int]:
        for part, bound in enumerate(self.prepared.keys.bounds):
            if view < len(bound.part.windows):
                return part, view
            view -= len(bound.part.windows)
        raise AssertionError


def _shard_of(keys, rows: int) -> np.ndarray:
    """Some shard for each key, the same in every micro-batch."""
    if not keys:
        return np.zeros(rows, np.int64)
    names = list(zip(*(column.to_pylist() for column in keys), strict=True))
    return np.array([sum(map(ord, repr(name))) % SHARDS for name in names], np.int64)


def passed(over, answers: pa.Table, watermark: int) -> pa.Table:
    """The answers that a watermark behind all rows completes; a run also has those that the future may change."""
    windows = {name: window for window in over for name in window.names}
    ends = answers.column("window").combine_chunks().field("end").cast(pa.int64()).to_pylist()
    kept = []
    for name, end in zip(answers.column("window_name").to_pylist(), ends, strict=True):
        window = windows[name]
        of_rows = isinstance(window, RowWindow) and window.kind != "session"
        holds_end = not isinstance(window, RowWindow) and window.bounds == "(]"
        kept.append(of_rows or isinstance(window, Sliding) or end + holds_end <= watermark)
    return answers.filter(pa.array(kept, pa.bool_()))
