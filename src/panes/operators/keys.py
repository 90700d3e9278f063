"""What tells partitions and groups apart: the values of some attributes, as Spark compares them.

Paper: Gedik 2014, section 3.2: partition-by attributes. Nulls are a partition of their own, and so are NaN, which are
equal here although they are not to Python.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

from panes.engine.nan import NAN


class KeyReader:
    """Reads the value of one attribute, or a tuple of the values of several.

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
        """The key of a tuple."""
        key: Hashable = self._read(item)
        if self._several:
            return tuple([NAN if value != value else value for value in key])  # type: ignore[attr-defined]
        return key if key == key else NAN

    def places(self, items: Sequence[Any]) -> dict[Hashable, list[int]]:
        """Where in a list the tuples of each key are, keys in the order in which they first occur.

        Examples
        --------
        >>> dict(KeyReader(["state"]).places([{"state": "NY"}, {"state": "CT"}, {"state": "NY"}]))
        {'NY': [0, 2], 'CT': [1]}
        """
        places = _places(map(self._read, items))
        # NaN are told apart here, each by itself: look at the keys that occur, not at every tuple.
        values = chain.from_iterable(places) if self._several else places  # type: ignore[arg-type]
        return _places(map(self, items)) if any(value != value for value in values) else places


def _places(keys: Iterable[Hashable]) -> dict[Hashable, list[int]]:
    places: defaultdict[Hashable, list[int]] = defaultdict(list)
    for place, key in enumerate(keys):
        places[key].append(place)
    return places
