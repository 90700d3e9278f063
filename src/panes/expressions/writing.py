"""Tree in, text out: the one spelling of an expression, with just the parentheses that Spark needs.

sqlglot's own generator keeps the parentheses of the user. Here they are put in by precedence, and also wherever Spark's
grammar binds otherwise than sqlglot's (chains of comparisons): Spark evaluates exactly the tree that Panes has read.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Final

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from panes.errors import ExpressionError
from panes.expressions.coercion import DATE, TIMESTAMP, name_of, type_named
from panes.expressions.functions import ATOM, FUNCTIONS, NEGATIVE, NOT, OPERATORS, PREDICATE, SUM

SPARK: Final = Dialect.get_or_raise("spark")

# Words that may begin or continue something other than a name, in the grammar of sqlglot or of Spark.
_WORDS: Final = """
    all and anti any array as asc between binary both by case cast collate cross cube current current_catalog
    current_database current_date current_role current_schema current_time current_timestamp current_user date datetime
    default desc describe distinct div else end escape except exists extract false filter first following for format
    from full function global grant group grouping having if ilike in inner intersect interval into is join last
    lateral leading left like limit localtime localtimestamp map match minus model natural next not null nulls of offset
    on or order outer over overlay partition pivot position preceding prior qualify range regexp replace right rlike
    rollup row rows select semi session_user set sets similar some struct substr substring sysdate table then time
    timestamp timestamp_ltz timestamp_ntz to trailing trim true try_cast unbounded union unique unknown unnest
    unpivot update user using values variant when where window with within
"""
_RESERVED: Final = frozenset(_WORDS.split())


def operands(node: exp.Expression) -> list[exp.Expression]:
    """Return the operands of a node in the order in which they are written."""
    if isinstance(node, exp.Case):
        branches = [part for branch in node.args["ifs"] for part in (branch.this, branch.args["true"])]
        return [part for part in (node.this, *branches, node.args.get("default")) if part is not None]
    if isinstance(node, (exp.Column, exp.Dot, exp.Literal)):
        return []
    names = ("this", "expression", "low", "high", "true", "false", "decimals")
    single = [node.args[name] for name in names if isinstance(node.args.get(name), exp.Expression)]
    return single + list(node.args.get("expressions") or [])


def path(column: exp.Expression) -> tuple[str, ...]:
    """Return the names of a column reference: ``a.b`` is ``("a", "b")``."""
    if isinstance(column, exp.Identifier):
        return (column.this,)
    fields = []
    while isinstance(column, exp.Dot):
        fields.append(column.expression.name)
        column = column.this
    return (*(part.name for part in column.parts), *reversed(fields)) if isinstance(column, exp.Column) else ()


def is_column(tree: exp.Expression) -> bool:
    """Whether a tree is just a column, or a field of one."""
    return isinstance(tree, (exp.Column, exp.Dot))


def paths(tree: exp.Expression) -> list[tuple[str, ...]]:
    """Return the columns of a tree in order of appearance; a field of a struct with its path.

    Examples
    --------
    >>> paths(exp.maybe_parse("a.b + coalesce(c, 0)"))
    [('a', 'b'), ('c',)]
    """
    found, pending = [], [tree]
    while pending:
        node = pending.pop()
        if is_column(node):
            found.append(path(node))
        else:
            pending += reversed(operands(node))
    return found


def renamed(tree: exp.Expression, replacements: Mapping[str, exp.Expression]) -> str:
    """Return the text of a tree with columns, or roots of fields, replaced by other trees."""
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
        raise ExpressionError(
            f"{write(root)!r} is not a column: the field {'.'.join(names)!r} cannot be taken from it."
        )
    found = root.copy()
    for name in names:
        found = exp.Dot(this=found, expression=exp.to_identifier(name, quoted=True))
    return found


def identifier(name: str) -> str:
    """Write a name, in backticks unless it is a plain word that can only be a name."""
    if name.isascii() and name.isidentifier() and name.lower() not in _RESERVED:
        tokens = SPARK.tokenize(name)
        if len(tokens) == 1 and tokens[0].token_type in SPARK.parser_class.ID_VAR_TOKENS:
            return name
    return "`" + name.replace("`", "``") + "`"


def write(node: exp.Expression) -> str:
    """Write a tree of the subset as Spark SQL."""
    return _write(node)[0]


def _write(node: exp.Expression) -> tuple[str, int]:
    """Return the text of a node and its precedence."""
    kind = type(node)
    if kind in OPERATORS:
        return _binary(node)
    if kind in FUNCTIONS:
        return f"{FUNCTIONS[kind].name}({', '.join(map(write, operands(node)))})", ATOM
    return _WRITERS[kind](node)


def _operand(node: exp.Expression, binding: int) -> str:
    text, own = _write(node)
    return text if own >= binding else f"({text})"


def _binary(node: exp.Expression) -> tuple[str, int]:
    # Operators of one level lean to the left: a chain of them is written from its first operand on.
    first, chain = chain_of(node)
    text, own = _write(first)
    parts, opened = [text], 0
    for part in chain:
        operator = OPERATORS[type(part)]
        level = operator.precedence
        if own < (level + 1 if level == PREDICATE else level):  # comparisons do not chain
            parts.append(")")
            opened += 1
        parts.append(f" {operator.symbol} {_operand(part.expression, level + 1)}")
        own = level
    return "(" * opened + "".join(parts), own


def chain_of(node: exp.Expression, kinds: Container[type] = OPERATORS) -> tuple[exp.Expression, list[exp.Expression]]:
    """Return the first operand of a chain of operators, and the operators from the innermost on.

    A long chain is a deep tree, so whoever descends by its left operands runs out of stack.
    """
    chain = []
    while type(node) in kinds:
        chain.append(node)
        node = node.this
    return node, chain[::-1]


def _not(node: exp.Expression) -> tuple[str, int]:
    inner = node.this
    if type(inner) in _PREDICATES:
        return _PREDICATES[type(inner)](inner, "NOT "), PREDICATE
    return f"NOT {_operand(inner, PREDICATE)}", NOT


def _is(node: exp.Expression, negation: str) -> str:
    return f"{_operand(node.this, SUM)} IS {negation}{write(node.expression)}"


def _in(node: exp.Expression, negation: str) -> str:
    return f"{_operand(node.this, SUM)} {negation}IN ({', '.join(map(write, node.expressions))})"


def _between(node: exp.Expression, negation: str) -> str:
    low, high = _operand(node.args["low"], SUM), _operand(node.args["high"], SUM)
    return f"{_operand(node.this, SUM)} {negation}BETWEEN {low} AND {high}"


def _like(node: exp.Expression, negation: str) -> str:
    return f"{_operand(node.this, SUM)} {negation}LIKE {write(node.expression)}"


def _literal(node: exp.Expression) -> tuple[str, int]:
    if node.args.get("is_string"):
        return quoted(node.name), ATOM
    text = node.name.upper()
    return (str(int(text)) if text.isdecimal() else text), ATOM


def _cast(node: exp.Expression) -> tuple[str, int]:
    target = type_named(node.args["to"].sql(dialect="spark"))
    if target in (DATE, TIMESTAMP):
        return f"{name_of(target)} {write(node.this)}", ATOM
    return f"CAST({write(node.this)} AS {name_of(target)})", ATOM


def _case(node: exp.Expression) -> tuple[str, int]:
    words = ["CASE"]
    if node.this is not None:
        words.append(write(node.this))
    for branch in node.args["ifs"]:
        words.append(f"WHEN {write(branch.this)} THEN {write(branch.args['true'])}")
    if node.args.get("default") is not None:
        words.append(f"ELSE {write(node.args['default'])}")
    return " ".join([*words, "END"]), ATOM


def _column(node: exp.Expression) -> tuple[str, int]:
    return ".".join(map(identifier, path(node))), ATOM


_PREDICATES: Final[dict[type[exp.Expression], Callable[[exp.Expression, str], str]]] = {
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
}
_WRITERS: Final[dict[type[exp.Expression], Callable[[exp.Expression], tuple[str, int]]]] = {
    exp.Column: _column,
    exp.Dot: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda node: ("TRUE" if node.this else "FALSE", ATOM),
    exp.Null: lambda node: ("NULL", ATOM),
    exp.Neg: lambda node: (f"-{_operand(node.this, ATOM)}", NEGATIVE),
    exp.Not: _not,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Case: _case,
    **{kind: lambda node: (_PREDICATES[type(node)](node, ""), PREDICATE) for kind in _PREDICATES},
}


def quoted(text: str) -> str:
    """Write a string literal, in single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
