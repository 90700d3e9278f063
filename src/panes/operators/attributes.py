"""Read attributes of tuples: the key that says to which partition or group a tuple belongs, and delta values.

Paper: Gedik 2014, sections 3.2 (partition-by attributes) and 3.3.2 (delta policies).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import datetime
from itertools import chain, islice
from operator import itemgetter, le
from typing import Any, Final

from panes.engine.keys import NAN
from panes.errors import DeclarationError, OrderError, SchemaError
from panes.operators.policies import Partitions, policy_text
from panes.operators.subwindow import Subwindow
from panes.queries.measures import Delta
from panes.timeline import parse_instant

WHOLE: Final = ()
"""The only partition of a window that is not partitioned."""


# Keys


class KeyReader:
    """Reads the value of one attribute, or a tuple of the values of several, equal where Spark says so.

    Nulls are a key of their own, and so are NaNs, which Python does not consider equal.

    Examples
    --------
    >>> by_state = KeyReader(["state"])
    >>> by_state({"state": "NY"})
    'NY'
    >>> by_place = KeyReader(["x", "y"])
    >>> by_place({"x": float("nan"), "y": 1}) == by_place({"x": float("nan"), "y": 1})
    True
    """

    __slots__ = ("_read", "_several")

    def __init__(self, attributes: Sequence[Any]) -> None:
        self._read = itemgetter(*attributes)
        self._several = len(attributes) > 1

    def __call__(self, item: Any) -> Hashable:
        """Return the key of a tuple."""
        key: Hashable = self._read(item)
        if self._several:
            return tuple([NAN if value != value else value for value in key])  # type: ignore[attr-defined]
        return key if key == key else NAN

    def places(self, items: Sequence[Any]) -> dict[Hashable, list[int]]:
        """Return the positions of the tuples of each key in a list, in the order in which keys first occur.

        Examples
        --------
        >>> dict(KeyReader(["state"]).places([{"state": "NY"}, {"state": "CT"}, {"state": "NY"}]))
        {'NY': [0, 2], 'CT': [1]}
        """
        places = _places(map(self._read, items))
        # Each NaN is a key of its own here: look at the distinct keys, not at every tuple.
        values = chain.from_iterable(places) if self._several else places  # type: ignore[arg-type]
        return _places(map(self, items)) if any(value != value for value in values) else places


def _places(keys: Iterable[Hashable]) -> dict[Hashable, list[int]]:
    places: defaultdict[Hashable, list[int]] = defaultdict(list)
    for place, key in enumerate(keys):
        places[key].append(place)
    return places


def partition_reader(partitioned: Partitions | None) -> Callable[[Any], Hashable]:
    """Return the function that finds the partition of a tuple."""
    if partitioned is None:
        return lambda _: WHOLE
    if not partitioned.by:
        return _missing_partition
    return KeyReader(partitioned.by)


def _missing_partition(item: object) -> Hashable:
    raise DeclarationError(
        "the window is partitioned by no attribute, so a tuple needs its partition: write insert(tuple, partition), or "
        "by='state'."
    )


# Delta attributes


class DeltaReader:
    """Reads the delta attribute of the arriving tuple once, and checks that it does not decrease.

    Parameters
    ----------
    latest
        The field of a subwindow that keeps the last value: eviction and trigger may use different attributes.
    """

    def __init__(self, policy: Delta, latest: str) -> None:
        self.policy = policy
        self.value: Any = None
        attribute: Callable[[Any], Any] = itemgetter(policy.column)
        self.read: Callable[[Any], Any] = attribute
        if policy.temporal:
            self.read = lambda item: _instant(attribute(item))
        self._latest = latest

    def look(self, item: Any, subwindow: Subwindow[Any] | None) -> None:
        """Store the value of a tuple in ``value``, or raise before anything has changed."""
        value = self.read(item)
        if value is None or value != value:
            raise SchemaError(
                f"a tuple has no value for {self.policy.column!r} (it is {value!r}), which {policy_text(self.policy)} "
                "is measured in. Leave such tuples out, or give them a value."
            )
        latest = None if subwindow is None else getattr(subwindow, self._latest)
        if latest is not None and value < latest:
            raise OrderError(
                f"{self.policy.column!r} fell from {latest!r} to {value!r}, and {policy_text(self.policy)} is measured "
                "in an attribute that never decreases within a partition. Sort the tuples first, as the progressive "
                "Sort does."
            )
        self.value = value

    def check(self, values: Sequence[Any]) -> None:
        """Raise unless each of these values could follow the previous one."""
        if not in_order(values) or values[0] is None or values[0] != values[0]:
            raise OrderError(f"{self.policy.column!r} falls, or has no value.")


def in_order(values: Sequence[Any]) -> bool:
    """Return whether values never decrease; a NaN is out of order.

    Examples
    --------
    >>> in_order([1, 1, 3]), in_order([1, float("nan"), 3])
    (True, False)
    """
    return all(map(le, values, islice(values, 1, None)))


def _instant(value: Any) -> Any:
    return parse_instant(value) if isinstance(value, datetime) else value
