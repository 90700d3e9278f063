"""Windows that go on: what is to be known of the rows before those at hand, key by key.

A column may begin with rows that windows still hold, although everything was done for them: they are followed by the
rows that are new. What policies remember beyond the held rows is here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from panes.frames.distances import Booleans, Values
from panes.frames.positions import Integers, Positions
from panes.frames.time_windows import Frame

# Windows as they were processed: of which key, when, and which rows they held.


@dataclass(frozen=True, slots=True, eq=False)
class Processed:
    """The windows of every key in the order in which they were processed; neither lo nor hi ever falls.

    Parameters
    ----------
    key
        The ordinal of the key.
    instant
        When the window was processed: at the arrival of a tuple, or on the clock.
    lo, hi
        The rows that it held, half-open.
    """

    key: Integers
    instant: Integers
    lo: Integers
    hi: Integers

    def __len__(self) -> int:
        return len(self.lo)

    def where(self, keep: npt.NDArray[np.bool_]) -> Processed:
        """Some of them."""
        if keep.all():
            return self
        return Processed(self.key[keep], self.instant[keep], self.lo[keep], self.hi[keep])

    def held(self) -> Processed:
        """Those that held a row: nothing is computed over the others."""
        return self.where(self.hi > self.lo)

    def numbers(self) -> Integers:
        """Which window of its key each one is, from 0."""
        change = np.append(True, self.key[1:] != self.key[:-1])[: len(self)]
        first = np.flatnonzero(change)
        return np.arange(len(self)) - np.repeat(first, np.diff(np.append(first, len(self))))

    def frame(self) -> Frame:
        """For kernels."""
        return Frame(self.key, self.instant, self.lo, self.hi)


def key_of_rows(events: Positions) -> Integers:
    """The ordinal of the key of every row."""
    return np.repeat(np.arange(events.keys, dtype=np.int64), np.diff(events.key_starts))


@dataclass(frozen=True, slots=True, eq=False)
class Begun:
    """How far the windows of each key are.

    Parameters
    ----------
    known
        Whether the key has had rows before; what follows means something only if it has.
    held
        How many of the rows at hand are held: the first ones of the key.
    opened
        When the first row of all arrived.
    received
        The rows since the last trigger, for triggers by count.
    reference
        The attribute of the row that triggered last, for triggers by delta.
    full
        Whether the window has been full.
    until
        How far the clock had run, for all keys.
    """

    known: Booleans
    held: Integers
    opened: Integers
    received: Integers
    reference: Values
    full: Booleans
    until: int

    @classmethod
    def nothing(cls, keys: int, *, floating: bool = False) -> Begun:
        """Keys that nobody has seen yet."""
        none, zeros = np.zeros(keys, np.bool_), np.zeros(keys, np.int64)
        return cls(none, zeros, zeros, zeros, np.zeros(keys, np.float64) if floating else zeros, none, 0)

    def first_new(self, events: Positions) -> Integers:
        """The first row of each key that is new, or the end of the key."""
        return events.key_starts[:-1] + self.held

    def opened_at(self, events: Positions) -> Integers:
        """When the first row of all arrived, for every key; anything where there has never been one."""
        first = np.minimum(events.key_starts[:-1], max(len(events) - 1, 0))
        return np.where(self.known, self.opened, events.start[first] if len(events) else 0)


def opened_at(events: Positions, begun: Begun | None, grid: int | None) -> Integers:
    """Where the periods of each key begin: with its first row of all, or on a grid."""
    if grid is not None:
        return np.full(events.keys, grid, np.int64)
    return (begun or Begun.nothing(events.keys)).opened_at(events)
