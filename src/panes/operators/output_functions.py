"""What is computed over a window: the aggregates of Panes, and functions of a user's own.

Paper: Gedik 2014, section 2.1 (output functions). The same ``pn.sum("value")`` that a query takes is taken here, so
that one declaration serves tuples and columns. A Python function is given the tuples of a window, or of a group in it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa

from panes.algebra.aggregates import Aggregate as Declared
from panes.algebra.aggregates import CountOf, MaxOf, MeanOf, MinOf, PickOf, SumOf, VarianceOf
from panes.algebra.collecting import CountDistinctOf, DistinctOf, QuantileOf
from panes.algebra.component import validity
from panes.algebra.operations import concatenate, take
from panes.errors import DeclarationError
from panes.operators.accumulators import (
    Accumulator,
    CountAll,
    CountOfValues,
    Largest,
    Mean,
    Pick,
    Smallest,
    Total,
    Variance,
    holds_nan,
    ordered,
)

Tuples: TypeAlias = Sequence[Any]
_NAME = re.compile(r"`([^`]+)`|([A-Za-z_]\w*)")


@dataclass(frozen=True, slots=True)
class OutputFunction:
    """How one output attribute is computed.

    Parameters
    ----------
    over
        Its value over all tuples of a window at once.
    start
        What computes it one tuple after another and can be merged, so that nothing else need be kept; None where all
        tuples are needed.
    """

    over: Callable[[Tuples], Any]
    start: Callable[[], Accumulator] | None = None


def output_function(alias: str, declared: Declared | Callable[[Tuples], Any]) -> OutputFunction:
    """What a user wrote for an output attribute, ready to run.

    Examples
    --------
    >>> import panes as pn
    >>> rows = [{"x": 1}, {"x": None}, {"x": 5}]
    >>> output_function("total", pn.sum("x")).over(rows), output_function("n", len).over(rows)
    (6, 3)
    """
    if isinstance(declared, Declared):
        return _of_aggregate(alias, declared)
    if callable(declared):
        return OutputFunction(lambda tuples: declared(list(tuples)))
    raise DeclarationError(
        f"{alias!r} is computed by {declared!r}, which is neither an aggregate nor a function. Write for example "
        "pn.sum('value'), or a function of the tuples of a window."
    )


def _of_aggregate(alias: str, declared: Declared) -> OutputFunction:
    if declared.by_time or declared.levels:
        raise DeclarationError(
            f"{alias!r} is {declared}, which needs the event time or the levels of a query's window. Write a function "
            "instead: lambda tuples: tuples[-1]['value'] is the last value to arrive."
        )
    if isinstance(declared, CountOf) and declared.arguments == ("1",):
        return OutputFunction(len, CountAll)
    names = [_attribute(alias, declared, argument) for argument in declared.arguments]
    start = _accumulator(declared, names)
    if start is not None:
        return OutputFunction(partial(_fold, start), start)
    if isinstance(declared, QuantileOf):
        return OutputFunction(partial(_quantile, names[0], declared.q, declared.element))
    if isinstance(declared, CountDistinctOf):
        return OutputFunction(lambda tuples: len(_different(names[0], tuples)))
    if isinstance(declared, DistinctOf):
        return OutputFunction(lambda tuples: [value for _, value in sorted(_different(names[0], tuples).items())])
    return OutputFunction(partial(_through_columns, declared, names))


def _accumulator(declared: Declared, names: list[str]) -> Callable[[], Accumulator] | None:
    simple: dict[type[Declared], Callable[[str], Accumulator]] = {
        CountOf: CountOfValues,
        SumOf: Total,
        MeanOf: Mean,
        MinOf: Smallest,
        MaxOf: Largest,
    }
    if type(declared) in simple:
        return partial(simple[type(declared)], names[0])
    if isinstance(declared, VarianceOf):
        return partial(Variance, names[0], declared.ddof, declared.root)
    if isinstance(declared, PickOf):
        return partial(Pick, names[0], names[1], declared.largest)
    return None


def _attribute(alias: str, declared: Declared, argument: str) -> str:
    found = _NAME.fullmatch(argument.strip())
    if found is None:
        raise DeclarationError(
            f"{alias!r} is {declared}: an operator on single tuples takes attributes, not expressions. Let a Functor "
            "compute the expression first, or write a function of the tuples."
        )
    return found.group(1) or found.group(2)


def _fold(start: Callable[[], Accumulator], tuples: Tuples) -> Any:
    accumulator = start()
    accumulator.insert_all(tuples)
    return accumulator.value()


def _quantile(attribute: str, q: float, element: bool, tuples: Tuples) -> Any:
    values = [value for item in tuples if (value := item[attribute]) is not None]
    if not values:
        return None
    values.sort(key=ordered if holds_nan(values) else None)
    if element:
        return values[max(math.floor(Fraction(repr(q)) * len(values)), 1) - 1]
    place = (len(values) - 1) * q
    low, high = math.floor(place), math.ceil(place)
    below, above = float(values[low]), float(values[high])
    return below if below == above or low == high else (high - place) * below + (place - low) * above


def _different(attribute: str, tuples: Tuples) -> dict[Any, Any]:
    return {ordered(value): value for item in tuples if (value := item[attribute]) is not None}


def _through_columns(declared: Declared, names: list[str], tuples: Tuples) -> Any:
    """Any other aggregate, by its own algebra over columns: lift all tuples, combine them, lower."""
    rows = [row for item in tuples if None not in (row := [item[name] for name in names])]
    if not rows:
        return None
    columns = [pa.array(values) for values in zip(*rows, strict=True)]
    bound = declared.bind(declared.arguments, tuple(column.type for column in columns))
    stored = []
    for component in bound.components:
        lifted = component.lift(*columns)
        valid = validity(lifted)
        decoded = component.decode(lifted if valid is None else lifted.filter(pa.array(valid)))
        state, length = decoded.state, len(decoded.state[0])
        while length > 1:
            # Neighbours together, in their order: combine is associative, and need not be commutative.
            pairs, rest = length // 2, take(state, slice(length - length % 2, length))
            combined = decoded.operations.combine(
                take(state, slice(0, 2 * pairs, 2)), take(state, slice(1, 2 * pairs, 2))
            )
            state = concatenate([combined, rest]) if len(rest[0]) else combined
            length = len(state[0])
        stored.append(decoded.restore(state, None))
    return bound.lower(*stored)[0].as_py()
