"""The summary of a sliding window that is processed with every tuple: two stacks of partial summaries.

==========  =====================================================================================================
requires    accumulators that can be merged; tuples leave in the order in which they came
costs       three insertions or merges for each tuple, amortised, instead of one for each tuple in the window
paper       Gedik 2014, section 6.1.1: Aggregate hears what is inserted and evicted
==========  =====================================================================================================

Nothing is ever subtracted, so that sums of floats lose nothing, and any aggregate that can be merged will do. The back
summarizes what came since the front was last built. The front has a summary for each tuple in it: of this tuple and all
later ones of the front.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import Any, Protocol

from panes.errors import AnswerOverflowError

# Aggregates of single tuples, one after another: what summarizers keep, and what can be merged.
#
# Paper: Gedik 2014, sections 4.1.6 and 4.1.8. The answers are those of the aggregates of the same name in
# ``panes.aggregates``, which work on columns: nulls are passed over, NaN is larger than every number, variances never
# come from a sum of squares, and a whole sum that does not fit its type is an error.


class Accumulator(Protocol):
    """A part of a window, summarized. Merging is associative: the tuples of ``other`` came later."""

    def insert(self, item: Any) -> None:
        """Take in a tuple."""

    def insert_all(self, items: Sequence[Any]) -> None:
        """Take in tuples: the same as one after another, to the last digit."""

    def merge(self, other: Any) -> None:
        """Take in the summary of later tuples, which is not changed."""

    def value(self) -> Any:
        """The answer so far; None where there is none."""


class CountAll:
    """How many tuples."""

    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0

    def insert(self, item: Any) -> None:
        """Count it."""
        self.n += 1

    def insert_all(self, items: Sequence[Any]) -> None:
        """Count them."""
        self.n += len(items)

    def merge(self, other: CountAll) -> None:
        """Add."""
        self.n += other.n

    def value(self) -> int:
        """The count."""
        return self.n


class CountOfValues(CountAll):
    """How many tuples have a value."""

    __slots__ = ("attribute",)

    def __init__(self, attribute: str) -> None:
        super().__init__()
        self.attribute = attribute

    def insert(self, item: Any) -> None:
        """Count it, unless it has none."""
        if item[self.attribute] is not None:
            self.n += 1

    def insert_all(self, items: Sequence[Any]) -> None:
        """Count those that have one."""
        self.n += len(_values(self.attribute, items))


class Total:
    """The sum of values and how many there are."""

    __slots__ = ("attribute", "n", "total")

    def __init__(self, attribute: str) -> None:
        self.attribute = attribute
        self.n = 0
        self.total: Any = 0

    def insert(self, item: Any) -> None:
        """Add."""
        value = item[self.attribute]
        if value is not None:
            self.total += value
            self.n += 1

    def insert_all(self, items: Sequence[Any]) -> None:
        """Add them, one after another: ``sum`` may round floats in another way."""
        values = _values(self.attribute, items)
        self.total = reduce(add, values, self.total)
        self.n += len(values)

    def merge(self, other: Total) -> None:
        """Add."""
        self.total += other.total
        self.n += other.n

    def value(self) -> Any:
        """The sum; None of nothing."""
        if not self.n:
            return None
        if isinstance(self.total, int) and not -(2**63) <= self.total < 2**63:
            raise AnswerOverflowError(
                f"sum({self.attribute}) is {self.total}, more than 64 bits hold. Sum it as a float or a Decimal."
            )
        return self.total


class Mean(Total):
    """The arithmetic mean."""

    __slots__ = ()

    def value(self) -> Any:
        """The mean; None of nothing."""
        return self.total / self.n if self.n else None


class Smallest:
    """The smallest value."""

    __slots__ = ("attribute", "best")

    def __init__(self, attribute: str) -> None:
        self.attribute = attribute
        self.best: Any = None

    def insert(self, item: Any) -> None:
        """Compare."""
        self._offer(item[self.attribute])

    def insert_all(self, items: Sequence[Any]) -> None:
        """Compare with the best of them."""
        values = _values(self.attribute, items)
        if values:
            self._offer(self._best(values))

    def _best(self, values: list[Any]) -> Any:
        # NaN is smaller than nothing, so it stays only where it is the first.
        smallest = min(values)
        return smallest if smallest == smallest else min(values, key=ordered)

    def merge(self, other: Smallest) -> None:
        """Compare."""
        self._offer(other.best)

    def _offer(self, value: Any) -> None:
        if value is not None and (self.best is None or value < self.best or self.best != self.best):
            self.best = value

    def value(self) -> Any:
        """The smallest so far."""
        return self.best


class Largest(Smallest):
    """The largest value."""

    __slots__ = ()

    def _best(self, values: list[Any]) -> Any:
        return max(values, key=ordered) if holds_nan(values) else max(values)

    def _offer(self, value: Any) -> None:
        if value is not None and (self.best is None or value > self.best or value != value):
            self.best = value


class Variance:
    """The variance or its root, by Welford's and Chan's methods."""

    __slots__ = ("attribute", "ddof", "m2", "mean", "n", "root")

    def __init__(self, attribute: str, ddof: int, root: bool) -> None:
        self.attribute, self.ddof, self.root = attribute, ddof, root
        self.n, self.mean, self.m2 = 0, 0.0, 0.0

    def insert(self, item: Any) -> None:
        """Move the mean towards the value."""
        value = item[self.attribute]
        if value is not None:
            self.n += 1
            away = float(value) - self.mean
            self.mean += away / self.n
            self.m2 += away * (float(value) - self.mean)

    def insert_all(self, items: Sequence[Any]) -> None:
        """Move the mean towards each of the values."""
        n, mean, m2 = self.n, self.mean, self.m2
        for value in map(float, _values(self.attribute, items)):
            n += 1
            away = value - mean
            mean += away / n
            m2 += away * (value - mean)
        self.n, self.mean, self.m2 = n, mean, m2

    def merge(self, other: Variance) -> None:
        """Weigh both means."""
        if not other.n:
            return
        n = self.n + other.n
        away = other.mean - self.mean
        self.m2 += other.m2 + away * away * self.n * other.n / n
        self.mean += away * other.n / n
        self.n = n

    def value(self) -> float | None:
        """The variance; None of too few values."""
        if self.n <= self.ddof:
            return None
        variance = self.m2 / (self.n - self.ddof)
        return math.sqrt(variance) if self.root else variance


class Pick:
    """The value where another one is smallest or largest; ties are broken by value."""

    __slots__ = ("attribute", "best", "by", "largest", "rank")

    def __init__(self, attribute: str, by: str, largest: bool) -> None:
        self.attribute, self.by, self.largest = attribute, by, largest
        self.rank: Any = None
        self.best: Any = None

    def insert(self, item: Any) -> None:
        """Compare."""
        value, order = item[self.attribute], item[self.by]
        if value is not None and order is not None:
            self._offer((ordered(order), ordered(value)), value)

    def insert_all(self, items: Sequence[Any]) -> None:
        """Compare."""
        for item in items:
            self.insert(item)

    def merge(self, other: Pick) -> None:
        """Compare."""
        if other.rank is not None:
            self._offer(other.rank, other.best)

    def _offer(self, rank: Any, value: Any) -> None:
        if self.rank is None or (rank > self.rank if self.largest else rank < self.rank):
            self.rank, self.best = rank, value

    def value(self) -> Any:
        """The value picked so far."""
        return self.best


def _values(attribute: str, items: Sequence[Any]) -> list[Any]:
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


def state_of(accumulator: Accumulator) -> dict[str, Any]:
    """What an accumulator has taken in, as plain values.

    Examples
    --------
    >>> mean = Mean("x")
    >>> mean.insert({"x": 4}); state_of(mean)
    {'attribute': 'x', 'n': 1, 'total': 4}
    """
    names = (name for part in reversed(type(accumulator).__mro__) for name in getattr(part, "__slots__", ()))
    return {name: getattr(accumulator, name) for name in names}


def ordered(value: Any) -> tuple[bool, Any]:
    """A value as Spark orders it: NaN after every number, and equal to itself.

    Examples
    --------
    >>> sorted([float("nan"), 1.0, 2.0], key=ordered)
    [1.0, 2.0, nan]
    """
    return (True, 0) if value != value else (False, value)


class TwoStacks:
    """Follows a window, and has its values at hand.

    Examples
    --------
    >>> from functools import partial
    >>> from panes.operators.accumulators import Largest
    >>> window = TwoStacks([partial(Largest, "x")])
    >>> for x in (5, 1, 3):
    ...     window.insert({"x": x})
    >>> window.evict(); window.values()
    [3]
    """

    __slots__ = ("_back", "_front", "_items", "_starts")

    def __init__(self, starts: Sequence[Callable[[], Accumulator]]) -> None:
        self._starts = starts
        self._front: list[list[Accumulator]] = []
        self._items: list[Any] = []
        self._back = [start() for start in starts]

    def insert(self, item: Any) -> None:
        """A tuple came into the window."""
        self._items.append(item)
        for accumulator in self._back:
            accumulator.insert(item)

    def evict(self) -> None:
        """The oldest tuple left the window."""
        if not self._front:
            self._turn()
        self._front.pop()

    def values(self) -> list[Any]:
        """The answers over the window."""
        if not self._front:
            return [back.value() for back in self._back]
        answers = []
        for start, front, back in zip(self._starts, self._front[-1], self._back, strict=True):
            whole = start()
            whole.merge(front)
            whole.merge(back)
            answers.append(whole.value())
        return answers

    def _turn(self) -> None:
        """Make the back the front: from the newest tuple to the oldest, each with what came after it."""
        later: list[Accumulator] = []
        for item in reversed(self._items):
            summary = [start() for start in self._starts]
            for accumulator in summary:
                accumulator.insert(item)
            for accumulator, other in zip(summary, later, strict=False):
                accumulator.merge(other)
            self._front.append(summary)
            later = summary
        self._items = []
        self._back = [start() for start in self._starts]
