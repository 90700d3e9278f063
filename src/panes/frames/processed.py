"""Windows as they were processed: of which key, when, and which rows they held."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from panes.frames.pairs import Frame
from panes.frames.positions import Integers, Positions


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
