"""Groups inside a window: what ``groups`` does when a window is processed, and nothing more.

Paper: Gedik 2014, Listings 2 to 4. Partitioning makes several windows, each with policies of its own; grouping looks at
the tuples of one window in several heaps.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from operator import call
from typing import Any, TypeAlias

import pyarrow as pa

from panes.aggregates.aggregates import Aggregate as Declared
from panes.aggregates.aggregates import CountOf, MaxOf, MeanOf, MinOf, PickOf, SumOf, VarianceOf
from panes.aggregates.collecting import CountDistinctOf, DistinctOf, QuantileOf
from panes.aggregates.component import validity
from panes.aggregates.operations import concatenate, take
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
    state_of,
)
from panes.operators.subwindow import Summarizer

# What is computed over a window: the aggregates of Panes, and functions of a user's own.
#
# Paper: Gedik 2014, section 2.1 (output functions). The same ``pn.sum("value")`` that a query takes is taken here, so
# that one declaration serves tuples and columns. A Python function is given the tuples of a window, or of a group in
# it.


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


Groups: TypeAlias = dict[Hashable, list[Any]]
"""The values of the output functions for each group, in the order in which groups first occur."""


class Summary(Summarizer):
    """Accumulators for the tuples of a window."""

    def __init__(self, starts: Sequence[Callable[[], Accumulator]]) -> None:
        self._starts = starts
        self._accumulators: list[Accumulator] | None = None

    def insert(self, item: Any) -> None:
        """Take in a tuple."""
        accumulators = self._accumulators
        if accumulators is None:
            accumulators = self._begun()
        elif len(accumulators) == 1:
            # From now on a tuple goes straight to the one accumulator there is.
            self.__dict__["insert"] = accumulators[0].insert
        for accumulator in accumulators:
            accumulator.insert(item)

    def insert_all(self, items: Sequence[Any]) -> None:
        """Take in tuples."""
        for accumulator in self._begun():
            accumulator.insert_all(items)

    def merge(self, later: Any) -> None:
        """Take in the summary of later tuples, which is not changed."""
        if later._accumulators is not None:
            for accumulator, other in zip(self._begun(), later._accumulators, strict=True):
                accumulator.merge(other)

    def save(self) -> list[tuple[Hashable, list[dict[str, Any]]]]:
        """What has been taken in, as plain values."""
        return [] if self._accumulators is None else [((), [state_of(each) for each in self._accumulators])]

    def load(self, state: Sequence[tuple[Hashable, Sequence[dict[str, Any]]]]) -> Any:
        """Continue where a summary of the same accumulators was saved."""
        for _, saved in state:
            _restore(self._begun(), saved)
        return self

    def values(self) -> Groups:
        """The answers for each group: there is one, unless no tuple has come."""
        found = self._accumulators
        return {} if found is None else {(): [each.value() for each in found]}

    def _begun(self) -> list[Accumulator]:
        found = self._accumulators
        if found is None:
            found = self._accumulators = list(map(call, self._starts))
        return found


class GroupedSummary(Summarizer):
    """Accumulators for each group of a window."""

    def __init__(self, starts: Sequence[Callable[[], Accumulator]], group_of: Callable[[Any], Hashable]) -> None:
        self._starts = starts
        self._group_of = group_of
        self._groups: dict[Hashable, list[Accumulator]] = {}

    def insert(self, item: Any) -> None:
        """Take in a tuple."""
        for accumulator in self._begun(self._group_of(item)):
            accumulator.insert(item)

    def insert_all(self, items: Sequence[Any]) -> None:
        """Take in tuples."""
        for group, members in grouped(self._group_of, items).items():
            for accumulator in self._begun(group):
                accumulator.insert_all(members)

    def merge(self, later: Any) -> None:
        """Take in the summary of later tuples, which is not changed."""
        for group, others in later._groups.items():
            for accumulator, other in zip(self._begun(group), others, strict=True):
                accumulator.merge(other)

    def save(self) -> list[tuple[Hashable, list[dict[str, Any]]]]:
        """What has been taken in, as plain values."""
        return [(group, [state_of(each) for each in found]) for group, found in self._groups.items()]

    def load(self, state: Sequence[tuple[Hashable, Sequence[dict[str, Any]]]]) -> Any:
        """Continue where a summary of the same accumulators was saved."""
        for group, saved in state:
            _restore(self._begun(group), saved)
        return self

    def values(self) -> Groups:
        """The answers for each group."""
        return {group: [each.value() for each in accumulators] for group, accumulators in self._groups.items()}

    def _begun(self, group: Hashable) -> list[Accumulator]:
        found = self._groups.get(group)
        if found is None:
            found = self._groups[group] = list(map(call, self._starts))
        return found


def _restore(accumulators: Sequence[Accumulator], saved: Sequence[dict[str, Any]]) -> None:
    for accumulator, values in zip(accumulators, saved, strict=True):
        for name, value in values.items():
            setattr(accumulator, name, value)


def grouped(group_of: Callable[[Any], Hashable], tuples: Iterable[Any]) -> dict[Hashable, list[Any]]:
    """The tuples of each group, in the order in which groups first occur."""
    groups: defaultdict[Hashable, list[Any]] = defaultdict(list)
    for item in tuples:
        groups[group_of(item)].append(item)
    return groups


def computed(
    functions: Sequence[OutputFunction], group_of: Callable[[Any], Hashable] | None, tuples: Sequence[Any]
) -> Groups:
    """The answers for each group of some tuples, all at once."""
    if not tuples:
        return {}
    if group_of is None:
        return {(): [function.over(tuples) for function in functions]}
    return {
        group: [function.over(members) for function in functions]
        for group, members in grouped(group_of, tuples).items()
    }


def several(value: Any, names: Sequence[Any]) -> Any:
    """The values of some attributes: the value itself where there is one attribute."""
    return (value,) if len(names) == 1 else value
