"""Streams of known micro-batches: a file each, read one by one; what comes out is collected by micro-batch."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema


class Recorded:
    """Micro-batches on disk that a stream can read again and again."""

    def __init__(self, spark: SparkSession, folder: Path, schema: pa.Schema) -> None:
        self.spark, self.folder, self.schema = spark, folder / "events", schema
        self.folder.mkdir(parents=True)
        self._count = 0

    def add(self, *batches: pa.Table) -> None:
        """Append micro-batches; a file's time says in which order they are read."""
        for batch in batches:
            path = self.folder / f"{self._count:05}.parquet"
            hidden = path.with_name(f".{path.name}")
            pq.write_table(batch.cast(self.schema), hidden)
            os.utime(hidden, (1.7e9 + self._count,) * 2)
            hidden.rename(path)
            self._count += 1

    def stream(self, at: str = "ts", delay: str = "10 seconds") -> DataFrame:
        reader = self.spark.readStream.schema(from_arrow_schema(self.schema)).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.folder)).withWatermark(at, delay)


class Collected:
    """A streaming query whose rows are kept by micro-batch."""

    def __init__(self, rows: DataFrame, checkpoint: Path, mode: str = "append", *, live: bool = False) -> None:
        self.batches: dict[int, pa.Table] = {}
        writer = rows.writeStream.foreachBatch(self._keep).outputMode(mode)
        writer = writer.option("checkpointLocation", str(checkpoint))
        self.query = (writer if live else writer.trigger(availableNow=True)).start()

    def _keep(self, rows: DataFrame, number: int) -> None:
        self.batches[number] = rows.toArrow()

    def finish(self) -> Collected:
        self.query.awaitTermination()
        return self

    @property
    def rows(self) -> pa.Table:
        return pa.concat_tables(self.batches.values())

    @property
    def figures(self) -> dict[str, int]:
        """The metrics of all micro-batches, summed."""
        total: dict[str, int] = {}
        for progress in self.query.recentProgress:
            for row in progress.observedMetrics.values():
                for name, value in row.asDict().items():
                    total[name] = total.get(name, 0) + (value or 0)
        return total


def finished(queries: Iterable[Collected]) -> list[Collected]:
    """Streams that run at the same time, when all have ended."""
    return [query.finish() for query in list(queries)]


def split(table: pa.Table, sizes: Iterable[int]) -> list[pa.Table]:
    """A table as micro-batches of some sizes, and the rest."""
    parts: list[Any] = []
    at = 0
    for size in sizes:
        parts.append(table.slice(at, size))
        at += size
    return [*parts, table.slice(at)]
