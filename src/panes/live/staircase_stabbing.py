"""Intervals with a time each: all that hold a point and are recent enough.

==========  =====================================================================
build       O(n log n)
answer      O(log² n + answers log n)
memory      about six numbers for each interval
==========  =====================================================================

An interval tree over the ranks of the ends, in the bits of the numbers: an interval lies at the node of the highest bit
in which its ends differ. A point passes one node for each bit. Where it is below the node's middle, it is in those
intervals that begin at or before it; above, in those that end at or after it. Sorted by begin, and again by end, these
are ranges of an array each, and maxima of ever larger blocks find the recent ones among them.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from panes.frames.ranges import ranges
from panes.live.collective_levels import Integers, bit_lengths

_BLOCK: Final = 16
_SHORT: Final = 2048


class Stabbing:
    """Half-open intervals of integers, none of which changes.

    Examples
    --------
    >>> found = Stabbing(np.array([1, 2, 5]), np.array([4, 3, 9]), np.array([10, 20, 30]))
    >>> np.sort(found.stabbed(2, since=0)), found.stabbed(2, since=15), found.stabbed(4, since=0)
    (array([0, 1]), array([1]), array([], dtype=int64))
    """

    def __init__(self, lows: Integers, highs: Integers, times: Integers) -> None:
        self._ends = np.unique(np.concatenate([lows, highs]))
        # Between two neighbouring ends all points are in the same intervals: point number r has r ends at or before it.
        low = np.searchsorted(self._ends, lows, side="right")
        high = np.searchsorted(self._ends, highs, side="right") - 1
        self._bits = len(self._ends).bit_length()
        self._shift = self._bits + 1
        which = np.flatnonzero(low <= high)
        low, high = low[which], high[which]
        height = bit_lengths(low ^ high)
        node = ((1 << (self._bits - height)) + (high >> height)) << self._shift
        by_low, by_high = node + low, node + (1 << self._bits) - high
        first, second = np.argsort(by_low), np.argsort(by_high)
        self._by_low, self._by_high = by_low[first], by_high[second]
        self._which = np.concatenate([which[first], which[second]])
        self._times = [times[self._which]]
        while len(self._times[-1]) > _BLOCK:
            self._times.append(np.maximum.reduceat(self._times[-1], np.arange(0, len(self._times[-1]), _BLOCK)))

    def stabbed(self, point: int, since: int) -> Integers:
        """The numbers of the intervals that hold a point and whose time is ``since`` or later, in any order."""
        rank = int(np.searchsorted(self._ends, point, side="right"))
        height = np.arange(self._bits + 1)
        node = ((1 << (self._bits - height)) + (rank >> height)) << self._shift
        # The bit below a node's height says on which side of its middle the point is.
        above = np.append(False, (rank >> height[:-1]) & 1).astype(bool)
        low, high = node[~above], node[above]
        starts = np.concatenate(
            [np.searchsorted(self._by_low, low), len(self._by_low) + np.searchsorted(self._by_high, high)]
        )
        until_low = np.searchsorted(self._by_low, low + rank, side="right")
        until_high = np.searchsorted(self._by_high, high + (1 << self._bits) - rank, side="right")
        found: Integers = self._which[
            self._recent(starts, np.concatenate([until_low, len(self._by_low) + until_high]), since)
        ]
        return found

    def _recent(self, starts: Integers, ends: Integers, since: int) -> Integers:
        """The places in some ranges whose time is recent enough."""
        singles: list[Integers] = []
        for _ in self._times:
            lengths = ends - starts
            if len(singles) == len(self._times) - 1 or int(lengths.sum()) <= _SHORT:
                singles.append(ranges(starts, lengths))
                break
            # What fills no block is looked at one by one; whole blocks by their maxima.
            whole, until = -(-starts // _BLOCK), ends // _BLOCK
            none = whole >= until
            singles.append(
                np.concatenate(
                    [
                        ranges(starts, np.where(none, lengths, whole * _BLOCK - starts)),
                        ranges(until * _BLOCK, np.where(none, 0, ends - until * _BLOCK)),
                    ]
                )
            )
            starts, ends = whole[~none], until[~none]
        found = np.zeros(0, np.int64)
        for times, places in reversed(list(zip(self._times, singles, strict=False))):
            blocks = (found[:, None] * _BLOCK + np.arange(_BLOCK)).ravel()
            found = np.concatenate([places, blocks[blocks < len(times)]])
            found = found[times[found] >= since]
        return found
