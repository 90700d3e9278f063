"""Which keys a shard forgets although windows still need them, so that its state stays bounded.

What was known of an evicted key is gone, and nobody remembers that it was there. So when any key appears afterwards,
it may be one that was evicted: it is in doubt up to the end of what was evicted, and says so by its coverage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from panes.aggregates.operations import Array
from panes.frames.positions import Integers
from panes.state.history import ALWAYS
from panes.state.runs import Runs

_ROOM = 0.9
"""To which part of a limit a shard goes back, so that it does not evict in every micro-batch."""


@dataclass(frozen=True)
class Bounds:
    """What one shard may keep: keys no older than an age in µs, so many keys, so many granules."""

    age: int | None = None
    keys: int | None = None
    rows: int | None = None


@dataclass
class Evictions:
    """From which ordinal on keys may have been evicted before, and until when.

    Parameters
    ----------
    listed
        Pairs of an ordinal and an instant: keys from that ordinal on may lack events before the instant.
    looked
        The watermark when ages were last looked at.
    """

    listed: list[tuple[int, int]] = field(default_factory=list)
    looked: int = ALWAYS

    def since(self, keys: Integers) -> Integers:
        """Since when everything was seen of some keys."""
        found = np.full(len(keys), ALWAYS)
        for ordinal, instant in self.listed:
            found = np.where(keys >= ordinal, np.maximum(found, instant), found)
        return found

    def renumber(self, new: Integers) -> None:
        """Follow other ordinals."""
        kept = np.concatenate([[0], np.cumsum(new >= 0)])
        self.listed = [(int(kept[ordinal]), instant) for ordinal, instant in self.listed]

    def settle(self, horizon: int) -> None:
        """Forget evictions about times that no window looks back to any more."""
        self.listed = [(ordinal, instant) for ordinal, instant in self.listed if instant > horizon]


def overdue(runs: Runs, keys: int, bounds: Bounds, evictions: Evictions, watermark: int) -> Array | None:
    """Which keys have to go, or None. Granules are looked at only where a limit may have been reached."""
    aged = bounds.age is not None and watermark >= evictions.looked + bounds.age // 8
    crowded = bounds.keys is not None and keys > bounds.keys
    full = bounds.rows is not None and runs.rows > bounds.rows
    if not (aged or crowded or full):
        return None
    latest, count = runs.latest(keys)
    order = np.argsort(latest, kind="stable")[::-1]
    stay = count[order] > 0
    if bounds.age is not None:
        evictions.looked = watermark
        stay &= latest[order] + bounds.age > watermark
    if bounds.keys is not None and stay.sum() > bounds.keys:
        stay &= np.cumsum(stay) <= math.ceil(_ROOM * bounds.keys)
    if bounds.rows is not None and count[order][stay].sum() > bounds.rows:
        stay &= np.cumsum(np.where(stay, count[order], 0)) <= math.ceil(_ROOM * bounds.rows)
    gone = np.ones(keys, dtype=bool)
    gone[order[stay]] = False
    return gone if (gone & (count > 0)).any() else None
