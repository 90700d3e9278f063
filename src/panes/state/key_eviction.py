"""Eviction: which keys a shard removes although windows still need them, so that its state stays bounded.

:func:`keys_to_evict` picks the least recently updated keys beyond the limits; ``StoreState.evict`` removes them.
Nothing remembers an evicted key. So every key that appears after an eviction may be one that was evicted: it counts as
incomplete up to the end of what was evicted, and its answers say so by their coverage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from panes.aggregates.operations import Array
from panes.frames.positions import Integers
from panes.queries.eviction import Limits
from panes.state.runs import ALWAYS, Runs
from panes.timeline import parse_duration

_FILL = 0.9
"""Eviction goes down to this share of a limit, so that it does not happen in every micro-batch."""


@dataclass
class Evictions:
    """Which keys may have been evicted before, and until when they may lack events.

    Parameters
    ----------
    listed
        Pairs of an ordinal and an instant: keys from that ordinal on may lack events before the instant.
    checked
        The watermark when ages were last checked.
    """

    listed: list[tuple[int, int]] = field(default_factory=list)
    checked: int = ALWAYS

    def since(self, keys: Integers) -> Integers:
        """Return the instants since which every event of some keys was seen."""
        since = np.full(len(keys), ALWAYS)
        for ordinal, instant in self.listed:
            since = np.where(keys >= ordinal, np.maximum(since, instant), since)
        return since

    def renumber(self, new: Integers) -> None:
        """Follow new key ordinals; ``new[old]`` is -1 for a removed key."""
        kept = np.concatenate([[0], np.cumsum(new >= 0)])
        self.listed = [(int(kept[ordinal]), instant) for ordinal, instant in self.listed]

    def drop_before(self, horizon: int) -> None:
        """Drop evictions before all instants that windows still look back to."""
        self.listed = [(ordinal, instant) for ordinal, instant in self.listed if instant > horizon]


def keys_to_evict(runs: Runs, keys: int, limits: Limits, evictions: Evictions, watermark: int) -> Array | None:
    """Return a mask of the keys to evict, or None. Granules are read only when a limit may have been reached."""
    age = None if limits.age is None else parse_duration(limits.age)
    aged = age is not None and watermark >= evictions.checked + age // 8
    crowded = limits.keys is not None and keys > limits.keys
    full = limits.rows is not None and runs.rows > limits.rows
    if not (aged or crowded or full):
        return None
    latest, count = runs.latest(keys)
    order = np.argsort(latest, kind="stable")[::-1]
    stay = count[order] > 0
    if age is not None:
        evictions.checked = watermark
        stay &= latest[order] + age > watermark
    if limits.keys is not None and stay.sum() > limits.keys:
        stay &= np.cumsum(stay) <= math.ceil(_FILL * limits.keys)
    if limits.rows is not None and count[order][stay].sum() > limits.rows:
        stay &= np.cumsum(np.where(stay, count[order], 0)) <= math.ceil(_FILL * limits.rows)
    gone = np.ones(keys, dtype=bool)
    gone[order[stay]] = False
    return gone if (gone & (count > 0)).any() else None
