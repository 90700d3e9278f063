"""Bind an expression to a schema: resolve its names and types once, before rows flow.

``a / 2`` over ``a INT`` becomes a division of ``a``, converted to DOUBLE, by the constant 2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from panes.errors import ExpressionError, SchemaError
from panes.expressions import arrow_functions as af
from panes.expressions import coercion, parsing
from panes.expressions.bound import (
    NULL_CONSTANT,
    BoundExpression,
    RowsOfBatch,
    apply,
    choose,
    coalesce,
    constant,
    converted,
    logic,
)
from panes.expressions.chains import ChainStep, in_a_row
from panes.expressions.coercion import (
    BOOLEAN,
    DOUBLE,
    NULL,
    STRING,
    common_type,
    is_decimal,
    is_numeric,
    name_of,
    type_named,
)
from panes.expressions.expression import Expression
from panes.expressions.functions import COMPARISONS, FUNCTIONS, NEGATION, NUMBER, OPERATORS, Function, Operand
from panes.expressions.writing import chain_of, operands, path, write
from panes.suggestions import nearest


@lru_cache(maxsize=1024)
def bind(value: Expression, schema: pa.Schema) -> BoundExpression:
    """Resolve the names and types of an expression; raise if it does not fit the schema."""
    return _Binder(value, schema).bind(value.tree)


class _Binder:
    """One walk over the tree of an expression."""

    def __init__(self, expression: Expression, schema: pa.Schema) -> None:
        self.expression, self.schema = expression, schema

    def bind(self, node: exp.Expression) -> BoundExpression:
        kind = type(node)
        if kind in _BINDERS:
            return _BINDERS[kind](self, node)
        if kind in COMPARISONS:
            return self.comparison(node, OPERATORS[kind].symbol, self.bind(node.this), self.bind(node.expression))
        if kind in OPERATORS:
            return self.arithmetic(node)
        function = FUNCTIONS[kind]
        assert isinstance(function, Function), f"{function.name} has no entry in _BINDERS"
        return self.function(node, function)

    def bind_all(self, nodes: Sequence[exp.Expression]) -> list[BoundExpression]:
        return [self.bind(node) for node in nodes]

    def error(self, node: exp.Expression, reason: str) -> ExpressionError:
        """Return the error for wrong types in a part of the expression."""
        part, whole = write(node), self.expression.sql
        return ExpressionError(f"{part!r} cannot be computed{'' if part == whole else f' in {whole!r}'}: {reason}.")

    # Leaves

    def column(self, node: exp.Expression) -> BoundExpression:
        names = path(node)
        index = position(names[0], self.schema.names)
        kind, indices = self.schema.field(index).type, []
        for depth, name in enumerate(names[1:], 1):
            parent = ".".join(names[:depth])
            if not pa.types.is_struct(kind):
                raise SchemaError(f"{parent!r} is {name_of(kind)}, not a struct: it has no field {name!r}.")
            fields = [kind.field(i).name for i in range(kind.num_fields)]
            indices.append(position(name, fields, f"the struct {parent!r} has no field", "fields"))
            kind = kind.field(indices[-1]).type
        target = coercion.column_type(kind)

        def run(rows: RowsOfBatch) -> pa.Array:
            array = rows.column(index)
            if indices:
                array = pc.struct_field(array, indices)
            # Nanoseconds are cut to Spark's microseconds.
            return array if array.type == target else array.cast(target, safe=False)

        return BoundExpression(target, run, write(node))

    def literal(self, node: exp.Expression, sign: int = 1) -> BoundExpression:
        if node.args.get("is_string"):
            return constant(pa.scalar(node.name, STRING), write(node))
        value = parsing.number(node.name)
        text = write(node) if sign > 0 else f"-{write(node)}"
        if isinstance(value, int):
            signed = value * sign
            for kind in (pa.int32(), pa.int64()):
                if abs(signed + (signed < 0)) < 2 ** (kind.bit_width - 1):
                    return constant(pa.scalar(signed, kind), text, integer=signed)
            value = Decimal(value)
        if isinstance(value, float):
            return constant(pa.scalar(sign * value, DOUBLE), text)
        exact = value.copy_abs() if sign > 0 else value.copy_negate()
        _, digits, exponent = exact.as_tuple()
        scale = -int(exponent)
        return constant(pa.scalar(exact, pa.decimal128(max(len(digits), scale), scale)), text)

    def negative(self, node: exp.Expression) -> BoundExpression:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return self.literal(node.this, sign=-1)  # -2147483648 is one literal, and an INT
        return self.function(node, NEGATION)

    def cast(self, node: exp.Expression) -> BoundExpression:
        target = type_named(node.args["to"].sql(dialect="spark"))
        if target == coercion.DATE:
            return constant(pa.scalar(parsing.day(node.this.name), target), write(node))
        if target == coercion.TIMESTAMP:
            return constant(pa.scalar(parsing.instant(node.this.name), target), write(node))
        operand = self.bind(node.this)
        if not af.castable(operand.type, target):
            raise self.error(node, f"a cast from {name_of(operand.type)} to {name_of(target)} is not in the subset")
        return converted(operand, target, write(node))

    # Operators

    def arithmetic(self, node: exp.Expression) -> BoundExpression:
        innermost, chain = chain_of(node, _ARITHMETIC)
        left, steps = self.bind(innermost), list[ChainStep]()
        kind = left.type
        for part in chain:
            symbol, right = OPERATORS[type(part)].symbol, self.bind(part.expression)
            before = BoundExpression(kind, left.run, "") if steps else left
            for side in (before, right):
                if not is_numeric(side.type) and side.type != NULL:
                    raise self.error(part, f"{side.sql!r} is {name_of(side.type)}, and {symbol} takes numbers")
            sides, kind = _operand_types(symbol, before, right)
            if not steps:
                left = converted(left, sides[0])
            steps.append(ChainStep(symbol, part, sides[0], converted(right, sides[1]), kind))
        return BoundExpression(kind, partial(in_a_row, left, steps), write(node))

    def comparison(
        self, node: exp.Expression, symbol: str, left: BoundExpression, right: BoundExpression
    ) -> BoundExpression:
        kinds = [left.type, right.type]
        for side, other in ((0, right), (1, left)):
            literal = (left, right)[side].integer
            if literal is not None and is_decimal(other.type):
                kinds[side] = coercion.as_decimal(kinds[side], literal)
        kind = self.common(node, (left, right), kinds)
        first, second = converted(left, kind), converted(right, kind)
        if symbol == "<=>":
            return apply(af.equal_or_both_null, [first, second], BOOLEAN, write(node))

        def run(rows: RowsOfBatch) -> pa.Array:
            a = first.run(rows)
            return af.compare(symbol, a, rows.where(a.is_valid(), second))

        return BoundExpression(BOOLEAN, run, write(node))

    def common(
        self, node: exp.Expression, bounds: Sequence[BoundExpression], kinds: Sequence[pa.DataType]
    ) -> pa.DataType:
        """Return the type in which operands are compared."""
        kind = common_type(kinds)
        if kind is None or not coercion.is_ordered(kind):
            shown = " with ".join(f"{bound.sql!r} ({name_of(bound.type)})" for bound in bounds)
            raise self.error(node, f"cannot compare {shown}: cast one of them, or write a literal of the other's type")
        return kind

    def condition(self, node: exp.Expression) -> BoundExpression:
        """Bind an operand of AND, OR, NOT or the condition of a CASE."""
        bound = self.bind(node)
        if bound.type not in (BOOLEAN, NULL):
            raise self.error(node, f"it is {name_of(bound.type)}, and a condition must be BOOLEAN")
        return converted(bound, BOOLEAN)

    def logic(self, node: exp.Expression) -> BoundExpression:
        kind = type(node)
        first, chain = chain_of(node, (kind,))
        parts = (first, *(part.expression for part in chain))
        return logic([self.condition(part) for part in parts], both=kind is exp.And)

    def negation(self, node: exp.Expression) -> BoundExpression:
        return apply(pc.invert, [self.condition(node.this)], BOOLEAN, write(node))

    def is_(self, node: exp.Expression) -> BoundExpression:
        constant = node.expression
        if isinstance(constant, exp.Null):
            return apply(pc.is_null, [self.bind(node.this)], BOOLEAN, write(node))
        wanted = bool(constant.this)

        def holds(array: pa.Array) -> pa.Array:
            return pc.fill_null(array if wanted else pc.invert(array), False)

        return apply(holds, [self.condition(node.this)], BOOLEAN, write(node))

    def in_(self, node: exp.Expression) -> BoundExpression:
        bounds = self.bind_all([node.this, *node.expressions])
        kind = self.common(node, bounds, [bound.type for bound in bounds])
        value, *others = (converted(bound, kind) for bound in bounds)
        constants = [other.constant for other in others if other.constant is not None]
        if len(constants) == len(others) and kind != NULL:
            return apply(partial(af.is_in, values=constants), [value], BOOLEAN, write(node))
        return logic([self.comparison(node, "=", value, other) for other in others], both=False)

    def between(self, node: exp.Expression) -> BoundExpression:
        value = self.bind(node.this)
        low = self.comparison(node, ">=", value, self.bind(node.args["low"]))
        high = self.comparison(node, "<=", value, self.bind(node.args["high"]))
        return logic([low, high], both=True)

    # Choices

    def case(self, node: exp.Expression) -> BoundExpression:
        tests, values = [], []
        for branch in node.args["ifs"]:
            if node.this is None:
                if isinstance(branch.this, exp.Null):
                    raise self.error(node, "a WHEN that is NULL is never true")
                tests.append(self.condition(branch.this))
            else:
                tests.append(self.comparison(node, "=", self.bind(node.this), self.bind(branch.this)))
            values.append(self.bind(branch.args["true"]))
        default = node.args.get("default")
        values.append(NULL_CONSTANT if default is None else self.bind(default))
        return choose(tests, self.alike(node, values), write(node))

    def if_(self, node: exp.Expression) -> BoundExpression:
        values = self.bind_all([node.args["true"], node.args["false"]])
        return choose([self.condition(node.this)], self.alike(node, values), write(node))

    def coalesce(self, node: exp.Expression) -> BoundExpression:
        return coalesce(self.alike(node, self.bind_all(operands(node))), write(node))

    def nullif(self, node: exp.Expression) -> BoundExpression:
        value = self.bind(node.this)
        equal = self.comparison(node, "=", value, self.bind(node.expression))
        return choose([equal], [converted(NULL_CONSTANT, value.type), value], write(node))

    def extreme(self, node: exp.Expression) -> BoundExpression:
        bounds = self.alike(node, self.bind_all(operands(node)))
        kind = self.common(node, bounds, [bound.type for bound in bounds])
        largest = isinstance(node, exp.Greatest)
        return apply(lambda *arrays: af.extreme(arrays, largest=largest), bounds, kind, write(node))

    def alike(self, node: exp.Expression, bounds: Sequence[BoundExpression]) -> list[BoundExpression]:
        """Return the alternatives of a choice in their common type."""
        kind = common_type([bound.type for bound in bounds])
        if kind is None:
            shown = ", ".join(f"{bound.sql!r} ({name_of(bound.type)})" for bound in bounds)
            raise self.error(node, f"the values have no type in common: {shown}")
        return [converted(bound, kind) for bound in bounds]

    # Functions

    def arguments(self, node: exp.Expression, takes: Operand) -> list[BoundExpression]:
        """Bind the arguments of a function."""
        bounds = self.bind_all(operands(node))
        for bound in bounds:
            if bound.type != NULL and not takes.includes(bound.type):
                raise self.error(node, f"{bound.sql!r} is {name_of(bound.type)}, and {takes.described} is needed here")
        return [converted(bound, takes.null) if bound.type == NULL else bound for bound in bounds]

    def function(self, node: exp.Expression, function: Function) -> BoundExpression:
        bounds = self.arguments(node, function.takes)
        return apply(function.compute, bounds, function.gives(bounds[0].type), write(node))

    def round(self, node: exp.Expression) -> BoundExpression:
        value, *decimals = self.arguments(node, NUMBER)
        digits = decimals[0].integer or 0 if decimals else 0
        function = partial(af.round_half_up, digits=digits)
        return apply(function, [value], coercion.rounded_type(value.type, digits), write(node))

    def like(self, node: exp.Expression) -> BoundExpression:
        operand, pattern = self.bind(node.this), node.expression.name
        if operand.type not in (STRING, NULL):
            raise self.error(node, f"{operand.sql!r} is {name_of(operand.type)}, and LIKE takes a STRING")
        return apply(partial(af.like, pattern=pattern), [converted(operand, STRING)], BOOLEAN, write(node))


def position(name: str, names: Sequence[str], missing: str = "the data have no column", plural: str = "columns") -> int:
    """Return the index of a name, whatever its case, as Spark resolves it."""
    indices = [index for index, other in enumerate(names) if other.lower() == name.lower()]
    if not indices:
        raise SchemaError(f"{missing} {name!r}: {nearest(name, names)}")
    if len(indices) > 1:
        shown = ", ".join(repr(names[index]) for index in indices)
        raise SchemaError(f"{name!r} is ambiguous: the {plural} {shown} differ only in case. Rename one.")
    return indices[0]


_ARITHMETIC: Final = frozenset(OPERATORS) - {exp.And, exp.Or, *COMPARISONS}


def _operand_types(
    symbol: str, left: BoundExpression, right: BoundExpression
) -> tuple[tuple[pa.DataType, pa.DataType], pa.DataType]:
    """Return the types in which the operands of + - * / % are taken, and that of the result."""
    one, other = left.type, right.type
    if symbol == "/" and (one == NULL or not (is_decimal(one) or is_decimal(other))):
        return (DOUBLE, DOUBLE), DOUBLE
    if NULL in (one, other):
        kind = DOUBLE if one == other else (other if one == NULL else one)
        return (kind, kind), (coercion.decimal_result(symbol, kind, kind) if is_decimal(kind) else kind)
    common = common_type([one, other])
    assert common is not None
    if not is_decimal(common):
        return (common, common), common
    sides = (coercion.as_decimal(one, left.integer), coercion.as_decimal(other, right.integer))
    return sides, coercion.decimal_result(symbol, *sides)


_BINDERS: Final[dict[type[exp.Expression], Callable[[_Binder, Any], BoundExpression]]] = {
    exp.Column: _Binder.column,
    exp.Dot: _Binder.column,
    exp.Literal: _Binder.literal,
    exp.Boolean: lambda binder, node: constant(pa.scalar(bool(node.this)), write(node)),
    exp.Null: lambda binder, node: NULL_CONSTANT,
    exp.Neg: _Binder.negative,
    **dict.fromkeys((exp.Cast, exp.TryCast), _Binder.cast),
    **dict.fromkeys((exp.And, exp.Or), _Binder.logic),
    exp.Not: _Binder.negation,
    exp.Is: _Binder.is_,
    exp.In: _Binder.in_,
    exp.Between: _Binder.between,
    exp.Case: _Binder.case,
    exp.If: _Binder.if_,
    exp.Coalesce: _Binder.coalesce,
    exp.Nullif: _Binder.nullif,
    **dict.fromkeys((exp.Least, exp.Greatest), _Binder.extreme),
    exp.Round: _Binder.round,
    exp.Like: _Binder.like,
}
