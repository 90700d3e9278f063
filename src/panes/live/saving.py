"""An index as one file: what was declared as JSON, then types, keys and rows as Arrow streams. Data, never code.

Stored are the rows, not what algorithms make of them: a newer version may have other algorithms. A newer version of
Panes reads what an older one wrote; the other way round is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa

from panes.algebra.aged import AgedOf
from panes.algebra.aggregates import Aggregate, CountOf, MaxOf, MeanOf, MinOf, PickOf, SumOf, VarianceOf
from panes.algebra.approximate import ApproxCountDistinctOf, ApproxQuantileOf, TopOf
from panes.algebra.collecting import QuantileOf
from panes.algebra.fits import CorrelationOf, TrendOf
from panes.algebra.operations import Array
from panes.declare.query import Query
from panes.errors import DeclarationError, StateError
from panes.live.store import Keep, Store
from panes.timeline import format_duration

FORMAT: Final = 1
_DECLARED: Final = b"panes.index"
_KINDS: Final[dict[str, type[Aggregate]]] = {
    kind.__name__: kind
    for kind in (
        *(CountOf, SumOf, MeanOf, MinOf, MaxOf, VarianceOf, PickOf, QuantileOf, CorrelationOf, TrendOf, AgedOf),
        *(ApproxCountDistinctOf, ApproxQuantileOf, TopOf),
    )
}


@dataclass(frozen=True)
class Saved:
    """What is in a file.

    Parameters
    ----------
    declared
        As in JSON.
    schema
        The types of the events.
    keys
        The keys, with the ordinal from which the rows of each are held, and when its last row before that happened.
    rows
        The held rows, key after key: how many, instants, and what is stored of each component.
    """

    declared: dict[str, Any]
    schema: pa.Schema
    held: pa.RecordBatch
    rows: pa.RecordBatch
    keys: pa.RecordBatch

    @classmethod
    def of(
        cls,
        query: Query,
        keep: Keep,
        algorithm: str | None,
        null_times: int,
        schema: pa.Schema,
        keys: pa.RecordBatch | None,
        store: Store,
    ) -> Saved:
        """What there is to be saved of an index."""
        every = np.arange(len(store.rings))
        runs = store.rings.held(every)
        columns = {"instant": pa.array(store.instants.elements(runs)[0])}
        columns |= {f"={c.component.name}": c.stored(runs) for c in store.columns}
        declared = {
            "format": FORMAT,
            "select": {alias: _as_data(aggregate) for alias, aggregate in query.aggregates},
            "by": list(query.by),
            "at": query.at,
            "keep": keep.rows if keep.micros is None else format_duration(keep.micros),
            "where": None if query.where is None else query.where.sql,
            "algorithm": algorithm,
            "null_times": null_times,
            "left_out": store.left_out,
            "newest": store.newest,
        }
        held = {"first": store.rings.first, "count": runs.width, "forgotten": store.forgotten}
        return cls(
            declared,
            schema,
            pa.RecordBatch.from_pydict({name: pa.array(array) for name, array in held.items()}),
            pa.RecordBatch.from_pydict(columns),
            pa.RecordBatch.from_pydict({}) if keys is None else keys,
        )

    @property
    def select(self) -> dict[str, Aggregate]:
        """The aggregates."""
        return {alias: _from_data(alias, data) for alias, data in self.declared["select"].items()}

    @property
    def by(self) -> list[str]:
        """The key columns."""
        by: list[str] = self.declared["by"]
        return by

    @property
    def at(self) -> str:
        """The column of event time."""
        return str(self.declared["at"])

    @property
    def keep(self) -> str | int:
        """How much is held."""
        keep: str | int = self.declared["keep"]
        return keep

    @property
    def where(self) -> str | None:
        """Which events count."""
        where: str | None = self.declared["where"]
        return where

    @property
    def algorithm(self) -> str | None:
        """The algorithm that was asked for."""
        algorithm: str | None = self.declared["algorithm"]
        return algorithm

    @property
    def null_times(self) -> int:
        """How many events had no time."""
        return int(self.declared["null_times"])

    def fill(self, store: Store) -> None:
        """Put the rows into a store that has none."""
        names = [f"={column.component.name}" for column in store.columns]
        missing = [name[1:] for name in names if name not in self.rows.schema.names]
        if missing:
            raise StateError(
                f"the file has no partials of {missing[0]}: it was saved with other aggregates. Load it with the same "
                "select= as it was made with, or without."
            )
        first, count, forgotten = (_integers(self.held, name) for name in ("first", "count", "forgotten"))
        store.know(len(first))
        every = np.arange(len(first))
        store.rings.restart(every, first)
        some = np.flatnonzero(count)
        if len(some):
            store.append(some, count[some], _integers(self.rows, "instant"), [self.rows.column(name) for name in names])
        # Filled afterwards: rows that were held are not to be measured against what has left before them.
        store.forgotten[:], store.left_out = forgotten, int(self.declared["left_out"])
        store.newest = self.declared["newest"]


def write(path: str | os.PathLike[str], saved: Saved) -> None:
    """Write a file, whole or not at all."""
    target = Path(path)
    making = target.with_name(f".{target.name}.making")
    metadata = {_DECLARED: json.dumps(saved.declared).encode()}
    empty = pa.RecordBatch.from_pylist([], schema=saved.schema.with_metadata(metadata))
    with making.open("wb") as file:
        for batch in (empty, saved.held, saved.rows, saved.keys):
            with pa.ipc.new_stream(file, batch.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
                writer.write_batch(batch)
    making.replace(target)


def read(path: str | os.PathLike[str]) -> Saved:
    """Read a file; one of a newer format, or of something else, is refused."""
    with Path(path).open("rb") as file:
        try:
            schema = _stream(file)
            declared = json.loads((schema.schema.metadata or {})[_DECLARED])
            if declared["format"] <= FORMAT:
                return Saved(declared, schema.schema.remove_metadata(), *(_stream(file) for _ in range(3)))
        except (pa.ArrowException, KeyError, ValueError, StopIteration) as error:
            raise StateError(f"{os.fspath(path)!r} is not an index that Panes saved: {error!r}.") from error
    raise StateError(
        f"{os.fspath(path)!r} was written in format {declared['format']}, and this version of Panes reads up to {FORMAT}. "
        "Upgrade Panes."
    )


def _stream(file: BinaryIO) -> pa.RecordBatch:
    with pa.ipc.open_stream(file) as reader:
        return reader.read_next_batch()


def _integers(batch: pa.RecordBatch, name: str) -> Array:
    return np.array(batch.column(name).to_numpy(), np.int64)


def _as_data(aggregate: Aggregate) -> dict[str, Any]:
    kind = type(aggregate).__name__
    parts = {field.name: getattr(aggregate, field.name) for field in fields(aggregate)}
    # Of your own aggregates only the name is told: load() has to be given them again.
    return {"kind": kind, **parts} if kind in _KINDS else {"kind": "own", "name": str(aggregate)}


def _from_data(alias: str, data: Mapping[str, Any]) -> Aggregate:
    parts = dict(data)
    kind = _KINDS.get(parts.pop("kind"))
    if kind is None:
        raise DeclarationError(
            f"{alias!r} is {data.get('name', data['kind'])}, an aggregate of your own, and functions are not saved. Give "
            "it again: pn.Index.load(path, select={...}), with all aggregates."
        )
    return kind(**{**parts, "arguments": tuple(parts["arguments"])})
