"""A frame: what a window means on one column, as half-open pairs of row indices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from panes.frames.positions import Integers, Positions


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """The instances of a window on a column, ordered by key and start.

    Parameters
    ----------
    key
        The ordinal of each instance's key.
    start
        Where each instance starts on the axis of the column.
    lo, hi
        Its rows, half-open; ``lo == hi`` for an instance without rows.
    """

    key: Integers
    start: Integers
    lo: Integers
    hi: Integers

    def __len__(self) -> int:
        return len(self.lo)

    def where(self, keep: npt.NDArray[np.bool_]) -> Frame:
        """Some of the instances."""
        return Frame(self.key[keep], self.start[keep], self.lo[keep], self.hi[keep])

    def since(self, instant: int, positions: Positions) -> Frame:
        """Of instances on a column, the rows from an instant on; no row spans it.

        Instances that end before a key's first such row are left out, as if earlier rows did not exist.
        """
        first = positions.search(self.key, np.full_like(self.key, instant))
        return Frame(self.key, self.start, np.maximum(self.lo, first), self.hi).where(self.hi > first)

    @classmethod
    def empty(cls) -> Frame:
        """The frame without instances."""
        nothing = np.zeros(0, np.int64)
        return cls(nothing, nothing, nothing, nothing)
