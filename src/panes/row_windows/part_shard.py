"""What the shards of sessions and of other windows have in common: the columns of their part, and their answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from panes.aggregates.operations import Array
from panes.row_windows.bound_rows import RowInstances
from panes.row_windows.key_set import KeySet, PartRows
from panes.state.job import ShardMetrics


class PartShard(ABC):
    """Some windows of one part, for the keys of one shard of a stream, as the last micro-batch left them.

    Parameters
    ----------
    part, chosen
        Which part of the key set, and which of its windows.
    """

    reach: tuple[int, int]
    """A row that comes this many µs behind the watermark is too late for some of the windows, and for all of them."""

    def __init__(self, keys: KeySet, part: int, chosen: tuple[int, ...]) -> None:
        self._bound, self._sent, self._own = keys.bounds[part], keys.sent, keys.own[part]
        self._chosen = chosen
        self._inputs = [self._bound.part.inputs[i] for i in chosen]
        self._schema = keys.waiting_schema(part)
        self.metrics = ShardMetrics()

    @property
    @abstractmethod
    def state(self) -> dict[str, Any]:
        """What a manifest records."""

    @abstractmethod
    def steps(
        self, rows: Sequence[PartRows], punctuations: Array, watermark: int
    ) -> Iterator[list[tuple[int, pa.Table]]]:
        """Insert the rows of a micro-batch, advance the watermark, and yield answers by window.

        The iterator must be exhausted: the state is complete only then.
        """

    def _rows(self, rows: pa.RecordBatch) -> PartRows:
        return PartRows(self._bound, self._own, self._sent, rows)

    def _answers(self, number: int, rows: pa.RecordBatch, instances: RowInstances) -> tuple[int, pa.Table]:
        """Return the number of one of the windows in its part, and its answers over some rows."""
        return self._chosen[number], self._rows(rows).answer(self._chosen[number], instances)
