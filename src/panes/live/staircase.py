"""CI-MAX: which keys have a large value in a suffix window, exactly; CI-MIN is the same with the order reversed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from panes.aggregates.operations import Array
from panes.frames.positions import ranges
from panes.live.collective import NEVER
from panes.live.layers import Layers
from panes.live.ragged import Integers, Ragged, bit_lengths

_BLOCK: Final = 16
_SHORT: Final = 2048


class Staircase:
    """The events of each key whose value no later event reaches.

    ==========  =====================================================================
    requires    events in the order of time within each key; values as 64-bit integers
                in their order
    update      O(log N) for a key that changes, and O(1) amortised for an event
    lookup      O(log² N + answers log N), about; indexes what has changed since the
                last lookup
    memory      the steps of each key, and five numbers more for each of them
    paper       CI-MAX and CI-MIN, Arasu & Widom 2004, table 1; their algorithm is in
                the full version only, and this one is our own
    ==========  =====================================================================

    The maximum over a suffix window is the maximum of the events that no later one reaches. They form a staircase: the
    later, the smaller. Of the events above a threshold the newest is a step of it; the steps below are not above, and
    the steps before are older. So each step answers for one range of thresholds: from the next step's value up to its
    own, with the time of its event. A key qualifies when the step that a threshold falls on is recent enough.

    Examples
    --------
    >>> index = Staircase()
    >>> index.extend(2)
    >>> index.insert(np.array([0, 1]), np.array([3, 1]), np.array([10, 20, 30, 25]), np.array([5, 7, 2, 6]))
    >>> index.above(5, since=20)
    array([0, 1])
    """

    def __init__(self) -> None:
        self._steps = Ragged(NEVER, 0)
        self._layers = Layers(self._layer, np.zeros(0, np.int64))

    def extend(self, keys: int) -> None:
        """Have room for so many keys, numbered from 0."""
        self._steps.extend(keys)

    def clear(self, keys: Integers) -> None:
        """Drop all events of some keys."""
        self._steps.resize(keys, np.zeros(len(keys), np.int64))
        self._layers.note(keys)

    def insert(self, keys: Integers, counts: Integers, times: Integers, values: Integers) -> None:
        """Add events to some distinct keys: ``counts`` each, by time, one key after another."""
        on_stairs, largest = _not_reached(counts, values)
        kept = self._steps.count_below(keys, 1, largest, falling=True)
        self._steps.resize(keys, kept)
        group = np.repeat(np.arange(len(keys)), counts)
        added = np.bincount(group[on_stairs], minlength=len(keys))
        self._steps.append(keys, added, times[on_stairs], values[on_stairs])
        self._layers.note(keys)

    def newest(self, value: int, keys: Integers) -> Integers:
        """The time of the newest event above a value, of some keys; ``NEVER`` without one."""
        step = self._steps.count_below(keys, 1, value, falling=True) - 1
        found = np.full(len(keys), NEVER)
        there = np.flatnonzero(step >= 0)
        found[there] = self._steps.columns[0][self._steps.starts[keys[there]] + step[there]]
        return found

    def above(self, value: int, since: int) -> Integers:
        """All keys with an event above a value since a time."""
        keys = self._layers.candidates(lambda layer: (layer.above(value, since),))
        return keys[self.newest(value, keys) >= since]

    def _layer(self, keys: Integers) -> Steps:
        keys = keys[self._steps.sizes[keys] > 0]
        sizes, places = self._steps.sizes[keys], self._steps.places(keys)
        times, values = (column[places] for column in self._steps.columns)
        lasts = np.cumsum(sizes) - 1
        following = np.empty(len(values), np.int64)
        following[:-1] = values[1:]
        # The last step answers for every threshold below its value.
        following[lasts] = NEVER
        return Steps(keys, np.repeat(keys, sizes), Stabbing(following, values, times))


def _not_reached(counts: Integers, values: Integers) -> tuple[Array, Integers]:
    """Which events of each key are greater than all later ones of it, and the largest of each key."""
    ranks = np.unique(values, return_inverse=True)[1].astype(np.int64, copy=False)
    # From the end, with later groups below earlier ones, so that one running maximum serves all groups.
    height = np.repeat(np.arange(len(counts))[::-1] * len(values), counts) + ranks + 1
    later = np.append(np.maximum.accumulate(height[:0:-1])[::-1], 0)
    return height > later, np.maximum.reduceat(values, np.cumsum(counts) - counts)


@dataclass(frozen=True, slots=True)
class Steps:
    """A layer: all steps of some keys at one time."""

    keys: Integers
    owners: Integers
    found: Stabbing

    def above(self, value: int, since: int) -> Integers:
        """The keys whose newest event above a value came at a time or later."""
        return self.owners[self.found.stabbed(value, since)]


class Stabbing:
    """Half-open intervals of integers with a time each: all that hold a point and are recent enough.

    ==========  =====================================================================
    requires    all intervals at once
    build       O(n log n)
    lookup      O(log² n + answers log n)
    memory      about six numbers for each interval
    paper       interval trees, Edelsbrunner 1980, over the bits of ranks
    ==========  =====================================================================

    An interval tree over the ranks of the ends, in the bits of the numbers: an interval lies at the node of the highest
    bit in which its ends differ. A point passes one node for each bit. Where it is below the node's middle, it is in
    those intervals that begin at or before it; above, in those that end at or after it. Sorted by begin, and again by
    end, these are ranges of an array each, and maxima of ever larger blocks find the recent ones among them.

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
        """The numbers of the intervals that hold a point and have a time of ``since`` or later, in any order."""
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
            # What fills no block is checked one by one; whole blocks by their maxima.
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
