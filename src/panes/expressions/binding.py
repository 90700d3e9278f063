"""Bind an expression to a schema: names and types are resolved once, and what comes out runs on any batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from panes.errors import ExpressionError, SchemaError, nearest
from panes.expressions import arithmetic, coercion, comparison, conditions, decimals, functions, literals, strings
from panes.expressions.casts import cast, castable
from panes.expressions.coercion import BOOLEAN, DOUBLE, NULL, STRING, common_type, is_decimal, is_numeric, name_of
from panes.expressions.expression import Expression
from panes.expressions.outcome import Bound, Values, all_of, failing, in_order, truth
from panes.expressions.writing import operands, path, type_name, write


def bind(expression: Expression, schema: pa.Schema) -> Bound:
    """Resolve names and types of an expression; what does not fit the schema is an error."""
    return _Binder(expression, schema).bind(expression.tree)


class _Binder:
    """One walk over a tree."""

    def __init__(self, expression: Expression, schema: pa.Schema) -> None:
        self.expression, self.schema = expression, schema

    def bind(self, node: exp.Expression) -> Bound:
        kind = type(node)
        if kind in _ARITHMETIC:
            return self.arithmetic(node, _ARITHMETIC[kind])
        if kind in _COMPARISONS:
            return self.comparison(node, _COMPARISONS[kind], self.bind(node.this), self.bind(node.expression))
        return _BINDERS[kind](self, node)

    def refuse(self, node: exp.Expression, reason: str) -> ExpressionError:
        """The error for wrong types in a part of the expression."""
        part, whole = write(node), self.expression.sql
        return ExpressionError(f"{part!r} cannot be computed{'' if part == whole else f' in {whole!r}'}: {reason}.")

    # Leaves ----------------------------------------------------------------------------------------------------

    def column(self, node: exp.Expression) -> Bound:
        names = path(node)
        index = _position(names[0], self.schema.names, "the data have no column", "columns")
        kind, indices = self.schema.field(index).type, []
        for depth, name in enumerate(names[1:], 1):
            if not pa.types.is_struct(kind):
                whole = ".".join(names[:depth])
                raise SchemaError(f"{whole!r} is {name_of(kind)}, no struct: it has no field {name!r}.")
            fields = [kind.field(i).name for i in range(kind.num_fields)]
            indices.append(_position(name, fields, f"the struct {'.'.join(names[:depth])!r} has no field", "fields"))
            kind = kind.field(indices[-1]).type
        target = coercion.column_type(kind)

        def run(batch: pa.RecordBatch) -> Values:
            array = batch.column(index)
            if indices:
                array = pc.struct_field(array, indices)
            # Nanoseconds are cut to Spark's microseconds; a timestamp's zone is only how it is shown.
            return Values(array if array.type == target else array.cast(target, safe=False))

        return Bound(target, run, write(node))

    def literal(self, node: exp.Expression, sign: int = 1) -> Bound:
        if node.args.get("is_string"):
            return _constant(node.name, STRING, write(node))
        value = literals.number(node.name)
        text = write(node) if sign > 0 else f"-{write(node)}"
        if isinstance(value, int):
            signed = value * sign
            for kind in (pa.int32(), pa.int64()):
                if abs(signed + (signed < 0)) < 2 ** (kind.bit_width - 1):
                    return _constant(signed, kind, text, integer=signed)
            value = Decimal(value)
        if isinstance(value, float):
            return _constant(sign * value, DOUBLE, text)
        exact = value.copy_abs() if sign > 0 else value.copy_negate()
        _, digits, exponent = exact.as_tuple()
        scale = -int(exponent)
        return _constant(exact, pa.decimal128(max(len(digits), scale), scale), text)

    def cast(self, node: exp.Expression) -> Bound:
        name = type_name(node.args["to"]) or ""
        if name in ("DATE", "TIMESTAMP"):
            text = node.this.name
            value = literals.day(text) if name == "DATE" else literals.instant(text)[0]
            return _constant(value, coercion.TIMESTAMP if isinstance(value, datetime) else coercion.DATE, write(node))
        operand, target = self.bind(node.this), _target(name)
        if not castable(operand.type, target):
            raise self.refuse(node, f"a cast from {name_of(operand.type)} to {name} is not in the subset")
        return converted(operand, target, write(node))

    # Operators -------------------------------------------------------------------------------------------------

    def arithmetic(self, node: exp.Expression, symbol: str) -> Bound:
        left, right = self.bind(node.this), self.bind(node.expression)
        for side in (left, right):
            if not is_numeric(side.type) and side.type != NULL:
                raise self.refuse(node, f"{side.sql!r} is {name_of(side.type)}, and {symbol} takes numbers")
        sides, kind = _operand_types(symbol, left, right)
        text = write(node)
        first, second = converted(left, sides[0]), converted(right, sides[1])
        divides = symbol in "/%"
        reason = f"{'division' if symbol == '/' else 'remainder'} by zero in {text!r}"

        def run(batch: pa.RecordBatch) -> Values:
            a, b = first.run(batch), second.run(batch)
            # Spark looks at the divisor first, and at the other operand only when it is not null.
            failures = in_order(b, a) if divides else in_order(a, b)
            divisor = b.array
            if divides:
                zero = arithmetic.is_zero(b.array)
                failures += failing(zero & a.valid, reason)
                divisor = pc.if_else(pa.array(zero), pa.scalar(None, b.array.type), b.array)
            array, overflow = arithmetic.compute(symbol, a.array, divisor, kind)
            return Values(array, failures + failing(overflow, f"{text!r} does not fit {name_of(kind)}"))

        return Bound(kind, run, text)

    def comparison(self, node: exp.Expression, symbol: str, left: Bound, right: Bound) -> Bound:
        kinds = [left.type, right.type]
        for side, other in ((0, right), (1, left)):
            literal = (left, right)[side].integer
            if literal is not None and is_decimal(other.type):
                kinds[side] = coercion.as_decimal(kinds[side], literal)
        kind = self.common(node, (left, right), kinds)
        first, second = converted(left, kind), converted(right, kind)

        def run(batch: pa.RecordBatch) -> Values:
            a, b = first.run(batch), second.run(batch)
            if symbol == "<=>":
                return Values(comparison.same(a.array, b.array), all_of((a, b)))
            return Values(comparison.compare(symbol, a.array, b.array), in_order(a, b))

        return Bound(BOOLEAN, run, write(node))

    def common(self, node: exp.Expression, bounds: Sequence[Bound], kinds: Sequence[pa.DataType]) -> pa.DataType:
        """The type in which operands are compared."""
        kind = common_type(kinds)
        if kind is None or not coercion.is_ordered(kind):
            shown = " with ".join(f"{bound.sql!r} ({name_of(bound.type)})" for bound in bounds)
            raise self.refuse(node, f"cannot compare {shown}: cast one of them, or write a literal of the other's type")
        return kind

    def negative(self, node: exp.Expression) -> Bound:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return self.literal(node.this, sign=-1)  # -2147483648 is one literal, and an INT
        return self.function(node)

    def function(self, node: exp.Expression) -> Bound:
        bounds = [self.bind(operand) for operand in operands(node)]
        return functions.bind(node, bounds, lambda reason: self.refuse(node, reason))

    def condition(self, node: exp.Expression) -> Bound:
        """Bind an operand of AND, OR, NOT or the condition of a CASE."""
        bound = self.bind(node)
        if bound.type not in (BOOLEAN, NULL):
            raise self.refuse(node, f"it is {name_of(bound.type)}, and a condition has to be BOOLEAN")
        return converted(bound, BOOLEAN)

    def logic(self, node: exp.Expression) -> Bound:
        chain, kind = [], type(node)
        while isinstance(node, kind):  # a long chain leans to the left: a loop, no deep recursion
            chain.append(node.expression)
            node = node.this
        bounds = [self.condition(part) for part in (node, *reversed(chain))]
        return conditions.logic(bounds, both=kind is exp.And)

    def negation(self, node: exp.Expression) -> Bound:
        operand = self.condition(node.this)
        return Bound(BOOLEAN, lambda batch: _same_failures(operand.run(batch), pc.invert), write(node))

    def is_(self, node: exp.Expression) -> Bound:
        constant = node.expression
        if isinstance(constant, exp.Null):
            operand = self.bind(node.this)
            return Bound(BOOLEAN, lambda batch: _same_failures(operand.run(batch), pc.is_null), write(node))
        operand, wanted = self.condition(node.this), bool(constant.this)

        def run(batch: pa.RecordBatch) -> Values:
            values = operand.run(batch)
            equal = truth(values.array) if wanted else truth(pc.invert(values.array))
            return Values(pa.array(equal, BOOLEAN), values.failures)

        return Bound(BOOLEAN, run, write(node))

    def in_(self, node: exp.Expression) -> Bound:
        bounds = [self.bind(node.this), *(self.bind(part) for part in node.expressions)]
        kind = self.common(node, bounds, [bound.type for bound in bounds])
        return conditions.member([converted(bound, kind) for bound in bounds], write(node))

    def between(self, node: exp.Expression) -> Bound:
        value = self.bind(node.this)
        low = self.comparison(node, ">=", value, self.bind(node.args["low"]))
        high = self.comparison(node, "<=", value, self.bind(node.args["high"]))
        return conditions.logic([low, high], both=True)

    def like(self, node: exp.Expression) -> Bound:
        operand, pattern = self.bind(node.this), node.expression.name
        if operand.type not in (STRING, NULL):
            raise self.refuse(node, f"{operand.sql!r} is {name_of(operand.type)}, and LIKE takes a STRING")
        text = converted(operand, STRING)
        return Bound(
            BOOLEAN, lambda batch: _same_failures(text.run(batch), lambda a: strings.like(a, pattern)), write(node)
        )

    # Choices ---------------------------------------------------------------------------------------------------

    def case(self, node: exp.Expression) -> Bound:
        tests, values = [], []
        for branch in node.args["ifs"]:
            if node.this is None:
                if isinstance(branch.this, exp.Null):
                    raise self.refuse(node, "a WHEN that is NULL is never true")
                tests.append(self.condition(branch.this))
            else:
                tests.append(self.comparison(node, "=", self.bind(node.this), self.bind(branch.this)))
            values.append(self.bind(branch.args["true"]))
        default = node.args.get("default")
        values.append(self.bind(default) if default is not None else _constant(None, NULL, "NULL"))
        return conditions.choose(tests, self.alike(node, values), write(node))

    def if_(self, node: exp.Expression) -> Bound:
        values = [self.bind(node.args["true"]), self.bind(node.args["false"])]
        return conditions.choose([self.condition(node.this)], self.alike(node, values), write(node))

    def coalesce(self, node: exp.Expression) -> Bound:
        values = self.alike(node, [self.bind(operand) for operand in operands(node)])
        return conditions.coalesce(values, write(node))

    def nullif(self, node: exp.Expression) -> Bound:
        value = self.bind(node.this)
        equal = self.comparison(node, "=", value, self.bind(node.expression))
        return conditions.choose([equal], [converted(_constant(None, NULL, "NULL"), value.type), value], write(node))

    def extreme(self, node: exp.Expression) -> Bound:
        bounds = self.alike(node, [self.bind(operand) for operand in operands(node)])
        self.common(node, bounds, [bound.type for bound in bounds])
        largest = isinstance(node, exp.Greatest)

        def run(batch: pa.RecordBatch) -> Values:
            values = [bound.run(batch) for bound in bounds]
            return Values(comparison.extreme([one.array for one in values], largest=largest), all_of(values))

        return Bound(bounds[0].type, run, write(node))

    def alike(self, node: exp.Expression, bounds: list[Bound]) -> list[Bound]:
        """The alternatives of a choice, in their common type."""
        kind = common_type([bound.type for bound in bounds])
        if kind is None:
            shown = ", ".join(f"{bound.sql!r} ({name_of(bound.type)})" for bound in bounds)
            raise self.refuse(node, f"the values have no type in common: {shown}")
        return [converted(bound, kind) for bound in bounds]


def converted(bound: Bound, kind: pa.DataType, sql: str | None = None) -> Bound:
    """The same values in another type."""
    if bound.type == kind:
        return bound
    text = sql or bound.sql

    def run(batch: pa.RecordBatch) -> Values:
        values = bound.run(batch)
        array, failed = cast(values.array, kind)
        reason = f"a value of {bound.sql!r} does not fit {name_of(kind)}"
        return Values(array, values.failures + failing(failed, reason))

    return Bound(kind, run, text)


def _same_failures(values: Values, function: Callable[[pa.Array], pa.Array]) -> Values:
    return Values(function(values.array), values.failures)


def _constant(value: literals.Scalar, kind: pa.DataType, sql: str, integer: int | None = None) -> Bound:
    scalar = pa.scalar(value, kind)
    return Bound(kind, lambda batch: Values(pa.repeat(scalar, batch.num_rows)), sql, integer)


def _position(name: str, names: Sequence[str], missing: str, plural: str) -> int:
    """Where a name stands, whatever its case, as Spark resolves it."""
    found = [index for index, known in enumerate(names) if known.lower() == name.lower()]
    if not found:
        raise SchemaError(f"{missing} {name!r}: {nearest(name, names)}")
    if len(found) > 1:
        shown = ", ".join(repr(names[index]) for index in found)
        raise SchemaError(f"{name!r} is ambiguous: the {plural} {shown} differ in nothing but case. Rename one.")
    return found[0]


def _target(name: str) -> pa.DataType:
    if name.startswith("DECIMAL"):
        precision, scale = name[len("DECIMAL(") : -1].split(",")
        return pa.decimal128(int(precision), int(scale))
    return _TARGETS[name]


def _operand_types(symbol: str, left: Bound, right: Bound) -> tuple[tuple[pa.DataType, pa.DataType], pa.DataType]:
    """The types in which the operands of + - * / % are taken, and that of the result."""
    one, other = left.type, right.type
    if symbol == "/" and (one == NULL or not (is_decimal(one) or is_decimal(other))):
        return (DOUBLE, DOUBLE), DOUBLE
    if NULL in (one, other):
        kind = DOUBLE if one == other else (other if one == NULL else one)
        return (kind, kind), (decimals.arithmetic_type(symbol, kind, kind) if is_decimal(kind) else kind)
    kind = common_type([one, other])
    assert kind is not None
    if not is_decimal(kind):
        return (kind, kind), kind
    sides = (coercion.as_decimal(one, left.integer), coercion.as_decimal(other, right.integer))
    return sides, decimals.arithmetic_type(symbol, *sides)


_ARITHMETIC: Final[dict[type[exp.Expression], str]] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
_COMPARISONS: Final[dict[type[exp.Expression], str]] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_TARGETS: Final = {
    "BOOLEAN": BOOLEAN,
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": DOUBLE,
    "STRING": STRING,
}
_BINDERS: Final[dict[type[exp.Expression], Callable[[_Binder, exp.Expression], Bound]]] = {
    exp.Column: _Binder.column,
    exp.Dot: _Binder.column,
    exp.Literal: _Binder.literal,
    exp.Boolean: lambda binder, node: _constant(bool(node.this), BOOLEAN, write(node)),
    exp.Null: lambda binder, node: _constant(None, NULL, "NULL"),
    exp.Cast: _Binder.cast,
    exp.TryCast: _Binder.cast,
    exp.Neg: _Binder.negative,
    exp.And: _Binder.logic,
    exp.Or: _Binder.logic,
    exp.Not: _Binder.negation,
    exp.Is: _Binder.is_,
    exp.In: _Binder.in_,
    exp.Between: _Binder.between,
    exp.Like: _Binder.like,
    exp.Case: _Binder.case,
    exp.If: _Binder.if_,
    exp.Coalesce: _Binder.coalesce,
    exp.Nullif: _Binder.nullif,
    exp.Least: _Binder.extreme,
    exp.Greatest: _Binder.extreme,
    **dict.fromkeys(functions.NAMES, _Binder.function),
}
