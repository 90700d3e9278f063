"""Granules: the rows of a stream's state, and how they get there.

Executors turn events into panes (:func:`pack_panes`) and send them to shards packed. A shard adds them to its granules
with :func:`settle`, which sorts, merges and coarsens: a granule that only wide windows still read takes the width of
its tier (``panes.planning.granularity``), and one that no window reads any more is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from panes.aggregates.component import Component
from panes.aggregates.operations import Array
from panes.engine.answer import lift_panes
from panes.engine.keys import key_ordinals
from panes.engine.partials import SortedColumn, combine_stored, floor_to_edges, next_edge, sorted_column
from panes.engine.program import Program
from panes.frames import Frame, Positions
from panes.frames.positions import Integers
from panes.planning.granularity import Tier
from panes.state.blob_store import Buffer, pack, unpack
from panes.timeline import Edges

_KEY, _START, _EVENTS = "key", "start", "events"


@dataclass(frozen=True, eq=False)
class GranuleRows:
    """Granules, or panes that will become some.

    Parameters
    ----------
    key
        The ordinal of each row's key in a dictionary kept elsewhere.
    start, end
        The span of each row. Rows of a key coincide or are disjoint.
    stored
        One stored column per component.
    """

    key: Integers
    start: Integers
    end: Integers
    stored: tuple[pa.Array, ...]

    def __len__(self) -> int:
        return len(self.key)

    @classmethod
    def empty(cls, components: Sequence[Component]) -> GranuleRows:
        """Return no rows."""
        none = np.zeros(0, np.int64)
        return cls(none, none, none, tuple(pa.array([], component.storage) for component in components))

    @classmethod
    def concat(cls, parts: Sequence[GranuleRows], components: Sequence[Component]) -> GranuleRows:
        """Return the rows of all parts."""
        if len(parts) < 2:
            return parts[0] if parts else cls.empty(components)
        key, start, end = (np.concatenate([getattr(part, name) for part in parts]) for name in ("key", "start", "end"))
        stored = zip(*(part.stored for part in parts), strict=True)
        return cls(key, start, end, tuple(pa.concat_arrays(column) for column in stored))

    def where(self, keep: Array) -> GranuleRows:
        """Return the rows that a mask selects."""
        if keep.all():
            return self
        mask = pa.array(keep)
        stored = tuple(column.filter(mask) for column in self.stored)
        return GranuleRows(self.key[keep], self.start[keep], self.end[keep], stored)


def settle(
    rows: GranuleRows,
    components: Sequence[Component],
    tiers: Sequence[Tier],
    watermark: int | None,
    cuts: Sequence[int] = (),
) -> GranuleRows:
    """Sort rows, merge those of one span, coarsen them as their age allows, and drop those that no window reads.

    Parameters
    ----------
    watermark
        The watermark that decides age; None to sort and merge only.
    cuts
        Instants that no granule may span, in order.
    """
    if watermark is not None and len(rows):
        rows = _coarsen(rows.where(rows.start + tiers[-1].reach > watermark), tiers, watermark, cuts)
    order = np.lexsort((rows.start, rows.key))
    key, start, end = rows.key[order], rows.start[order], rows.end[order]
    lo, end = _merge_spans(key, start, end)
    same = Frame(key[lo], start[lo], lo, np.append(lo[1:], len(key)).astype(np.int64))
    at = pa.array(order)
    stored = [column.take(at) for column in rows.stored]
    if len(lo) < len(key):
        stored = combine_stored(components, stored, same)
    return GranuleRows(key[lo], start[lo], end, tuple(stored))


def _coarsen(rows: GranuleRows, tiers: Sequence[Tier], watermark: int, cuts: Sequence[int]) -> GranuleRows:
    """Give every row the span of the coarsest granule that all windows still reading it allow."""
    start, end = rows.start, rows.end
    bounds = np.array([np.iinfo(np.int64).min, *cuts, np.iinfo(np.int64).max])
    place = np.searchsorted(bounds, rows.start, side="right")
    for younger, tier in pairwise(tiers):
        begin, stop = floor_to_edges(tier.edges, rows.start), next_edge(tier.edges, rows.start)
        # Every instance of a narrower window that touches the granule has ended.
        old = stop + younger.reach <= watermark
        begin, stop = np.maximum(begin, bounds[place - 1]), np.minimum(stop, bounds[place])
        start, end = np.where(old, begin, start), np.where(old, stop, end)
    return GranuleRows(rows.key, start, end, rows.stored)


def _merge_spans(key: Array, start: Array, end: Array) -> tuple[Integers, Array]:
    """Return the first row and the end of every span; rows that coincide or overlap form one span.

    Rows overlap when a granule is older than the present windows, since granules were coarser before. No window that
    reads them begins or ends within any of them.
    """
    lo = np.arange(len(key), dtype=np.int64)
    while len(lo):
        begins = np.ones(len(lo), dtype=bool)
        begins[1:] = (key[lo[1:]] != key[lo[:-1]]) | (start[lo[1:]] >= end[:-1])
        if begins.all():
            break
        at = np.flatnonzero(begins)
        lo, end = lo[at], np.maximum.reduceat(end, at)
    return lo, end


def column_of(components: Sequence[Component], rows: GranuleRows, keys: int) -> SortedColumn:
    """Return settled rows as a sorted column that windows can be answered from.

    Parameters
    ----------
    keys
        How many keys the dictionary has.
    """
    positions = Positions(rows.start, rows.end, np.searchsorted(rows.key, np.arange(keys + 1)))
    return sorted_column(components, rows.stored, positions)


def pack_granules(rows: GranuleRows, names: Sequence[str]) -> bytes:
    """Encode granules, each stored column under the name of its component."""
    columns = {"key": pa.array(rows.key), "start": pa.array(rows.start), "end": pa.array(rows.end)}
    columns |= {f"={name}": column for name, column in zip(names, rows.stored, strict=True)}
    return pack(pa.RecordBatch.from_pydict(columns))


def unpack_granules(data: Buffer, names: Sequence[str]) -> GranuleRows:
    """Decode granules with the requested components; the manifest says which there are."""
    batch = unpack(data)
    # Copied: the buffers of a batch are read-only, and nothing should depend on that.
    key, start, end = (np.array(batch.column(name).to_numpy(), np.int64) for name in ("key", "start", "end"))
    return GranuleRows(key, start, end, tuple(batch.column(f"={name}") for name in names))


@dataclass(frozen=True)
class PackedPanes:
    """Panes for one shard: packed keys, and packed panes with ordinals of those keys."""

    shard: int
    keys: bytes
    panes: bytes


@dataclass(frozen=True)
class DeliveredPanes:
    """Panes that reached their shard.

    Parameters
    ----------
    keys
        The keys of this delivery.
    panes
        Their panes, with row numbers of ``keys`` as key ordinals.
    events
        The number of events of each pane, where the panes say how many are late; or None.
    """

    keys: pa.RecordBatch
    panes: GranuleRows
    events: Array | None


def pack_panes(
    program: Program,
    keys: pa.RecordBatch,
    shard: Array,
    instants: Array,
    arguments: Mapping[str, pa.Array],
    *,
    count: bool = True,
) -> Iterator[PackedPanes]:
    """Lift events into panes, and pack those of each shard.

    Parameters
    ----------
    keys, shard, instants, arguments
        For each event: its key columns, the shard of its key, its time in µs, and the arguments of aggregates.
    count
        Whether panes say how many events they have.
    """
    if not len(instants):
        return
    ordinal = key_ordinals(keys.columns, len(instants))
    # Keys of one shard become neighbours, so that the panes of a shard are one zero-copy slice.
    order = np.lexsort((instants, ordinal, shard))
    ordinal, shard, instants = ordinal[order], shard[order], instants[order]
    firsts = np.flatnonzero(np.diff(ordinal, prepend=-1))
    at = pa.array(order)
    sorted_arguments = {sql: array.take(at) for sql, array in arguments.items()}
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        panes, partials = lift_panes(program, instants, np.append(firsts, len(order)), sorted_arguments)
        stored = [partial.stored() for partial in partials]
    key_rows = keys.take(at.take(pa.array(firsts)))
    key_shard = shard[firsts]
    columns = {_KEY: pa.array(panes.key), _START: pa.array(panes.start)}
    columns |= {_EVENTS: pa.array(panes.hi - panes.lo)} if count else {}
    batch = pa.RecordBatch.from_pydict(columns | {f"={i}": column for i, column in enumerate(stored)})
    bounds = np.flatnonzero(np.diff(key_shard, prepend=-1, append=-1))
    rows = np.searchsorted(panes.key, bounds)
    for i, first in enumerate(bounds[:-1]):
        shard_panes = batch.slice(rows[i], rows[i + 1] - rows[i])
        local_keys = pa.array(shard_panes.column(0).to_numpy() - first)
        shard_panes = shard_panes.set_column(0, _KEY, local_keys)
        shard_keys = key_rows.slice(first, bounds[i + 1] - first)
        yield PackedPanes(int(key_shard[first]), pack(shard_keys), pack(shard_panes))


def unpack_panes(
    keys: bytes, panes: bytes, components: Sequence[Component], edges: tuple[Edges, ...]
) -> DeliveredPanes:
    """Decode the panes of one delivery."""
    batch = unpack(panes)
    key, start = (batch.column(name).to_numpy() for name in (_KEY, _START))
    events = batch.column(_EVENTS).to_numpy() if _EVENTS in batch.schema.names else None
    stored = tuple(batch.column(f"={i}") for i in range(len(components)))
    return DeliveredPanes(unpack(keys), GranuleRows(key, start, next_edge(edges, start), stored), events)
