"""The aggregates that an index serves: how each one's values are kept, and how candidates are found."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pyarrow as pa

from panes.aggregates.aggregate import Aggregate, is_number
from panes.aggregates.component import numbers
from panes.aggregates.integers import unscaled
from panes.aggregates.operations import Array
from panes.aggregates.ordering import ordered_bits
from panes.errors import DeclarationError, SchemaError
from panes.live.collective import MOST_EVENTS, Collective, Levels
from panes.live.conditions import Range
from panes.live.copies import FAR, RealCopies, WholeCopies
from panes.live.events_by_key import EventsByKey, Grouped
from panes.live.ragged import Integers
from panes.live.staircase import Staircase

Active = Callable[[], Integers]
"""All keys with an event since the window began."""

_INT64 = np.iinfo(np.int64)


def check_aggregate(aggregate: object) -> Aggregate:
    """Reject an aggregate that no index serves."""
    if isinstance(aggregate, Aggregate) and aggregate.indexed is not None:
        return aggregate
    raise DeclarationError(
        f"{aggregate} cannot have an index. Write pn.count(), pn.count(x), pn.sum(x), pn.max(x) or pn.min(x); without "
        "an index, live.find('spread > 3', over='15 min') scans all keys."
    )


def indexed(aggregate: Aggregate, type_: pa.DataType, levels: Levels) -> IndexedAggregate:
    """What an index keeps of an aggregate over an argument of some type."""
    if aggregate.indexed == "count":
        return IndexedCount(levels) if aggregate.arguments == ("1",) else IndexedSum(levels, None)
    if not is_number(type_):
        raise SchemaError(
            f"{aggregate} needs a number to compare with a threshold, but its argument is of type {type_}. Cast it, "
            "or aggregate another column."
        )
    if aggregate.indexed == "sum":
        return IndexedFloatSum(levels) if pa.types.is_floating(type_) else IndexedSum(levels, type_)
    return IndexedExtreme(str(aggregate), type_, least=aggregate.indexed == "min")


class IndexedAggregate(ABC):
    """What an index keeps of one aggregate of every key, and how it finds candidates.

    Attributes
    ----------
    held
        All events.
    """

    held: EventsByKey

    @abstractmethod
    def read(self, argument: pa.Array) -> tuple[Array | None, Array | None]:
        """An argument as values (None where rows are only counted), and which rows have one (None for all)."""

    @abstractmethod
    def renewed(self, values: Array | None) -> IndexedAggregate:
        """The same without events, ready for values like these."""

    @abstractmethod
    def extend(self, keys: int) -> None:
        """Have room for so many keys, numbered from 0."""

    @abstractmethod
    def clear(self, keys: Integers) -> None:
        """Drop all events of some keys."""

    @abstractmethod
    def insert(self, new: Grouped) -> None:
        """Add events, none of them earlier than one that its key has."""

    @abstractmethod
    def candidates(self, wanted: Range, first: int, active: Active, *, suffix: bool) -> Integers:
        """All keys whose answer may be in a range, over a window from ``first`` on.

        Parameters
        ----------
        suffix
            Whether the window holds everything from there on.
        """

    def suits(self, values: Array | None) -> bool:
        """Whether the index is made for values like these; others make it slower, not wrong."""
        return True

    @property
    def full(self) -> bool:
        """Whether positions may overflow soon, so that they have to begin anew."""
        return False


class _Amounts(IndexedAggregate):
    """Counts and sums: a collective index gives candidates."""

    def __init__(self, levels: Levels, value: float | None) -> None:
        self._levels = levels
        self.held, self.index = EventsByKey(value), Collective(levels)

    def extend(self, keys: int) -> None:
        self.held.extend(keys)
        self.index.extend(keys)

    def clear(self, keys: Integers) -> None:
        self.held.clear(keys)
        self.index.clear(keys)

    def insert(self, new: Grouped) -> None:
        self.held.append(new)
        self.index.insert(new.keys, new.counts, new.times, self._copies_of(new.values))

    def candidates(self, wanted: Range, first: int, active: Active, *, suffix: bool) -> Integers:
        at_least, at_most = self._bounds(wanted)
        keys = active() if at_least <= 0 else self.index.at_least(at_least, first)
        # Of a window that has ended, the one up to now may hold any number more.
        return keys if at_most is None or not suffix else self.index.not_more(at_most, first, keys)

    @property
    def full(self) -> bool:
        return self.index.longest >= MOST_EVENTS

    @abstractmethod
    def _copies_of(self, values: Array | None) -> Integers | None:
        """How often each event counts; None for once."""

    @abstractmethod
    def _bounds(self, wanted: Range) -> tuple[int, int | None]:
        """The fewest and the most copies of an answer in a range; None without such a bound."""


class IndexedCount(_Amounts):
    """``count()``."""

    def __init__(self, levels: Levels) -> None:
        super().__init__(levels, None)

    def read(self, argument: pa.Array) -> tuple[Array | None, Array | None]:  # noqa: D102
        return None, None

    def renewed(self, values: Array | None) -> IndexedCount:  # noqa: D102
        return IndexedCount(self._levels)

    def _copies_of(self, values: Array | None) -> None:
        return None

    def _bounds(self, wanted: Range) -> tuple[int, int | None]:
        at_least, at_most = _whole(wanted)
        return min(at_least or 0, FAR), None if at_most is None or at_most >= FAR else max(0, at_most)


class IndexedSum(_Amounts):
    """``sum(x)`` of integers and decimals, and ``count(x)``, which sums 0 and 1.

    Parameters
    ----------
    type_
        That of the argument; None for ``count(x)``, of any type.
    """

    def __init__(self, levels: Levels, type_: pa.DataType | None) -> None:
        super().__init__(levels, 0)
        self._type = type_
        self._copies = WholeCopies()

    def read(self, argument: pa.Array) -> tuple[Array | None, Array | None]:  # noqa: D102
        valid = _valid(argument)
        if self._type is None:
            return (np.ones(len(argument), np.int64) if valid is None else valid.astype(np.int64)), None
        if pa.types.is_decimal(argument.type):
            return unscaled(argument), valid
        return numbers(argument).astype(np.int64, copy=False), valid

    def renewed(self, values: Array | None) -> IndexedSum:  # noqa: D102
        fresh = IndexedSum(self._levels, self._type)
        if values is not None and len(values):
            fresh._copies.fit(values)
        return fresh

    def suits(self, values: Array | None) -> bool:  # noqa: D102
        return values is None or self._copies.fits(values)

    def _copies_of(self, values: Array | None) -> Integers:
        assert values is not None
        return self._copies.of(values)

    def _bounds(self, wanted: Range) -> tuple[int, int | None]:
        at_least, at_most = _whole(wanted, _scale(self._type))
        return self._copies.at_least(at_least), self._copies.at_most(at_most, self.held.longest)


class IndexedFloatSum(_Amounts):
    """``sum(x)`` of floats."""

    def __init__(self, levels: Levels) -> None:
        super().__init__(levels, 0.0)
        self._copies = RealCopies()

    def read(self, argument: pa.Array) -> tuple[Array | None, Array | None]:  # noqa: D102
        return numbers(argument.cast(pa.float64()), 0.0), _valid(argument)

    def renewed(self, values: Array | None) -> IndexedFloatSum:  # noqa: D102
        fresh = IndexedFloatSum(self._levels)
        if values is not None:
            fresh._copies.fit(values)
        return fresh

    def suits(self, values: Array | None) -> bool:  # noqa: D102
        return values is None or self._copies.fits(values)

    def _copies_of(self, values: Array | None) -> Integers:
        assert values is not None
        return self._copies.of(values)

    def _bounds(self, wanted: Range) -> tuple[int, int | None]:
        longest = self.held.longest
        return self._copies.at_least(wanted.above, longest), self._copies.at_most(wanted.below, longest)


class IndexedExtreme(IndexedAggregate):
    """``max(x)``, and ``min(x)`` with the order reversed: a staircase gives exactly the right keys.

    Values are 64-bit integers in their order: integers and decimals as they are, floats by their bits.
    """

    def __init__(self, name: str, type_: pa.DataType, *, least: bool) -> None:
        self._name, self._type, self._least = name, type_, least
        self._real = pa.types.is_floating(type_)
        self.held, self._index = EventsByKey(0), Staircase()

    def read(self, argument: pa.Array) -> tuple[Array | None, Array | None]:  # noqa: D102
        if self._real:
            values = ordered_bits(numbers(argument.cast(pa.float64()), 0.0))
        elif pa.types.is_decimal(argument.type):
            values = unscaled(argument)
        else:
            values = numbers(argument).astype(np.int64, copy=False)
        if values.dtype == object:
            raise SchemaError(
                f"{self._name} has values of more than 18 digits, and an index of extremes takes 64 bits. Cast the "
                "argument to a DECIMAL of up to 18 digits, or to DOUBLE."
            )
        return (~values if self._least else values), _valid(argument)

    def renewed(self, values: Array | None) -> IndexedExtreme:  # noqa: D102
        return IndexedExtreme(self._name, self._type, least=self._least)

    def extend(self, keys: int) -> None:  # noqa: D102
        self.held.extend(keys)
        self._index.extend(keys)

    def clear(self, keys: Integers) -> None:  # noqa: D102
        self.held.clear(keys)
        self._index.clear(keys)

    def insert(self, new: Grouped) -> None:  # noqa: D102
        assert new.values is not None
        self.held.append(new)
        self._index.insert(new.keys, new.counts, new.times, new.values)

    def candidates(self, wanted: Range, first: int, active: Active, *, suffix: bool) -> Integers:  # noqa: D102
        at_least, at_most = self._codes(wanted)
        if at_least is None or at_least <= _INT64.min:
            keys = active()
        elif at_least > _INT64.max:
            return np.zeros(0, np.int64)
        else:
            keys = self._index.above(at_least - 1, first)
        if at_most is None or at_most >= _INT64.max or not suffix:
            return keys
        if at_most < _INT64.min:
            return keys[:0]
        return keys[self._index.newest(at_most, keys) < first]

    def _codes(self, wanted: Range) -> tuple[int | None, int | None]:
        """The smallest and the largest code in a range."""
        if self._real:
            above, below = (None if end is None else _code_of(end) for end in (wanted.above, wanted.below))
            low, high = None if above is None else above + 1, None if below is None else below - 1
        else:
            low, high = _whole(wanted, _scale(self._type))
        if self._least:
            low, high = None if high is None else ~high, None if low is None else ~low
        return low, high


def _whole(wanted: Range, scale: int = 0) -> tuple[int | None, int | None]:
    """The smallest and the largest value in a range, of values kept as integers of so many decimal places.

    Examples
    --------
    >>> _whole(Range("n", above=10)), _whole(Range("total", 0.5, 9.75), scale=1)
    ((11, None), (6, 97))
    """
    low, high = (None if end is None else Fraction(end) * 10**scale for end in (wanted.above, wanted.below))
    return None if low is None else math.floor(low) + 1, None if high is None else math.ceil(high) - 1


def _scale(type_: pa.DataType | None) -> int:
    return type_.scale if type_ is not None and pa.types.is_decimal(type_) else 0


def _code_of(value: float) -> int:
    return int(ordered_bits(np.array([value]))[0])


def _valid(argument: pa.Array) -> Array | None:
    return argument.is_valid().to_numpy(zero_copy_only=False) if argument.null_count else None
