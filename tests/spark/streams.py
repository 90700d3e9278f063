"""Streams of known micro-batches: a file each, read one by one; what comes out is collected by micro-batch."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from panes.testing import events

START = 1_700_000_000_000_000
VALUES = {"i": pa.int32(), "x": pa.float64(), "s": pa.string()}


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
    def metrics(self) -> dict[str, int]:
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


def recorded(spark: SparkSession, folder: Path, seed: int, *, rows: int = 160, batches: int = 4) -> Recorded:
    """Events that come roughly in the order of time, some of them late, some without a time."""
    rng = random.Random(seed)
    table = events(rows, keys={"k": pa.string()}, values=VALUES, start=START, null_times=0.03, seed=seed)
    instants = table.column("ts").cast(pa.int64()).to_pylist()
    arrival = [(START if t is None else t) + rng.choice([0, 0, 5, 40]) * rng.random() * 1e6 for t in instants]
    table = table.take(sorted(range(rows), key=arrival.__getitem__))
    record = Recorded(spark, folder, table.schema)
    cuts = sorted(rng.sample(range(1, rows), batches - 1))
    record.add(*split(table, [after - before for before, after in pairwise([0, *cuts])]))
    return record
