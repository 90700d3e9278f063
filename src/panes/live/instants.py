"""Instants: when the rows of each key happened, so that a window of time is a window of rows.

==========  =====================================================================
requires    rows of a key in the order of time; several may have one instant
update      O(1)
lookup      O(log rows), for all windows in step
paper       time-based windows, Arasu & Widom 2004, section 2
==========  =====================================================================
"""

from __future__ import annotations

import numpy as np

from panes.algebra.extrema import SMALLEST
from panes.algebra.operations import Array
from panes.live.elements import Elements
from panes.live.rings import Rings


class Instants(Elements):
    """The instant of each row, in µs since the epoch."""

    name = "instants"

    def __init__(self, rings: Rings) -> None:
        super().__init__(SMALLEST, (np.zeros(0, np.int64),), rings)

    def search(self, key: Array, instant: Array | int) -> Array:
        """Of each key, the ordinal of its first row that is held at or after an instant."""
        place, end = self.rings.first[key], self.rings.end[key]
        base, mask = self.rings.base[key], self.rings.size[key] - 1
        for power in reversed(range(int((end - place).max(initial=0)).bit_length())):
            further = place + (1 << power)
            # Keys without rows have no ring: they pass nothing, whatever is read here.
            probe = self._elements[0].take(base + ((further - 1) & mask), mode="clip")
            np.copyto(place, further, where=(further <= end) & (probe < instant))
        return place
