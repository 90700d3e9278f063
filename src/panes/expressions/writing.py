"""Tree in, text out: the one spelling of an expression, with just the parentheses that Spark needs.

sqlglot's own generator keeps the parentheses of the user. Here they are put in by precedence, and also
wherever Spark's grammar binds otherwise than sqlglot's (chains of comparisons, ``||`` beside ``+``), so
that Spark evaluates exactly the tree that Panes has read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final, TypeAlias

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from panes.errors import ExpressionError

Scalar: TypeAlias = "bool | int | float | Decimal | str | date | datetime | None"

SPARK: Final = Dialect.get_or_raise("spark")

_OR, _AND, _NOT, _PREDICATE, _CONCAT, _SUM, _PRODUCT, _NEGATIVE, _ATOM = range(9)

_BINARY: Final[dict[type[exp.Expression], tuple[str, int]]] = {
    exp.Or: ("OR", _OR),
    exp.And: ("AND", _AND),
    exp.EQ: ("=", _PREDICATE),
    exp.NEQ: ("<>", _PREDICATE),
    exp.LT: ("<", _PREDICATE),
    exp.LTE: ("<=", _PREDICATE),
    exp.GT: (">", _PREDICATE),
    exp.GTE: (">=", _PREDICATE),
    exp.NullSafeEQ: ("<=>", _PREDICATE),
    exp.DPipe: ("||", _CONCAT),
    exp.Add: ("+", _SUM),
    exp.Sub: ("-", _SUM),
    exp.Mul: ("*", _PRODUCT),
    exp.Div: ("/", _PRODUCT),
    exp.Mod: ("%", _PRODUCT),
}
_CHAINS: Final = frozenset({_OR, _AND, _CONCAT, _SUM, _PRODUCT})
_FUNCTIONS: Final[dict[type[exp.Expression], str]] = {
    exp.Abs: "ABS",
    exp.Ceil: "CEIL",
    exp.Coalesce: "COALESCE",
    exp.Concat: "CONCAT",
    exp.Floor: "FLOOR",
    exp.Greatest: "GREATEST",
    exp.If: "IF",
    exp.IsNan: "ISNAN",
    exp.Least: "LEAST",
    exp.Length: "LENGTH",
    exp.Lower: "LOWER",
    exp.Nullif: "NULLIF",
    exp.Round: "ROUND",
    exp.Trim: "TRIM",
    exp.Upper: "UPPER",
}
_TYPES: Final[dict[str, str]] = {
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "TINYINT",
    "SMALLINT": "SMALLINT",
    "INT": "INT",
    "BIGINT": "BIGINT",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "DECIMAL": "DECIMAL",
    "TEXT": "STRING",
    "DATE": "DATE",
    "TIMESTAMPTZ": "TIMESTAMP",
    "TIMESTAMP": "TIMESTAMP",
    "TIMESTAMPLTZ": "TIMESTAMP",
}
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
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


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
    if isinstance(column, exp.Dot):
        return path(column.this) + path(column.expression)
    return tuple(part.name for part in column.parts) if isinstance(column, exp.Column) else ()


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
    if is_column(tree):
        return [path(tree)]
    return [found for operand in operands(tree) for found in paths(operand)]


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


def type_name(node: exp.DataType) -> str | None:
    """Return the Spark name of a type in a cast, or None if it is not in the subset."""
    name = _TYPES.get(node.this.name if isinstance(node.this, exp.DataType.Type) else str(node.this))
    if name == "DECIMAL":
        parameters = [parameter.name for parameter in node.expressions] or ["10"]
        return f"DECIMAL({parameters[0]}, {parameters[1] if len(parameters) > 1 else 0})"
    return name


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
    if kind in _BINARY:
        return _binary(node)
    if kind in _FUNCTIONS:
        return f"{_FUNCTIONS[kind]}({', '.join(map(write, operands(node)))})", _ATOM
    return _WRITERS[kind](node)


def _operand(node: exp.Expression, binding: int) -> str:
    text, own = _write(node)
    return text if own >= binding else f"({text})"


def _binary(node: exp.Expression) -> tuple[str, int]:
    symbol, level = _BINARY[type(node)]
    # Only a chain of one level is left-deep; || never mixes with + and -, which have the same precedence in Spark.
    left = level if level in _CHAINS else level + 1
    tight = _PRODUCT if level == _CONCAT else level + 1
    if level == _CONCAT:
        left = _CONCAT if isinstance(node.this, exp.DPipe) else _PRODUCT
    return f"{_operand(node.this, left)} {symbol} {_operand(node.expression, tight)}", level


def _not(node: exp.Expression) -> tuple[str, int]:
    inner = node.this
    if type(inner) in _PREDICATES:
        return _PREDICATES[type(inner)](inner, "NOT "), _PREDICATE
    return f"NOT {_operand(inner, _PREDICATE)}", _NOT


def _is(node: exp.Expression, negation: str) -> str:
    return f"{_operand(node.this, _CONCAT)} IS {negation}{write(node.expression)}"


def _in(node: exp.Expression, negation: str) -> str:
    return f"{_operand(node.this, _CONCAT)} {negation}IN ({', '.join(map(write, node.expressions))})"


def _between(node: exp.Expression, negation: str) -> str:
    low, high = _operand(node.args["low"], _CONCAT), _operand(node.args["high"], _CONCAT)
    return f"{_operand(node.this, _CONCAT)} {negation}BETWEEN {low} AND {high}"


def _like(node: exp.Expression, negation: str) -> str:
    return f"{_operand(node.this, _CONCAT)} {negation}LIKE {write(node.expression)}"


def _literal(node: exp.Expression) -> tuple[str, int]:
    if node.args.get("is_string"):
        return quoted(node.name), _ATOM
    text = node.name.upper()
    return (str(int(text)) if text.isdecimal() else text), _ATOM


def _cast(node: exp.Expression) -> tuple[str, int]:
    name = type_name(node.args["to"])
    if isinstance(node.this, exp.Literal) and node.this.is_string and name in ("DATE", "TIMESTAMP"):
        return f"{name} {write(node.this)}", _ATOM
    return f"CAST({write(node.this)} AS {name})", _ATOM


def _case(node: exp.Expression) -> tuple[str, int]:
    words = ["CASE"]
    if node.this is not None:
        words.append(write(node.this))
    for branch in node.args["ifs"]:
        words.append(f"WHEN {write(branch.this)} THEN {write(branch.args['true'])}")
    if node.args.get("default") is not None:
        words.append(f"ELSE {write(node.args['default'])}")
    return " ".join([*words, "END"]), _ATOM


def _column(node: exp.Expression) -> tuple[str, int]:
    return ".".join(map(identifier, path(node))), _ATOM


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
    exp.Boolean: lambda node: ("TRUE" if node.this else "FALSE", _ATOM),
    exp.Null: lambda node: ("NULL", _ATOM),
    exp.Neg: lambda node: (f"-{_operand(node.this, _ATOM)}", _NEGATIVE),
    exp.Not: _not,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Case: _case,
    **{kind: lambda node: (_PREDICATES[type(node)](node, ""), _PREDICATE) for kind in _PREDICATES},
}


# Python values as literals ---------------------------------------------------------------------------------------


def write_value(value: Scalar) -> str:
    """Write a Python value as a SQL literal of the same type.

    Examples
    --------
    >>> for value in ("it's", 1.5, Decimal("1.5"), None, date(2024, 2, 29)):
    ...     print(write_value(value))
    'it\\'s'
    1.5E0
    1.5
    NULL
    DATE '2024-02-29'
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, (float, Decimal)) and not math.isfinite(value):
        raise ExpressionError(f"{value} cannot be written as a literal: only finite numbers can.")
    if isinstance(value, float):
        text = repr(value).upper()
        return text if "E" in text else f"{text}E0"
    if isinstance(value, Decimal):
        text = format(value, "f")
        return text if "." in text else f"{text}."
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        shifted = _EPOCH + (value - _EPOCH)
        return f"TIMESTAMP '{shifted.replace(tzinfo=None).isoformat(sep=' ')}Z'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    raise ExpressionError(
        f"{value!r} cannot be written as a literal: give None, a bool, a number, a string, a date or a datetime."
    )


def quoted(text: str) -> str:
    """Write a string literal, in single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
