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
    held
        Of each key: the ordinal from which its rows are held, how many are, and when the last one before them happened.
    rows
        The held rows, key after key: instants, and what is stored of each component.
    keys
        The keys themselves; no columns where there are none.
    """

    declared: dict[str, Any]
    schema: pa.Schema
    held: pa.Table
    rows: pa.Table
    keys: pa.Table

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
            pa.table({name: pa.array(array) for name, array in held.items()}),
            pa.table(columns),
            pa.table({}) if keys is None else pa.Table.from_batches([keys]),
        )

    def select(self, given: Mapping[str, Aggregate] | None) -> Mapping[str, Aggregate]:
        """The aggregates; those that are given have to be the same."""
        saved: dict[str, dict[str, Any]] = self.declared["select"]
        if given is None:
            return {alias: _from_data(alias, data) for alias, data in saved.items()}
        names = {alias: data["name"] for alias, data in saved.items()}
        if names != {alias: str(aggregate) for alias, aggregate in given.items()}:
            raise StateError(
                f"the file holds {', '.join(f'{alias!r}: {name}' for alias, name in names.items())}, and select= says "
                "otherwise. Give the same aggregates, or leave it out."
            )
        return given

    @property
    def options(self) -> dict[str, Any]:
        """What an index is made with, beside its aggregates."""
        return {name: self.declared[name] for name in ("by", "at", "keep", "where", "algorithm")}

    def fill(self, store: Store) -> None:
        """Put the rows into a store that has none."""
        first, count, forgotten = (_integers(self.held, name) for name in ("first", "count", "forgotten"))
        store.know(len(first))
        every = np.arange(len(first))
        store.rings.restart(every, first)
        some = np.flatnonzero(count)
        if len(some):
            stored = [self.rows.column(f"={column.component.name}").combine_chunks() for column in store.columns]
            store.append(some, count[some], _integers(self.rows, "instant"), stored)
        # Filled afterwards: rows that were held are not to be measured against what has left before them.
        store.forgotten[:], store.left_out, store.newest = (
            forgotten,
            self.declared["left_out"],
            self.declared["newest"],
        )


def write(path: str | os.PathLike[str], saved: Saved) -> None:
    """Write a file, whole or not at all."""
    target = Path(path)
    making = target.with_name(f".{target.name}.making")
    metadata = {_DECLARED: json.dumps(saved.declared).encode()}
    empty = saved.schema.with_metadata(metadata).empty_table()
    with making.open("wb") as file:
        for table in (empty, saved.held, saved.rows, saved.keys):
            with pa.ipc.new_stream(file, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
                writer.write_table(table)
    making.replace(target)


def read(path: str | os.PathLike[str]) -> Saved:
    """Read a file; one of a newer format, or of something else, is refused."""
    with Path(path).open("rb") as file:
        try:
            schema = _stream(file)
            declared = json.loads((schema.schema.metadata or {})[_DECLARED])
            if declared["format"] <= FORMAT:
                return Saved(declared, schema.schema.remove_metadata(), *(_stream(file) for _ in range(3)))
        except (pa.ArrowException, KeyError, ValueError) as error:
            raise StateError(f"{os.fspath(path)!r} is not an index that Panes saved: {error!r}.") from error
    raise StateError(
        f"{os.fspath(path)!r} was written in format {declared['format']}, and this version of Panes reads up to "
        f"{FORMAT}. Upgrade Panes."
    )


def _stream(file: BinaryIO) -> pa.Table:
    with pa.ipc.open_stream(file) as reader:
        return reader.read_all()


def _integers(table: pa.Table, name: str) -> Array:
    return np.array(table.column(name).to_numpy(), np.int64)


def _as_data(aggregate: Aggregate) -> dict[str, Any]:
    """What an aggregate is; of your own only the name, since functions are no data."""
    named = {"name": str(aggregate), "type": type(aggregate).__name__}
    if named["type"] not in _KINDS:
        return named
    return named | {"fields": {field.name: getattr(aggregate, field.name) for field in fields(aggregate)}}


def _from_data(alias: str, data: Mapping[str, Any]) -> Aggregate:
    kind = _KINDS.get(data["type"])
    if kind is None:
        raise DeclarationError(
            f"{alias!r} is {data['name']}, an aggregate of your own, and functions are not saved. Give it again: "
            "pn.Index.load(path, select={...}), with all aggregates."
        )
    return kind(**{**data["fields"], "arguments": tuple(data["fields"]["arguments"])})
