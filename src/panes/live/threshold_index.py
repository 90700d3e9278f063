"""An index of one output column: which keys may have a count, sum, maximum or minimum beyond a threshold?

Paper: Arasu and Widom, Resource Sharing in Continuous Sliding-Window Aggregates (2004), section 4. Its substreams are
keys here, and its elements events.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Final

import numpy as np
import pyarrow as pa

from panes.aggregates.aggregate import Aggregate, is_number
from panes.aggregates.component import numbers
from panes.aggregates.integers import unscaled
from panes.aggregates.operations import Array, State
from panes.aggregates.ordering import ordered_bits
from panes.engine.columns import whole
from panes.errors import DeclarationError, SchemaError
from panes.expressions.evaluate import evaluate, result_type
from panes.expressions.expression import expression
from panes.frames.positions import Integers
from panes.live.collective import Collective, Levels
from panes.live.conditions import Range
from panes.live.copies import Copies
from panes.live.rings import SlotColumn
from panes.live.staircase import Staircase
from panes.live.store import Store
from panes.queries.query import Query

_P: Final = 4

_AT_ONCE: Final = 1 << 24
"""Rows that may be added to present ones, so that their copies are 64-bit integers: 2^60 at most."""

_MOST_COPIES: Final = 1 << 61
"""Copies that a key may have had before rows are added."""

_OFTEN: Final = 4
"""A new unit of copies takes reading all rows, and is worth it once so large a part of them does not suit it: 1/4."""


def threshold_index(query: Query, alias: str, p: int | None = None, epsilon: float | None = None) -> ThresholdIndex:
    """An index of an output column; see ``Live.add_index``."""
    aggregate = dict(query.aggregates)[alias]
    if aggregate.indexed is None:
        raise DeclarationError(
            f"{aggregate} cannot have an index. Write pn.count(), pn.count(x), pn.sum(x), pn.max(x) or pn.min(x); "
            "without an index, live.find('spread > 3', over='15 min') scans all keys."
        )
    if not query.by:
        raise DeclarationError(
            f"query {query.name!r} has no key, and an index finds a few keys among many. Write by='card'."
        )
    if p is not None and epsilon is not None:
        raise DeclarationError("p= and epsilon= say the same thing. Give one of them.")
    if not aggregate.idempotent:
        return AmountIndex(aggregate, Levels(_P if p is None else p) if epsilon is None else Levels.within(epsilon))
    if p is not None or epsilon is not None:
        raise DeclarationError(f"the index of {aggregate} is exact. Leave p= and epsilon= out.")
    return ExtremeIndex(aggregate)


class ThresholdIndex(ABC):
    """Gives candidates for a range of answers without looking at all keys, and misses none.

    Windows and thresholds come with each lookup.

    Attributes
    ----------
    column
        What is kept of the rows of a store, once there is one.
    """

    column: SlotColumn

    def __init__(self, aggregate: Aggregate) -> None:
        self._aggregate = aggregate
        self._argument = expression(aggregate.arguments[0])

    @property
    def p(self) -> int | None:
        """How many levels of each size it has, if it has levels."""
        return None

    @property
    def outdated(self) -> bool:
        """Whether it should be bound and filled again."""
        return False

    def check(self, schema: pa.Schema) -> None:
        """Fix the type of values; one that cannot be compared with a number is an error."""
        self._type = result_type(self._argument, schema)
        if self._aggregate.indexed != "count" and not is_number(self._type):
            raise SchemaError(
                f"{self._aggregate} needs a number to compare with a threshold, but its argument is of type "
                f"{self._type}. Cast it, or aggregate another column."
            )

    @abstractmethod
    def bind(self, store: Store) -> SlotColumn:
        """A new column for the rows of a store, to be added to its rings."""

    @abstractmethod
    def read(self, table: pa.Table) -> State:
        """What the column keeps of events."""

    @abstractmethod
    def candidates(self, answers: Range, first: int, last: int) -> Integers:
        """The keys whose answer over ``[first, last]`` may be in a range; none is missing."""

    @property
    def _floating(self) -> bool:
        return bool(pa.types.is_floating(self._type))

    def _values(self, argument: pa.Array) -> Array:
        """Numbers of events as doubles, or as the integers that decimals are stored as; any where there is none."""
        if self._floating:
            return numbers(argument.cast(pa.float64()), 0.0)
        if pa.types.is_decimal(self._type):
            return unscaled(argument)
        return numbers(argument).astype(np.int64, copy=False)

    def _scaled(self, bound: float) -> Fraction:
        """A bound in terms of counts, or of these integers."""
        decimal = self._aggregate.indexed != "count" and pa.types.is_decimal(self._type)
        return Fraction(bound) * 10 ** (self._type.scale if decimal else 0)


class AmountIndex(ThresholdIndex):
    """Of counts and sums: their events as copies.

    Where no value is negative and the window ends with the latest event or later, it looks at keys with answers of more
    than ``above * (1 - epsilon)`` only, but for the rounding of floats.
    """

    def __init__(self, aggregate: Aggregate, levels: Levels) -> None:
        super().__init__(aggregate)
        self.levels = levels

    @property
    def p(self) -> int:  # noqa: D102
        return self.levels.p

    @property
    def outdated(self) -> bool:  # noqa: D102
        if self._too_many or self._collective.longest > _MOST_COPIES:
            return True
        return _OFTEN * self._misfits > self._store.rings.rows

    def bind(self, store: Store) -> SlotColumn:  # noqa: D102
        self._store = store
        self._copies: Copies | None = None
        self._misfits, self._too_many = 0, False
        self.column = self._collective = Collective(self.levels, store.instants)
        return self.column

    def read(self, table: pa.Table) -> State:  # noqa: D102
        amounts = self._amounts(whole(evaluate(self._argument, table)))
        if self._copies is None:
            self._copies = Copies(amounts, whole=self._whole)
        elif len(amounts) > _AT_ONCE:
            self._too_many = True
        elif not self._copies.suits(amounts):
            self._misfits += len(amounts)
        return (self._copies.of(amounts),)

    def candidates(self, answers: Range, first: int, last: int) -> Integers:  # noqa: D102
        if self._copies is None:
            return np.zeros(0, np.int64)
        rows, least, most = self._store.rings.rows, 0, None
        if answers.above is not None:
            lowest = math.floor(self._scaled(answers.above)) + 1 if self._whole else answers.above
            least = self._copies.at_least(lowest, rows)
        # Of a window that has ended, the one up to now may hold any number more.
        if answers.below is not None and self._store.is_latest(last):
            highest = math.ceil(self._scaled(answers.below)) - 1 if self._whole else answers.below
            most = self._copies.at_most(highest, rows)
        return self._collective.between(least, most, first, per_row=0 if self._copies.exact else 1)

    @property
    def _whole(self) -> bool:
        return self._aggregate.indexed == "count" or not self._floating

    def _amounts(self, argument: pa.Array) -> Array:
        """How much each event adds."""
        valid = argument.is_valid().to_numpy(zero_copy_only=False)
        if self._aggregate.indexed == "count":
            return (valid if self._aggregate.arguments != ("1",) else np.ones(len(valid))).astype(np.float64)
        return np.where(valid, self._values(argument).astype(np.float64), 0.0)


class ExtremeIndex(ThresholdIndex):
    """Of maxima, and of minima with the order of values reversed."""

    def bind(self, store: Store) -> SlotColumn:  # noqa: D102
        self._store = store
        self.column = self._staircase = Staircase(store.instants)
        return self.column

    def read(self, table: pa.Table) -> State:  # noqa: D102
        argument = whole(evaluate(self._argument, table))
        codes = ordered_bits(self._values(argument)) if self._floating else self._values(argument)
        if codes.dtype == object:
            raise SchemaError(
                f"{self._aggregate} has values of more than 18 digits, and an index of extremes takes 64 bits. Cast "
                "the argument to a DECIMAL of up to 18 digits, or to DOUBLE."
            )
        valid = argument.is_valid().to_numpy(zero_copy_only=False)
        # Nulls are below everything.
        return (np.where(valid, ~codes if self._reversed else codes, np.iinfo(np.int64).min),)

    def candidates(self, answers: Range, first: int, last: int) -> Integers:  # noqa: D102
        above = None if answers.above is None else self._code(answers.above, math.floor)
        below = None if answers.below is None else self._code(answers.below, math.ceil)
        if self._reversed:
            above, below = (None if code is None else ~code for code in (below, above))
        # Of a window that has ended, the one up to now may hold larger values.
        return self._staircase.between(above, below if self._store.is_latest(last) else None, first)

    @property
    def _reversed(self) -> bool:
        return self._aggregate.indexed == "min"

    def _code(self, bound: float, rounded: Callable[[Fraction], int]) -> int:
        return int(ordered_bits(np.array([bound]))[0]) if self._floating else rounded(self._scaled(bound))
