"""The operators and functions of expressions, each declared once.

``parsing`` accepts what is listed here, ``writing`` spells it, and ``binder`` checks the types of its operands and
computes it. What has a syntax of its own (CASE, CAST, IN, BETWEEN, LIKE, IS) is in those three modules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from panes.expressions import arrow_functions as af
from panes.expressions.coercion import BOOLEAN, DOUBLE, STRING, is_numeric, whole_type

OR, AND, NOT, PREDICATE, SUM, PRODUCT, NEGATIVE, ATOM = range(8)
"""Precedences, from what binds loosest to what binds tightest."""


@dataclass(frozen=True, slots=True)
class InfixOperator:
    """An operator between two operands."""

    symbol: str
    precedence: int


OPERATORS: Final[dict[type[exp.Expression], InfixOperator]] = {
    exp.Or: InfixOperator("OR", OR),
    exp.And: InfixOperator("AND", AND),
    exp.EQ: InfixOperator("=", PREDICATE),
    exp.NEQ: InfixOperator("<>", PREDICATE),
    exp.LT: InfixOperator("<", PREDICATE),
    exp.LTE: InfixOperator("<=", PREDICATE),
    exp.GT: InfixOperator(">", PREDICATE),
    exp.GTE: InfixOperator(">=", PREDICATE),
    exp.NullSafeEQ: InfixOperator("<=>", PREDICATE),
    exp.Add: InfixOperator("+", SUM),
    exp.Sub: InfixOperator("-", SUM),
    exp.Mul: InfixOperator("*", PRODUCT),
    exp.Div: InfixOperator("/", PRODUCT),
    exp.Mod: InfixOperator("%", PRODUCT),
}
COMPARISONS: Final = tuple(kind for kind, operator in OPERATORS.items() if operator.precedence == PREDICATE)


@dataclass(frozen=True, slots=True)
class Operand:
    """What a function takes.

    Parameters
    ----------
    described
        How messages call it.
    includes
        Whether a type is one of it.
    null
        The type that a NULL literal has as one.
    """

    described: str
    includes: Callable[[pa.DataType], bool]
    null: pa.DataType


NUMBER: Final = Operand("a number", is_numeric, DOUBLE)
TEXT: Final = Operand("a STRING", STRING.equals, STRING)


@dataclass(frozen=True, slots=True)
class Function:
    """A function that evaluates all of its arguments.

    Parameters
    ----------
    name
        Its name in SQL.
    takes
        What all of its arguments have to be.
    gives
        The type of its result, given that of its first argument.
    compute
        Its value for arrays of arguments. A value that does not fit raises ``pa.ArrowInvalid``.
    arguments
        The names under which sqlglot keeps them, in the order of SQL.
    """

    name: str
    takes: Operand
    gives: Callable[[pa.DataType], pa.DataType]
    compute: Callable[..., pa.Array]
    arguments: tuple[str, ...] = ("this",)


@dataclass(frozen=True, slots=True)
class Form:
    """What is written as a function, but has rules of its own in ``binder``."""

    name: str
    arguments: tuple[str, ...]


FUNCTIONS: Final[dict[type[exp.Expression], Function | Form]] = {
    exp.Abs: Function("ABS", NUMBER, lambda kind: kind, af.absolute),
    exp.Ceil: Function("CEIL", NUMBER, whole_type, af.ceiling),
    exp.Coalesce: Form("COALESCE", ("this", "expressions")),
    exp.Concat: Function("CONCAT", TEXT, lambda kind: STRING, af.concat, ("expressions",)),
    exp.Floor: Function("FLOOR", NUMBER, whole_type, af.floor),
    exp.Greatest: Form("GREATEST", ("this", "expressions")),
    exp.If: Form("IF", ("this", "true", "false")),
    exp.IsNan: Function("ISNAN", NUMBER, lambda kind: BOOLEAN, af.is_nan),
    exp.Least: Form("LEAST", ("this", "expressions")),
    exp.Length: Function("LENGTH", TEXT, lambda kind: pa.int32(), pc.utf8_length),
    exp.Lower: Function("LOWER", TEXT, lambda kind: STRING, af.lower),
    exp.Nullif: Form("NULLIF", ("this", "expression")),
    exp.Round: Form("ROUND", ("this", "decimals")),
    exp.Trim: Function("TRIM", TEXT, lambda kind: STRING, af.trim),
    exp.Upper: Function("UPPER", TEXT, lambda kind: STRING, af.upper),
}
"""The functions of the subset. ``CASE`` and ``CAST`` are not written as functions, and ``a || b`` is CONCAT(a, b)."""

NEGATION: Final = Function("-", NUMBER, lambda kind: kind, af.negate)
"""``-x`` of anything but a literal."""
