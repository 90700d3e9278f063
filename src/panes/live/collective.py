"""CI-COUNT and CI-SUM: which substreams have many elements in a suffix window, without looking at the others.

==========  =====================================================================
requires    elements in the order of time within each substream
update      O(1) amortised for an element, whatever p; O(p log a) for a copies at once
lookup      O(candidates), about; changes since the last lookup of the same level are sorted by then
memory      p log2(elements / p) times for each substream
error       a candidate has more than v (1 - ε) elements where v are asked for, ε ≈ 2 / p
paper       Arasu & Widom 2004, section 4 (figure 7) and its parameterised form
==========  =====================================================================

Whether a substream has at least n elements since x is whether its n-th newest element came at x or later. Instead of
an order of all substreams by that time for each n there is one for each *level* of distances from the end, by the time
of the one element of the level whose position is a multiple of the level's size, ``TSTAMP[k, l]``.

The paper inserts one element after another, and copies ``TSTAMP[k, l - 1]`` to level l where an element moves on. Many
elements at once are arithmetic: with m elements, the p levels of size 2^b hold the multiples ``j 2^b`` with
``q - 2p < j <= q - p``, where q = ⌊(m + p) / 2^b⌋. So what is new in them is what lies between the old q and the new
one, and where an older element was before is known from its distance. The p times of one size are kept in a ring,
element j at j mod p, so that those that only move to the next level stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from panes.frames.positions import ranges
from panes.live.substreams import Integers, Level, Levels, Rows, bit_lengths, room_for

# Static indexes over keys that change: small ones are built anew, and merged into large ones as they add up.
#
# An update only notes which keys have changed. Whoever asks first after it pays: a few changed keys are looked at one
# by one, many of them become a layer of their own, and a layer that is not much smaller than the one below it is
# merged with it, both from what their keys have become by then. A key changes layers O(log N) times for each change.
#
# A key may be in several layers, and in all but the topmost as it once was. So a layer gives candidates; whoever asks
# checks them. Times only grow, so that a key that an old layer gives is in the answer as well, and a layer has a key
# once: there are at most as many candidates as answers, times layers.


_FEW = 512
_TIMES = 4
_SLACK = 1 << 14


class Static(Protocol):
    """What a layer is."""

    @property
    def keys(self) -> Integers:
        """The keys that it was built of."""


S = TypeVar("S", bound=Static)


class Layers(Generic[S]):
    """Layers of some kind, each a quarter of the one below it or less.

    Parameters
    ----------
    build
        A layer of some distinct keys, as they are now.
    keys
        Those that there are already.
    """

    def __init__(self, build: Callable[[Integers], S], keys: Integers) -> None:
        self._build = build
        self._layers: list[S] = []
        self._changed, self._noted = [keys], len(keys)
        self._most = 2 * len(keys) + _SLACK

    def note(self, keys: Integers) -> None:
        """Some keys have changed."""
        if not len(keys):
            return
        self._changed.append(keys)
        self._noted += len(keys)
        if self._noted > self._most:
            # Nobody has asked for long: the same keys have changed again and again.
            self._together()
            self._most = 2 * self._noted + _SLACK

    def candidates(self, ask: Callable[[S], Iterable[Integers]]) -> Integers:
        """Distinct keys: those that layers give when asked, and the few that no layer has as they are."""
        changed = self._together()
        if len(changed) > _FEW:
            while self._layers and _TIMES * len(changed) > len(self._layers[-1].keys):
                changed = np.union1d(changed, self._layers.pop().keys)
            self._layers.append(self._build(changed))
            self._changed, self._noted = [], 0
            changed = changed[:0]
        found = [changed, *(keys for layer in self._layers for keys in ask(layer))]
        return np.unique(np.concatenate(found))

    def _together(self) -> Integers:
        if len(self._changed) != 1:
            together = np.unique(np.concatenate([np.zeros(0, np.int64), *self._changed]))
            self._changed, self._noted = [together], len(together)
        return self._changed[0]


@dataclass(frozen=True, slots=True)
class ByTime:
    """Keys in the order of a time each.

    Examples
    --------
    >>> layer = ByTime.of(np.array([4, 7, 9]), np.array([30, 10, 20]))
    >>> layer.since(20)
    array([9, 4])
    """

    keys: Integers
    times: Integers

    @classmethod
    def of(cls, keys: Integers, times: Integers) -> ByTime:
        """Sort them."""
        order = np.argsort(times)
        return cls(keys[order], times[order])

    def since(self, time: int) -> Integers:
        """The keys whose time is this or a later one."""
        return self.keys[int(np.searchsorted(self.times, time)) :]


NEVER = -(2**63)
"""The time of an element that there is not."""

MOST_ELEMENTS = 2**61
"""So many elements a substream may have, copies counted, for positions to be 64-bit integers."""


class Collective:
    """Times of few elements of each substream, in p levels of every size.

    Attributes
    ----------
    lengths
        How many elements each substream has had, copies counted.
    longest
        The most that one of them has ever had.

    Examples
    --------
    >>> index = Collective(Levels(1))
    >>> index.extend(2)
    >>> index.insert(np.array([0, 1]), np.array([3, 1]), np.array([10, 20, 30, 25]))
    >>> index.at_least(2, since=20)
    array([0, 1])
    >>> index.at_least(3, since=20)
    array([0])
    """

    def __init__(self, levels: Levels) -> None:
        self.levels = levels
        self.lengths, self.longest = np.zeros(0, np.int64), 0
        self._stamps = Rows(NEVER)
        self._asked: dict[Level, Layers[ByTime]] = {}

    @property
    def nbytes(self) -> int:
        """How much memory the times take; orders of them come on top, for the levels that were asked."""
        return self._stamps.nbytes + self.lengths.nbytes

    def extend(self, keys: int) -> None:
        """Have at least so many substreams, numbered from 0."""
        self.lengths = room_for(self.lengths, keys)
        self._stamps.extend(keys)

    def forget(self, keys: Integers) -> None:
        """Empty some substreams."""
        self.lengths[keys] = 0
        self._note(keys, np.full(len(keys), 64))

    def insert(self, keys: Integers, counts: Integers, times: Integers, copies: Integers | None = None) -> None:
        """Add elements to some distinct substreams: ``counts`` each, by time, lying one substream after another.

        Parameters
        ----------
        copies
            How many times each element counts, from 0 on; once by default. No sum of them may overflow.
        """
        p, old = self.levels.p, self.lengths[keys]
        running = np.cumsum(np.ones(len(times), np.int64) if copies is None else copies)
        ends = np.cumsum(counts)
        running_to = np.concatenate([np.zeros(1, np.int64), running])
        before, new = running_to[ends - counts], old + running_to[ends] - running_to[ends - counts]
        # The exponents whose q has grown: those below the highest bit in which m + p has changed.
        last, depth = (old + p) ^ (new + p), bit_lengths((new + p) // (p + 1))
        grown = np.minimum(bit_lengths(last), depth)
        needed = np.maximum(p * depth, self._stamps.sizes[keys])
        self._stamps.resize(keys, needed, spare=False)
        row, exponent = np.repeat(np.arange(len(keys)), grown), ranges(np.zeros(len(keys), np.int64), grown)
        head = (new[row] + p) >> exponent
        fresh = np.minimum(np.minimum(p, head - ((old[row] + p) >> exponent)), head - p)
        row, exponent = np.repeat(row, fresh), np.repeat(exponent, fresh)
        # The multiples of 2^b that are new in their levels, the newest p at most.
        multiple = ranges(head - p - fresh + 1, fresh)
        position = multiple << exponent
        inserted = position > old[row]
        stamp = np.empty(len(position), np.int64)
        here = row[inserted]
        stamp[inserted] = times[np.searchsorted(running, before[here] + position[inserted] - old[here])]
        there = row[~inserted]
        stamp[~inserted] = self._held(keys[there], old[there], position[~inserted])
        self._stamps.columns[0][self._stamps.starts[keys[row]] + exponent * p + multiple % p] = stamp
        self.lengths[keys] = new
        self.longest = max(self.longest, int(new.max(initial=0)))
        self._note(keys, grown)

    def stamps(self, level: Level, keys: Integers) -> Integers:
        """``TSTAMP[k, l]`` of some substreams; ``NEVER`` where the level has no such element."""
        p = self.levels.p
        multiple = ((self.lengths[keys] + p) >> level.exponent) - p - level.place
        found = np.full(len(keys), NEVER)
        there = np.flatnonzero(multiple > 0)
        where = self._stamps.starts[keys[there]] + level.exponent * p + multiple[there] % p
        found[there] = self._stamps.columns[0][where]
        return found

    def at_least(self, elements: int, since: int) -> Integers:
        """All substreams with so many elements since a time, 1 or more, and some that miss it by a part of ε."""
        level = self.levels.for_at_least(elements)
        if level not in self._asked:
            self._asked[level] = Layers(lambda keys: self._ordered(level, keys), np.arange(len(self.lengths)))
        keys = self._asked[level].candidates(lambda layer: (layer.since(since),))
        return keys[self.stamps(level, keys) >= since]

    def not_more(self, elements: int, since: int, keys: Integers) -> Integers:
        """Of some substreams all with at most so many elements since a time, and some with up to a part of ε more."""
        return keys[self.stamps(self.levels.for_at_most(elements), keys) < since]

    def _held(self, keys: Integers, lengths: Integers, positions: Integers) -> Integers:
        """Times of elements that substreams of these lengths hold: where they are follows from their distance."""
        p = self.levels.p
        exponent = bit_lengths((lengths - positions + p) // p) - 1
        where = self._stamps.starts[keys] + exponent * p + (positions >> exponent) % p
        found: Integers = self._stamps.columns[0][where]
        return found

    def _ordered(self, level: Level, keys: Integers) -> ByTime:
        times = self.stamps(level, keys)
        there = times != NEVER
        return ByTime.of(keys[there], times[there])

    def _note(self, keys: Integers, grown: Integers) -> None:
        for level, layers in self._asked.items():
            layers.note(keys[grown > level.exponent])
