"""The stateful operator as Spark calls it.

Spark starts a Python on the driver for every stream, only to hear which state the operator has. So this module imports
next to nothing; what it works with is loaded by the first row.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructType

if TYPE_CHECKING:
    from pyspark.sql import Row

MANIFEST, _BLOBS = "manifest", "blobs"
# As types, not as text: text goes to the JVM to be parsed, in every task of every micro-batch.
_NAME, _DATA = StructType().add("name", StringType()), StructType().add("data", BinaryType())


class ShardProcessor(StatefulProcessor):
    """Calls the shards of a task with the rows and the watermark of a micro-batch.

    Parameters
    ----------
    job
        Packed; it has a method ``steps`` that is given a blob store.
    """

    def __init__(self, job: bytes) -> None:
        self._job = job

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state: a manifest, and blobs."""
        self._handle = handle
        self._blob_store = _StateStore(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Rows came for a shard."""
        milliseconds = timerValues.getCurrentWatermarkInMs()
        yield from self._steps.with_rows(key, rows, milliseconds * 1000)
        if self._steps.began:
            self._wait_for(milliseconds)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        """The watermark has moved; rows may have come before, in the same micro-batch, or none."""
        milliseconds = timerValues.getCurrentWatermarkInMs()
        yield from self._steps.without(key, milliseconds * 1000)
        self._wait_for(milliseconds)

    def close(self) -> None:
        """Nothing is open between micro-batches."""

    @cached_property
    def _steps(self) -> _Steps:
        steps: _Steps = _job(self._job).steps(self._blob_store)
        return steps

    def _wait_for(self, milliseconds: int) -> None:
        """A timer a millisecond ahead: whenever the watermark moves, so does the shard, with or without rows."""
        self._handle.registerTimer(milliseconds + 1)


class _Steps(Protocol):
    """What a job does for the shards of a task; rows to rows."""

    began: bool

    def with_rows(self, key: Any, rows: Iterator[Row], watermark: int) -> Iterator[Row]: ...

    def without(self, key: Any, watermark: int) -> Iterator[Row]: ...


@lru_cache(maxsize=4)
def _job(packed: bytes) -> Any:
    """A job that the driver has packed; a worker meets the same one in every micro-batch."""
    return pickle.loads(packed)


class _StateStore:
    """A blob store in Spark's state store."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._listed = handle.getValueState(MANIFEST, _DATA)
        self._blobs = handle.getMapState(_BLOBS, _NAME, _DATA)

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
