"""Spans of events once some events are left out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

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
