"""Evaluate expressions on Arrow tables: the same values, types and errors that Spark 4 gives in ANSI mode.

An expression is bound to a schema once: names and types are resolved, and what remains is a tree of Arrow calls. A
value that cannot be computed (``1 / 0``) is an error only on rows where SQL looks at it: not in a branch that CASE, AND
or COALESCE skips. So a batch is first computed whole, which is fast and where nothing fails the answer. Where
something fails, it is computed again with each operand on just the rows that reach it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from panes.errors import ExpressionError, SchemaError, nearest
from panes.expressions import arrow_functions as af
from panes.expressions import coercion, parsing
from panes.expressions.coercion import BOOLEAN, DOUBLE, NULL, STRING, common_type, is_decimal, is_numeric, name_of
from panes.expressions.expression import Expression, ExpressionLike, expression
from panes.expressions.writing import operands, path, type_name, write


def evaluate(value: ExpressionLike, table: pa.Table) -> pa.ChunkedArray:
    """Evaluate an expression on every row of a table.

    Examples
    --------
    >>> table = pa.table({"price": [2, 3, None], "quantity": [10, 0, 1]})
    >>> evaluate("price * quantity > 10", table).to_pylist()
    [True, False, None]
    >>> evaluate("price / quantity", table)
    Traceback (most recent call last):
    ...
    panes.errors.ExpressionError: 'price / quantity' fails on row 1 (price = 3, quantity = 0): division by zero in ...
    """
    parsed = expression(value)
    bound = bind(parsed, table.schema)
    arrays, before = [], 0
    for batch in table.to_batches():
        try:
            arrays.append(bound.evaluate(batch))
        except Failure:
            raise _error(parsed, bound, batch, before) from None
        before += batch.num_rows
    return pa.chunked_array(arrays, bound.type)


def result_type(value: ExpressionLike, schema: pa.Schema) -> pa.DataType:
    """Return the type of an expression over a schema; raise if types do not fit, before any row is read.

    Examples
    --------
    >>> result_type("a / 2", pa.schema({"a": pa.int32()}))
    DataType(double)
    """
    return bind(expression(value), schema).type


def require_boolean(value: ExpressionLike, schema: pa.Schema) -> Expression:
    """Return a condition as an Expression; raise if it is not boolean.

    Examples
    --------
    >>> require_boolean("a + 1", pa.schema({"a": pa.int32()}))
    Traceback (most recent call last):
    ...
    panes.errors.ExpressionError: 'a + 1' is INT, and a condition has to be BOOLEAN: compare it, as 'a + 1 > 0'.
    """
    condition = expression(value)
    kind = result_type(condition, schema)
    if kind != BOOLEAN:
        sql = condition.sql
        raise ExpressionError(
            f"{sql!r} is {name_of(kind)}, and a condition has to be BOOLEAN: compare it, as '{sql} > 0'."
        )
    return condition


def bind(value: Expression, schema: pa.Schema) -> Bound:
    """Resolve the names and types of an expression; raise if it does not fit the schema."""
    return _Binder(value, schema).bind(value.tree)


# Evaluation ----------------------------------------------------------------------------------------------------


class Failure(Exception):
    """A value that cannot be computed; the message says why."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a batch on which an expression is computed.

    Parameters
    ----------
    indices
        Which rows, once every operand is computed just where it is needed; None computes all operands on all rows.
    """

    batch: pa.RecordBatch
    indices: pa.Array | None = None

    def __len__(self) -> int:
        return self.batch.num_rows if self.indices is None else len(self.indices)

    def column(self, index: int) -> pa.Array:
        """Return a column of the batch on these rows."""
        values = self.batch.column(index)
        return values if len(self) == len(values) else values.take(self.indices)

    def where(self, needed: pa.Array, operand: Bound) -> pa.Array:
        """Compute an operand at least on the rows where ``needed`` is true; its other values do not matter."""
        if self.indices is None or operand.constant is not None:
            return operand.run(self)
        mask = pc.fill_null(needed, False).to_numpy(zero_copy_only=False)
        if mask.all():
            return operand.run(self)
        values = operand.run(Rows(self.batch, self.indices.filter(pa.array(mask))))
        scattered = np.zeros(len(mask), np.int64)
        scattered[mask] = np.arange(len(values))
        return values.take(pa.array(scattered, mask=~mask))


@dataclass(frozen=True, slots=True)
class Bound:
    """An expression bound to a schema: its type is known, and it can be evaluated on any batch of that schema."""

    type: pa.DataType
    run: Callable[[Rows], pa.Array]
    sql: str
    integer: int | None = None  # the value of an integer literal: Spark counts its digits in decimal arithmetic
    constant: pa.Scalar | None = None

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        """Compute the values of a batch, or raise a Failure."""
        try:
            return self.run(Rows(batch))
        except Failure:
            return self.run(Rows(batch, pa.array(np.arange(batch.num_rows))))


def _error(parsed: Expression, bound: Bound, batch: pa.RecordBatch, before: int) -> ExpressionError:
    """Return the error for a batch on which an expression fails: it shows the first row that does."""
    low, high = 0, batch.num_rows
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _failure(bound, batch.slice(low, middle - low)) is None else (low, middle)
    row = batch.slice(low, 1)
    values = (f"{name} = {row.column(_position(name, row.schema.names))[0].as_py()!r}" for name in parsed.roots)
    return ExpressionError(
        f"{parsed.sql!r} fails on row {before + low}{_in_parentheses(values)}: {_failure(bound, row)}. "
        "Guard it with CASE or NULLIF, filter those rows, or CAST to a wider type."
    )


def _failure(bound: Bound, batch: pa.RecordBatch) -> Failure | None:
    try:
        bound.evaluate(batch)
    except Failure as failure:
        return failure
    return None


def _apply(
    function: Callable[..., pa.Array], arguments: Sequence[Bound], kind: pa.DataType, sql: str, reason: str = ""
) -> Bound:
    """Bind a function that looks at all of its arguments; ``reason`` is for results that do not fit."""

    def run(rows: Rows) -> pa.Array:
        arrays = [argument.run(rows) for argument in arguments]
        try:
            return function(*arrays)
        except pa.ArrowInvalid:
            raise Failure(reason or f"{sql!r} does not fit {name_of(kind)}") from None

    return Bound(kind, run, sql)


def _constant(value: pa.Scalar, sql: str, integer: int | None = None) -> Bound:
    return Bound(value.type, lambda rows: pa.repeat(value, len(rows)), sql, integer, value)


_NULL: Final = _constant(pa.scalar(None, NULL), "NULL")


def _converted(bound: Bound, kind: pa.DataType, sql: str | None = None) -> Bound:
    """Return the same values in another type."""
    if bound.type == kind:
        return bound
    text = sql or bound.sql
    if bound.constant is not None:
        with contextlib.suppress(pa.ArrowInvalid):  # a constant that does not fit fails on rows, if there are any
            return _constant(af.cast(pa.array([bound.constant]), kind)[0], text)
    reason = f"a value of {bound.sql!r} does not fit {name_of(kind)}"
    return _apply(lambda array: af.cast(array, kind), [bound], kind, text, reason)


def _logic(conditions: Sequence[Bound], *, both: bool) -> Bound:
    """Bind AND or OR of conditions from left to right; the next one is looked at while the answer is open."""

    def run(rows: Rows) -> pa.Array:
        result = conditions[0].run(rows)
        for condition in conditions[1:]:
            undecided = pc.fill_null(result if both else pc.invert(result), True)
            result = (pc.and_kleene if both else pc.or_kleene)(result, rows.where(undecided, condition))
        return result

    return Bound(BOOLEAN, run, (" AND " if both else " OR ").join(bound.sql for bound in conditions))


def _member(value: Bound, others: Sequence[Bound], sql: str) -> Bound:
    """Bind IN: unknown when the value is not among the others and one of them is null."""

    def run(rows: Rows) -> pa.Array:
        wanted = value.run(rows)
        found = pa.repeat(pa.scalar(False), len(wanted))
        for other in others:
            undecided = pc.and_(wanted.is_valid(), pc.fill_null(pc.invert(found), True))
            found = pc.or_kleene(found, af.compare("=", wanted, rows.where(undecided, other)))
        return found

    return Bound(BOOLEAN, run, sql)


def _choose(tests: Sequence[Bound], values: Sequence[Bound], sql: str) -> Bound:
    """Bind a CASE: the value of the first test that is true, or the last value."""

    def run(rows: Rows) -> pa.Array:
        undecided = pa.repeat(pa.scalar(True), len(rows))
        taken, answers = [], []
        for test, value in zip(tests, values, strict=False):
            holds = pc.fill_null(rows.where(undecided, test), False)
            taken.append(pc.and_(undecided, holds))
            answers.append(rows.where(taken[-1], value))
            undecided = pc.and_not(undecided, holds)
        return pc.case_when(pc.make_struct(*taken), *answers, rows.where(undecided, values[-1]))

    return Bound(values[-1].type, run, sql)


def _coalesce(values: Sequence[Bound], sql: str) -> Bound:
    """Bind COALESCE: the first value that is not null."""

    def run(rows: Rows) -> pa.Array:
        result = values[0].run(rows)
        for value in values[1:]:
            result = pc.coalesce(result, rows.where(result.is_null(), value))
        return result

    return Bound(values[0].type, run, sql)


# Binding -------------------------------------------------------------------------------------------------------


class _Binder:
    """One walk over the tree of an expression."""

    def __init__(self, expression: Expression, schema: pa.Schema) -> None:
        self.expression, self.schema = expression, schema

    def bind(self, node: exp.Expression) -> Bound:
        kind = type(node)
        if kind in _ARITHMETIC:
            return self.arithmetic(node, _ARITHMETIC[kind])
        if kind in _COMPARISONS:
            return self.comparison(node, _COMPARISONS[kind], self.bind(node.this), self.bind(node.expression))
        return _BINDERS[kind](self, node)

    def bind_all(self, nodes: Sequence[exp.Expression]) -> list[Bound]:
        return [self.bind(node) for node in nodes]

    def error(self, node: exp.Expression, reason: str) -> ExpressionError:
        """Return the error for wrong types in a part of the expression."""
        part, whole = write(node), self.expression.sql
        return ExpressionError(f"{part!r} cannot be computed{'' if part == whole else f' in {whole!r}'}: {reason}.")

    # Leaves

    def column(self, node: exp.Expression) -> Bound:
        names = path(node)
        index = _position(names[0], self.schema.names)
        kind, indices = self.schema.field(index).type, []
        for depth, name in enumerate(names[1:], 1):
            parent = ".".join(names[:depth])
            if not pa.types.is_struct(kind):
                raise SchemaError(f"{parent!r} is {name_of(kind)}, not a struct: it has no field {name!r}.")
            fields = [kind.field(i).name for i in range(kind.num_fields)]
            indices.append(_position(name, fields, f"the struct {parent!r} has no field", "fields"))
            kind = kind.field(indices[-1]).type
        target = coercion.column_type(kind)

        def run(rows: Rows) -> pa.Array:
            array = rows.column(index)
            if indices:
                array = pc.struct_field(array, indices)
            # Nanoseconds are cut to Spark's microseconds; a timestamp's zone is only how it is shown.
            return array if array.type == target else array.cast(target, safe=False)

        return Bound(target, run, write(node))

    def literal(self, node: exp.Expression, sign: int = 1) -> Bound:
        if node.args.get("is_string"):
            return _constant(pa.scalar(node.name, STRING), write(node))
        value = parsing.number(node.name)
        text = write(node) if sign > 0 else f"-{write(node)}"
        if isinstance(value, int):
            signed = value * sign
            for kind in (pa.int32(), pa.int64()):
                if abs(signed + (signed < 0)) < 2 ** (kind.bit_width - 1):
                    return _constant(pa.scalar(signed, kind), text, integer=signed)
            value = Decimal(value)
        if isinstance(value, float):
            return _constant(pa.scalar(sign * value, DOUBLE), text)
        exact = value.copy_abs() if sign > 0 else value.copy_negate()
        _, digits, exponent = exact.as_tuple()
        scale = -int(exponent)
        return _constant(pa.scalar(exact, pa.decimal128(max(len(digits), scale), scale)), text)

    def negative(self, node: exp.Expression) -> Bound:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return self.literal(node.this, sign=-1)  # -2147483648 is one literal, and an INT
        return self.numeric(node)

    def cast(self, node: exp.Expression) -> Bound:
        name = type_name(node.args["to"]) or ""
        if name in ("DATE", "TIMESTAMP"):
            text = node.this.name
            if name == "DATE":
                return _constant(pa.scalar(parsing.day(text), coercion.DATE), write(node))
            return _constant(pa.scalar(parsing.instant(text)[0], coercion.TIMESTAMP), write(node))
        operand, target = self.bind(node.this), _target(name)
        if not af.castable(operand.type, target):
            raise self.error(node, f"a cast from {name_of(operand.type)} to {name} is not in the subset")
        return _converted(operand, target, write(node))

    # Operators

    def arithmetic(self, node: exp.Expression, symbol: str) -> Bound:
        left, right = self.bind(node.this), self.bind(node.expression)
        for side in (left, right):
            if not is_numeric(side.type) and side.type != NULL:
                raise self.error(node, f"{side.sql!r} is {name_of(side.type)}, and {symbol} takes numbers")
        sides, kind = _operand_types(symbol, left, right)
        text = write(node)
        first, second = _converted(left, sides[0]), _converted(right, sides[1])

        def run(rows: Rows) -> pa.Array:
            # Spark looks at a divisor first, and at the other operand only when the first one is not null.
            if symbol in "/%":
                b = second.run(rows)
                a = rows.where(b.is_valid(), first)
                divides_by_zero = pc.and_(pc.equal(b, af.zero(b.type)), a.is_valid())
                if pc.any(divides_by_zero, min_count=0).as_py():
                    raise Failure(f"{'division' if symbol == '/' else 'remainder'} by zero in {text!r}")
            else:
                a = first.run(rows)
                b = rows.where(a.is_valid(), second)
            try:
                return af.arithmetic(symbol, a, b, kind)
            except pa.ArrowInvalid:
                raise Failure(f"{text!r} does not fit {name_of(kind)}") from None

        return Bound(kind, run, text)

    def comparison(self, node: exp.Expression, symbol: str, left: Bound, right: Bound) -> Bound:
        kinds = [left.type, right.type]
        for side, other in ((0, right), (1, left)):
            literal = (left, right)[side].integer
            if literal is not None and is_decimal(other.type):
                kinds[side] = coercion.as_decimal(kinds[side], literal)
        kind = self.common(node, (left, right), kinds)
        first, second = _converted(left, kind), _converted(right, kind)
        if symbol == "<=>":
            return _apply(af.equal_or_both_null, [first, second], BOOLEAN, write(node))

        def run(rows: Rows) -> pa.Array:
            a = first.run(rows)
            return af.compare(symbol, a, rows.where(a.is_valid(), second))

        return Bound(BOOLEAN, run, write(node))

    def common(self, node: exp.Expression, bounds: Sequence[Bound], kinds: Sequence[pa.DataType]) -> pa.DataType:
        """Return the type in which operands are compared."""
        kind = common_type(kinds)
        if kind is None or not coercion.is_ordered(kind):
            shown = " with ".join(f"{bound.sql!r} ({name_of(bound.type)})" for bound in bounds)
            raise self.error(node, f"cannot compare {shown}: cast one of them, or write a literal of the other's type")
        return kind

    def condition(self, node: exp.Expression) -> Bound:
        """Bind an operand of AND, OR, NOT or the condition of a CASE."""
        bound = self.bind(node)
        if bound.type not in (BOOLEAN, NULL):
            raise self.error(node, f"it is {name_of(bound.type)}, and a condition has to be BOOLEAN")
        return _converted(bound, BOOLEAN)

    def logic(self, node: exp.Expression) -> Bound:
        chain, kind = [], type(node)
        while isinstance(node, kind):  # a long chain leans to the left: a loop, no deep recursion
            chain.append(node.expression)
            node = node.this
        return _logic([self.condition(part) for part in (node, *reversed(chain))], both=kind is exp.And)

    def negation(self, node: exp.Expression) -> Bound:
        return _apply(pc.invert, [self.condition(node.this)], BOOLEAN, write(node))

    def is_(self, node: exp.Expression) -> Bound:
        constant = node.expression
        if isinstance(constant, exp.Null):
            return _apply(pc.is_null, [self.bind(node.this)], BOOLEAN, write(node))
        wanted = bool(constant.this)

        def holds(array: pa.Array) -> pa.Array:
            return pc.fill_null(array if wanted else pc.invert(array), False)

        return _apply(holds, [self.condition(node.this)], BOOLEAN, write(node))

    def in_(self, node: exp.Expression) -> Bound:
        bounds = self.bind_all([node.this, *node.expressions])
        kind = self.common(node, bounds, [bound.type for bound in bounds])
        value, *others = (_converted(bound, kind) for bound in bounds)
        return _member(value, others, write(node))

    def between(self, node: exp.Expression) -> Bound:
        value = self.bind(node.this)
        low = self.comparison(node, ">=", value, self.bind(node.args["low"]))
        high = self.comparison(node, "<=", value, self.bind(node.args["high"]))
        return _logic([low, high], both=True)

    # Choices

    def case(self, node: exp.Expression) -> Bound:
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
        values.append(_NULL if default is None else self.bind(default))
        return _choose(tests, self.alike(node, values), write(node))

    def if_(self, node: exp.Expression) -> Bound:
        values = self.bind_all([node.args["true"], node.args["false"]])
        return _choose([self.condition(node.this)], self.alike(node, values), write(node))

    def coalesce(self, node: exp.Expression) -> Bound:
        return _coalesce(self.alike(node, self.bind_all(operands(node))), write(node))

    def nullif(self, node: exp.Expression) -> Bound:
        value = self.bind(node.this)
        equal = self.comparison(node, "=", value, self.bind(node.expression))
        return _choose([equal], [_converted(_NULL, value.type), value], write(node))

    def extreme(self, node: exp.Expression) -> Bound:
        bounds = self.alike(node, self.bind_all(operands(node)))
        kind = self.common(node, bounds, [bound.type for bound in bounds])
        largest = isinstance(node, exp.Greatest)
        return _apply(lambda *arrays: af.extreme(arrays, largest=largest), bounds, kind, write(node))

    def alike(self, node: exp.Expression, bounds: Sequence[Bound]) -> list[Bound]:
        """Return the alternatives of a choice in their common type."""
        kind = common_type([bound.type for bound in bounds])
        if kind is None:
            shown = ", ".join(f"{bound.sql!r} ({name_of(bound.type)})" for bound in bounds)
            raise self.error(node, f"the values have no type in common: {shown}")
        return [_converted(bound, kind) for bound in bounds]

    # Functions

    def arguments(self, node: exp.Expression, *, text: bool) -> list[Bound]:
        """Bind the arguments of a function: all strings, or all numbers."""
        bounds = self.bind_all(operands(node))
        for bound in bounds:
            if bound.type != NULL and not (bound.type == STRING if text else is_numeric(bound.type)):
                wanted = "a STRING" if text else "a number"
                raise self.error(node, f"{bound.sql!r} is {name_of(bound.type)}, and {wanted} is needed here")
        return [_converted(bound, STRING if text else DOUBLE) if bound.type == NULL else bound for bound in bounds]

    def numeric(self, node: exp.Expression) -> Bound:
        value, *rest = self.arguments(node, text=False)
        kind, function = value.type, _NUMERIC.get(type(node))
        if isinstance(node, exp.Round):
            digits = rest[0].integer or 0 if rest else 0
            kind = coercion.rounded_type(kind, digits) if is_decimal(kind) else kind
            function = partial(af.round_half_up, digits=digits, kind=kind)
        elif isinstance(node, (exp.Floor, exp.Ceil)):
            kind = coercion.rounded_type(kind, 0) if is_decimal(kind) else pa.int64()
            function = partial(af.floor_or_ceil, kind=kind, up=isinstance(node, exp.Ceil))
        elif isinstance(node, exp.IsNan):
            kind = BOOLEAN
        assert function is not None
        return _apply(function, [value], kind, write(node))

    def textual(self, node: exp.Expression) -> Bound:
        kind = pa.int32() if isinstance(node, exp.Length) else STRING
        return _apply(_TEXTUAL[type(node)], self.arguments(node, text=True), kind, write(node))

    def like(self, node: exp.Expression) -> Bound:
        operand, pattern = self.bind(node.this), node.expression.name
        if operand.type not in (STRING, NULL):
            raise self.error(node, f"{operand.sql!r} is {name_of(operand.type)}, and LIKE takes a STRING")
        return _apply(partial(af.like, pattern=pattern), [_converted(operand, STRING)], BOOLEAN, write(node))


def _position(
    name: str, names: Sequence[str], missing: str = "the data have no column", plural: str = "columns"
) -> int:
    """Return the index of a name, whatever its case, as Spark resolves it."""
    indices = [index for index, other in enumerate(names) if other.lower() == name.lower()]
    if not indices:
        raise SchemaError(f"{missing} {name!r}: {nearest(name, names)}")
    if len(indices) > 1:
        shown = ", ".join(repr(names[index]) for index in indices)
        raise SchemaError(f"{name!r} is ambiguous: the {plural} {shown} differ only in case. Rename one.")
    return indices[0]


def _target(name: str) -> pa.DataType:
    if name.startswith("DECIMAL"):
        precision, scale = name[len("DECIMAL(") : -1].split(",")
        return pa.decimal128(int(precision), int(scale))
    return coercion.TYPES[name]


def _operand_types(symbol: str, left: Bound, right: Bound) -> tuple[tuple[pa.DataType, pa.DataType], pa.DataType]:
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


def _in_parentheses(values: Iterable[str]) -> str:
    text = ", ".join(values)
    return f" ({text})" if text else ""


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
_NUMERIC: Final[dict[type[exp.Expression], Callable[..., pa.Array]]] = {
    exp.Neg: af.negate,
    exp.Abs: af.absolute,
    exp.IsNan: af.is_nan,
}
_TEXTUAL: Final[dict[type[exp.Expression], Callable[..., pa.Array]]] = {
    exp.Upper: af.upper,
    exp.Lower: af.lower,
    exp.Length: pc.utf8_length,
    exp.Trim: af.trim,
    exp.Concat: af.concat,
    exp.DPipe: af.concat,
}
_BINDERS: Final[dict[type[exp.Expression], Callable[[_Binder, Any], Bound]]] = {
    exp.Column: _Binder.column,
    exp.Dot: _Binder.column,
    exp.Literal: _Binder.literal,
    exp.Boolean: lambda binder, node: _constant(pa.scalar(bool(node.this)), write(node)),
    exp.Null: lambda binder, node: _NULL,
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
    **dict.fromkeys((exp.Abs, exp.IsNan, exp.Round, exp.Floor, exp.Ceil), _Binder.numeric),
    **dict.fromkeys(_TEXTUAL, _Binder.textual),
    exp.Like: _Binder.like,
}
