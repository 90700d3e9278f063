"""Text to tree: sqlglot reads Spark SQL, the whitelist checks it, parentheses and other spellings fall away."""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from panes.declare.whitelist import SUPPORTED, check, refuse
from panes.declare.writing import SPARK
from panes.errors import ExpressionError

_WORDS = {TokenType.AMP: "AND", TokenType.DAMP: "AND", TokenType.PIPE: "OR"}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)


@lru_cache(maxsize=4096)
def tree_of(text: str) -> exp.Expression:
    """Read an expression as a tree of the subset without parentheses; shared, so never to be changed.

    Examples
    --------
    >>> tree_of("(a) + 1").sql()
    'a + 1'
    """
    if not text.strip():
        raise ExpressionError(f"the expression is empty. Write a column name or an expression. {SUPPORTED}")
    return checked(_parsed(text), text)


def checked(tree: exp.Expression, text: str) -> exp.Expression:
    """A tree of the subset out of one that sqlglot has read; ``text`` is what errors quote."""
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
        raise ExpressionError(f"cannot read {text!r}: it holds no expression. {SUPPORTED}")
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
    description = str(details.get("description") or "it is no SQL expression").split(" for <class")[0]
    start = len(before) if text.startswith(before + highlight) else None
    place = f"line {details.get('line')}, column {details.get('col')}: " if details else ""
    return refuse(text, start, highlight, f"{place}{description[:1].lower()}{description[1:]}")


def _refuse_chains(tree: exp.Expression, text: str) -> None:
    """Ask for parentheses where sqlglot and Spark bind differently, so that nothing is read in two ways."""
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
    """Take the parentheses and comments away, and write NOT LIKE as NOT of LIKE."""
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
