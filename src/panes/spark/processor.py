"""A micro-batch of a shard, from rows to rows: answers come out packed, and a row of metrics with them.

Start with :meth:`ShardRunner._run`. What a job answers is in ``time_job.py`` (windows over time) and ``rows_job.py``
(windows of rows, operators). Workers import this module, so it imports nothing that only the driver needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import Row

from panes.errors import StateError
from panes.spark.batches import large_batches, parts_of
from panes.spark.packing import READ, shard_labels
from panes.state.blob_store import BlobStore, pack, unpack
from panes.state.job import ShardMetrics

HIGHEST = ("open_windows", "watermark")
"""Metrics that are the highest of all shards, not the sum."""
METRIC_NAMES = (*READ, *(metric.name for metric in fields(ShardMetrics)), "watermark")
DATA = "data"
OUTPUT = ", ".join([f"{DATA} BINARY", *(f"{name} BIGINT" for name in METRIC_NAMES)])
"""What leaves the operator: answers as packed batches, and a row of metrics per shard."""

_PACKED_BYTES = 1 << 16
"""Packed answers per row: Spark may put thousands of rows into one Arrow batch, whatever their size."""


class KeepsWatermark(Protocol):
    """A shard as the last micro-batch left it."""

    @property
    def opened(self) -> bool:
        """Whether it existed before."""

    @property
    def watermark(self) -> int:
        """The watermark of the last micro-batch."""

    @property
    def metrics(self) -> ShardMetrics:
        """What it counts in this micro-batch."""

    def has_work(self, watermark: int) -> bool:
        """Return whether a micro-batch that brings nothing but a watermark changes anything."""


class BringsCounts(Protocol):
    """What a micro-batch brings to a shard."""

    @property
    def counts(self) -> Mapping[str, int]:
        """What was counted of the events where they were read."""

    @property
    def anything(self) -> bool:
        """Whether it brings anything but an empty count."""


class Job(Protocol):
    """What the shards of a stream do; a value, the same for all of them."""

    def open(self, blob_store: BlobStore) -> Any:
        """Open a shard."""

    def collect(self, rows: Iterator[Row]) -> Any:
        """Collect what a micro-batch brings to a shard."""

    def answer(self, shard: Any, arrived: Any, watermark: int, *, first: bool) -> Iterator[Iterable[pa.RecordBatch]]:
        """Let a shard answer; small batches of one group are joined.

        Parameters
        ----------
        first
            Whether it is the first shard, which reports what is the same for all.
        """


class ShardRunner:
    """Runs the shards of one task through a micro-batch.

    Parameters
    ----------
    blob_store
        Where the shard that is called keeps its state.
    """

    def __init__(self, job: Job, blob_store: BlobStore) -> None:
        self._job, self._blob_store = job, blob_store
        self._done: set[Any] = set()
        self.began = False
        """Whether the last shard has been run for the first time ever."""

    def with_rows(self, key: Any, rows: Iterator[Row], watermark: int) -> Iterator[Row]:
        """Run a shard for which rows came, if only to say that there is a micro-batch."""
        yield from self._run(key, rows, watermark)

    def without_rows(self, key: Any, watermark: int) -> Iterator[Row]:
        """Run a shard because the watermark has moved, unless rows came for it in the same micro-batch."""
        if tuple(key) not in self._done:
            yield from self._run(key, iter(()), watermark)

    def _run(self, key: Any, rows: Iterator[Row], watermark: int) -> Iterator[Row]:
        self._done.add(tuple(key))
        try:
            yield from self._micro_batch(key, rows, watermark)
        except StateError as error:
            # Once, and not as the cause of another: Spark quotes all of it, several times.
            raise StateError(f"shard {key[0]}: {error}").with_traceback(error.__traceback__) from None

    def _micro_batch(self, key: Any, rows: Iterator[Row], watermark: int) -> Iterator[Row]:
        arrived: BringsCounts = self._job.collect(rows)
        shard: KeepsWatermark = self._job.open(self._blob_store)
        self.began = not shard.opened
        if shard.opened and not arrived.anything and not shard.has_work(watermark):
            # Nothing changes, but what it holds belongs to the figures of the micro-batch.
            yield _row(watermark=shard.watermark, **arrived.counts, **asdict(shard.metrics))
            return
        watermark = max(watermark, shard.watermark)
        for batches in self._job.answer(shard, arrived, watermark, first=key[0] == shard_labels(1)[0]):
            for batch in large_batches(batches):
                for part in parts_of(batch, _PACKED_BYTES):
                    yield _row(data=pack(part))
        yield _row(watermark=watermark, **arrived.counts, **asdict(shard.metrics))


def unpack_answers(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the batches of answers that shards have packed."""
    for batch in batches:
        packed = (unpack(data.as_py()).replace_schema_metadata(None) for data in batch.column(0))
        yield from large_batches(packed)


def _row(**values: Any) -> Row:
    """Return a row that leaves the operator: packed answers, or metrics."""
    return Row(**{name: values.get(name) for name in (DATA, *METRIC_NAMES)})
