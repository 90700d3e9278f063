"""The stateful operator as Spark calls it; its state is a manifest and blobs per shard.

Spark starts a Python on the driver for every stream, only to ask which state the operator has. So this module imports
next to nothing; what the operator works with is imported when the first row arrives.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructType

if TYPE_CHECKING:
    from pyspark.sql import Row

    from panes.spark.processor import Job, ShardRunner

MANIFEST, _BLOBS = "manifest", "blobs"
# As types, not as text: text goes to the JVM to be parsed, in every task of every micro-batch.
_NAME, _DATA = StructType().add("name", StringType()), StructType().add("data", BinaryType())


class ShardProcessor(StatefulProcessor):
    """Runs the shards of a task with the rows and the watermark of a micro-batch.

    Parameters
    ----------
    job
        A pickled ``processor.Job``.
    """

    def __init__(self, job: bytes) -> None:
        self._job = job

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state: a manifest, and blobs."""
        self._handle = handle
        self._blob_store = _StateStore(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Run a shard for which rows came."""
        milliseconds = timerValues.getCurrentWatermarkInMs()
        yield from self._runner.with_rows(key, rows, milliseconds * 1000)
        if self._runner.began:
            self._set_timer(milliseconds)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        """Run a shard because the watermark has moved; rows may have come before, in the same micro-batch."""
        milliseconds = timerValues.getCurrentWatermarkInMs()
        yield from self._runner.without_rows(key, milliseconds * 1000)
        self._set_timer(milliseconds)

    def close(self) -> None:
        """Do nothing: nothing is open between micro-batches."""

    @cached_property
    def _runner(self) -> ShardRunner:
        from panes.spark.processor import ShardRunner

        return ShardRunner(_unpickled(self._job), self._blob_store)

    def _set_timer(self, milliseconds: int) -> None:
        """Set a timer a millisecond ahead: the shard runs whenever the watermark moves, with or without rows."""
        self._handle.registerTimer(milliseconds + 1)


@lru_cache(maxsize=4)
def _unpickled(job: bytes) -> Job:
    """Return a job that the driver pickled; a worker meets the same one in every micro-batch.

    These bytes are an attribute of the operator, which Spark itself pickles into its plan and unpickles here, as every
    function of a user's: whoever could change them could change the operator, too. Nothing that comes from a
    checkpoint, a catalogue or the events is unpickled.
    """
    found: Job = pickle.loads(job)
    return found


class _StateStore:
    """A blob store in Spark's state store."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._manifest = handle.getValueState(MANIFEST, _DATA)
        self._blobs = handle.getMapState(_BLOBS, _NAME, _DATA)

    def manifest(self) -> bytes | None:
        found = self._manifest.get()
        return None if found is None else bytes(found[0])

    def write_manifest(self, data: bytes) -> None:
        self._manifest.update((data,))

    def get(self, name: str) -> bytes | None:
        found = self._blobs.getValue((name,))
        return None if found is None else bytes(found[0])

    def put(self, name: str, data: bytes) -> None:
        self._blobs.updateValue((name,), (data,))

    def remove(self, name: str) -> None:
        self._blobs.removeKey((name,))
