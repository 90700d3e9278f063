"""CI-COUNT and CI-SUM: which keys have many events in a suffix window, without looking at the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from panes.errors import DeclarationError
from panes.frames.positions import ranges
from panes.live.layers import ByTime, Layers
from panes.live.ragged import Integers, Ragged, bit_lengths, room_for

NEVER: Final = -(2**63)
"""The time of a missing event."""

MOST_EVENTS: Final = 2**61
"""Events a key may have, copies counted, for positions to be 64-bit integers."""

_MOST_LEVELS: Final = 256


class Collective:
    """The times of a few events of each key, in p levels of every size.

    ==========  =====================================================================
    requires    events in the order of time within each key
    update      O(1) amortised for an event, whatever p; O(p log a) for a copies at once
    lookup      O(candidates), about; sorts what has changed since the last lookup
                of the same level
    memory      p log2(events / p) times for each key
    error       a candidate has more than v (1 - ε) events where v are asked for,
                ε ≈ 2 / p
    paper       CI-COUNT and CI-SUM, Arasu & Widom 2004, section 4 (figure 7), with
                its parameter p
    ==========  =====================================================================

    A key has at least n events since x if its n-th newest event came at x or later. Instead of an order of all keys by
    that time for each n, there is one for each *level* of distances from the end, by the time of the one event of the
    level whose position is a multiple of the level's size, ``TSTAMP[k, l]``.

    The paper inserts one event after another, and copies ``TSTAMP[k, l - 1]`` to level l where an event moves on. A
    batch is arithmetic: with m events, the p levels of size 2^b hold the multiples ``j 2^b`` with
    ``q - 2p < j <= q - p``, where q = ⌊(m + p) / 2^b⌋. So the new ones lie between the old q and the new one, and the
    place of an older event follows from its distance. The p times of one size are kept in a ring, event j at j mod p,
    so that an event that only moves to the next level stays where it is.

    Attributes
    ----------
    lengths
        How many events each key has had, copies counted.
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
        self._stamps = Ragged(NEVER)
        self._orders: dict[Level, Layers[ByTime]] = {}

    def extend(self, keys: int) -> None:
        """Have room for so many keys, numbered from 0."""
        self.lengths = room_for(self.lengths, keys)
        self._stamps.extend(keys)

    def clear(self, keys: Integers) -> None:
        """Drop all events of some keys."""
        self.lengths[keys] = 0
        self._note(keys, np.full(len(keys), 64))

    def insert(self, keys: Integers, counts: Integers, times: Integers, copies: Integers | None = None) -> None:
        """Add events to some distinct keys: ``counts`` each, by time, one key after another.

        Parameters
        ----------
        copies
            How many times each event counts, from 0 on; once by default. Their sum must not overflow.
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
        stamp[~inserted] = self._times_of(keys[there], old[there], position[~inserted])
        self._stamps.columns[0][self._stamps.starts[keys[row]] + exponent * p + multiple % p] = stamp
        self.lengths[keys] = new
        self.longest = max(self.longest, int(new.max(initial=0)))
        self._note(keys, grown)

    def stamps(self, level: Level, keys: Integers) -> Integers:
        """``TSTAMP[k, l]`` of some keys; ``NEVER`` where the level has no such event."""
        p = self.levels.p
        multiple = ((self.lengths[keys] + p) >> level.exponent) - p - level.place
        found = np.full(len(keys), NEVER)
        there = np.flatnonzero(multiple > 0)
        where = self._stamps.starts[keys[there]] + level.exponent * p + multiple[there] % p
        found[there] = self._stamps.columns[0][where]
        return found

    def at_least(self, events: int, since: int) -> Integers:
        """All keys with so many events since a time, 1 or more, and some that miss it by a part of ε."""
        level = self.levels.for_at_least(events)
        if level not in self._orders:
            self._orders[level] = Layers(lambda keys: self._ordered(level, keys), np.arange(len(self.lengths)))
        keys = self._orders[level].candidates(lambda layer: (layer.since(since),))
        return keys[self.stamps(level, keys) >= since]

    def not_more(self, events: int, since: int, keys: Integers) -> Integers:
        """Of some keys all with at most so many events since a time, and some with up to a part of ε more."""
        return keys[self.stamps(self.levels.for_at_most(events), keys) < since]

    def _times_of(self, keys: Integers, lengths: Integers, positions: Integers) -> Integers:
        """Times of events that keys of these lengths hold: where they are follows from their distance."""
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
        for level, layers in self._orders.items():
            layers.note(keys[grown > level.exponent])


@dataclass(frozen=True, slots=True)
class Level:
    """One level: 2^exponent distances, at one of the p places of that size."""

    exponent: int
    place: int


@dataclass(frozen=True, slots=True)
class Levels:
    """p levels of every size, each for some distances from the end of a key's events.

    Distance 1 is the newest event of a key, distance 2 the one before it. There are p levels of size 1, then p of size
    2, p of size 4, and so on, one after another: the level at place c of exponent b covers the 2^b distances
    ``(2^b (p + c) - p, 2^b (p + c + 1) - p]``. With p = 1 these are the levels of Definition 4.1 of the paper.

    Examples
    --------
    >>> Levels(1).epsilon, Levels(2).epsilon, Levels(8).epsilon
    (0.75, 0.5, 0.2)
    >>> Levels.within(0.25)
    Levels(p=6)
    """

    p: int

    def __post_init__(self) -> None:
        if isinstance(self.p, bool) or not isinstance(self.p, int) or not 1 <= self.p <= _MOST_LEVELS:
            raise DeclarationError(f"p={self.p!r}: write the number of levels of each size, from 1 to {_MOST_LEVELS}.")

    @classmethod
    def within(cls, epsilon: float) -> Levels:
        """The fewest levels whose error is at most ε."""
        if isinstance(epsilon, bool) or not isinstance(epsilon, (int, float)) or not 0 < epsilon < 1:
            raise DeclarationError(
                f"epsilon={epsilon!r}: write the share of a threshold by which candidates may miss it, as 0.5."
            )
        p = next((p for p in range(1, _MOST_LEVELS + 1) if cls(p).epsilon <= epsilon), None)
        if p is None:
            raise DeclarationError(
                f"epsilon={epsilon!r} is too small: it takes more than {_MOST_LEVELS} levels of each size. Answers are "
                "exact with any epsilon; write for example 0.25."
            )
        return cls(p)

    @property
    def epsilon(self) -> float:
        """The share of a threshold by which a candidate may miss it: it has more than v (1 - ε)."""
        # Within a size the worst is place 0, used up to two levels on; 3 / (2p + 2) is the step to the next size.
        return max(2 / (self.p + 2), 3 / (2 * self.p + 2))

    def nearest(self, level: Level) -> int:
        """The smallest distance that a level covers."""
        return ((self.p + level.place) << level.exponent) - self.p + 1

    def for_at_least(self, events: int) -> Level:
        """The last level whose distances are at most so many events, 1 or more.

        More than v events are at least v + 1. The paper takes level ⌊log2 v⌋ - 1 for them; with p = 1 this is the same
        level, or the next one where its last distance is v + 1 or v.

        Examples
        --------
        >>> Levels(1).for_at_least(12)
        Level(exponent=2, place=0)
        """
        # The largest distance <= events, solved for the exponent and then for the place.
        exponent = ((events + self.p) // (self.p + 1)).bit_length() - 1
        return Level(exponent, min(self.p - 1, ((events + self.p) >> exponent) - self.p - 1))

    def for_at_most(self, events: int) -> Level:
        """The first level that begins only after so many events, 0 or more.

        Examples
        --------
        >>> Levels(1).for_at_most(11)
        Level(exponent=4, place=0)
        """
        # nearest > events, that is 2^b (p + c) >= events + p.
        exponent = 0
        while (2 * self.p - 1) << exponent < events + self.p:
            exponent += 1
        return Level(exponent, max(0, -(-(events + self.p) >> exponent) - self.p))
