"""What tells partitions and groups apart: the values of some attributes, as Spark compares them.

Paper: Gedik 2014, section 3.2: partition-by attributes. Nulls are a partition of their own, and so are NaN, which are
equal here although they are not to Python.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from operator import itemgetter
from typing import Any


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


class NotANumber(float):
    """NaN of which there is one, also after it was stored: a dictionary finds what is identical, if not equal."""

    def __reduce__(self) -> str:
        return "NAN"


NAN = NotANumber("nan")
