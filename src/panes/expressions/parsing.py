"""Text in, tree out: sqlglot parses Spark SQL, a whitelist checks it, and other spellings are made one."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Final

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from panes.errors import ExpressionError
from panes.expressions.coercion import DATE, LOCAL_TIMESTAMP, NULL, STRING, TIMESTAMP, name_of, type_named
from panes.expressions.depth import too_deep, with_room
from panes.expressions.functions import COMPARISONS, FUNCTIONS, OPERATORS
from panes.expressions.writing import SPARK, operands, path

SUPPORTED: Final = (
    "Supported are columns, literals, + - * / %, comparisons, AND OR NOT, IS NULL, IN, BETWEEN, LIKE, ||, CASE, CAST, "
    f"{', '.join(function.name for function in FUNCTIONS.values())}."
)

_OPERANDS: Final[tuple[str, ...]] = ("this", "expression")
_SYNTAX: Final[dict[type[exp.Expression], tuple[str, ...]]] = {
    **dict.fromkeys((exp.Literal, exp.Boolean, exp.Null, exp.Dot, exp.Neg, exp.Not, exp.Is, exp.Like), _OPERANDS),
    exp.Column: ("this", "table", "db", "catalog"),
    exp.In: ("this", "expressions"),
    exp.Between: ("this", "low", "high"),
    exp.Case: ("this", "ifs", "default"),
    exp.Cast: ("this", "to"),
    exp.TryCast: ("this", "to"),
}
"""What an expression may have beside operators and functions, with the arguments that sqlglot keeps."""

# sqlglot sets these for other dialects: they have no meaning here.
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
    (exp.Tuple, "a list of values is allowed only after IN"),
)
_CHANGING_WORDS: Final = """
    rand randn random uuid now current_timestamp current_date current_time current_user currenttimestamp currentdate
    currenttime localtimestamp monotonically_increasing_id spark_partition_id input_file_name shuffle
"""
_CHANGING: Final = frozenset(_CHANGING_WORDS.split())
_MOST_DECIMALS: Final = 323
_QUOTED: Final = 200  # characters of an expression that a message shows


def refuse(text: str, start: int | None, fragment: str, reason: str) -> ExpressionError:
    """Return the error for a fragment of an expression, underlined if its position is known."""
    fragment = fragment[:_QUOTED]
    if start is None:
        start = text.lower().find(fragment.lower())
    if len(text) > _QUOTED:  # Of a long text, what is around the mistake.
        begin = max(0, start - _QUOTED // 4)
        end = begin + _QUOTED
        dots = "..." * (begin > 0)
        text = dots + text[begin:end] + "..." * (end < len(text))
        start = start - begin + len(dots) if start >= 0 else start
    lines = [f"cannot use {text!r}: {reason}.", *_underlined(text, start, fragment), SUPPORTED]
    return ExpressionError("\n".join(lines))


def _underlined(text: str, start: int, fragment: str) -> list[str]:
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
    return refuse(text, None, shown(node), reason)


def shown(node: exp.Expression) -> str:
    """Return a part of an expression as messages show it; empty where it is too deep to be written."""
    try:
        return str(node.sql(dialect="spark", comments=False))
    except RecursionError:
        return ""


def _problem(node: exp.Expression) -> str | None:
    kind = type(node)
    if kind not in OPERATORS and kind not in FUNCTIONS and kind not in _SYNTAX:
        return _reason(node)
    allowed = FUNCTIONS[kind].arguments if kind in FUNCTIONS else _SYNTAX.get(kind, _OPERANDS)
    if node.args.get("query") is not None:
        return "a subquery reads other rows, and an expression sees one row"
    given = {name for name, value in node.args.items() if value is not None and value is not False and value != []}
    unknown = given - {*allowed} - _FLAGS
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
        return "the pattern of LIKE must be one string literal"
    rest = iter(pattern.name)
    for character in rest:
        if character == "\\" and next(rest, "") not in ("%", "_", "\\"):
            return "a backslash in a pattern of LIKE is allowed only before %, _ or another backslash"
    return None


def _cast(node: exp.Expression) -> str | None:
    name = node.args["to"].sql(dialect="spark")
    target = type_named(name)
    if isinstance(node, exp.TryCast) and node.args.get("safe"):
        return "TRY_CAST is not in the subset: CAST fails on a value that does not fit"
    if target is None and name.startswith("DECIMAL"):
        return f"{name} needs 1 to 38 digits, and at most as many after the point"
    if target in (None, NULL, LOCAL_TIMESTAMP):
        return f"a cast to {name} is not in the subset"
    text = isinstance(node.this, exp.Literal) and node.this.is_string
    if target in (DATE, TIMESTAMP):
        if not text:
            return f"a cast to {name} depends on the session's time zone: only {name} '...' literals are in the subset"
        (day if target == DATE else instant)(node.this.name)
    elif text and target != STRING:
        return f"a cast from a string is not in the subset: write the {name_of(target)} itself"
    return None


def _round(node: exp.Expression) -> str | None:
    decimals = node.args.get("decimals")
    bare = decimals.this if isinstance(decimals, exp.Neg) else decimals
    if bare is None:
        return None
    if isinstance(bare, exp.Literal) and not bare.is_string and bare.name.isdecimal():
        fits = int(bare.name[:9]) <= _MOST_DECIMALS
        return None if fits else f"ROUND takes at most {_MOST_DECIMALS} decimals, more than any double has"
    return "the second argument of ROUND must be an integer literal"


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


def check_text(text: str) -> None:
    """Refuse half of a surrogate pair, which no data hold and no file takes."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ExpressionError(
            f"cannot read {text[:_QUOTED]!r}: character {error.start + 1} is half of a surrogate pair, not text. "
            "Write the whole character."
        ) from None


def _parsed(text: str) -> exp.Expression:
    check_text(text)
    try:
        tokens = joined_strings(text, SPARK.tokenize(text))
        for token in tokens:
            if token.token_type is TokenType.SEMICOLON:
                raise refuse(text, token.start, ";", "it holds several statements, and an expression is one")
            if (word := _WORDS.get(token.token_type)) is not None:
                sign = text[token.start : token.end + 1]
                raise refuse(text, token.start, sign, f"conditions are joined by {word}, not by {sign}")
        if (deep := too_deep(tokens)) is not None:
            token, reason = deep
            raise refuse(text, token.start, text[token.start : token.end + 1], reason)
        trees = parse_tokens(SPARK, tokens, text)
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


def parse_tokens(dialect: Dialect, tokens: list[Token], text: str) -> Sequence[object]:
    """Parse words into trees; whatever sqlglot stumbles over is a ParseError."""
    try:
        return with_room(lambda: dialect.parser().parse(tokens, text))
    except RecursionError as error:
        reason = "it is nested too deeply"
        raise ParseError(reason, [{"description": reason}]) from error
    except (IndexError, KeyError, AttributeError, TypeError, ValueError) as error:
        if isinstance(error, ParseError):
            raise
        # Some calls are taken apart before their arguments are counted.
        reason = "a call in it lacks arguments"
        raise ParseError(reason, [{"description": reason}]) from error


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
    place = f"line {details.get('line')}, column {details.get('col')}: " if "line" in details else ""
    return refuse(text, start, highlight, f"{place}{description[:1].lower()}{description[1:]}")


def _refuse_chains(tree: exp.Expression, text: str) -> None:
    """Require parentheses where the precedence of sqlglot and Spark differs."""
    for node in tree.walk():
        for operand in (node.args.get("this"), node.args.get("expression")):
            if isinstance(node, COMPARISONS) and isinstance(operand, COMPARISONS):
                raise refuse(
                    text,
                    None,
                    shown(node),
                    "comparisons do not chain: put one in parentheses, or join them by AND or OR",
                )
            if isinstance(node, exp.DPipe) and isinstance(operand, (exp.Add, exp.Sub)):
                raise refuse(text, None, shown(node), "|| beside + or - needs parentheses")


def _normalised(tree: exp.Expression) -> exp.Expression:
    """Remove parentheses and comments, and make two spellings one: NOT LIKE is NOT of LIKE, ``||`` is CONCAT."""
    holder = exp.Paren(this=tree)  # so that the root, too, has a parent in which it can be replaced
    for node in list(holder.find_all(exp.Paren, exp.Like)):
        if isinstance(node, exp.Like) and node.args.get("negate"):
            node.set("negate", None)
            node.replace(exp.Not(this=node.copy()))
        elif isinstance(node, exp.Paren) and node is not holder:
            node.replace(node.this)
    for node in list(holder.find_all(exp.DPipe)):
        if isinstance(node.parent, exp.DPipe) and node.parent.this is node:
            continue  # within a chain
        chain, first = [], node
        while isinstance(first, exp.DPipe):
            chain.append(first.expression)
            first = first.this
        left = first.expressions if isinstance(first, exp.Concat) else [first]
        node.replace(exp.Concat(expressions=[*left, *reversed(chain)]))
    for part in holder.walk():
        part.comments = None
    bare = holder.this.copy()
    assert isinstance(bare, exp.Expression)
    return bare


# The text of literals

_DATE: Final = r"(\d{4})-(\d{1,2})-(\d{1,2})"
_ZONE: Final = r"Z|UTC|[+-](?:0\d|1[0-7]):[0-5]\d|[+-]18:00"
_SECONDS: Final = rf":(\d{{1,2}})(?:\.(\d{{1,6}}))?(?: ?({_ZONE}))?"
_DAY: Final = re.compile(_DATE, re.ASCII)
_INSTANT: Final = re.compile(rf"{_DATE}(?:[ T](\d{{1,2}}):(\d{{1,2}})(?:{_SECONDS})?)?", re.ASCII)
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
    parts = _DAY.fullmatch(text.strip())
    if parts:
        with suppress(ValueError):  # a day that is not in the calendar
            return date(*map(int, parts.groups()))
    raise ExpressionError(f"DATE {text!r} is not a date: write it as DATE '2024-02-29'.")


def instant(text: str) -> datetime:
    """Read the text of ``TIMESTAMP '...'``; one without a zone, which is in the session's time zone, is read as UTC.

    Examples
    --------
    >>> instant("2024-02-29 12:00:00+02:00")
    datetime.datetime(2024, 2, 29, 10, 0, tzinfo=datetime.timezone.utc)
    """
    parts = _INSTANT.fullmatch(text.strip())
    if parts:
        *calendar, fraction, zone = parts.groups(default="0")
        year, month, day_of_month, hour, minute, second = map(int, calendar)
        micros = int(fraction.ljust(6, "0"))
        offset = UTC if zone in ("0", "Z", "UTC") else datetime.strptime(zone, "%z").tzinfo
        with suppress(ValueError, OverflowError):  # a day or an hour that does not exist
            return datetime(year, month, day_of_month, hour, minute, second, micros, offset).astimezone(UTC)
    raise ExpressionError(
        f"TIMESTAMP {text!r} is not a timestamp: write it as TIMESTAMP '2024-02-29 12:00:00.000000', "
        "with Z, UTC or an offset as +02:00 after it unless the session's time zone is meant."
    )
