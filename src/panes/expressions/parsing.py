"""Text in, tree out: sqlglot parses Spark SQL, a whitelist checks it, and other spellings are made one."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Final

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from panes.errors import ExpressionError
from panes.expressions.writing import SPARK, operands, path, type_name

# What an expression may consist of; everything else is rejected with the fragment, the reason and the subset.


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
    """Return the error for a fragment of an expression, underlined if its position is known."""
    lines = [f"cannot use {text!r}: {reason}.", *_underlined(text, start, fragment), SUPPORTED]
    return ExpressionError("\n".join(lines))


def _underlined(text: str, start: int | None, fragment: str) -> list[str]:
    if start is None:
        start = text.lower().find(fragment.lower())
    if start < 0 or "\n" in text or not fragment:
        return [f"  at {fragment!r}"] if fragment and fragment != text else []
    return [f"  {text}", f"  {' ' * start}{'^' * len(fragment)}"]


def check(tree: exp.Expression, text: str) -> None:
    """Reject a tree with anything but deterministic scalar expressions of the subset."""
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
        number(node.name)
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
        (day if name == "DATE" else instant)(node.this.name)
    elif text and name != "STRING":
        return f"a cast from a string is not in the subset: write the {name} itself"
    if name.startswith("DECIMAL"):
        parts = [part.strip() for part in name[len("DECIMAL(") : -1].split(",")]
        if not all(part.isascii() and part.isdecimal() and len(part) < 3 for part in parts):
            return f"{name} needs 1 to 38 digits, and at most as many after the point"
        precision, scale = map(int, parts)
        if not 0 <= scale <= precision <= 38 or precision == 0:
            return f"{name} needs 1 to 38 digits, and at most as many after the point"
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


_WORDS = {TokenType.AMP: "AND", TokenType.DAMP: "AND", TokenType.PIPE: "OR"}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)


@lru_cache(maxsize=4096)
def tree_of(text: str) -> exp.Expression:
    """Parse an expression into a tree of the subset without parentheses. The tree is shared: never change it.

    Examples
    --------
    >>> tree_of("(a) + 1").sql()
    'a + 1'
    """
    if not text.strip():
        raise ExpressionError(f"the expression is empty. Write a column name or an expression. {SUPPORTED}")
    return checked(_parsed(text), text)


def checked(tree: exp.Expression, text: str) -> exp.Expression:
    """Return a tree that sqlglot has parsed as one of the subset; ``text`` is what errors quote."""
    _refuse_chains(tree, text)
    tree = _normalised(tree)
    check(tree, text)
    return tree


def _parsed(text: str) -> exp.Expression:
    try:
        tokens = joined_strings(text, SPARK.tokenize(text))
        for token in tokens:
            if token.token_type is TokenType.SEMICOLON:
                raise refuse(text, token.start, ";", "it holds several statements, and an expression is one")
            if (word := _WORDS.get(token.token_type)) is not None:
                sign = text[token.start : token.end + 1]
                raise refuse(text, token.start, sign, f"conditions are joined by {word}, not by {sign}")
        trees = SPARK.parser().parse(tokens, text)
    except TokenError as error:
        raise ExpressionError(
            f"cannot read {text!r}: a quote, a backtick or a comment is opened and never closed."
        ) from error
    except ParseError as error:
        raise _unreadable(text, error) from error
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Expression):
        raise ExpressionError(f"cannot read {text!r}: it has no expression. {SUPPORTED}")
    return tree


def joined_strings(text: str, tokens: list[Token]) -> list[Token]:
    """Read a doubled quote inside a string as one quote, as Spark 4 does; sqlglot sees two strings."""
    joined: list[Token] = []
    for token in tokens:
        before = joined[-1] if joined else None
        if before is not None and before.token_type is TokenType.STRING and token.token_type is TokenType.STRING:
            quote = text[token.start]
            if before.end + 1 != token.start or text[before.start] != quote:
                raise refuse(text, token.start, text[token.start : token.end + 1], "two strings stand side by side")
            joined[-1] = Token(
                TokenType.STRING, before.text + quote + token.text, token.line, token.col, before.start, token.end
            )
        else:
            joined.append(token)
    return joined


def _unreadable(text: str, error: ParseError) -> ExpressionError:
    details = error.errors[0] if error.errors else {}
    highlight, before = details.get("highlight") or "", details.get("start_context") or ""
    # sqlglot names its own classes in messages about missing operands: a user does not know them.
    description = str(details.get("description") or "it is not a SQL expression").split(" for <class")[0]
    start = len(before) if text.startswith(before + highlight) else None
    place = f"line {details.get('line')}, column {details.get('col')}: " if details else ""
    return refuse(text, start, highlight, f"{place}{description[:1].lower()}{description[1:]}")


def _refuse_chains(tree: exp.Expression, text: str) -> None:
    """Require parentheses where the precedence of sqlglot and Spark differs."""
    for node in tree.walk():
        for operand in (node.args.get("this"), node.args.get("expression")):
            if isinstance(node, _COMPARISONS) and isinstance(operand, _COMPARISONS):
                raise refuse(
                    text,
                    None,
                    node.sql(dialect="spark"),
                    "comparisons do not chain: put one in parentheses, or join them by AND or OR",
                )
            if isinstance(node, exp.DPipe) and isinstance(operand, (exp.Add, exp.Sub)):
                raise refuse(text, None, node.sql(dialect="spark"), "|| beside + or - needs parentheses")


def _normalised(tree: exp.Expression) -> exp.Expression:
    """Remove parentheses and comments, and write NOT LIKE as NOT of LIKE."""
    holder = exp.Paren(this=tree)  # so that the root, too, has a parent in which it can be replaced
    for node in list(holder.find_all(exp.Paren, exp.Like)):
        if isinstance(node, exp.Like) and node.args.get("negate"):
            node.set("negate", None)
            node.replace(exp.Not(this=node.copy()))
        elif isinstance(node, exp.Paren) and node is not holder:
            node.replace(node.this)
    for part in holder.walk():
        part.comments = None
    bare = holder.this.copy()
    assert isinstance(bare, exp.Expression)
    return bare


# The text of literals ------------------------------------------------------------------------------------------

_DAY: Final = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_TIME: Final = re.compile(r"[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?")
_ZONE: Final = re.compile(r" ?(?:(Z|UTC)|([+-])(\d{2}):(\d{2}))")
_LONGEST: Final = 38


def number(text: str) -> int | float | Decimal:
    """Read a number as Spark does: an integer, an exact decimal, or a double when it has an exponent.

    Examples
    --------
    >>> number("12"), number("1.50"), number("1e3")
    (12, Decimal('1.50'), 1000.0)
    """
    try:
        double, exact = float(text), Decimal(text)
    except (ValueError, ArithmeticError):
        raise ExpressionError(f"{text!r} is not a number: write it as 12, 1.5 or 1e3.") from None
    if "e" in text.lower():
        if math.isinf(double):
            raise ExpressionError(f"{text} is too large for a double.")
        return double
    _, digits, exponent = exact.as_tuple()
    if max(len(digits), -int(exponent)) > _LONGEST:
        raise ExpressionError(f"{text} has more than the {_LONGEST} digits of the widest decimal.")
    return exact if "." in text else int(exact)


def day(text: str) -> date:
    """Read the text of ``DATE '...'``.

    Examples
    --------
    >>> day("2024-2-29")
    datetime.date(2024, 2, 29)
    """
    found = _DAY.fullmatch(text.strip())
    try:
        if found:
            return date(*map(int, found.groups()))
    except ValueError:
        pass  # a day that is not in the calendar: the same error
    raise ExpressionError(f"DATE {text!r} is not a date: write it as DATE '2024-02-29'.")


def instant(text: str) -> tuple[datetime, bool]:
    """Read the text of ``TIMESTAMP '...'``: an instant, and whether the text named its zone.

    Without a zone the text is in the session's time zone; here it is read as UTC.

    Examples
    --------
    >>> instant("2024-02-29 12:00:00+02:00")
    (datetime.datetime(2024, 2, 29, 10, 0, tzinfo=datetime.timezone.utc), True)
    >>> instant("2024-02-29")[1]
    False
    """
    stripped = text.strip()
    found = _DAY.match(stripped)
    try:
        if found:
            (year, month, day_of_month), end = map(int, found.groups()), found.end()
            clock = timedelta()
            time = _TIME.match(stripped, end)
            if time:
                hour, minute, second, fraction = time.groups()
                datetime(year, month, day_of_month, int(hour), int(minute), int(second or 0))  # refuses 24:00 and 12:60
                clock = timedelta(
                    hours=int(hour),
                    minutes=int(minute),
                    seconds=int(second or 0),
                    microseconds=int((fraction or "").ljust(6, "0")),
                )
                end = time.end()
            zone = _ZONE.match(stripped, end) if time else None
            shift = timedelta()
            if zone:
                end = zone.end()
                if zone.group(2):
                    shift = timedelta(hours=int(zone.group(3)), minutes=int(zone.group(4)))
                    shift = -shift if zone.group(2) == "-" else shift
            if end == len(stripped) and abs(shift) <= timedelta(hours=18):
                return datetime(year, month, day_of_month, tzinfo=UTC) + clock - shift, zone is not None
    except (ValueError, OverflowError):
        pass  # a day or an hour that does not exist: the same error
    raise ExpressionError(
        f"TIMESTAMP {text!r} is not a timestamp: write it as TIMESTAMP '2024-02-29 12:00:00.000000', "
        "with Z, UTC or an offset as +02:00 behind it when the session's time zone is not meant."
    )
