"""Scalar expressions: a documented subset of SQL as values.

An expression is its canonical text: two spellings of the same tree (other blanks, case of keywords, needless
parentheses) are equal. Spark evaluates the text as it is, the local runner evaluates the tree.
The subset is described in ``docs/expressions.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from sqlglot import exp

from panes.errors import ExpressionError
from panes.expressions import literals
from panes.expressions.parsing import tree_of
from panes.expressions.writing import operands, path, write

if TYPE_CHECKING:
    from sqlglot import exp


# What expressions ask of their trees: the canonical text, the columns, other columns in their place.


__all__ = ["canonical", "is_column", "paths", "renamed", "tree_of"]


def canonical(text: str) -> str:
    """The one spelling of an expression."""
    return write(tree_of(text))


def is_column(tree: exp.Expression) -> bool:
    """Whether a tree is nothing but a column, or a field of one."""
    return isinstance(tree, (exp.Column, exp.Dot))


def paths(tree: exp.Expression) -> list[tuple[str, ...]]:
    """The columns of a tree in order of appearance; a field of a struct with its path.

    Examples
    --------
    >>> paths(tree_of("a.b + coalesce(c, 0)"))
    [('a', 'b'), ('c',)]
    """
    if is_column(tree):
        return [path(tree)]
    return [found for operand in operands(tree) for found in paths(operand)]


def renamed(tree: exp.Expression, replacements: Mapping[str, exp.Expression]) -> str:
    """The text of a tree with others in the place of columns, or of the roots of fields."""
    by_name = {name.casefold(): new for name, new in replacements.items()}

    def replaced(node: exp.Expression) -> exp.Expression:
        if not is_column(node):
            return node
        names = path(node)
        for length in range(len(names), 0, -1):
            found = by_name.get(".".join(names[:length]).casefold())
            if found is not None:
                return _field(found, names[length:])
        return node

    return write(tree.transform(replaced))


def _field(root: exp.Expression, names: tuple[str, ...]) -> exp.Expression:
    if names and not is_column(root):
        raise ExpressionError(f"{write(root)!r} is no column: the field {'.'.join(names)!r} cannot be taken from it.")
    found = root.copy()
    for name in names:
        found = exp.Dot(this=found, expression=exp.to_identifier(name, quoted=True))
    return found


# The parser is imported when an expression is first read: executors, which get plans ready made, read none, and
# importing sqlglot would take them longer than most of their tasks.

ExpressionLike: TypeAlias = "Expression | str"


@dataclass(frozen=True, slots=True, repr=False)
class Expression:
    """A deterministic scalar expression over the columns of one row.

    Parameters
    ----------
    sql
        The expression; kept in its canonical spelling, as ``pyspark.sql.functions.expr`` takes it.

    Examples
    --------
    >>> Expression("price*QTY  > (10)")
    Expression('price * QTY > 10')
    >>> Expression("price*QTY > 10").columns
    ('price', 'QTY')
    >>> Expression("a") == Expression("(`a`)")
    True
    """

    sql: str

    def __post_init__(self) -> None:
        if not isinstance(self.sql, str):
            raise ExpressionError(f"{self.sql!r} is no expression: give SQL text, as 'temp > -60'.")

        object.__setattr__(self, "sql", canonical(self.sql))

    @property
    def tree(self) -> exp.Expression:
        """The sqlglot tree, without parentheses; it is shared: read it, never change it."""

        return tree_of(self.sql)

    @property
    def columns(self) -> tuple[str, ...]:
        """The referenced columns in order of appearance; a field of a struct with its path, as ``a.b``."""

        return tuple(dict.fromkeys(".".join(found) for found in paths(self.tree)))

    @property
    def roots(self) -> tuple[str, ...]:
        """The columns that the data have to have: for the field ``a.b`` the column ``a``."""

        return tuple(dict.fromkeys(found[0] for found in paths(self.tree)))

    @property
    def is_column(self) -> bool:
        """Whether this is nothing but a column, or a field of one."""

        return is_column(self.tree)

    def rename(self, mapping: Mapping[str, ExpressionLike]) -> Expression:
        """Put other columns, or whole expressions, in the place of columns.

        Parameters
        ----------
        mapping
            From column names (case does not matter; ``a.b`` for a field, ``a`` also for the root of ``a.b``) to the
            name of another column, or to an Expression.

        Examples
        --------
        >>> Expression("a * b").rename({"A": "x", "b": Expression("c + 1")})
        Expression('x * (c + 1)')
        """

        trees = {name: (new if isinstance(new, Expression) else column(new)).tree for name, new in mapping.items()}
        return Expression(renamed(self.tree, trees))

    def __str__(self) -> str:
        return self.sql

    def __repr__(self) -> str:
        return f"Expression({self.sql!r})"


def parse(text: str) -> Expression:
    """Read an expression.

    Examples
    --------
    >>> parse("rand() > 0.5")
    Traceback (most recent call last):
    ...
    panes.errors.ExpressionError: cannot use 'rand() > 0.5': RAND is not deterministic, and a plan may ...
      rand() > 0.5
      ^^^^
    Supported are ...
    """
    return Expression(text)


def expression(value: ExpressionLike) -> Expression:
    """Take an expression, or read one."""
    return value if isinstance(value, Expression) else Expression(value)


def column(name: str) -> Expression:
    """The column of exactly this name, whatever characters it has.

    Examples
    --------
    >>> column("my col").sql
    '`my col`'
    """
    return Expression("`" + name.replace("`", "``") + "`")


def literal(value: literals.Scalar) -> Expression:
    """Write a Python value as an expression.

    Examples
    --------
    >>> literal("it's"), literal(1), literal(None)
    (Expression("'it\\\\'s'"), Expression('1'), Expression('NULL'))
    """
    return Expression(literals.write(value))


def when(condition: ExpressionLike, value: ExpressionLike) -> Expression:
    """The value where the condition is true, and null elsewhere.

    Examples
    --------
    >>> when("temp > -60", "temp")
    Expression('CASE WHEN temp > -60 THEN temp END')
    """
    return Expression(f"CASE WHEN {expression(condition)} THEN {expression(value)} END")


def conjunction(conditions: Iterable[ExpressionLike]) -> Expression:
    """All of the conditions: TRUE when there is none.

    Examples
    --------
    >>> conjunction(["a OR b", "c"])
    Expression('(a OR b) AND c')
    """
    return _joined("AND", conditions, empty=True)


def disjunction(conditions: Iterable[ExpressionLike]) -> Expression:
    """Any of the conditions: FALSE when there is none."""
    return _joined("OR", conditions, empty=False)


def _joined(word: str, conditions: Iterable[ExpressionLike], *, empty: bool) -> Expression:
    texts = [f"({expression(condition)})" for condition in conditions]
    return Expression(f" {word} ".join(texts)) if texts else literal(empty)
