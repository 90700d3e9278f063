"""Spans of events without their nulls, and the distinct values in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from panes.algebra.operations import Array


def spans_of_kept(kept: Array, lo: Array, hi: Array) -> Iterator[tuple[int, int]]:
    """Where spans begin and end once only some rows are kept.

    Examples
    --------
    >>> list(spans_of_kept(np.array([True, False, True, False]), np.array([0, 1, 3]), np.array([3, 4, 4])))
    [(0, 2), (1, 2), (2, 2)]
    """
    before = np.concatenate([[0], np.cumsum(kept)])
    return zip(before[lo].tolist(), before[hi].tolist(), strict=True)


@dataclass(frozen=True, slots=True)
class Spans:
    """The distinct values in each of some spans.

    Parameters
    ----------
    distinct
        The distinct values of the whole array, in any order and without null.
    bounds
        Where the values of each span begin in ``which``, and its length.
    which, count
        A number among ``distinct``, and how often the span has it.
    """

    distinct: pa.Array
    bounds: Array
    which: Array
    count: Array

    @classmethod
    def of(cls, lo: Array, hi: Array, values: pa.Array) -> Spans:
        """Sort numbers of span and value together once, instead of looking at every span on its own.

        Examples
        --------
        >>> spans = Spans.of(np.array([0, 3]), np.array([3, 5]), pa.array(["b", "a", "b", None, "a"]))
        >>> spans.distinct.to_pylist(), spans.bounds.tolist(), spans.which.tolist(), spans.count.tolist()
        (['b', 'a'], [0, 2, 3], [0, 1, 1], [2, 1, 1])
        """
        encoded = values.dictionary_encode()
        number = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        size = max(1, len(encoded.dictionary))
        width = hi - lo
        rows = np.arange(int(width.sum())) + np.repeat(lo - (np.cumsum(width) - width), width)
        span, number = np.repeat(np.arange(len(lo)), width), number[rows]
        both = np.sort((span * size + number)[number >= 0])
        first = np.flatnonzero(np.diff(both, prepend=-1))
        count = np.diff(first, append=len(both))
        bounds = np.searchsorted(both[first], np.arange(len(lo) + 1) * size)
        return cls(encoded.dictionary, bounds, both[first] % size, count)
