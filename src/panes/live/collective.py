"""CI-COUNT and CI-SUM: which keys have many events in a window up to now, without looking at the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from panes.aggregates.integers import MACHINE
from panes.aggregates.operations import State
from panes.errors import DeclarationError
from panes.frames.positions import Integers, count_while
from panes.live.layers import ByTime, Layers
from panes.live.rings import RowRuns
from panes.live.running import RunningIntervals
from panes.live.store import Instants

_MOST_LEVELS: Final = 256


class Collective(RunningIntervals):
    """How many copies of events each key has had, and by level, the keys in the order of the time of one event each.

    ==========  =====================================================================
    requires    copies of each event, from 0 on; less than 2^63 for each key
    update      O(1)
    lookup      O(candidates log rows), about; sorts what has changed since the last
                lookup of the same level
    memory      one number per row
    error       looks at keys with more than v (1 - ε) copies where v are asked for;
                ε ≈ 2 / p
    paper       CI-COUNT and CI-SUM, Arasu & Widom 2004, section 4 (figure 7), with
                its parameter p
    ==========  =====================================================================

    A key has at least n events since x if its n-th newest event came at x or later. Instead of an order of all keys by
    that time for each n, there is one for each *level* of distances from the end, by the time of the one event of the
    level whose position is a multiple of the level's size. The paper, which holds no events, moves these times from
    level to level; here they are found where the events lie.

    Attributes
    ----------
    longest
        The most copies that a key has had since it began.
    """

    name = "collective"

    def __init__(self, levels: Levels, instants: Instants) -> None:
        super().__init__(MACHINE, (np.zeros(0, np.int64),), instants.rings)
        self._levels, self._instants = levels, instants
        self.longest = 0
        # By level; None has all keys by the time of their newest event, whether or not that has copies.
        self._orders: dict[Level | None, Layers[ByTime]] = {}

    def append(self, rows: RowRuns, state: State) -> None:  # noqa: D102
        key, p, is_first = rows.key, self._levels.p, self._is_first(rows)
        old = np.where(is_first, 0, self._before(key, rows.lo))
        super().append(rows, state)
        new = self._before(key, rows.hi)
        self.longest = max(self.longest, int(new.max(initial=0)))
        for level, order in self._orders.items():
            if level is None:
                order.note(key)
            else:
                order.note(key[is_first | ((old + p) >> level.exponent != (new + p) >> level.exponent)])

    def keep(self, chosen: Integers) -> None:  # noqa: D102
        self._orders.clear()

    def between(self, least: int, most: int | None, since: int, *, per_row: int = 0) -> Integers:
        """The keys with an event since an instant, and a number of copies in a range.

        Parameters
        ----------
        most
            None for no bound.
        per_row
            How many copies more than ``most`` there may be for each row.
        """
        level = self._levels.reached_by(least) if least > 0 else None
        if level not in self._orders:
            self._orders[level] = Layers(lambda keys: self._by_time(level, keys), self.rings.occupied())
        keys = self._orders[level].candidates(lambda layer: layer.since(since))
        begin, end = self._instants.search(keys, since), self.rings.end[keys]
        copies = self._before(keys, end) - self._before(keys, begin)
        chosen = (begin < end) & (copies >= least)
        if most is not None:
            chosen &= copies - per_row * (end - begin) <= most
        return keys[chosen]

    def _before(self, key: Integers, ordinal: Integers) -> Integers:
        """How many copies each key has had before a row. Keys without rows have no ring: they read anything."""
        return self._running[0].take(self.rings.slot(key, ordinal), mode="clip")

    def _by_time(self, level: Level | None, keys: Integers) -> ByTime:
        """Keys by the time of their event of a level, if they have one; ``TSTAMP[k, l]`` in the paper."""
        rings = self.rings
        keys = keys[rings.end[keys] > rings.first[keys]]
        if level is None:
            return ByTime.of(keys, self._instants.at(keys, rings.end[keys] - 1))
        position = self._levels.position(level, self._before(keys, rings.end[keys]))
        held = position > self._before(keys, rings.first[keys])
        keys, position = keys[held], position[held]
        first = rings.first[keys]
        earlier = count_while(rings.end[keys] - first, lambda row: self._before(keys, first + row + 1) < position)
        return ByTime.of(keys, self._instants.at(keys, first + earlier))


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

    def reached_by(self, events: int) -> Level:
        """The last level whose distances are at most so many events, 1 or more.

        More than v events are at least v + 1. The paper takes level ⌊log2 v⌋ - 1 for them; with p = 1 this is the same
        level, or the next one where its last distance is v + 1 or v.

        Examples
        --------
        >>> Levels(1).reached_by(12)
        Level(exponent=2, place=0)
        """
        # The largest distance <= events, solved for the exponent and then for the place.
        exponent = ((events + self.p) // (self.p + 1)).bit_length() - 1
        return Level(exponent, min(self.p - 1, ((events + self.p) >> exponent) - self.p - 1))

    def position(self, level: Level, events: Integers) -> Integers:
        """Which of a key's events, counted from 1, is the level's one; not positive if there is none.

        Examples
        --------
        >>> Levels(1).position(Level(exponent=2, place=0), np.array([3, 7, 8, 58]))
        array([ 0,  4,  4, 52])
        """
        multiple: Integers = ((events + self.p) >> level.exponent) - self.p - level.place
        return multiple << level.exponent
