"""Windows of rows on a sorted column: the rows as they arrive, the instances found, and how far each key has come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from panes.frames.distances import Booleans, Values
from panes.frames.positions import Integers, Positions
from panes.frames.time_windows import Frame


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Rows in the order in which they arrived, key after key.

    Parameters
    ----------
    events
        When rows arrived; their numbers where there is no clock.
    end
        How far the clock runs.
    attributes
        The columns that delta policies are measured in.
    punctuations
        When punctuations for all keys arrived: each after the rows of its instant.
    marks
        When punctuations for single keys arrived, by key; None where a punctuation ends the windows of all keys.
    """

    events: Positions
    end: int
    attributes: Mapping[str | int, Values] = field(default_factory=dict)
    punctuations: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    marks: Positions | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RowFrame:
    """The instances of a window of rows, by key, in the order in which they were processed.

    Neither ``lo`` nor ``hi`` decreases.

    Parameters
    ----------
    key
        The ordinal of each instance's key.
    instant
        When it was processed: at the arrival of a row, or on the clock.
    lo, hi
        The rows it held, half-open.
    """

    key: Integers
    instant: Integers
    lo: Integers
    hi: Integers

    def __len__(self) -> int:
        return len(self.lo)

    def where(self, keep: npt.NDArray[np.bool_]) -> RowFrame:
        """Return the instances where a mask is true."""
        if keep.all():
            return self
        return RowFrame(self.key[keep], self.instant[keep], self.lo[keep], self.hi[keep])

    def held(self) -> RowFrame:
        """Return the instances that held a row: nothing is computed over the others."""
        return self.where(self.hi > self.lo)

    def numbers(self) -> Integers:
        """Number the instances of each key from 0."""
        change = np.append(True, self.key[1:] != self.key[:-1])[: len(self)]
        first = np.flatnonzero(change)
        return np.arange(len(self)) - np.repeat(first, np.diff(np.append(first, len(self))))

    def frame(self) -> Frame:
        """Return the frame that kernels take."""
        return Frame(self.key, self.instant, self.lo, self.hi)


def key_of_rows(events: Positions) -> Integers:
    """Return the ordinal of the key of every row."""
    return np.repeat(np.arange(events.keys, dtype=np.int64), np.diff(events.key_starts))


@dataclass(frozen=True, slots=True, eq=False)
class KeyProgress:
    """How far the windows of each key have come, so that they go on with the next rows.

    The column then begins with the rows that windows still hold; the new rows follow them, key by key.

    Parameters
    ----------
    known
        Whether the key has had rows before. The other fields mean something only if it has.
    held
        How many rows of the column are held: the first ones of the key.
    opened
        When the first row of all arrived.
    received
        The rows since the last trigger, for triggers by count.
    reference
        The attribute of the row that triggered last, for triggers by delta.
    full
        Whether the window has been full.
    until
        How far the clock has run, for all keys.
    """

    known: Booleans
    held: Integers
    opened: Integers
    received: Integers
    reference: Values
    full: Booleans
    until: int

    @classmethod
    def none(cls, keys: int) -> KeyProgress:
        """Return the progress of keys without any rows so far."""
        no, zeros = np.zeros(keys, np.bool_), np.zeros(keys, np.int64)
        return cls(no, zeros, zeros, zeros, zeros, no, 0)

    def first_new(self, events: Positions) -> Integers:
        """Return the first new row of each key, or the end of the key."""
        return events.key_starts[:-1] + self.held

    def opened_at(self, events: Positions) -> Integers:
        """Return when the first row of each key arrived; any instant for a key that never had a row."""
        first = np.minimum(events.key_starts[:-1], max(len(events) - 1, 0))
        return np.where(self.known, self.opened, events.start[first] if len(events) else 0)

    def periods_from(self, events: Positions, grid: int | None) -> Integers:
        """Return where the periods of each key begin: on a grid, or with its first row of all."""
        return self.opened_at(events) if grid is None else np.full(events.keys, grid, np.int64)
