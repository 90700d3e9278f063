"""CI-MAX: which substreams have a large value in a suffix window, exactly; CI-MIN is the same with the order reversed.

==========  =====================================================================
requires    elements in the order of time within each substream; values as 64-bit integers in their order
update      O(log N) for a substream that changes, and O(1) amortised for an element
lookup      O(log² N + answers log N), about; changes since the last lookup are indexed by then
memory      the steps of each substream, and five numbers more for each of them
paper       Arasu & Widom 2004, table 1; the algorithm is in its full version only, and this one is our own
==========  =====================================================================

The maximum over a suffix window is the maximum of the elements that no later one reaches. They form a staircase: the
later, the smaller. Of the elements above a threshold the newest is a step of it; the steps below are not above, and the
steps before are older. So each step answers for one range of thresholds: from the next step's value up to its own,
with the time of its element. A substream qualifies when the step that a threshold falls on is recent enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from panes.algebra.operations import Array
from panes.live.collective import NEVER
from panes.live.collective_layers import Layers
from panes.live.collective_levels import Integers
from panes.live.staircase_stabbing import Stabbing
from panes.live.threshold_rows import Rows


@dataclass(frozen=True, slots=True)
class Steps:
    """A layer: all steps of some substreams at one time."""

    keys: Integers
    owners: Integers
    found: Stabbing

    def above(self, value: int, since: int) -> Integers:
        """The substreams whose newest element above a value came at a time or later."""
        return self.owners[self.found.stabbed(value, since)]


class Staircase:
    """The elements of each substream that no later element reaches.

    Examples
    --------
    >>> index = Staircase()
    >>> index.extend(2)
    >>> index.insert(np.array([0, 1]), np.array([3, 1]), np.array([10, 20, 30, 25]), np.array([5, 7, 2, 6]))
    >>> index.above(5, since=20)
    array([0, 1])
    >>> index.largest(np.array([0, 1]), since=15)
    array([7, 6])
    """

    def __init__(self) -> None:
        self._steps = Rows(NEVER, 0)
        self._layers = Layers(self._layer, np.zeros(0, np.int64))

    def extend(self, keys: int) -> None:
        """Have at least so many substreams, numbered from 0."""
        self._steps.extend(keys)

    def forget(self, keys: Integers) -> None:
        """Empty some substreams."""
        self._steps.resize(keys, np.zeros(len(keys), np.int64))
        self._layers.note(keys)

    def insert(self, keys: Integers, counts: Integers, times: Integers, values: Integers) -> None:
        """Add elements to some distinct substreams: ``counts`` each, by time, lying one substream after another."""
        on_stairs, largest = _not_reached(counts, values)
        kept = self._steps.count_below(keys, 1, largest, falling=True)
        self._steps.resize(keys, kept)
        group = np.repeat(np.arange(len(keys)), counts)
        added = np.bincount(group[on_stairs], minlength=len(keys))
        self._steps.append(keys, added, times[on_stairs], values[on_stairs])
        self._layers.note(keys)

    def newest(self, value: int, keys: Integers) -> Integers:
        """When the newest element above a value came, for some substreams."""
        step = self._steps.count_below(keys, 1, value, falling=True) - 1
        found = np.full(len(keys), NEVER)
        there = np.flatnonzero(step >= 0)
        found[there] = self._steps.columns[0][self._steps.starts[keys[there]] + step[there]]
        return found

    def largest(self, keys: Integers, since: int) -> Integers:
        """The largest value since a time, for some substreams that have one: that of the first step since then."""
        step = self._steps.count_below(keys, 0, since)
        found: Integers = self._steps.columns[1][self._steps.starts[keys] + step]
        return found

    def above(self, value: int, since: int) -> Integers:
        """All substreams with an element above a value since a time."""
        keys = self._layers.candidates(lambda layer: (layer.above(value, since),))
        return keys[self.newest(value, keys) >= since]

    def _layer(self, keys: Integers) -> Steps:
        keys = keys[self._steps.sizes[keys] > 0]
        sizes, places = self._steps.sizes[keys], self._steps.places(keys)
        times, values = (column[places] for column in self._steps.columns)
        lasts = np.cumsum(sizes) - 1
        following = np.empty(len(values), np.int64)
        following[:-1] = values[1:]
        # Below its last step a substream has one for every threshold down to the smallest.
        following[lasts] = NEVER
        return Steps(keys, np.repeat(keys, sizes), Stabbing(following, values, times))


def _not_reached(counts: Integers, values: Integers) -> tuple[Array, Integers]:
    """Which elements of each group are greater than all later ones of it, and the largest of each group."""
    ranks = np.unique(values, return_inverse=True)[1].astype(np.int64, copy=False)
    # From the end, with later groups below earlier ones, so that one running maximum serves all groups.
    height = np.repeat(np.arange(len(counts))[::-1] * len(values), counts) + ranks + 1
    later = np.append(np.maximum.accumulate(height[:0:-1])[::-1], 0)
    return height > later, np.maximum.reduceat(values, np.cumsum(counts) - counts)
