"""The aggregates that a threshold can be put on: how values are kept, found and answered, one class for each kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa

from panes.aggregates.aggregates import Aggregate, CountOf, MaxOf, MinOf, SumOf, is_number
from panes.aggregates.component import numbers
from panes.aggregates.integers import decimals, unscaled, within_bigint
from panes.aggregates.operations import Array
from panes.aggregates.ordering import floats_of, from_integers, ordered_bits
from panes.aggregates.sums import sum_type
from panes.errors import DeclarationError, SchemaError
from panes.live.collective import MOST_ELEMENTS, Collective
from panes.live.staircase import Staircase
from panes.live.substreams import Integers, Levels
from panes.live.threshold_history import Grouped, History
from panes.live.threshold_values import FAR, Asked, RealCopies, RealRange, WholeCopies, WholeRange, nearest_double

Active = Callable[[], Integers]
"""All substreams with an element since the begin of a window."""

_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True, slots=True)
class Window:
    """The instants ``[first, last]``, and whether no element is later."""

    first: int
    last: int
    suffix: bool


def check_aggregate(aggregate: object) -> Aggregate:
    """Refuse what no collective index serves."""
    if isinstance(aggregate, (CountOf, SumOf, MaxOf, MinOf)):
        return aggregate
    raise DeclarationError(
        f"{aggregate} has no index of thresholds. Write pn.count(), pn.count(x), pn.sum(x), pn.max(x) or pn.min(x); "
        "others can have a condition in a query, as pn.query(..., having='spread > 3')."
    )


def measure_of(aggregate: Aggregate, type_: pa.DataType, levels: Levels) -> Measure:
    """How an aggregate over an argument of some type is kept."""
    if isinstance(aggregate, CountOf):
        return Counts(levels) if aggregate.arguments == ("1",) else Sums(levels, str(aggregate), None, pa.int64())
    if not is_number(type_):
        raise SchemaError(
            f"{aggregate} needs a number to compare with a threshold, but its argument is of type {type_}. Cast it, "
            "or aggregate another column."
        )
    if isinstance(aggregate, SumOf):
        kind = RealSums if pa.types.is_floating(type_) else Sums
        return kind(levels, str(aggregate), type_, sum_type(type_))
    return Peaks(str(aggregate), type_, least=isinstance(aggregate, MinOf))


class Measure(ABC):
    """What is kept of the values of all substreams, and how a lookup uses it.

    Attributes
    ----------
    history
        All elements.
    """

    history: History

    @abstractmethod
    def read(self, argument: pa.Array) -> tuple[Array | None, Array | None]:
        """An argument as values (None where rows are only counted), and which rows have one (None for all)."""

    @abstractmethod
    def renewed(self, values: Array | None) -> Measure:
        """The same with nothing in it, ready for values like these."""

    @abstractmethod
    def extend(self, keys: int) -> None:
        """Have at least so many substreams, numbered from 0."""

    @abstractmethod
    def forget(self, keys: Integers) -> None:
        """Empty some substreams."""

    @abstractmethod
    def insert(self, new: Grouped) -> None:
        """Take in elements, none of them earlier than one that its substream has."""

    @abstractmethod
    def candidates(self, asked: Asked, window: Window, active: Active) -> Integers:
        """All substreams whose answer over a window may be in a range."""

    @abstractmethod
    def answers(self, asked: Asked, window: Window, keys: Integers) -> tuple[Integers, pa.Array]:
        """Those of some substreams whose answer over a window is in a range, and their answers."""

    def suits(self, values: Array | None) -> bool:
        """Whether the index is made for values like these; others make it slower, not wrong."""
        return True

    @property
    def full(self) -> bool:
        """Whether positions might overflow, so that they have to begin anew."""
        return False


class Totals(Measure):
    """Counts and sums: CI-COUNT or CI-SUM gives candidates, R-INT their answers.

    Attributes
    ----------
    index
        The collective index.
    """

    def __init__(self, levels: Levels, history: History) -> None:
        self.history, self.index = history, Collective(levels)

    def extend(self, keys: int) -> None:  # noqa: D102
        self.history.extend(keys)
        self.index.extend(keys)

    def forget(self, keys: Integers) -> None:  # noqa: D102
        self.history.forget(keys)
        self.index.forget(keys)

    def insert(self, new: Grouped) -> None:  # noqa: D102
        self.history.append(new)
        self.index.insert(new.keys, new.counts, new.times, self._copies_of(new.values))

    def candidates(self, asked: Asked, window: Window, active: Active) -> Integers:  # noqa: D102
        at_least, at_most = self._bounds(asked)
        keys = active() if at_least <= 0 else self.index.at_least(at_least, window.first)
        # Of a window that has ended, the one up to now may hold any number more.
        return keys if at_most is None or not window.suffix else self.index.not_more(at_most, window.first, keys)

    def answers(self, asked: Asked, window: Window, keys: Integers) -> tuple[Integers, pa.Array]:  # noqa: D102
        lo, hi = self.history.bounds(keys, window.first, None if window.suffix else window.last)
        there = np.flatnonzero(hi > lo)
        keys = keys[there]
        values = self._between(keys, lo[there], hi[there])
        held = np.flatnonzero(self._held(asked, values))
        return keys[held], self._shown(values[held])

    @property
    def full(self) -> bool:  # noqa: D102
        return self.index.longest >= MOST_ELEMENTS

    @abstractmethod
    def _copies_of(self, values: Array | None) -> Integers | None:
        """How often each element counts; None for once."""

    @abstractmethod
    def _bounds(self, asked: Asked) -> tuple[int, int | None]:
        """How many copies there are at least where an answer is in a range, and at most (None if nobody knows)."""

    @abstractmethod
    def _between(self, keys: Integers, lo: Integers, hi: Integers) -> Array:
        """Answers between bounds that hold an element."""

    @abstractmethod
    def _held(self, asked: Asked, values: Array) -> Array:
        """Which answers are in a range."""

    @abstractmethod
    def _shown(self, values: Array) -> pa.Array:
        """Answers as they come out."""


class Counts(Totals):
    """``count()``."""

    def __init__(self, levels: Levels) -> None:
        super().__init__(levels, History(running=False))
        self._levels = levels

    def read(self, argument: pa.Array) -> tuple[Array | None, Array | None]:  # noqa: D102
        return None, None

    def renewed(self, values: Array | None) -> Counts:  # noqa: D102
        return Counts(self._levels)

    def _copies_of(self, values: Array | None) -> None:
        return None

    def _bounds(self, asked: Asked) -> tuple[int, int | None]:
        range_ = WholeRange.of(asked)
        at_most = range_.at_most
        return min(range_.at_least or 0, FAR), None if at_most is None or at_most >= FAR else max(0, at_most)

    def _between(self, keys: Integers, lo: Integers, hi: Integers) -> Array:
        return hi - lo

    def _held(self, asked: Asked, values: Array) -> Array:
        return WholeRange.of(asked).holds(values)

    def _shown(self, values: Array) -> pa.Array:
        return pa.array(values, pa.int64())


C = TypeVar("C", WholeCopies, RealCopies)


class Copied(Totals, Generic[C]):
    """Sums, whose elements count as often as their values say."""

    _copies: C

    def suits(self, values: Array | None) -> bool:  # noqa: D102
        return values is None or self._copies.fits(values)

    def _copies_of(self, values: Array | None) -> Integers | None:
        assert values is not None
        return self._copies.of(values)


class Sums(Copied[WholeCopies]):
    """``sum(x)`` of integers and decimals, and ``count(x)``, which sums 0 and 1.

    Parameters
    ----------
    argument
        Its type; None for ``count(x)``, of any type.
    """

    def __init__(self, levels: Levels, name: str, argument: pa.DataType | None, type_: pa.DataType) -> None:
        super().__init__(levels, History(running=True))
        self._levels, self._name, self._argument, self._type = levels, name, argument, type_
        self._scale = type_.scale if pa.types.is_decimal(type_) else 0
        self._copies = WholeCopies()

    def read(self, argument: pa.Array) -> tuple[Array | None, Array | None]:  # noqa: D102
        valid = _valid(argument)
        if self._argument is None:
            return (np.ones(len(argument), np.int64) if valid is None else valid.astype(np.int64)), None
        if pa.types.is_decimal(argument.type):
            return unscaled(argument), valid
        return numbers(argument).astype(np.int64, copy=False), valid

    def renewed(self, values: Array | None) -> Sums:  # noqa: D102
        fresh = Sums(self._levels, self._name, self._argument, self._type)
        if values is not None and len(values):
            fresh._copies.fit(values)
        return fresh

    def _bounds(self, asked: Asked) -> tuple[int, int | None]:
        range_, longest = WholeRange.of(asked, self._scale), self.history.longest
        return self._copies.at_least(range_), self._copies.at_most(range_, longest)

    def _between(self, keys: Integers, lo: Integers, hi: Integers) -> Array:
        return self.history.sums(keys, lo, hi)

    def _held(self, asked: Asked, values: Array) -> Array:
        return WholeRange.of(asked, self._scale).holds(values)

    def _shown(self, values: Array) -> pa.Array:
        if pa.types.is_decimal(self._type):
            return decimals(values, None, self._type, self._name)
        return pa.array(within_bigint(values, self._name), pa.int64())


class RealSums(Copied[RealCopies]):
    """``sum(x)`` of floats, which are only ever added up."""

    def __init__(self, levels: Levels, name: str, argument: pa.DataType, type_: pa.DataType) -> None:
        super().__init__(levels, History(running=False, folded=np.add, real=True))
        self._declared = levels, name, argument, type_
        self._copies = RealCopies()

    def read(self, argument: pa.Array) -> tuple[Array | None, Array | None]:  # noqa: D102
        return numbers(argument.cast(pa.float64()), 0.0), _valid(argument)

    def renewed(self, values: Array | None) -> RealSums:  # noqa: D102
        fresh = RealSums(*self._declared)
        if values is not None:
            fresh._copies.fit(values)
        return fresh

    def _bounds(self, asked: Asked) -> tuple[int, int | None]:
        range_, longest = RealRange.of(asked), self.history.longest
        return self._copies.at_least(range_, longest), self._copies.at_most(range_, longest)

    def _between(self, keys: Integers, lo: Integers, hi: Integers) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return self.history.folds(keys, lo, hi)

    def _held(self, asked: Asked, values: Array) -> Array:
        return RealRange.of(asked).holds(values)

    def _shown(self, values: Array) -> pa.Array:
        return pa.array(values, pa.float64())


class Peaks(Measure):
    """``max(x)``, and ``min(x)`` with the order reversed: CI-MAX, which is exact.

    Values are 64-bit integers in their order: integers and decimals as they are, doubles by their bits.
    """

    def __init__(self, name: str, type_: pa.DataType, *, least: bool) -> None:
        self._name, self._type, self._least = name, type_, least
        self._real = pa.types.is_floating(type_)
        self._scale = type_.scale if pa.types.is_decimal(type_) else 0
        self.history, self._index = History(running=False, folded=np.maximum), Staircase()

    def read(self, argument: pa.Array) -> tuple[Array | None, Array | None]:  # noqa: D102
        if self._real:
            values = ordered_bits(numbers(argument.cast(pa.float64()), 0.0))
        elif pa.types.is_decimal(argument.type):
            values = unscaled(argument)
        else:
            values = numbers(argument).astype(np.int64, copy=False)
        if values.dtype == object:
            raise SchemaError(
                f"{self._name} has values of more than 18 digits, and thresholds of extremes take 64 bits. Cast the "
                "argument to a DECIMAL of up to 18 digits, or to DOUBLE."
            )
        return (~values if self._least else values), _valid(argument)

    def renewed(self, values: Array | None) -> Peaks:  # noqa: D102
        return Peaks(self._name, self._type, least=self._least)

    def extend(self, keys: int) -> None:  # noqa: D102
        self.history.extend(keys)
        self._index.extend(keys)

    def forget(self, keys: Integers) -> None:  # noqa: D102
        self.history.forget(keys)
        self._index.forget(keys)

    def insert(self, new: Grouped) -> None:  # noqa: D102
        assert new.values is not None
        self.history.append(new)
        self._index.insert(new.keys, new.counts, new.times, new.values)

    def candidates(self, asked: Asked, window: Window, active: Active) -> Integers:  # noqa: D102
        range_ = self._range(asked)
        if range_.at_least is None or range_.at_least <= _INT64.min:
            keys = active()
        elif range_.at_least > _INT64.max:
            return np.zeros(0, np.int64)
        else:
            keys = self._index.above(range_.at_least - 1, window.first)
        if range_.at_most is None or range_.at_most >= _INT64.max or not window.suffix:
            return keys
        if range_.at_most < _INT64.min:
            return keys[:0]
        return keys[self._index.newest(range_.at_most, keys) < window.first]

    def answers(self, asked: Asked, window: Window, keys: Integers) -> tuple[Integers, pa.Array]:  # noqa: D102
        if window.suffix:
            values: Array = self._index.largest(keys, window.first)
        else:
            lo, hi = self.history.bounds(keys, window.first, window.last)
            there = np.flatnonzero(hi > lo)
            keys = keys[there]
            values = self.history.folds(keys, lo[there], hi[there])
        held = np.flatnonzero(self._range(asked).holds(values))
        return keys[held], self._shown(values[held])

    def _range(self, asked: Asked) -> WholeRange:
        if self._real:
            above, below = (None if v is None else _order_of(nearest_double(v)) for v in (asked.above, asked.below))
            range_ = WholeRange(None if above is None else above + 1, None if below is None else below - 1)
        else:
            range_ = WholeRange.of(asked, self._scale)
        if not self._least:
            return range_
        low, high = range_.at_least, range_.at_most
        return WholeRange(None if high is None else ~high, None if low is None else ~low)

    def _shown(self, codes: Array) -> pa.Array:
        values = ~codes if self._least else codes
        if self._real:
            return pa.array(floats_of(values)).cast(self._type)
        if pa.types.is_decimal(self._type):
            return decimals(values, None, self._type, self._name)
        return from_integers(values, None, self._type)


def _order_of(value: float) -> int:
    return int(ordered_bits(np.array([value]))[0])


def _valid(argument: pa.Array) -> Array | None:
    return argument.is_valid().to_numpy(zero_copy_only=False) if argument.null_count else None
