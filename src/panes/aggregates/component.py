"""A component: one stored column of partials, declared once.

``sum(temp) where temp > -60`` is a component. Its Arrow storage, its Spark SQL, its lift from single events and its
algebra are one class, so that the JVM, the in-process runner and a state store cannot drift apart. Aggregates are read
out of components: ``mean`` out of ``count`` and ``sum``.

A component stores one Arrow value per partial, a struct where it needs several numbers. A null means that no event of
the partial had a value; kernels see the identity there, and which answers are null follows from counting the partials
that are not (see ``panes.engine``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa

from panes.aggregates.operations import Array, Operations, State


@dataclass(frozen=True, slots=True)
class Decoded:
    """A stored column made ready for kernels.

    Parameters
    ----------
    operations, state
        The algebra, and one element of state per stored value.
    valid
        Which stored values are not null; None when all are.
    restore
        From a state that was combined out of this one, and a mask of nulls, back to the storage type.
    """

    operations: Operations
    state: State
    valid: Array | None
    restore: Callable[[State, Array | None], pa.Array]


@dataclass(frozen=True, eq=False)
class Collected:
    """A stored column of bags, laid end to end.

    Parameters
    ----------
    numbers, n
        Each value as a number in the order of values, and how often it occurs in its bag.
    offsets
        Where each stored bag begins, and the end of the last.
    restore
        From such numbers, and a mask of nulls, back to values.
    known
        The different values of the whole column, in order, where numbers are places among them.
    """

    numbers: Array
    n: Array
    offsets: Array
    restore: Callable[[Array, Array | None], pa.Array]
    known: pa.Array | None = None

    @classmethod
    def ranked(cls, code: Array, n: Array, offsets: Array, domain: pa.Array) -> Collected:
        """Bags whose values are known by their places among the different ones."""
        return cls(code, n, offsets, lambda codes, nulls: domain.take(pa.array(codes, mask=nulls)), domain)

    @property
    def code(self) -> Array:
        """Of each value its place in the domain."""
        return self.coded[1]

    @cached_property
    def domain(self) -> pa.Array:
        """The different values of the whole column, in order."""
        return self.restore(self.coded[0], None) if self.known is None else self.known

    @cached_property
    def coded(self) -> tuple[Array, Array]:
        """The different numbers in order, and of each value its place among them."""
        # Sorts the whole column, so only when needed.
        if self.known is not None:
            return np.arange(len(self.known)), self.numbers
        distinct, place = np.unique(self.numbers, return_inverse=True)
        return distinct, place.astype(np.int64, copy=False)

    @cached_property
    def repeats(self) -> bool:
        """Whether some value occurs more than once in a bag."""
        return bool((self.n != 1).any())


@dataclass(frozen=True)
class Component(ABC):
    """One stored column of partials over an argument of known type.

    Parameters
    ----------
    arguments
        The Spark SQL of each argument; a condition is part of it (``CASE WHEN .. THEN .. END``).
    types
        The Arrow type of each argument.
    """

    arguments: tuple[str, ...]
    types: tuple[pa.DataType, ...]

    kind: ClassVar[str]
    in_jvm: ClassVar[bool] = True
    """Whether Spark SQL can build and merge it; otherwise only Python can."""

    @property
    def ticks(self) -> int:
        """Partials of one span are combined in any order only if it lies within a tick of so many µs; 0 for always."""
        return 0

    @property
    def name(self) -> str:
        """What identifies the component among those of a store."""
        return f"{self.kind}({', '.join(self.arguments)})"

    @property
    @abstractmethod
    def storage(self) -> pa.DataType:
        """The Arrow type of a stored partial."""

    def build(self, only: str | None = None) -> str:
        """The Spark SQL aggregate that makes a partial out of events, all or those that fulfil a condition."""
        raise NotImplementedError(f"only Python can build {self.name}")

    def build_from(self, instant: str, start: str, only: str | None = None) -> str:
        """The same for a component that depends on when events happen; others ignore the time.

        Parameters
        ----------
        instant
            SQL of an event's time in µs.
        start
            SQL of an instant in µs that is the same for all events of a partial, and later than none of them. Times
            that are counted from there are small numbers, which doubles hold exactly.
        """
        return self.build(only)

    def merge(self, stored: str) -> str:
        """The Spark SQL aggregate that makes a partial out of finer partials in the column ``stored``."""
        raise NotImplementedError(f"only Python can merge {self.name}")

    @property
    def idempotent(self) -> bool:
        """Whether partials of overlapping spans may be combined."""
        return False

    @abstractmethod
    def lift(self, *values: pa.Array) -> pa.Array:
        """A stored partial for every single event."""

    def gather(self, lo: Array, hi: Array, *values: pa.Array) -> Decoded | Collected | None:
        """Partials of spans ``[lo, hi)`` of events, where that is cheaper than lifting every event; None elsewhere.

        The order of events must not matter to such a component.
        """
        return None

    @abstractmethod
    def decode(self, stored: pa.Array) -> Decoded:
        """Stored partials made ready for kernels."""

    def decode_lasting(self, stored: pa.Array) -> Decoded:
        """The same with states that outlive their column, and can be combined with those of another.

        Different where ``decode`` numbers the values of one column.
        """
        return self.decode(stored)

    def collect(self, stored: pa.Array) -> Collected | None:
        """Stored partials made ready for kernels that look at single values; None where partials are combined."""
        return None


def call(function: str, argument: str, only: str | None) -> str:
    """The call of a Spark SQL aggregate, over all rows or those that fulfil a condition.

    A FILTER costs a row that it leaves out one comparison; a CASE in the argument would cost it a whole update.
    """
    return f"{function}({argument})" if only is None else f"{function}({argument}) FILTER (WHERE {only})"


def validity(array: pa.Array) -> Array | None:
    """Which values are not null; None when all are."""
    if array.null_count == 0:
        return None
    valid: Array = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def with_nulls(values: Array, nulls: Array | None, type_: pa.DataType) -> pa.Array:
    """A NumPy array as an Arrow array, null where the mask says so."""
    return pa.array(values, type=type_, mask=nulls)


def numbers(array: pa.Array, fill: object = 0) -> Array:
    """An Arrow array of numbers as NumPy, with nulls filled."""
    if array.null_count:
        array = array.fill_null(fill)
    values: Array = array.to_numpy(zero_copy_only=False)
    return values


def as_doubles(array: pa.Array) -> pa.Array:
    """The nearest double to each number. Arrow's own cast of decimals can miss it.

    Examples
    --------
    >>> from decimal import Decimal
    >>> tenths = pa.array([Decimal("0.3")], pa.decimal128(20, 1))
    >>> as_doubles(tenths)[0].as_py(), tenths.cast(pa.float64())[0].as_py()
    (0.3, 0.30000000000000004)
    """
    exact = array.cast(pa.string()) if pa.types.is_decimal(array.type) else array
    return exact.cast(pa.float64(), safe=False)


def any_valid(valid: Array) -> Array:
    """Running count of valid partials: a span has a value when the count grows over it."""
    count = np.zeros(len(valid) + 1, dtype=np.int64)
    np.cumsum(valid, out=count[1:])
    return count


class StructComponent(Component):
    """A component that stores several numbers: a struct with a field for each array of its state."""

    @property
    @abstractmethod
    def operations(self) -> Operations:
        """The algebra of its states."""

    def decode(self, stored: pa.Array) -> Decoded:
        """Stored partials made ready for kernels."""
        return Decoded(self.operations, self.state_of(stored), validity(stored), self.stored)

    def state_of(self, stored: pa.Array) -> State:
        """The fields of stored structs as a state, the identity where a struct is null."""
        valid, identity = validity(stored), self.operations.identity
        parts = tuple(numbers(stored.field(i), none) for i, none in enumerate(identity))
        if valid is None:
            return parts
        return tuple(
            np.where(valid, part, none).astype(part.dtype, copy=False)
            for part, none in zip(parts, identity, strict=True)
        )

    def stored(self, state: State, nulls: Array | None) -> pa.Array:
        """A state as one struct per element, null where the mask says so."""
        return as_struct(state, nulls, self.storage)


def as_struct(state: State, nulls: Array | None, type_: pa.DataType) -> pa.Array:
    """Arrays as one struct per element, null where the mask says so."""
    mask = None if nulls is None else pa.array(nulls)
    arrays = [pa.array(part, field.type) for part, field in zip(state, type_, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=list(type_), mask=mask)


def struct_sql(fields: Mapping[str, str]) -> str:
    """SQL for a struct of named values.

    Examples
    --------
    >>> struct_sql({"n": "count(x)", "top": "max(x)"})
    "named_struct('n', count(x), 'top', max(x))"
    """
    return f"named_struct({', '.join(f'{name!r}, {value}' for name, value in fields.items())})"


def fold_sql(stored: str, together: str) -> str:
    """SQL for an aggregate that folds partials by an expression over two of them, ``a`` and ``b``.

    Spark has no aggregate that merges such structs; folding the collected partials keeps it in the JVM.
    """
    partials = f"collect_list({stored})"  # leaves nulls out
    folded = f"aggregate(slice({partials}, 2, size({partials})), {partials}[0], (a, b) -> {together})"
    return f"CASE WHEN count({stored}) > 0 THEN {folded} END"
