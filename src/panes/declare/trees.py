"""What expressions ask of their trees: the canonical text, the columns, other columns in their place."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from panes.declare.parsing import tree_of
from panes.declare.writing import operands, path, write
from panes.errors import ExpressionError

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
