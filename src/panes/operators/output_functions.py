"""Output functions: what is computed over the tuples of a window, or of each group in it.

Paper: Gedik 2014, section 2.1, and Listings 2 to 4. The same ``pn.sum("value")`` that a query takes is taken here, so
that one declaration serves tuples and columns. A Python function gets the tuples of a window, or of a group in it.
Partitioning makes several windows, each with policies of its own; grouping sorts the tuples of one window.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa

from panes.aggregates.accumulator import Start, values_of
from panes.aggregates.aggregate import Aggregate as Declared
from panes.aggregates.component import validity
from panes.aggregates.operations import concatenate, take
from panes.errors import DeclarationError
from panes.expressions.evaluate import evaluate
from panes.expressions.expression import expression
from panes.operators.summaries import Groups, grouped

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
    start: Start | None = None


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
    # What counts events looks at none of their attributes.
    names = [_attribute(alias, declared, argument) for argument in declared.arguments if argument != "1"]
    start = declared.accumulator(*names)
    if start is not None:
        return OutputFunction(partial(_fold, start) if names else len, start)
    if declared.collects:
        return OutputFunction(partial(_over_values, declared, names[0]))
    return OutputFunction(partial(_through_columns, declared, names))


def _attribute(alias: str, declared: Declared, argument: str) -> str:
    found = _NAME.fullmatch(argument.strip())
    if found is None:
        raise DeclarationError(
            f"{alias!r} is {declared}: an operator on single tuples takes attributes, not expressions. Let a Functor "
            "compute the expression first, or write a function of the tuples."
        )
    return found.group(1) or found.group(2)


def _fold(start: Start, tuples: Tuples) -> Any:
    accumulator = start()
    accumulator.insert_all(tuples)
    return accumulator.value()


def _over_values(declared: Declared, attribute: str, tuples: Tuples) -> Any:
    """An aggregate over the values themselves."""
    return declared.over_values(values_of(attribute, tuples))


def _through_columns(declared: Declared, names: list[str], tuples: Tuples) -> Any:
    """Any other aggregate, by its own algebra over columns: lift all tuples, combine them, lower."""
    rows = [row for item in tuples if None not in (row := [item[name] for name in names])]
    if not rows:
        return None
    columns = [pa.array(values) for values in zip(*rows, strict=True)]
    arguments = tuple(f"a{i}" for i in range(len(columns)))
    bound = declared.bind(arguments, tuple(column.type for column in columns))
    stored = []
    for component in bound.components:
        taken = columns
        if component.arguments != arguments:
            table = pa.table(columns, names=list(arguments))
            taken = [evaluate(expression(argument), table) for argument in component.arguments]
        lifted = component.lift(*taken)
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
