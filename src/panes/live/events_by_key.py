"""The events of each key by time, which an index is built of again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from panes.aggregates.operations import Array
from panes.live.ragged import Integers, Ragged


@dataclass(frozen=True, slots=True)
class Grouped:
    """Events of some distinct keys, by time, one key after another.

    Parameters
    ----------
    keys, counts
        The keys, and how many events each has here.
    values
        None where events are only counted.
    """

    keys: Integers
    counts: Integers
    times: Integers
    values: Array | None

    @classmethod
    def of(cls, keys: Integers, times: Integers, values: Array | None) -> Grouped:
        """Group events that come in any order; of equal times the earlier one stays first."""
        # Mostly they come by time already, and one sort is enough.
        by_time = bool(np.all(times[1:] >= times[:-1]))
        order = np.argsort(keys, kind="stable") if by_time else np.lexsort((times, keys))
        keys = keys[order]
        firsts = np.flatnonzero(np.diff(keys, prepend=-1))
        counts = np.diff(np.append(firsts, len(keys)))
        return cls(keys[firsts], counts, times[order], None if values is None else values[order])

    @property
    def key_of_each(self) -> Integers:
        """The key of each event."""
        return np.repeat(self.keys, self.counts)

    @property
    def first_times(self) -> Integers:
        """The earliest time of each key."""
        times: Integers = self.times[np.cumsum(self.counts) - self.counts]
        return times

    def merged_with(self, other: Grouped) -> Grouped:
        """All events of both; of equal times those of the other first."""
        values = None if self.values is None or other.values is None else np.concatenate([other.values, self.values])
        keys = np.concatenate([other.key_of_each, self.key_of_each])
        return Grouped.of(keys, np.concatenate([other.times, self.times]), values)


class EventsByKey:
    """The events of every key, in the order of time.

    Parameters
    ----------
    value
        The zero of the values, which gives their type; None where events are only counted.

    Attributes
    ----------
    events
        How many events there are.
    longest
        The most that one key has ever had.

    Examples
    --------
    >>> held = EventsByKey(0)
    >>> held.extend(1)
    >>> held.append(Grouped(np.array([0]), np.array([2]), np.array([10, 20]), np.array([5, 6])))
    >>> held.of(np.array([0])).values, held.newest(np.array([0]))
    (array([5, 6]), array([20]))
    """

    def __init__(self, value: float | None) -> None:
        self._rows = Ragged(0) if value is None else Ragged(0, value)
        self.events = self.longest = 0

    def extend(self, keys: int) -> None:
        """Have room for so many keys, numbered from 0."""
        self._rows.extend(keys)

    def newest(self, keys: Integers) -> Integers:
        """The time of the last event of some keys, which all have one."""
        found: Integers = self._rows.columns[0][self._rows.starts[keys] + self._rows.sizes[keys] - 1]
        return found

    def sizes(self, keys: Integers) -> Integers:
        """How many events some keys have."""
        return self._rows.sizes[keys]

    def held(self) -> Integers:
        """The keys that have events."""
        return np.flatnonzero(self._rows.sizes)

    def append(self, new: Grouped) -> None:
        """Add events, none of them earlier than one that its key has."""
        self.longest = max(self.longest, int((self._rows.sizes[new.keys] + new.counts).max()))
        self.events += len(new.times)
        self._rows.append(new.keys, new.counts, new.times, *(() if new.values is None else (new.values,)))

    def clear(self, keys: Integers) -> None:
        """Drop all events of some keys."""
        self.events -= int(self._rows.sizes[keys].sum())
        self._rows.resize(keys, np.zeros(len(keys), np.int64))

    def of(self, keys: Integers) -> Grouped:
        """All events of some distinct keys."""
        keys = np.sort(keys)
        keys = keys[self._rows.sizes[keys] > 0]
        times, *values = (column[self._rows.places(keys)] for column in self._rows.columns)
        return Grouped(keys, self._rows.sizes[keys], times, values[0] if values else None)
