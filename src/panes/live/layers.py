"""Sorted indexes over keys that change: small ones are built anew, and merged into large ones as they add up.

An update only notes which keys have changed. The next lookup pays: a few changed keys are checked one by one, many of
them become a layer of their own, and a layer that is not much smaller than the one below it is merged with it. A key
changes layers O(log N) times for each change.

A key may be in several layers, and in all but the topmost as it once was. So layers give candidates, and the lookup
checks them. Times only grow, so that a key that an old layer gives is an answer as well, and a layer holds a key once:
there are at most as many candidates as answers, times layers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

import numpy as np

from panes.frames.positions import Integers

_FEW: Final = 512
"""Changed keys that are checked one by one."""

_TIMES: Final = 4
"""A layer is so many times as large as the one above it, or merged with it."""

_SLACK: Final = 1 << 14
"""Changes that are noted before repetitions are removed, beside twice as many as there are changed keys."""


class Layer(Protocol):
    """A static index."""

    @property
    def keys(self) -> Integers:
        """The keys in it."""


S = TypeVar("S", bound=Layer)


class Layers(Generic[S]):
    """Layers of one kind, each at most a quarter of the one below it.

    Parameters
    ----------
    build
        Makes a layer of some distinct keys, as they are now.
    keys
        The present ones.
    """

    def __init__(self, build: Callable[[Integers], S], keys: Integers) -> None:
        self._build = build
        self._layers: list[S] = []
        self._changed, self._noted = [keys], len(keys)
        self._most = 2 * len(keys) + _SLACK

    def note(self, keys: Integers) -> None:
        """Note that some keys have changed."""
        if not len(keys):
            return
        self._changed.append(keys)
        self._noted += len(keys)
        if self._noted > self._most:
            # Without lookups the same keys change again and again.
            self._merge_changed()
            self._most = 2 * self._noted + _SLACK

    def candidates(self, look_up: Callable[[S], Integers]) -> Integers:
        """Distinct keys, sorted: those that the layers give, and the few that have changed since."""
        changed = self._merge_changed()
        if len(changed) > _FEW:
            while self._layers and _TIMES * len(changed) > len(self._layers[-1].keys):
                changed = _distinct([changed, self._layers.pop().keys])
            self._layers.append(self._build(changed))
            self._changed, self._noted = [], 0
            changed = changed[:0]
        return _distinct([changed, *map(look_up, self._layers)])

    def _merge_changed(self) -> Integers:
        if len(self._changed) != 1:
            together = _distinct(self._changed)
            self._changed, self._noted = [together], len(together)
        return self._changed[0]


@dataclass(frozen=True, slots=True)
class ByTime:
    """A layer of keys in the order of a time each.

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


def _distinct(keys: Sequence[Integers]) -> Integers:
    """The distinct keys of several arrays, sorted. ``np.unique`` hashes, which takes several times as long."""
    together = np.sort(np.concatenate([np.zeros(0, np.int64), *keys]))
    distinct: Integers = together[np.append(True, together[1:] != together[:-1])[: len(together)]]
    return distinct
