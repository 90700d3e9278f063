"""Rows in the state of a stream: those that wait for the watermark, and those that windows hold, key by key.

Windows of rows and operators see rows in the order of their time. So rows wait until the watermark has passed them
(:class:`Waiting`); then windows hold them as long as they need them (:class:`KeyedRows`). Rows are written when they
come and dropped from the front.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.engine.keys import INSTANT
from panes.frames.positions import ranges
from panes.state.blob_store import BlobStore
from panes.state.key_dictionary import BatchLog, KeyDictionary

MEASURE = "__panes_measure"
"""The column of marks for all keys with the number of the measure that they end; ``INSTANT`` has their time."""

KEY, HELD = "key", "held"
_FEW = 4096


class Waiting:
    """Rows and marks of a stream that wait for the watermark to pass them.

    Parameters
    ----------
    schema
        The columns of rows; one of them is ``INSTANT``.
    state
        The part of a manifest that ``state`` wrote.
    """

    def __init__(self, schema: pa.Schema, blob_store: BlobStore, state: dict[str, Any]) -> None:
        self.watermark: int = state.get("watermark", 0)
        self._rows = BatchLog(schema, blob_store, state.get("waiting", ()))
        self._punctuations: list[int] = state.get("punctuations", [])
        self.late = self._waiting = 0

    def __len__(self) -> int:
        """The number of rows that still wait."""
        return self._waiting

    def pass_by(
        self, rows: Sequence[pa.RecordBatch], punctuations: Array, watermark: int
    ) -> tuple[pa.RecordBatch, Array]:
        """Add rows and marks, and return those that the watermark has passed; the rows in any order.

        Rows that come after the previous watermark has passed them are dropped and counted in ``late``, which operators
        report. Windows of rows share their rows among several parts, and ``RowsShard`` counts for all of them.
        """
        before, self.watermark = self.watermark, max(watermark, self.watermark)
        for batch in rows:
            instants = batch.column(INSTANT).to_numpy()
            in_time = instants >= before
            self.late += int((~in_time).sum())
            self._rows.append(batch if in_time.all() else batch.filter(pa.array(in_time)))
        marks = np.array([*self._punctuations, *punctuations[punctuations >= before].tolist()], np.int64)
        due = marks < self.watermark
        self._punctuations = sorted(marks[~due].tolist())
        everything = self._rows.all()
        instants = everything.column(INSTANT).to_numpy()
        waits = instants >= self.watermark
        # Rows that have been returned stay in the log until they are as many as those that wait.
        self._waiting = int(waits.sum())
        if len(waits) >= 2 * self._waiting:
            self._rows.replace(everything.filter(pa.array(waits)))
        return everything.filter(pa.array((instants >= before) & ~waits)), np.sort(marks[due])

    @property
    def state(self) -> dict[str, Any]:
        """Record this for a manifest."""
        return {"watermark": self.watermark, "waiting": self._rows.listed, "punctuations": self._punctuations}

    @property
    def bytes(self) -> int:
        """The size of the waiting rows in memory."""
        return self._rows.bytes


@dataclass(frozen=True, eq=False)
class KeyedColumn:
    """The rows of some keys: for each key first those that are held, then the new ones.

    Parameters
    ----------
    keys
        The ordinals of the keys, in the order of the column.
    starts
        The first row of each of them, and the number of rows.
    held
        The number of held rows of each.
    """

    rows: pa.RecordBatch
    keys: Array
    starts: Array
    held: Array

    @property
    def new(self) -> Array:
        """The row numbers of the new rows."""
        first = self.starts[:-1] + self.held
        return ranges(first, self.starts[1:] - first)

    def holding(self, held: Array) -> KeyedColumn:
        """Return the same keys with only the last ``held`` of their held rows."""
        if (held == self.held).all():
            return self
        first = self.starts[:-1] + self.held - held
        counts = self.starts[1:] - first
        rows = self.rows.take(pa.array(ranges(first, counts)))
        return KeyedColumn(rows, self.keys, np.append(0, np.cumsum(counts)), held)


class KeyedRows:
    """Held rows of one schema, their keys with ordinals, and a line of numbers for each key.

    Parameters
    ----------
    keys, rows
        The columns of keys, and those of rows.
    numbers
        The numbers of each key with their types; those of a new key are zero.
    """

    def __init__(
        self,
        keys: pa.Schema,
        rows: pa.Schema,
        numbers: dict[str, pa.DataType],
        blob_store: BlobStore,
        state: dict[str, Any],
    ) -> None:
        self.keys = KeyDictionary(keys, blob_store, state.get("keys", ()))
        self._rows = BatchLog(rows.insert(0, pa.field(KEY, pa.int64())), blob_store, state.get("rows", ()))
        self._numbers = pa.schema([(HELD, pa.int64()), *numbers.items()])
        self._lines = BatchLog(self._numbers.insert(0, pa.field(KEY, pa.int64())), blob_store, state.get("lines", ()))

    @property
    def state(self) -> dict[str, Any]:
        """Record this for a manifest."""
        return {"keys": self.keys.listed, "rows": self._rows.listed, "lines": self._lines.listed}

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def bytes(self) -> int:
        """The size of the rows in memory."""
        return self._rows.bytes

    def lines(self) -> dict[str, Array]:
        """Return the numbers of all keys, as arrays that may be changed and given to ``keep``."""
        written, lines = self._lines.all(), self._zeros(len(self.keys))
        key = written.column(KEY).to_numpy()
        for name, column in lines.items():
            column[key] = written.column(name).to_numpy(zero_copy_only=False)  # the last write wins
        return lines

    def column(self, wanted: Array, held: Array, new: pa.RecordBatch, owner: Array) -> KeyedColumn:
        """Return the rows of some keys.

        Parameters
        ----------
        wanted
            The ordinals of these keys, in the order of the result.
        held
            The number of held rows of every key.
        new, owner
            New rows in the order of keys and arrival, and the ordinals of their keys, all of them wanted.
        """
        place = np.full(len(self.keys), -1, np.int64)
        place[wanted] = np.arange(len(wanted))
        everything = self._rows.all()
        at = place[everything.column(KEY).to_numpy()]
        chosen = np.flatnonzero(at >= 0)
        by_key = chosen[np.argsort(at[chosen], kind="stable")]
        # The log may have more rows of a key than are still held: the last ones are.
        ends, held = np.cumsum(np.bincount(at[chosen], minlength=len(wanted))), held[wanted]
        old = everything.take(pa.array(by_key[ranges(ends - held, held)])).remove_column(0)
        both = pa.Table.from_batches([old, new.select(old.schema.names)]).combine_chunks()
        at = np.append(np.repeat(np.arange(len(wanted)), held), place[owner])
        rows = both.take(pa.array(np.argsort(at, kind="stable"))).combine_chunks().to_batches()
        starts = np.append(0, np.cumsum(np.bincount(at, minlength=len(wanted))))
        return KeyedColumn(rows[0] if rows else old.slice(0, 0), wanted, starts, held)

    def keep(self, column: KeyedColumn, first: Array, lines: dict[str, Array]) -> None:
        """Hold the rows of a column, from ``first`` on for each key, and write the numbers of all keys."""
        kept = column.starts[1:] - first
        fresh = np.maximum(first, column.starts[:-1] + column.held)
        counts = column.starts[1:] - fresh
        self._rows.append(self._of(column, ranges(fresh, counts), np.repeat(column.keys, counts)))
        lines[HELD][column.keys] = kept
        self._write(lines)
        if len(self._rows) > 2 * int(lines[HELD].sum()) + _FEW:
            everyone, none = np.arange(len(self.keys)), column.rows.slice(0, 0)
            whole = self.column(everyone, lines[HELD], none, np.zeros(0, np.int64))
            self._rows.replace(self._of(whole, np.arange(len(whole.rows)), np.repeat(everyone, lines[HELD])))

    def keep_only(self, column: KeyedColumn, rows: Array, keys: Array) -> None:
        """Hold only some rows of a column of all keys; ``keys`` are the keys that stay, by their places in it."""
        number = np.full(len(column.keys), -1, np.int64)
        number[keys] = np.arange(len(keys))
        owner = number[np.searchsorted(column.starts, rows, side="right") - 1]
        self.keys.keep(column.keys[keys])
        self._rows.replace(self._of(column, rows[np.argsort(owner, kind="stable")], np.sort(owner)))
        lines = self._zeros(len(keys))
        lines[HELD] = np.bincount(owner, minlength=len(keys))
        self._lines.replace(self._listed(lines, np.arange(len(keys))))

    def _of(self, column: KeyedColumn, rows: Array, owner: Array) -> pa.RecordBatch:
        return column.rows.take(pa.array(rows)).add_column(0, pa.field(KEY, pa.int64()), pa.array(owner, pa.int64()))

    def _zeros(self, keys: int) -> dict[str, Array]:
        return {field.name: np.zeros(keys, field.type.to_pandas_dtype()) for field in self._numbers}

    def _write(self, lines: dict[str, Array]) -> None:
        """Write the lines that have changed, or all of them once those have become as many."""
        before = self.lines()
        changed = np.flatnonzero(np.any([lines[name] != before[name] for name in self._numbers.names], axis=0))
        self._lines.append(self._listed(lines, changed))
        if len(self._lines) > 2 * len(self.keys) + _FEW:
            self._lines.replace(self._listed(lines, np.arange(len(self.keys))))

    def _listed(self, lines: dict[str, Array], keys: Array) -> pa.RecordBatch:
        columns = [pa.array(lines[field.name][keys], field.type) for field in self._numbers]
        return pa.RecordBatch.from_arrays([pa.array(keys, pa.int64()), *columns], schema=self._lines.schema)


def no_marks() -> pa.RecordBatch:
    """Return the marks of a micro-batch without any."""
    return pa.record_batch({INSTANT: pa.array([], pa.int64()), MEASURE: pa.array([], pa.int64())})
