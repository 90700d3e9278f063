"""What an expression may consist of; everything else is refused with the fragment, the reason and the subset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from panes.declare import literals
from panes.declare.writing import operands, path, type_name
from panes.errors import ExpressionError

SUPPORTED: Final = (
    "Supported are columns, literals, + - * / %, comparisons, AND OR NOT, IS NULL, IN, BETWEEN, LIKE, CASE, IF, "
    "CAST, COALESCE, NULLIF, LEAST, GREATEST, ABS, FLOOR, CEIL, ROUND, UPPER, LOWER, LENGTH, TRIM, CONCAT, ||, ISNAN."
)

_BARE: Final = frozenset({"this", "expression"})
# The arguments that a node may carry with a meaning; flags that sqlglot sets for other dialects are ignored.
_ALLOWED: Final[dict[type[exp.Expression], frozenset[str]]] = {
    **dict.fromkeys(
        (
            *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.And, exp.Or, exp.Not, exp.Is, exp.Like),
            *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.DPipe, exp.Nullif),
            *(exp.Literal, exp.Boolean, exp.Null, exp.Dot),
            *(exp.Abs, exp.Floor, exp.Ceil, exp.IsNan, exp.Upper, exp.Lower, exp.Length, exp.Trim),
        ),
        _BARE,
    ),
    exp.Round: _BARE | {"decimals"},
    exp.Column: frozenset({"this", "table", "db", "catalog"}),
    exp.In: frozenset({"this", "expressions"}),
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.If: frozenset({"this", "true", "false"}),
    exp.Coalesce: frozenset({"this", "expressions"}),
    exp.Least: frozenset({"this", "expressions"}),
    exp.Greatest: frozenset({"this", "expressions"}),
    exp.Concat: frozenset({"expressions"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.TryCast: frozenset({"this", "to"}),
}
_FLAGS: Final = frozenset({"is_string", "typed", "safe", "coalesce", "ignore_nulls", "_type", "is_null", "binary"})

_REASONS: Final[tuple[tuple[type | tuple[type, ...], str], ...]] = (
    ((exp.Query, exp.Subquery, exp.Exists), "a subquery reads other rows, and an expression sees one row"),
    (exp.Window, "a window function reads other rows, and an expression sees one row"),
    (
        exp.AggFunc,
        "an aggregate reads many rows: write it as a value of select=, pn.sum('...') or pn.count(), and not as text",
    ),
    (exp.Star, "a star stands for many columns: name one"),
    (exp.Alias, "an expression has no alias: the name is the key in select="),
    (exp.Interval, "intervals and date arithmetic are not in the subset: durations belong to windows"),
    (exp.Placeholder, "there are no parameters: build the text"),
    (exp.Tuple, "a list of values stands only behind IN"),
)
_CHANGING_WORDS: Final = """
    rand randn random uuid now current_timestamp current_date current_time current_user currenttimestamp currentdate
    currenttime localtimestamp monotonically_increasing_id spark_partition_id input_file_name shuffle
"""
_CHANGING: Final = frozenset(_CHANGING_WORDS.split())


def refuse(text: str, start: int | None, fragment: str, reason: str) -> ExpressionError:
    """The error for a fragment of an expression, underlined where its place is known."""
    lines = [f"cannot use {text!r}: {reason}.", *_underlined(text, start, fragment), SUPPORTED]
    return ExpressionError("\n".join(lines))


def _underlined(text: str, start: int | None, fragment: str) -> list[str]:
    if start is None:
        start = text.lower().find(fragment.lower())
    if start < 0 or "\n" in text or not fragment:
        return [f"  at {fragment!r}"] if fragment and fragment != text else []
    return [f"  {text}", f"  {' ' * start}{'^' * len(fragment)}"]


def check(tree: exp.Expression, text: str) -> None:
    """Refuse a tree that holds anything but deterministic scalar expressions of the subset."""
    pending = [tree]
    while pending:
        node = pending.pop()
        problem = _problem(node)
        if problem is not None:
            raise _refusal(node, text, problem)
        pending += operands(node)


def _refusal(node: exp.Expression, text: str, reason: str) -> ExpressionError:
    start, end = node.meta.get("start"), node.meta.get("end")
    if start is not None and end is not None:
        return refuse(text, start, text[start : end + 1], reason)
    return refuse(text, None, node.sql(dialect="spark", comments=False), reason)


def _problem(node: exp.Expression) -> str | None:
    allowed = _ALLOWED.get(type(node))
    if allowed is None:
        return _reason(node)
    if node.args.get("query") is not None:
        return "a subquery reads other rows, and an expression sees one row"
    given = {name for name, value in node.args.items() if value is not None and value is not False and value != []}
    unknown = given - allowed - _FLAGS
    if unknown:
        return f"{node.key.upper()} with {', '.join(sorted(unknown)).upper()} is not in the subset"
    checker = _CHECKS.get(type(node))
    return checker(node) if checker else None


def _reason(node: exp.Expression) -> str:
    for kind, reason in _REASONS:
        if isinstance(node, kind):
            return reason
    if isinstance(node, exp.Func):
        name = node.name if isinstance(node, exp.Anonymous) else str(type(node).sql_names()[0])
        if name.lower() in _CHANGING or node.key in _CHANGING:
            return f"{name.upper()} is not deterministic, and a plan may evaluate it once or many times"
        return f"the function {name.upper()} is not in the subset"
    return f"{node.key.upper()} is not in the subset"


def _column(node: exp.Expression) -> str | None:
    if isinstance(node.this, exp.Star):
        return "a star stands for many columns: name one"
    return None if all(path(node)) else "a column needs a name"


def _dot(node: exp.Expression) -> str | None:
    if isinstance(node.expression, exp.Identifier) and isinstance(node.this, (exp.Column, exp.Dot)):
        return _column(node)
    return "only fields of columns can be reached by a dot"


def _literal(node: exp.Expression) -> str | None:
    if not node.args.get("is_string"):
        literals.number(node.name)
    return None


def _is(node: exp.Expression) -> str | None:
    return None if isinstance(node.expression, (exp.Null, exp.Boolean)) else "IS takes NULL, TRUE or FALSE"


def _like(node: exp.Expression) -> str | None:
    pattern = node.expression
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        return "the pattern of LIKE has to be one string literal"
    rest = iter(pattern.name)
    for character in rest:
        if character == "\\" and next(rest, "") not in ("%", "_", "\\"):
            return "a backslash in a pattern of LIKE stands only before %, _ or another backslash"
    return None


def _cast(node: exp.Expression) -> str | None:
    name = type_name(node.args["to"])
    if isinstance(node, exp.TryCast) and node.args.get("safe"):
        return "TRY_CAST is not in the subset: CAST fails on a value that does not fit"
    if name is None:
        return f"a cast to {node.args['to'].sql(dialect='spark')} is not in the subset"
    text = isinstance(node.this, exp.Literal) and node.this.is_string
    if name in ("DATE", "TIMESTAMP"):
        if not text:
            return f"a cast to {name} depends on the session's time zone: only {name} '...' literals are in the subset"
        (literals.day if name == "DATE" else literals.instant)(node.this.name)
    elif text and name != "STRING":
        return f"a cast from a string is not in the subset: write the {name} itself"
    if name.startswith("DECIMAL"):
        parts = [part.strip() for part in name[len("DECIMAL(") : -1].split(",")]
        if not all(part.isascii() and part.isdecimal() and len(part) < 3 for part in parts):
            return f"{name} needs 1 to 38 digits, and at most as many behind the point"
        precision, scale = map(int, parts)
        if not 0 <= scale <= precision <= 38 or precision == 0:
            return f"{name} needs 1 to 38 digits, and at most as many behind the point"
    return None


def _round(node: exp.Expression) -> str | None:
    decimals = node.args.get("decimals")
    bare = decimals.this if isinstance(decimals, exp.Neg) else decimals
    if bare is None or (isinstance(bare, exp.Literal) and not bare.is_string and bare.name.isdecimal()):
        return None
    return "the second argument of ROUND has to be an integer literal"


def _several(node: exp.Expression) -> str | None:
    return None if node.expressions else f"{node.key.upper()} needs at least two arguments"


_CHECKS: Final[dict[type[exp.Expression], Callable[[exp.Expression], str | None]]] = {
    exp.Column: _column,
    exp.Dot: _dot,
    exp.Literal: _literal,
    exp.Is: _is,
    exp.Like: _like,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Round: _round,
    exp.Least: _several,
    exp.Greatest: _several,
    exp.Concat: lambda node: None if node.expressions else "CONCAT needs arguments",
    exp.In: lambda node: None if node.expressions else "IN needs a list of values",
    exp.If: lambda node: None if node.args.get("false") is not None else "IF needs a condition and two values",
}
