"""An aggregate as a value: what it is read out of, and how.

An aggregate names its arguments; once their types are known it is *bound*: it then has components, an output type
(that of Spark's own aggregate) and ``lower``, which reads the answer out of the stored answers of its components.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, NoReturn, TypeAlias

import pyarrow as pa

from panes.aggregates.accumulator import Start
from panes.aggregates.component import Component
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
        Whether both also get where each answer's window starts and ends, in µs, as ``start=`` and ``end=``.
    answer
        The same from the components' states, where storing them first would be expensive.
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
    """Whether it is bound with event time, and what orders rows of one instant, before its arguments."""
    weight: ClassVar[int] = 1
    """How many of Spark's aggregates it takes to build its partials."""
    collects: ClassVar[bool] = False
    """Whether partials hold the values themselves, and so grow with the number of different ones."""
    by_rank: ClassVar[bool] = False
    """Of those: whether it reads only the values at some ranks."""
    by_order: ClassVar[bool] = False
    """Whether the answer may depend on the order of rows, of one instant too."""
    levels: ClassVar[bool] = False
    """Whether it looks at each level of a nested window separately."""
    ages: ClassVar[bool] = False
    """Whether it is made of sums over events, each of which may have a weight: ``aged`` takes it."""
    indexed: ClassVar[Literal["count", "sum", "max", "min"] | None] = None
    """What an index of ``live.find`` keeps of it; None where it has none."""

    def __getattr__(self, name: str) -> Any:
        written = {
            "alias": f"columns are named by select={{'total': pn.{self.name}(...)}}",
            "over": "windows belong to the query, as pn.query(..., over=pn.sliding('1 hour'))",
            "filter": "where= of the query says which events count",
        }
        why = f": {written[name]}." if name in written else ""
        raise AttributeError(f"an aggregate has no attribute {name!r}{why}")

    def _as_number(self, *others: object) -> NoReturn:
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
    def needs_levels(self) -> int | None:
        """How many levels a nested window must have; None for any number."""
        return None

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

    def reference(self, rows: Sequence[Any], **window: Any) -> Any:
        """The answer in plain Python, as plain and as exact as can be: what tests compare with.

        Parameters
        ----------
        rows
            The arguments of each event, none of them null. If ``by_time``, before them a tuple of the instant in µs and
            of what orders rows within it. If ``levels``, a list of rows for each level, the finest first. In order, if
            ``by_order``.
        **window
            ``start`` and ``end`` of the window in µs, and the ``types`` of the arguments.

        Returns
        -------
        Any
            A Python value; a ``Fraction`` is rounded to the output type, once.
        """
        raise NotImplementedError(f"no reference for {self}")

    def accumulator(self, *attributes: Any) -> Start | None:
        """What makes an accumulator over attributes of tuples; None where all tuples of a window are needed."""
        return None

    def over_values(self, values: list[Any]) -> Any:
        """The answer of an aggregate that ``collects``, in plain Python: over all values of its argument."""
        raise NotImplementedError(f"{self} is not made of values")

    @property
    def signature(self) -> str:
        """What it computes, as text: equal for equal aggregates.

        Examples
        --------
        >>> import panes as pn
        >>> pn.std("temp").signature
        "var('temp', root=True, ddof=1)"
        """
        options = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "arguments"}
        shown = [f"{name}={value!r}" for name, value in options.items() if _is_plain(value)]
        return f"{self.name}({', '.join([*map(repr, self.arguments), *shown])})"

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.arguments)})"

    def _require_number(self, type_: pa.DataType) -> None:
        self._require(is_number(type_), type_, "a number")

    def _require(self, fits: bool, type_: pa.DataType, needs: str) -> None:
        if not fits:
            raise SchemaError(
                f"{self} needs {needs}, but its argument is of type {type_}. Cast it, or aggregate another column."
            )


def is_number(type_: pa.DataType) -> bool:
    """Whether values of a type can be added."""
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def brief(number: float) -> str:
    """A number, as short as it can be written without loss.

    Examples
    --------
    >>> brief(1.0), brief(0.1)
    ('1', '0.1')
    """
    return repr(number).removesuffix(".0")


def _is_plain(value: object) -> bool:
    """Whether an option is a number or text, or several."""
    values = value if isinstance(value, tuple) else (value,)
    return all(isinstance(one, (bool, int, float, str)) for one in values)
