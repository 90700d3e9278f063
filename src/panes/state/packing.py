"""Events of a stream on their way to shards: panes of each store, packed, a pair of blobs per shard.

This runs wherever the events are read, on any part of a micro-batch; the shard joins the parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panes.aggregates.component import Component
from panes.aggregates.operations import Array
from panes.engine.answer import lift_panes
from panes.engine.keys import key_ordinals
from panes.engine.partials import next_edge
from panes.engine.program import Program
from panes.state.blobs import pack, unpack
from panes.state.granules import GranuleRows
from panes.timeline import Edges

_KEY, _START, _EVENTS = "key", "start", "events"


@dataclass(frozen=True)
class Packed:
    """Panes for one shard: the keys, and the panes with ordinals of those keys."""

    shard: int
    keys: bytes
    panes: bytes


@dataclass(frozen=True)
class Delivered:
    """Panes that reached their shard.

    Parameters
    ----------
    keys
        The keys of this delivery.
    panes
        Their panes; keys are numbered as in ``keys``.
    events
        How many events each pane has.
    """

    keys: pa.RecordBatch
    panes: GranuleRows
    events: Array


def pack_panes(
    program: Program, keys: pa.RecordBatch, shard: Array, instants: Array, arguments: Mapping[str, pa.Array]
) -> Iterator[Packed]:
    """The panes of some events, for every shard that has any.

    Parameters
    ----------
    keys, shard, instants, arguments
        Of each event: its key columns, the shard of its key, its time in µs, and the arguments of aggregates.
    """
    if not len(instants):
        return
    ordinal = key_ordinals(keys.columns, len(instants))
    # Keys of one shard become neighbours, so that every shard's panes are a slice.
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
    columns = [pa.array(panes.key), pa.array(panes.start), pa.array(panes.hi - panes.lo), *stored]
    names = [_KEY, _START, _EVENTS, *(f"={i}" for i in range(len(stored)))]
    batch = pa.RecordBatch.from_arrays(columns, names=names)
    bounds = np.flatnonzero(np.diff(key_shard, prepend=-1, append=-1))
    rows = np.searchsorted(panes.key, bounds)
    for i, first in enumerate(bounds[:-1]):
        some = batch.slice(rows[i], rows[i + 1] - rows[i])
        local = pa.array(some.column(0).to_numpy() - first)
        some = some.set_column(0, _KEY, local)
        yield Packed(int(key_shard[first]), pack(key_rows.slice(first, bounds[i + 1] - first)), pack(some))


def unpack_panes(keys: bytes, panes: bytes, components: Sequence[Component], edges: tuple[Edges, ...]) -> Delivered:
    """What was packed."""
    batch = unpack(panes)
    key, start, events = (batch.column(name).to_numpy() for name in (_KEY, _START, _EVENTS))
    stored = tuple(batch.column(f"={i}") for i in range(len(components)))
    return Delivered(unpack(keys), GranuleRows(key, start, next_edge(edges, start), stored), events)
