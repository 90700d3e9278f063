"""Sorted Arrow batches cut into chunks of whole keys, so that memory is bounded by the largest key.

Executors import this module, so it imports nothing that only the driver needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.aggregates.operations import Array
from panes.engine.keys import one_zero

_COMPARED = 1 << 20
"""Rows compared at once; a key may have many more."""


def whole_keys(batches: Iterable[pa.RecordBatch], keys: int, rows: int) -> Iterator[tuple[pa.RecordBatch, Array]]:
    """Cut batches into chunks of at least ``rows`` rows, each with the first row of every key and its length.

    Parameters
    ----------
    batches
        Sorted by their first ``keys`` columns.
    """
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        # Cut only when more rows come: the last key of all is not worth a chunk of its own.
        if size >= rows:
            together = _together(held)
            starts = key_starts(together, keys)
            last = int(starts[-2])
            # Wait for twice as much before looking again for the end of a key larger than a chunk.
            held, size = [together.slice(last)], together.num_rows - last
            rows = max(rows, 2 * size) if last == 0 else rows
            if last:
                yield together.slice(0, last), starts[:-1]
        held.append(batch)
        size += batch.num_rows
    if size:
        together = _together(held)
        held = []  # or all rows would be held twice while they are answered
        yield together, key_starts(together, keys)


def key_starts(batch: pa.RecordBatch, keys: int) -> Array:
    """The first row of each key in a sorted batch, and its length."""
    found = [np.zeros(1, np.int64)]
    for first in range(1, batch.num_rows, _COMPARED):
        rows = np.arange(first, min(first + _COMPARED, batch.num_rows))
        change = np.zeros(len(rows), dtype=bool)
        for column in batch.columns[:keys]:
            change |= differ(column.slice(first - 1, len(rows) + 1), rows - first + 1, rows - first)
        found.append(rows[change])
    return np.concatenate([*found, [batch.num_rows]]).astype(np.int64)


def keys_of(chunk: pa.RecordBatch, count: int, starts: Array) -> list[pa.Array]:
    """The key columns of a chunk, a row per key; 0.0 and -0.0 are one key, as in Spark's group-by."""
    return [one_zero(column.take(pa.array(starts[:-1]))) for column in chunk.columns[:count]]


def arguments_of(chunk: pa.RecordBatch, keys: int, names: Sequence[str]) -> dict[str, pa.Array]:
    """The arguments of aggregates in a chunk of events."""
    return dict(zip(names, chunk.columns[keys + 1 :], strict=True))


def differ(array: pa.Array, left: Array, right: Array) -> Array:
    """Whether the values at two lists of rows are different keys: nulls and NaN equal themselves.

    Examples
    --------
    >>> values = pa.array([[1, 2], [1, 2], [1, 3], None, None])
    >>> differ(values, np.array([1, 2, 3, 4]), np.array([0, 1, 2, 3]))
    array([False,  True,  True, False])
    """
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    result: Array = valid[left] != valid[right]
    both = valid[left] & valid[right]
    if pa.types.is_null(array.type):
        return result
    if pa.types.is_struct(array.type):
        for child in array.flatten():
            result |= both & differ(child, left, right)
        return result
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        result |= both & _lists_differ(array, left, right)
        return result
    a, b = array.take(pa.array(left)), array.take(pa.array(right))
    unequal = pc.fill_null(pc.not_equal(a, b), False)
    if pa.types.is_floating(array.type):
        unequal = pc.and_(unequal, pc.invert(pc.and_(pc.is_nan(a).fill_null(False), pc.is_nan(b).fill_null(False))))
    result |= both & unequal.to_numpy(zero_copy_only=False)
    return result


def _lists_differ(array: pa.Array, left: Array, right: Array) -> Array:
    offsets = array.offsets.to_numpy()
    length = np.diff(offsets)
    result: Array = length[left] != length[right]
    same = np.flatnonzero(~result & (length[left] > 0))
    counts = length[left[same]]
    owner = np.repeat(same, counts)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    item_left = offsets[left[owner]] + within
    item_right = offsets[right[owner]] + within
    items = differ(array.values, item_left, item_right)
    result[owner[items]] = True
    return result


def _together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.concat_batches(batches)
