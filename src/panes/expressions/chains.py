"""Chains of + - * / %: computed step by step, so that their length costs no stack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from panes.expressions import arrow_functions as af
from panes.expressions.bound import BoundExpression, Failure, RowsOfBatch
from panes.expressions.coercion import name_of
from panes.expressions.writing import write


@dataclass(frozen=True, slots=True)
class ChainStep:
    """One operator of a chain.

    Parameters
    ----------
    node
        What it computes together with everything before it; written only where it fails.
    taken
        The type in which it takes what comes before it.
    kind
        The type of its result.
    """

    symbol: str
    node: exp.Expression
    taken: pa.DataType
    right: BoundExpression
    kind: pa.DataType


def in_a_row(first: BoundExpression, steps: Sequence[ChainStep], rows: RowsOfBatch) -> pa.Array:
    """Compute a chain on some rows."""
    # Spark looks at a divisor first, and at the other operand only when the first one is not null. So divisors are
    # computed from the last one on, each on the rows that the ones behind it leave.
    begun: list[tuple[ChainStep, RowsOfBatch, pa.Array | None, Callable[[pa.Array], pa.Array] | None]] = []
    for step in reversed(steps):
        if step.symbol in "/%":
            divisor = step.right.run(rows)
            narrower, spread = rows.narrowed(divisor.is_valid())
            begun.append((step, rows, divisor, spread))
            rows = narrower
        else:
            begun.append((step, rows, None, None))
    a = first.run(rows)
    for step, own, divisor, spread in reversed(begun):
        a = _taken(a, step)
        if divisor is None or spread is None:
            b = own.where(a.is_valid(), step.right)
        else:
            a, b = spread(a), divisor
            divides_by_zero = pc.and_(pc.equal(b, af.zero(b.type)), a.is_valid())
            if pc.any(divides_by_zero, min_count=0).as_py():
                word = "division" if step.symbol == "/" else "remainder"
                raise Failure(f"{word} by zero in {write(step.node)!r}")
        try:
            a = af.arithmetic(step.symbol, a, b, step.kind)
        except pa.ArrowInvalid:
            raise Failure(f"{write(step.node)!r} does not fit {name_of(step.kind)}") from None
    return a


def _taken(values: pa.Array, step: ChainStep) -> pa.Array:
    if values.type == step.taken:
        return values
    try:
        return af.cast(values, step.taken)
    except pa.ArrowInvalid:
        raise Failure(f"a value of {write(step.node.this)!r} does not fit {name_of(step.taken)}") from None
