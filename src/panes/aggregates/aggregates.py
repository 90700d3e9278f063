"""Aggregates as values: which components they are read out of, and how.

An aggregate names its arguments; once their types are known it is *bound*: it then has components, an output type
(that of Spark's own aggregate) and ``lower``, which reads the answer out of the stored answers of its components.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NoReturn, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from panes.aggregates.component import Component, numbers
from panes.aggregates.custom import Custom
from panes.aggregates.extrema import Greatest, Least, Max, Min
from panes.aggregates.integers import decimals, divide_half_up, unscaled
from panes.aggregates.moments import Moments
from panes.aggregates.operations import Operations
from panes.aggregates.ordering import is_ordered
from panes.aggregates.sums import Count, Sum
from panes.errors import DeclarationError, SchemaError
from panes.timeline import Geometry

Lower: TypeAlias = Callable[..., pa.Array]
"""From the stored answers of the components to the answers of the aggregate."""


@dataclass(frozen=True)
class Bound:
    """An aggregate over arguments of known types.

    Parameters
    ----------
    components
        What is stored.
    type
        The type of the answers, that of Spark's own aggregate.
    lower
        Reads the answers out of the components' stored answers, in Arrow.
    read
        The same in Spark SQL, from the names of the stored columns; None where SQL cannot.
    by_level
        Whether ``lower`` gets, of each component, a list with the answers of every level of a nested window apart:
        each without the levels below it, the finest first.
    by_window
        Whether both are also told where each answer's window starts and ends, in µs, as ``start=`` and ``end=``.
    answer
        The same from the components' states, where storing them first would be dear.
    """

    components: tuple[Component, ...]
    type: pa.DataType
    lower: Lower
    read: Callable[..., str] | None = None
    by_level: bool = False
    by_window: bool = False
    answer: Callable[..., pa.Array] | None = None


@dataclass(frozen=True)
class Aggregate(ABC):
    """An aggregate over named arguments, not yet over types.

    Parameters
    ----------
    arguments
        A column or a scalar SQL expression each.
    """

    arguments: tuple[str, ...]

    name: ClassVar[str]
    by_time: ClassVar[bool] = False
    """Whether event time, and what orders rows of one instant, stand before the arguments when it is bound."""
    weight: ClassVar[int] = 1
    """How many of Spark's aggregates it takes to build its partials."""
    collects: ClassVar[bool] = False
    """Whether partials hold the values themselves, and so grow with the number of different ones."""
    levels: ClassVar[bool] = False
    """Whether it looks at the levels of a nested window apart."""

    def __getattr__(self, name: str) -> Any:
        written = {
            "alias": f"columns are named by select={{'total': pn.{self.name}(...)}}",
            "over": "windows stand in the query, as pn.query(..., over=pn.sliding('1 hour'))",
            "filter": "where= of the query says which events count",
        }
        why = f": {written[name]}." if name in written else ""
        raise AttributeError(f"an aggregate has no attribute {name!r}{why}")

    def _as_number(self, *others: object) -> NoReturn:
        """Say where answers are computed with."""
        raise DeclarationError(
            f"{self} is not a number yet. Select it under a name and write the rest as text, as select={{'total': "
            "pn.sum('amount'), 'n': pn.count(), 'average': 'total / n'}, or having='total > 3'."
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = _as_number
    __floordiv__ = __mod__ = __pow__ = __lt__ = __le__ = __gt__ = __ge__ = __and__ = __or__ = _as_number

    @property
    def idempotent(self) -> bool:
        """Whether partials of overlapping spans may be combined (*covered by* instead of *partitioned by*)."""
        return False

    @property
    def in_jvm(self) -> bool:
        """Whether Spark can build the partials without Python."""
        return True

    def builds_in_jvm(self, widest: int) -> bool:
        """The same for windows up to a length in µs."""
        return self.in_jvm

    @property
    def in_order(self) -> bool:
        """Whether partials have to be combined in the order of time, even those of one span."""
        return False

    @property
    def has_native(self) -> bool:
        """Whether Spark has this aggregate itself."""
        return self.native(("at", *self.arguments) if self.by_time else self.arguments) is not None

    @property
    def in_spark(self) -> bool:
        """Whether Spark has it, and it is known what it costs there."""
        return self.has_native

    def misfit(self, window: Geometry) -> str | None:
        """Why a window cannot have this aggregate, and what to write instead; None where it can."""
        return None

    def with_arguments(self, arguments: tuple[str, ...]) -> Aggregate:
        """The same aggregate of other arguments."""
        return replace(self, arguments=arguments)

    @abstractmethod
    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:
        """Fix the arguments' SQL (a condition is part of it) and types."""

    @abstractmethod
    def native(self, arguments: tuple[str, ...]) -> str | None:
        """The Spark SQL aggregate with the same answer, or None when Spark has none."""

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.arguments)})"

    def _require_number(self, type_: pa.DataType) -> None:
        self._require(is_number(type_), type_, "a number")

    def _require(self, fits: bool, type_: pa.DataType, needs: str) -> None:
        if not fits:
            raise SchemaError(
                f"{self} needs {needs}, but its argument is of type {type_}. Cast it, or aggregate another column."
            )


@dataclass(frozen=True)
class CountOf(Aggregate):
    """``count()`` of events, or of the events where an argument is not null."""

    name: ClassVar[str] = "count"

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:  # noqa: D102
        return Bound((Count(arguments, types),), pa.int64(), lambda n: n, lambda n: n)

    def native(self, arguments: tuple[str, ...]) -> str:  # noqa: D102
        return f"count({arguments[0]})"

    def __str__(self) -> str:
        return "count()" if self.arguments == ("1",) else super().__str__()


@dataclass(frozen=True)
class SumOf(Aggregate):
    """``sum(x)``."""

    name: ClassVar[str] = "sum"

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:  # noqa: D102
        self._require(is_number(types[0]), types[0], "a number")
        component = Sum(arguments, types)
        return Bound((component,), component.storage, lambda total: total, lambda total: total)

    def native(self, arguments: tuple[str, ...]) -> str:  # noqa: D102
        return f"sum({arguments[0]})"


@dataclass(frozen=True)
class MeanOf(Aggregate):
    """``mean(x)``: a double, or for decimals Spark's wider decimal."""

    name: ClassVar[str] = "mean"
    weight: ClassVar[int] = 2

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:  # noqa: D102
        (argument,), (type_,) = arguments, types
        self._require(is_number(type_), type_, "a number")
        count = Count(arguments, types)
        if pa.types.is_decimal(type_):
            answer = mean_type(type_)
            return Bound(
                (Sum(arguments, types), count),
                answer,
                lambda total, n: _decimal_mean(total, n, answer, str(self)),
                _decimal_mean_sql(type_, answer),
            )
        if type_ in (pa.int64(), pa.uint64()):
            # Spark averages BIGINT in doubles, so its mean has no overflow; nor has ours.
            argument, type_ = f"CAST({argument} AS DOUBLE)", pa.float64()
        return Bound((Sum((argument,), (type_,)), count), pa.float64(), _mean, _mean_sql)

    def native(self, arguments: tuple[str, ...]) -> str:  # noqa: D102
        return f"avg({arguments[0]})"


@dataclass(frozen=True)
class _ExtremumOf(Aggregate):
    component: ClassVar[type[Component]]

    @property
    def idempotent(self) -> bool:
        return True

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:
        self._require(is_ordered(types[0]), types[0], "a type with an order (number, string, date, timestamp, ...)")
        return Bound((self.component(arguments, types),), types[0], lambda x: x, lambda x: x)

    def native(self, arguments: tuple[str, ...]) -> str:
        return f"{self.name}({arguments[0]})"


@dataclass(frozen=True)
class MinOf(_ExtremumOf):
    """``min(x)``."""

    name: ClassVar[str] = "min"
    component: ClassVar[type[Component]] = Min


@dataclass(frozen=True)
class MaxOf(_ExtremumOf):
    """``max(x)``."""

    name: ClassVar[str] = "max"
    component: ClassVar[type[Component]] = Max


@dataclass(frozen=True)
class VarianceOf(Aggregate):
    """``var(x)`` and ``std(x)``, of the sample (``ddof=1``) or of the population (``ddof=0``)."""

    root: bool = False
    ddof: int = 1

    name: ClassVar[str] = "var"
    weight: ClassVar[int] = 3

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:  # noqa: D102
        self._require(is_number(types[0]), types[0], "a number")
        return Bound((Moments(arguments, types),), pa.float64(), self._lower, self._read)

    def native(self, arguments: tuple[str, ...]) -> str:  # noqa: D102
        return f"{'stddev' if self.root else 'var'}_{'samp' if self.ddof else 'pop'}({arguments[0]})"

    def _lower(self, moments: pa.Array) -> pa.Array:
        n, m2 = numbers(moments.field("n")), numbers(moments.field("m2"))
        missing = moments.is_null().to_numpy(zero_copy_only=False) | (n <= self.ddof)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = m2 / (n - self.ddof)
            values = np.sqrt(variance) if self.root else variance
        return pa.array(values, mask=missing)

    def _read(self, moments: str) -> str:
        variance = f"{moments}.m2 / ({moments}.n - {self.ddof})"
        return f"CASE WHEN {moments}.n > {self.ddof} THEN {f'sqrt({variance})' if self.root else variance} END"

    def __str__(self) -> str:
        kind = ("std" if self.root else "var") + ("" if self.ddof else "_pop")
        return f"{kind}({self.arguments[0]})"


@dataclass(frozen=True)
class PickOf(Aggregate):
    """``first(x)``, ``last(x)`` by event time; ``arg_min(x, by)``, ``arg_max(x, by)`` by another value."""

    largest: bool = False
    timed: bool = True

    name: ClassVar[str] = "pick"

    @property
    def by_time(self) -> bool:  # type: ignore[override]  # noqa: D102
        return self.timed

    @property
    def idempotent(self) -> bool:  # noqa: D102
        return True

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:  # noqa: D102
        # Bound as (order, ties, value): event time stands first already, arg_min's arguments are the other way round.
        if not self.timed:
            arguments, types = arguments[::-1], types[::-1]
        for type_ in types:
            self._require(is_ordered(type_), type_, "types with an order (ties are broken by value)")
        component = (Greatest if self.largest else Least)(arguments, types)
        return Bound((component,), types[-1], lambda pair: _field(pair, "value"), lambda pair: f"{pair}.value")

    def native(self, arguments: tuple[str, ...]) -> str:  # noqa: D102
        order, *ties, value = arguments if self.timed else arguments[::-1]
        parts = ", ".join([f"{order} AS o", *(f"{sql} AS t{i}" for i, sql in enumerate(ties))])
        pair = f"CASE WHEN {order} IS NOT NULL AND {value} IS NOT NULL THEN struct({parts}, {value} AS v) END"
        return f"{'max' if self.largest else 'min'}({pair}).v"

    def __str__(self) -> str:
        if self.timed:
            return f"{'last' if self.largest else 'first'}({self.arguments[0]})"
        return f"{'arg_max' if self.largest else 'arg_min'}({', '.join(self.arguments)})"


@dataclass(frozen=True, kw_only=True)
class CustomOf(Aggregate):
    """A user's own aggregate; see ``panes.aggregate``."""

    label: str
    state: tuple[tuple[str, pa.DataType], ...]
    output: pa.DataType
    lift: Callable[..., Any]
    operations: Operations
    lowered: Callable[..., Any]

    name: ClassVar[str] = "custom"

    @property
    def idempotent(self) -> bool:  # noqa: D102
        return self.operations.idempotent

    @property
    def in_jvm(self) -> bool:  # noqa: D102
        return False

    def bind(self, arguments: tuple[str, ...], types: tuple[pa.DataType, ...]) -> Bound:  # noqa: D102
        component = Custom(
            arguments, types, label=self.label, state=self.state, lifted=self.lift, operations=self.operations
        )
        return Bound((component,), self.output, self._lower)

    def native(self, arguments: tuple[str, ...]) -> None:  # noqa: D102
        return None

    def _lower(self, stored: pa.Array) -> pa.Array:
        missing = stored.is_null().to_numpy(zero_copy_only=False)
        parts = [
            numbers(_field(stored, i).filter(pa.array(~missing)), identity)
            for i, identity in enumerate(self.operations.identity)
        ]
        answers = pa.array(np.asarray(self.lowered(*parts)), from_pandas=False).cast(self.output)
        return answers.take(pa.array(np.cumsum(~missing) - 1, mask=missing))

    def __str__(self) -> str:
        return f"{self.label}({', '.join(self.arguments)})"


def mean_type(type_: pa.DataType) -> pa.DataType:
    """The type of Spark's ``avg`` over a decimal.

    Examples
    --------
    >>> mean_type(pa.decimal128(10, 2)), mean_type(pa.decimal128(38, 10))
    (Decimal128Type(decimal128(14, 6)), Decimal128Type(decimal128(38, 14)))
    """
    return pa.decimal128(min(38, type_.precision + 4), min(38, type_.scale + 4))


def brief(number: float) -> str:
    """A number as short as it can be written without becoming another one.

    Examples
    --------
    >>> brief(1.0), brief(0.1)
    ('1', '0.1')
    """
    return repr(number).removesuffix(".0")


def is_number(type_: pa.DataType) -> bool:
    """Whether values of a type can be added."""
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def _mean(total: pa.Array, count: pa.Array) -> pa.Array:
    n = numbers(count)
    with np.errstate(divide="ignore", invalid="ignore"):
        return pa.array(numbers(total) / n, mask=n == 0)


def _mean_sql(total: str, count: str) -> str:
    return f"CASE WHEN {count} > 0 THEN CAST({total} AS DOUBLE) / {count} END"


def _decimal_mean(total: pa.Array, count: pa.Array, answer: pa.DataType, what: str) -> pa.Array:
    n = numbers(count)
    shift = 10 ** (answer.scale - total.type.scale)
    values = divide_half_up(unscaled(total).astype(object) * shift, np.where(n == 0, 1, n))
    return decimals(values, n == 0, answer, what)


def _decimal_mean_sql(type_: pa.DataType, answer: pa.DataType) -> Callable[[str, str], str] | None:
    """The same in Spark SQL, where its division of a sum by a count keeps digits enough.

    Spark cuts the scale of a quotient where 38 digits do not hold all of it. What is left is rounded again to the scale
    of the answer, which is the same as rounding once if it has twelve digits more: for fewer than 10¹² values.
    """
    whole = min(38, type_.precision + 10) - type_.scale
    scale = type_.scale + 21
    if whole + scale > 38:
        scale = max(38 - whole, 6)
    if scale < answer.scale + 12:
        return None
    return lambda total, n: (
        f"CASE WHEN {n} > 0 THEN CAST({total} / {n} AS DECIMAL({answer.precision}, {answer.scale})) END"
    )


def _field(struct: pa.Array, index: int | str) -> pa.Array:
    """A field of a struct array, null where the struct is (``StructArray.field`` forgets that)."""
    return pc.struct_field(struct, index if isinstance(index, str) else [index])
