"""Who competes: the same queries for Panes, for Spark's own windows, for DuckDB and for Polars, as users write them.

A contender has two faces: ``run`` is what is timed, ``answers`` the same in one common form, to be compared.
On Spark the sink is ``noop``; the time includes planning and building the DataFrame, for Panes and Spark alike.
DuckDB and Polars compute one window after another from the same files into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa
import pyarrow.compute as pc

import panes as pn
from benchmarks import CORES
from benchmarks.data import Dataset
from panes.planning.physical_plan import PhysicalPlan
from panes.queries.windows import Window
from panes.testing import spark_answers
from panes.timeline import Geometry

if TYPE_CHECKING:
    import duckdb
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession

Queries = Sequence[pn.Query]


@dataclass(frozen=True)
class Contender:
    """One way to answer queries about a dataset."""

    name: str
    run: Callable[[Dataset], Any]
    answers: Callable[[Dataset], pa.Table]


def panes(spark: SparkSession, queries: Queries, name: str = "Panes", **options: Any) -> Contender:
    """Panes, planned with some options of ``pn.plan``."""
    return on_spark(name, lambda data: pn.plan(queries, **options).run(events(spark, data)))


def spark_own(spark: SparkSession, queries: Queries, name: str = "Spark's own") -> Contender:
    """Spark's ``groupBy(window(...))``, once per window, united; nothing of Panes takes part."""
    return on_spark(name, lambda data: spark_answers(queries, events(spark, data)))


def in_duckdb(queries: Queries) -> Contender:
    """DuckDB, one ``GROUP BY`` per window into an Arrow table."""
    return _in_memory("DuckDB", queries, _duckdb)


def in_polars(queries: Queries) -> Contender:
    """Polars, one lazy scan per window, collected."""
    return _in_memory("Polars", queries, _polars)


def decided(spark: SparkSession, queries: Queries, data: Dataset) -> PhysicalPlan:
    """What the planner decides when it runs, with or without a look at the data: what arrives at its runner."""
    from panes.spark import run

    with mock.patch.object(run, "_add_time_windows", wraps=run._add_time_windows) as added:
        pn.plan(queries).run(events(spark, data))
    bound: run.BoundPlan = added.call_args.args[2]
    return bound.physical


def on_spark(name: str, frame: Callable[[Dataset], DataFrame]) -> Contender:
    """Any DataFrame made from a dataset."""
    return Contender(
        name,
        lambda data: drain(frame(data)),
        lambda data: common(frame(data).toArrow()),
    )


def drain(frame: DataFrame) -> None:
    """Compute all rows and keep none."""
    frame.write.format("noop").mode("overwrite").save()


@cache
def events(spark: SparkSession, data: Dataset) -> DataFrame:
    """A dataset as a DataFrame; finding its files is nobody's time."""
    return spark.read.parquet(str(data.path))


def _in_memory(name: str, queries: Queries, one: Callable[[pn.Query, Window, Dataset], Any]) -> Contender:
    def results(data: Dataset) -> Iterator[tuple[pn.Query, Window, Any]]:
        return ((query, window, one(query, window, data)) for query in queries for window in query.over)

    def answers(data: Dataset) -> pa.Table:
        parts = [_labelled(query, window, found) for query, window, found in results(data)]
        return common(pa.concat_tables(parts, promote_options="default"))

    return Contender(name, lambda data: list(results(data)), answers)


def _duckdb(query: pn.Query, window: Window, data: Dataset) -> pa.Table:
    geometry = window.geometry
    at, slide = f"epoch_us({query.at}) - {geometry.offset}", geometry.slide
    last = f"({at}) // {slide} * {slide} + {geometry.offset}"
    # An event of a hopping window is copied into each instance that holds it, with SQL's own means.
    starts = f"unnest(range({last}, epoch_us({query.at}) - {geometry.range}, -{slide}))"
    start = last if geometry.tumbling else starts
    arguments = ", ".join(f"{argument} AS a{i}" for i, argument in enumerate(_arguments(query)))
    where = f" WHERE {query.where.sql}" if query.where is not None else ""
    source = f"SELECT {start} AS start, {''.join(f'{key}, ' for key in query.by)}{arguments} FROM '{data.files}'{where}"
    aggregates = [f"{a.native((f'a{i}',))} AS {alias}" for i, (alias, a) in enumerate(query.aggregates)]
    columns = ", ".join(["start", *query.by, *aggregates])
    return connection().sql(f"SELECT {columns} FROM ({source}) GROUP BY ALL").to_arrow_table()


@cache
def connection() -> duckdb.DuckDBPyConnection:
    """DuckDB with as many threads as Spark has cores."""
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET threads = {CORES}")
    return connection


def _polars(query: pn.Query, window: Window, data: Dataset) -> pl.DataFrame:
    import polars as pl

    geometry, rows = window.geometry, pl.scan_parquet(data.files)
    if query.where is not None:
        rows = rows.filter(pl.sql_expr(query.where.sql))
    aggregates = [pl.sql_expr(a.native(a.arguments)).alias(alias) for alias, a in query.aggregates]
    if geometry.tumbling and not geometry.offset:
        start = pl.col(query.at).dt.truncate(f"{geometry.slide}us").alias("start")
        return rows.group_by(start, *query.by).agg(*aggregates).collect()
    grouped = rows.rename({query.at: "start"}).group_by_dynamic(
        "start",
        every=f"{geometry.slide}us",
        period=f"{geometry.range}us",
        # Instances that start before the first event are answers, too.
        offset=f"{geometry.offset - (_copies(geometry) - 1) * geometry.slide}us",
        group_by=list(query.by),
    )
    return grouped.agg(*aggregates).collect()


def _copies(geometry: Geometry) -> int:
    return -(-geometry.range // geometry.slide)


def _arguments(query: pn.Query) -> list[str]:
    return [aggregate.arguments[0] for _, aggregate in query.aggregates]


def _labelled(query: pn.Query, window: Window, found: Any) -> pa.Table:
    """One window's answers with the columns that tell them apart."""
    table = found if isinstance(found, pa.Table) else found.to_arrow()
    start = table["start"].cast(pa.int64())
    named = {
        "query": pa.repeat(query.name, table.num_rows),
        "window_name": pa.repeat(window.name, table.num_rows),
        "start": start,
        "end": pc.add(start, window.geometry.range),
    }
    rest = table.drop_columns(["start"])
    return pa.table({**named, **{name: _plain(rest[name]) for name in rest.column_names}})


def common(table: pa.Table) -> pa.Table:
    """One form for everybody: bounds in µs, columns by name, the widest types."""
    columns = {name: table[name] for name in table.column_names}
    window = columns.pop("window", None)
    if window is not None:
        columns["start"], columns["end"] = (pc.struct_field(window, name).cast(pa.int64()) for name in ("start", "end"))
    return pa.table({name: _plain(columns[name]) for name in sorted(columns)})


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kinds: Iterable[tuple[Callable[[pa.DataType], bool], pa.DataType]] = (
        (pa.types.is_integer, pa.int64()),
        (pa.types.is_decimal, pa.int64()),  # sums of integers in DuckDB
        (pa.types.is_floating, pa.float64()),
        (pa.types.is_large_string, pa.string()),
        (pa.types.is_string_view, pa.string()),
    )
    return next((column.cast(to) for is_kind, to in kinds if is_kind(column.type)), column)
