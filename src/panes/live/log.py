"""The events that are kept, as they came: what indexes, other orders and saved files are made of."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array


class EventLog:
    """Rows of one schema, numbered in the order in which they come.

    Examples
    --------
    >>> log = EventLog(pa.schema({"x": pa.int64()}))
    >>> log.append(pa.table({"x": [7, 8]})), log.append(pa.table({"x": [9]}))
    (array([0, 1]), array([2]))
    >>> log.take(np.array([2, 0]))["x"].to_pylist()
    [9, 7]
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._parts: list[pa.Table] = []
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def append(self, rows: pa.Table) -> Array:
        """Take in rows; their numbers."""
        first, self._rows = self._rows, self._rows + len(rows)
        rows = rows.select(self.schema.names).cast(self.schema)
        # Doubling, so that taking some rows does not walk through many parts.
        while self._parts and len(self._parts[-1]) <= 2 * len(rows):
            rows = pa.concat_tables([self._parts.pop(), rows]).combine_chunks()
        self._parts.append(rows)
        return np.arange(first, self._rows)

    def take(self, numbers: Array) -> pa.Table:
        """Some rows."""
        return pa.concat_tables([self.schema.empty_table(), *self._parts]).take(pa.array(numbers))

    def keep(self, numbers: Array) -> None:
        """Let go of all other rows; those that stay are numbered anew, in this order."""
        self._parts, self._rows = [self.take(numbers).combine_chunks()], len(numbers)
