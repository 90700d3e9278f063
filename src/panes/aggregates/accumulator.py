"""Aggregates of single tuples, one after another: what operators keep instead of the tuples of a window.

Paper: Gedik 2014, sections 4.1.6 and 4.1.8. The accumulators stand beside the aggregates whose answers they give: nulls
are skipped, NaN is larger than every number, and no variance comes from a sum of squares.

They are written by hand for speed. Derived from the algebra (lift, combine and lower of the components), one would take
100 to 430 times as long for each tuple; 1.6 to 4.5 times as long where 1,024 tuples are lifted together; and 15 to 100
times as long where every tuple is merged and looked up, as in a sliding window (``python -m benchmarks accumulators``).
``panes.testing.check_aggregate`` checks that they give the answers of the algebra.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias


class Accumulator(Protocol):
    """The summary of a part of a window. Merging is associative: the tuples of ``other`` came later."""

    def insert(self, item: Any) -> None:
        """Add a tuple."""

    def insert_all(self, items: Sequence[Any]) -> None:
        """Add tuples: the same as one after another, to the last digit."""

    def merge(self, other: Any) -> None:
        """Add the summary of later tuples, which is not changed."""

    def value(self) -> Any:
        """The answer so far; None where there is none."""


Start: TypeAlias = Callable[[], Accumulator]
"""Makes the accumulator of no tuples."""


def values_of(attribute: Any, items: Sequence[Any]) -> list[Any]:
    """The values of an attribute, without nulls."""
    return [value for item in items if (value := item[attribute]) is not None]


def holds_nan(values: Sequence[Any]) -> bool:
    """Whether a plain comparison might go wrong. If a number is NaN, so is the sum: no loop in Python.

    Examples
    --------
    >>> holds_nan([1.0, float("nan")]), holds_nan([1, 2]), holds_nan(["a", "b"])
    (True, False, False)
    """
    try:
        total = sum(values)
    except TypeError:
        return False
    return bool(total != total)


def order_key(value: Any) -> tuple[bool, Any]:
    """A value as Spark orders it: NaN after every number, and equal to itself.

    Examples
    --------
    >>> sorted([float("nan"), 1.0, 2.0], key=order_key)
    [1.0, 2.0, nan]
    """
    return (True, 0) if value != value else (False, value)


def state_of(accumulator: Accumulator) -> dict[str, Any]:
    """What an accumulator holds, as plain values.

    Examples
    --------
    >>> from panes.aggregates.sums import RunningMean
    >>> mean = RunningMean("x")
    >>> mean.insert({"x": 4}); state_of(mean)
    {'attribute': 'x', 'n': 1, 'total': 4}
    """
    names = (name for part in reversed(type(accumulator).__mro__) for name in getattr(part, "__slots__", ()))
    return {name: getattr(accumulator, name) for name in names}


def restore(accumulator: Accumulator, state: Mapping[str, Any]) -> None:
    """Make an accumulator what another one was when ``state_of`` looked at it."""
    for name, value in state.items():
        setattr(accumulator, name, value)
