"""The stateful operator: one shard of a stream as Spark calls it.

Executors import this module, so it imports nothing that only the driver needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from panes.engine.blobs import pack, unpack
from panes.engine.dictionary import Dictionary
from panes.engine.intake import Delivered, unpack_panes
from panes.engine.run import Answers
from panes.engine.shard import Figures, Mode, Shard, Store
from panes.spark.batches import batch_of, large_batches

FIGURES = tuple(field.name for field in fields(Figures))
DATA, WATERMARK = "data", "watermark"
OUTPUT = ", ".join([f"{DATA} BINARY", f"{WATERMARK} BIGINT", *(f"{name} BIGINT" for name in FIGURES)])
"""Answers as packed batches, and a row of figures per shard."""

_MANIFEST, _BLOBS = "manifest", "blobs"


@dataclass(frozen=True)
class Job:
    """What an operator runs.

    Parameters
    ----------
    keys, columns
        The key columns and the aggregate columns of all answers, with their types.
    instant
        The type of the bounds of windows.
    """

    stores: tuple[Store, ...]
    mode: Mode
    keys: Mapping[str, pa.DataType]
    columns: Mapping[str, pa.DataType]
    instant: pa.DataType

    def batch(self, number: int, answers: Answers, dictionary: Dictionary) -> pa.RecordBatch:
        """The answers of one view of one store, with the columns of all."""
        store = self.stores[number]
        known = dictionary.keys
        names = {name.lower(): i for i, name in enumerate(store.keys.names)}
        keys = [
            known.column(names[name.lower()]) if name.lower() in names else pa.nulls(len(known), type_)
            for name, type_ in self.keys.items()
        ]
        first = sum(len(other.program.views) for other in self.stores[:number])
        return batch_of(store.program, answers, keys, self.columns, self.instant, first_view=first)


class ShardProcessor(StatefulProcessor):
    """Calls a shard with the rows and the watermark of a micro-batch."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state: a manifest, and blobs."""
        self._handle = handle
        self._cabinet = _StateStore(handle)
        self._stepped: set[Any] = set()

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Panes came, or a row that only says that there is a micro-batch."""
        news = []
        for row in rows:
            if row.panes is not None:
                program = self._job.stores[row.store].program
                news.append((row.store, unpack_panes(row.keys, row.panes, program.components, program.edges)))
        yield from self._step(key, news, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        """The watermark has moved; rows may have come before, in the same micro-batch, or none."""
        milliseconds = timerValues.getCurrentWatermarkInMs()
        if tuple(key) not in self._stepped:
            yield from self._step(key, [], milliseconds)
        self._wait_for(milliseconds)

    def close(self) -> None:
        """Nothing is open between micro-batches."""

    def _step(self, key: Any, news: Sequence[tuple[int, Delivered]], milliseconds: int) -> Iterator[Row]:
        self._stepped.add(tuple(key))
        job, watermark = self._job, milliseconds * 1000
        shard = Shard.open(job.stores, self._cabinet, job.mode)
        if shard.opened and not news and watermark <= shard.watermark:
            return
        if not shard.opened:
            self._wait_for(milliseconds)
        watermark = max(watermark, shard.watermark)
        answers = (job.batch(*answered) for answered in shard.step(news, watermark))
        for batch in large_batches(answers):
            yield _row(data=pack(batch))
        yield _row(watermark=watermark, **asdict(shard.figures))

    def _wait_for(self, milliseconds: int) -> None:
        """A timer a millisecond ahead: whenever the watermark moves, so does the shard, with or without rows."""
        self._handle.registerTimer(milliseconds + 1)


class _StateStore:
    """A cabinet in Spark's state store."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._listed = handle.getValueState(_MANIFEST, "data BINARY")
        self._blobs = handle.getMapState(_BLOBS, "name STRING", "data BINARY")

    def manifest(self) -> bytes | None:
        found = self._listed.get()
        return None if found is None else bytes(found[0])

    def write_manifest(self, data: bytes) -> None:
        self._listed.update((data,))

    def get(self, name: str) -> bytes:
        return bytes(self._blobs.getValue((name,))[0])  # type: ignore[index]

    def put(self, name: str, data: bytes) -> None:
        self._blobs.updateValue((name,), (data,))

    def remove(self, name: str) -> None:
        self._blobs.removeKey((name,))


def unpack_answers(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches of answers that shards have packed."""
    for batch in batches:
        packed = (unpack(data.as_py()).replace_schema_metadata(None) for data in batch.column(0))
        yield from large_batches(packed)


def _row(**values: Any) -> Row:
    return Row(**{name: values.get(name) for name in (DATA, WATERMARK, *FIGURES)})
