"""Windows of rows on Structured Streaming: rows travel as they are, and one stateful operator keeps them by shard.

A micro-batch takes the same way as with windows over time (see ``stream.py``), with ``packing.RowsPacker`` and
``rows_job.py``; a shard is a ``panes.row_windows.rows_shard.RowsShard``. User operators take the same way with
``panes.applying.operator_shard.OperatedShard``; for them, ``operated.py`` calls the functions of this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from panes.engine.schema import field_of
from panes.planning.explanation import counted, listed
from panes.planning.steps import Steps
from panes.row_windows.rows_shard import RowsShard
from panes.spark.binding import check_watermark
from panes.spark.checkpoints import check_declared
from panes.spark.naming import quoted
from panes.spark.packing import MARKS, ROWS, SHARD, RowsPacker
from panes.spark.processor import unpack_answers
from panes.spark.rows import Prepared
from panes.spark.rows_job import RowsJob
from panes.spark.shards import check_shards, pack_events, run_shards, shard_sql
from panes.spark.workers import map_in_python
from panes.state.blob_store import new_name
from panes.state.manifest import column_entries


def add_row_stream(
    steps: Steps, read: int, prepared: Prepared, shards: int, metrics: str, checkpoint: str | None = None
) -> int:
    """Add the steps that answer windows of rows over a stream; a checkpoint that cannot serve them is refused now.

    Parameters
    ----------
    read
        The step that reads the events.
    metrics
        The name of their observed metrics.
    """
    input, session = prepared.parts[0].input, prepared.source.events.sparkSession
    check_shards(session, shards)
    check_watermark(prepared.source.events, str(input.at))
    shards = 1 if input.alone else shards
    declared = _declared(prepared, shards)
    job = RowsJob(declared, partial(RowsShard, prepared.keys, declared), prepared.answering)
    if checkpoint is not None:
        check_declared(session, checkpoint, declared)
    conditions = [] if prepared.travels is None else [f"({prepared.travels})"]
    columns = list(zip(prepared.keys.sent.schema, prepared.sqls, strict=True))

    def pack(events: DataFrame) -> DataFrame:
        return pack_rows(events, input.by, shards, columns, conditions, prepared.marks)

    def unpack(found: DataFrame) -> DataFrame:
        return prepared.finished(map_in_python(found, unpack_answers, prepared.travelling))

    packed = steps.add("pack", f"events by {listed(input.by)}, as they are", pack, read)
    detail = f"rows in the order of time, in {counted(shards, 'shard')}, and every window from them"
    found = steps.add(
        "state", detail, lambda rows: run_shards(rows, job, "append", metrics), packed, windows=prepared.titles
    )
    return steps.add("unpack", "answers", unpack, found)


def pack_rows(
    events: DataFrame,
    by: Sequence[str],
    shards: int,
    columns: Sequence[tuple[pa.Field, str]],
    conditions: Sequence[str],
    marks: Sequence[str],
) -> DataFrame:
    """Pack rows for shards where they are read.

    Parameters
    ----------
    columns
        What travels, and its SQL.
    conditions
        Rows travel that fulfil one of these, and marks; without conditions, all rows.
    marks
        The columns that say which rows are marks for all keys.
    """
    marked = [f"coalesce({quoted(column)}, false)" for column in marks]
    # Rows that count nowhere are dropped before they reach Python.
    arriving = events.where(" OR ".join([*conditions, *marked])) if conditions else events
    measures = ", ".join(f"CASE WHEN {is_mark} THEN {i} END" for i, is_mark in enumerate(marked))
    rows = arriving.selectExpr(
        f"{shard_sql(by, shards)} AS {SHARD}",
        f"CAST({f'filter(array({measures}), x -> x IS NOT NULL)' if marks else 'NULL'} AS ARRAY<INT>) AS {MARKS}",
        *(f"{sql} AS {quoted(field.name)}" for field, sql in columns),
    )
    packer = partial(RowsPacker, pa.schema([field for field, _ in columns]), shards, new_name())
    return pack_events(rows, packer, ROWS, shards)


def _declared(prepared: Prepared, shards: int) -> dict[str, Any]:
    """Return what the manifest records: with anything else, its state would mean something else."""
    input, schema = prepared.parts[0].input, prepared.source.schema
    names = (*input.by, *prepared.parts[0].deltas)
    return {
        "windows": [f"{part.query.name}: {policy.window}" for part in prepared.parts for policy in part.inputs],
        "by": list(input.by),
        "at": input.at,
        "where": [None if part.query.where is None else part.query.where.sql for part in prepared.parts],
        "groups": [list(part.query.groups) for part in prepared.parts],
        "evict": [None if part.query.evict is None else str(part.query.evict) for part in prepared.parts],
        "shards": shards,
        "columns": column_entries(
            [
                *((quoted(name), field_of(schema, name).type) for name in names),
                *((sql, field.type) for sql, field in zip(prepared.sqls, prepared.keys.sent.schema, strict=True)),
            ]
        ),
    }
