"""Scalar expressions: a documented subset of SQL as values.

An expression is its canonical text: two spellings of the same tree (other blanks, case of keywords, needless
parentheses) are equal. Spark evaluates the text as it is, the local runner evaluates the tree.
The subset is described in ``docs/expressions.md``.

The parser is imported when an expression is first read: Spark's workers, which get plans ready made, read none, and
importing sqlglot would take them longer than most of their tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from panes.errors import ExpressionError

if TYPE_CHECKING:
    from sqlglot import exp

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
    >>> Expression("rand() > 0.5")
    Traceback (most recent call last):
    ...
    panes.errors.ExpressionError: cannot use 'rand() > 0.5': RAND is not deterministic, and a plan may ...
      rand() > 0.5
      ^^^^
    Supported are ...
    """

    sql: str

    def __post_init__(self) -> None:
        if not isinstance(self.sql, str):
            raise ExpressionError(f"{self.sql!r} is not an expression: give SQL text, as 'temp > -60'.")
        from panes.expressions.parsing import tree_of
        from panes.expressions.writing import write

        object.__setattr__(self, "sql", write(tree_of(self.sql)))

    @property
    def tree(self) -> exp.Expression:
        """The sqlglot tree, without parentheses; it is shared: read it, never change it."""
        from panes.expressions.parsing import tree_of

        return tree_of(self.sql)

    @property
    def columns(self) -> tuple[str, ...]:
        """The referenced columns in order of appearance; a field of a struct with its path, as ``a.b``."""
        return tuple(dict.fromkeys(".".join(names) for names in self._paths()))

    @property
    def roots(self) -> tuple[str, ...]:
        """The columns that the data must have: for the field ``a.b`` the column ``a``."""
        return tuple(dict.fromkeys(names[0] for names in self._paths()))

    def _paths(self) -> list[tuple[str, ...]]:
        from panes.expressions.writing import paths

        return paths(self.tree)

    @property
    def is_column(self) -> bool:
        """Whether this is just a column, or a field of one."""
        from panes.expressions.writing import is_column

        return is_column(self.tree)

    def rename(self, mapping: Mapping[str, ExpressionLike]) -> Expression:
        """Return the expression with columns replaced by other columns, or by whole expressions.

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
        from panes.expressions.writing import renamed

        trees = {name: (new if isinstance(new, Expression) else column(new)).tree for name, new in mapping.items()}
        return Expression(renamed(self.tree, trees))

    def __str__(self) -> str:
        return self.sql

    def __repr__(self) -> str:
        return f"Expression({self.sql!r})"


def expression(value: ExpressionLike) -> Expression:
    """Return an expression as it is, or read it from its text."""
    return value if isinstance(value, Expression) else Expression(value)


def column(name: str) -> Expression:
    """Return the column of exactly this name, whatever characters it has.

    Examples
    --------
    >>> column("my col").sql
    '`my col`'
    """
    return Expression("`" + name.replace("`", "``") + "`")


def when(condition: ExpressionLike, value: ExpressionLike) -> Expression:
    """Return an expression with a value where a condition is true, and null elsewhere.

    Examples
    --------
    >>> when("temp > -60", "temp")
    Expression('CASE WHEN temp > -60 THEN temp END')
    """
    return Expression(f"CASE WHEN {expression(condition)} THEN {expression(value)} END")


def disjunction(conditions: Iterable[ExpressionLike]) -> Expression:
    """Return a condition that holds where any of these holds: FALSE when there is none.

    Examples
    --------
    >>> disjunction(["a AND b", "c"])
    Expression('a AND b OR c')
    """
    return Expression(" OR ".join(f"({expression(condition)})" for condition in conditions) or "FALSE")
