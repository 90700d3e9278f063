"""The rows that windows hold, key by key, in a state store: written when they come, dropped from the front."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array
from panes.frames.positions import ranges
from panes.state.batch_log import BatchLog
from panes.state.blob_store import BlobStore
from panes.state.key_dictionary import KeyDictionary

KEY, HELD = "key", "held"
_FEW = 4096


@dataclass(frozen=True, eq=False)
class Column:
    """Rows at hand, by key: first those that are held, then those that are new.

    Parameters
    ----------
    keys
        The ordinals of the keys, in the order of the column.
    starts
        The first row of each of them, and the number of rows.
    held
        How many of the rows of each are held.
    """

    rows: pa.RecordBatch
    keys: Array
    starts: Array
    held: Array

    @property
    def new(self) -> Array:
        """The rows that are new."""
        first = self.starts[:-1] + self.held
        return ranges(first, self.starts[1:] - first)

    def holding(self, held: Array) -> Column:
        """The same keys with only so many of their held rows, the last ones."""
        if (held == self.held).all():
            return self
        first = self.starts[:-1] + self.held - held
        counts = self.starts[1:] - first
        rows = self.rows.take(pa.array(ranges(first, counts)))
        return Column(rows, self.keys, np.append(0, np.cumsum(counts)), held)


class KeyedRows:
    """Rows of one schema, keys with ordinals, and a line of figures for each key.

    Parameters
    ----------
    keys, rows
        The columns of keys, and those of rows.
    figures
        What is kept of each key, and its type; a key that is new has zeros.
    """

    def __init__(
        self,
        keys: pa.Schema,
        rows: pa.Schema,
        figures: dict[str, pa.DataType],
        blob_store: BlobStore,
        state: dict[str, Any],
    ) -> None:
        self.keys = KeyDictionary(keys, blob_store, state.get("keys", ()))
        self._rows = BatchLog(rows.insert(0, pa.field(KEY, pa.int64())), blob_store, state.get("rows", ()))
        self._figures = pa.schema([(HELD, pa.int64()), *figures.items()])
        self._lines = BatchLog(self._figures.insert(0, pa.field(KEY, pa.int64())), blob_store, state.get("lines", ()))

    @property
    def state(self) -> dict[str, Any]:
        """For a manifest."""
        return {"keys": self.keys.listed, "rows": self._rows.listed, "lines": self._lines.listed}

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def bytes(self) -> int:
        """What rows take in memory."""
        return self._rows.bytes

    def lines(self) -> dict[str, Array]:
        """The figures of every key, to be changed."""
        known, lines = self._lines.all(), self._zeros(len(self.keys))
        key = known.column(KEY).to_numpy()
        for name, column in lines.items():
            column[key] = known.column(name).to_numpy(zero_copy_only=False)  # the last one stays
        return lines

    def column(self, wanted: Array, held: Array, new: pa.RecordBatch, owner: Array) -> Column:
        """The rows of some keys.

        Parameters
        ----------
        wanted
            The ordinals of keys, in the order that the column is to have.
        held
            How many rows of each key are held, whether it is wanted or not.
        new, owner
            Rows that are new, in the order of keys and arrival, and the ordinals of their keys, all of them wanted.
        """
        place = np.full(len(self.keys), -1, np.int64)
        place[wanted] = np.arange(len(wanted))
        everything = self._rows.all()
        at = place[everything.column(KEY).to_numpy()]
        chosen = np.flatnonzero(at >= 0)
        by_key = chosen[np.argsort(at[chosen], kind="stable")]
        # Of each key only the last ones are held still.
        ends, held = np.cumsum(np.bincount(at[chosen], minlength=len(wanted))), held[wanted]
        old = everything.take(pa.array(by_key[ranges(ends - held, held)])).remove_column(0)
        both = pa.Table.from_batches([old, new.select(old.schema.names)]).combine_chunks()
        at = np.append(np.repeat(np.arange(len(wanted)), held), place[owner])
        rows = both.take(pa.array(np.argsort(at, kind="stable"))).combine_chunks().to_batches()
        starts = np.append(0, np.cumsum(np.bincount(at, minlength=len(wanted))))
        return Column(rows[0] if rows else old.slice(0, 0), wanted, starts, held)

    def keep(self, column: Column, first: Array, lines: dict[str, Array]) -> None:
        """Hold the rows of a column from the first one of each key on, and what the lines say of all keys."""
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

    def keep_only(self, column: Column, rows: Array, keys: Array) -> None:
        """Hold some rows of a column of all keys and nothing else; keys are those of the column that stay, in order."""
        number = np.full(len(column.keys), -1, np.int64)
        number[keys] = np.arange(len(keys))
        owner = number[np.searchsorted(column.starts, rows, side="right") - 1]
        self.keys.keep(column.keys[keys])
        self._rows.replace(self._of(column, rows[np.argsort(owner, kind="stable")], np.sort(owner)))
        lines = self._zeros(len(keys))
        lines[HELD] = np.bincount(owner, minlength=len(keys))
        self._lines.replace(self._listed(lines, np.arange(len(keys))))

    def _of(self, column: Column, rows: Array, owner: Array) -> pa.RecordBatch:
        return column.rows.take(pa.array(rows)).add_column(0, pa.field(KEY, pa.int64()), pa.array(owner, pa.int64()))

    def _zeros(self, keys: int) -> dict[str, Array]:
        return {field.name: np.zeros(keys, field.type.to_pandas_dtype()) for field in self._figures}

    def _write(self, lines: dict[str, Array]) -> None:
        """What has changed is written alone; all of it when that has come to be as much."""
        before = self.lines()
        changed = np.flatnonzero(np.any([lines[name] != before[name] for name in self._figures.names], axis=0))
        self._lines.append(self._listed(lines, changed))
        if len(self._lines) > 2 * len(self.keys) + _FEW:
            self._lines.replace(self._listed(lines, np.arange(len(self.keys))))

    def _listed(self, lines: dict[str, Array], keys: Array) -> pa.RecordBatch:
        columns = [pa.array(lines[field.name][keys], field.type) for field in self._figures]
        return pa.RecordBatch.from_arrays([pa.array(keys, pa.int64()), *columns], schema=self._lines.schema)
