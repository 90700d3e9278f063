"""Groups inside windows: the rows of every group of every window, as index pairs over a column sorted by group.

==========  =====================================================================================================
requires    windows in order: neither lo nor hi ever falls
costs       O(rows log rows), and O(log rows) for each group of each window; not the number of rows in them
paper       Gedik 2014, Listings 2 to 4: grouping is not partitioning
==========  =====================================================================================================

In a column sorted by group, and by row within a group, the rows of one group in one window are neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from panes.algebra.operations import Array
from panes.kernels.distinct import Distinct


@dataclass(frozen=True, eq=False)
class Groups:
    """Every group of every window, sorted by group and window, so that neither lo nor hi ever falls.

    Parameters
    ----------
    order
        The rows as they stand in the column that ``lo`` and ``hi`` are about.
    window, first
        Which window it is, and the first row of the group in that window.
    turn
        Where each one stands, by window and first row.
    """

    order: Array
    window: Array
    first: Array
    lo: Array
    hi: Array
    turn: Array


def groups_in(code: Array, lo: Array, hi: Array) -> Groups:
    """The groups of some windows.

    Parameters
    ----------
    code
        The group of each row, as a number below the number of rows.

    Examples
    --------
    >>> found = groups_in(np.array([1, 0, 1, 1]), np.array([0, 1]), np.array([3, 4]))
    >>> found.window, found.order, found.lo, found.hi
    (array([0, 1, 0, 1]), array([1, 0, 2, 3]), array([0, 0, 1, 2]), array([1, 1, 3, 4]))
    """
    window, first = Distinct(code).rows(lo, hi)
    by_group = np.lexsort((window, code[first]))
    window, first = window[by_group], first[by_group]
    order = np.argsort(code, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    rows = len(code) + 1
    end = np.searchsorted(code[order] * rows + order, code[first] * rows + hi[window])
    return Groups(order, window, first, place[first], end, np.lexsort((first, window)))
