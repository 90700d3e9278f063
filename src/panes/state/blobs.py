"""Columns as bytes: Arrow IPC with a format version, for state stores and for the way through Spark's rows.

Bytes hold data, never code. Another format, older or newer, is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from panes.aggregates.component import Component
from panes.errors import StateError
from panes.frames.positions import Integers
from panes.state.granules import GranuleRows

FORMAT = 3
_FORMAT = b"panes.format"


def pack(batch: pa.RecordBatch) -> bytes:
    """A batch as bytes.

    Examples
    --------
    >>> batch = pa.RecordBatch.from_pydict({"n": [1, 2, 3]})
    >>> unpack(pack(batch)).to_pydict()
    {'n': [1, 2, 3]}
    """
    sink = pa.BufferOutputStream()
    schema = batch.schema.with_metadata({_FORMAT: str(FORMAT).encode()})
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_batch(batch.replace_schema_metadata(schema.metadata))
    data: bytes = sink.getvalue().to_pybytes()
    return data


def unpack(data: bytes) -> pa.RecordBatch:
    """The batch that was packed; bytes of another format, or of something else, are refused."""
    try:
        with pa.ipc.open_stream(data) as reader:
            written = int((reader.schema.metadata or {})[_FORMAT])
            batch = reader.read_next_batch() if written == FORMAT else None
    except (pa.ArrowInvalid, KeyError, ValueError, StopIteration) as error:
        raise StateError(f"these bytes are not columns that Panes wrote: {error!r}.") from error
    if batch is None:
        raise StateError(
            f"the state was written in format {written}, and this version of Panes reads {FORMAT}. Start with a new "
            "checkpoint, or run the version that wrote it."
        )
    return batch


def pack_granules(held: GranuleRows, components: Sequence[Component]) -> bytes:
    """Granules as bytes, each stored column under the name of its component."""
    columns = {"key": pa.array(held.key), "start": pa.array(held.start), "end": pa.array(held.end)}
    columns |= {f"={c.name}": column for c, column in zip(components, held.stored, strict=True)}
    return pack(pa.RecordBatch.from_pydict(columns))


def unpack_granules(data: bytes, components: Sequence[Component]) -> GranuleRows:
    """The granules that were packed, with the components that are asked for; a manifest says which there are."""
    batch = unpack(data)
    key, start, end = (_integers(batch.column(name)) for name in ("key", "start", "end"))
    return GranuleRows(key, start, end, tuple(batch.column(f"={component.name}") for component in components))


def _integers(column: pa.Array) -> Integers:
    # Copied: the buffers of a batch cannot be written to, and nothing should depend on that.
    return np.array(column.to_numpy(), np.int64)
