"""SELECT and HAVING: aggregates, and expressions over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from sqlglot import exp, parse_one
from sqlglot.errors import ParseError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from panes.aggregates.aggregate import Aggregate
from panes.aggregates.registry import SqlName, sql_names
from panes.dialect.tokens import PANES, fail
from panes.errors import DeclarationError, ExpressionError
from panes.expressions.depth import too_deep
from panes.expressions.expression import Expression
from panes.expressions.parsing import checked, parse_tokens
from panes.expressions.writing import write
from panes.queries.query import EXPIRES, RESERVED
from panes.suggestions import nearest

_START, _END = "window.start", "window.end"
_PLACES = {
    "system.window().id": "window_name",
    "system.timestamp()": _END,
    "system.timestamp": _END,
    "window_start": _START,
    "window_end": _END,
    "window.start": _START,
    "window.end": _END,
    "window": "window",
    "window_name": "window_name",
    "expires": "expires",
}


@dataclass
class Selected:
    """What a statement selects.

    Parameters
    ----------
    keys
        The columns that it groups by.
    stream
        What it reads from: columns may be qualified by it.
    aliases
        All names that the statement gives to columns.
    select
        Output columns in order: aggregates, and expressions over them.
    hidden
        Aggregates that only expressions use.
    """

    text: str
    stream: str
    keys: Sequence[str]
    aliases: Sequence[str] = ()
    select: dict[str, Aggregate | Expression] = field(default_factory=dict)
    hidden: dict[str, Aggregate] = field(default_factory=dict)

    @property
    def aggregates(self) -> list[Aggregate]:
        """All aggregates, shown or hidden."""
        return [value for value in (*self.select.values(), *self.hidden.values()) if isinstance(value, Aggregate)]

    def add(self, tokens: Sequence[Token], alias: str | None, spelling: Sequence[Token]) -> None:
        """One member of the list behind SELECT; ``spelling`` are all of its words."""
        tree = self._tree(tokens)
        place = self._place(tree)
        if place is not None and place.lower() == (alias or place).lower() and place in ("window", "window_name"):
            return  # Every answer has it.
        if place is None and isinstance(tree, exp.Column) and tree.name.lower() in self._own_keys:
            if len(tree.parts) > 1:
                fail(self.text, tokens, f"{_dotted(tree)!r} is not a key. Write the key as in GROUP BY.")
            if alias is None or alias.lower() == tree.name.lower():
                return  # Every answer has its keys.
        elif place is None and isinstance(tree, exp.Column) and alias is None:
            what = f"{tree.name!r} is neither an aggregate nor in GROUP BY. Group by it, or aggregate it."
            fail(self.text, tokens, what)
        named = spelling if alias is None else spelling[-1:]
        found = self._aggregate(tree, tokens)
        if found is not None:
            self._put(alias or label(found), found, named)
            return
        value = self._expression(tree, tokens)
        bound = {_START: "window_start", _END: "window_end"}.get(place or "")
        self._put(alias or bound or value.sql, value, named)

    @property
    def _own_keys(self) -> set[str]:
        return {key.lower() for key in self.keys}

    def having(self, tokens: Sequence[Token]) -> Expression:
        """A condition on answers."""
        return self._expression(self._tree(tokens), tokens)

    def condition(self, tokens: Sequence[Token]) -> Expression:
        """A condition on events, without aggregates."""
        tree = self._tree(tokens)
        if any(self._place(node) not in (None, "window") for node in tree.find_all(exp.Column, exp.Dot)):
            fail(self.text, tokens, "WHERE is about events, which have no window yet. Write this after HAVING.")
        return self._checked(tree, tokens)

    def _place(self, tree: exp.Expression) -> str | None:
        """What a column, or a call of Azure's, says about the window of an answer."""
        if not isinstance(tree, (exp.Column, exp.Dot)):
            return None
        name = _dotted(tree).lower()
        own = {column.lower() for column in (*self.keys, *self.select, *self.aliases)}
        return None if name in own else _PLACES.get(name)

    def _put(self, alias: str, value: Aggregate | Expression, named: Sequence[Token]) -> None:
        """A column under its name; what is wrong with the name is shown where it stands."""
        instead = "Give this one another name with AS."
        if alias.lower() in {column.lower() for column in self.select}:
            fail(self.text, named, f"two columns are called {alias!r}, ignoring case. {instead}")
        if alias.lower() in self._own_keys:
            fail(self.text, named, f"{alias!r} is already a key, which every answer has. {instead}")
        if alias.lower() in RESERVED:
            fail(self.text, named, f"every answer already has a column {alias!r}. {instead}")
        if alias.startswith("__"):
            fail(self.text, named, f"names that begin with '__' are reserved. {instead}")
        if alias in self.hidden and self.hidden.pop(alias) != value:
            fail(self.text, named, f"{alias!r} is already the name of another aggregate here. {instead}")
        self.select[alias] = value

    def _tree(self, tokens: Sequence[Token]) -> exp.Expression:
        if not tokens:
            fail(self.text, tokens, "an expression is missing.")
        if (deep := too_deep(tokens)) is not None:
            fail(self.text, [deep[0]], f"{deep[1]}.")
        try:
            trees = parse_tokens(PANES, list(tokens), self.text)
        except ParseError as error:
            details = error.errors[0] if error.errors else {}
            reason = str(details.get("description") or "it is not SQL").split(" for <class")[0]
            fail(self.text, tokens, f"this cannot be read: {reason[:1].lower()}{reason[1:]}.")
        tree = trees[0] if len(trees) == 1 else None
        if not isinstance(tree, exp.Expression):
            fail(self.text, tokens, "this is not an expression.")
        for token in tokens:
            if token.token_type is TokenType.STRING and self.text[token.start] == '"':
                fail(
                    self.text, [token], f"double quotes: write `{token.text}` for a column, or '{token.text}' for text."
                )
        return self._without_stream(tree)

    def _without_stream(self, tree: exp.Expression) -> exp.Expression:
        """The same tree, with columns that are qualified by the stream as they are called there."""

        def bare(node: exp.Expression) -> exp.Expression:
            if isinstance(node, exp.Column) and len(node.parts) > 1:
                first, *rest = node.parts
                if first.name.lower() == self.stream.lower():
                    names = ("this", "table", "db", "catalog")
                    return exp.Column(**dict(zip(names, reversed(rest), strict=False)))
            return node

        found: exp.Expression = exp.Paren(this=tree).transform(bare).this
        return found

    def _aggregate(self, tree: exp.Expression, tokens: Sequence[Token]) -> Aggregate | None:
        """The aggregate that a tree is, if it is nothing else."""
        if isinstance(tree, exp.Paren):
            return self._aggregate(tree.this, tokens)
        if isinstance(tree, (exp.Window, exp.Filter)):
            tokens = _of(tree, tokens)
            word = "OVER" if isinstance(tree, exp.Window) else "FILTER"
            instead = "Write a condition into the argument, as SUM(CASE WHEN a > 1 THEN x END)."
            fail(self.text, tokens, f"{word} after an aggregate is not supported. {instead}")
        names = _names_of(tree)
        if not names:
            return None
        tokens = _of(tree, tokens)
        distinct, given = _given(tree)
        name = next((each for each in names if each.name.endswith(" DISTINCT") == distinct), None)
        if name is None:
            fail(self.text, tokens, "DISTINCT is supported only in COUNT(DISTINCT x).")
        if name.takes_all and len(given) == 1 and isinstance(given[0], exp.Star):
            return name.make(**name.options)
        if len(given) != len(name.parameters):
            star = f"{name.call('*')} or " if name.takes_all else ""
            fail(self.text, tokens, f"write {star}{name.call(*name.example)}, and nothing after it.")
        arguments = [
            self._checked(part, _of(part, tokens)).sql if kind is str else self._number(part, kind, name, tokens)
            for part, kind in zip(given, name.parameters.values(), strict=True)
        ]
        try:
            return name.make(*arguments, **name.options)
        except DeclarationError as error:
            fail(self.text, tokens, str(error))

    def _number(self, part: exp.Expression, kind: type, name: SqlName, tokens: Sequence[Token]) -> int | float:
        """A number that an aggregate takes behind its columns."""
        if not isinstance(part, exp.Literal) or part.is_string or (kind is int and not part.is_int):
            fail(self.text, tokens, f"write {name.call(*name.example)}, with a number and nothing after it.")
        number: int | float = kind(part.name)
        return number

    def _expression(self, tree: exp.Expression, tokens: Sequence[Token]) -> Expression:
        """An expression over aggregates, keys and the window; aggregates in it get a name, or are found by theirs."""

        def replaced(node: exp.Expression) -> exp.Expression:
            place = self._place(node)
            if place is not None:
                return _field(place)
            found = self._aggregate(node, tokens) if not isinstance(node, exp.Paren) else None
            if found is None:
                return node
            known = {**self.hidden, **{alias: v for alias, v in self.select.items() if isinstance(v, Aggregate)}}
            alias = next((alias for alias, aggregate in known.items() if aggregate == found), None)
            if alias is None:
                alias = label(found)
                self.hidden[alias] = found
            return exp.column(exp.to_identifier(alias, quoted=True))

        value = self._checked(exp.Paren(this=tree.copy()).transform(replaced), tokens)
        known = [*self.keys, *self.aliases, *self.select, *self.hidden, "window", "window_name", EXPIRES]
        for root in value.roots:
            if root.lower() not in {name.lower() for name in known}:
                what = f"{root!r} is neither a key nor a selected column ({nearest(root, known)})."
                here = [token for token in tokens if token.text.lower() == root.lower()][:1]
                fail(self.text, here or tokens, f"{what} Outside of aggregates, only these can be used.")
        return value

    def _checked(self, tree: exp.Expression, tokens: Sequence[Token]) -> Expression:
        try:
            return Expression(write(checked(tree, "".join(_spelt(self.text, tokens)))))
        except (ExpressionError, RecursionError) as error:
            reason = "it is nested too deeply." if isinstance(error, RecursionError) else str(error).splitlines()[0]
            if "an aggregate reads many rows" in reason or any(_names_of(call) for call in tree.find_all(exp.Func)):
                # That error speaks to users of Python.
                known = ", ".join(sorted({each.name for each in sql_names() if " " not in each.name}))
                reason = f"aggregates cannot be nested or appear in WHERE, and must be one of {known}."
            fail(self.text, tokens, reason)
        except DeclarationError as error:
            fail(self.text, tokens, str(error))


def label(aggregate: Aggregate) -> str:
    """What an aggregate is called that was given no name: its own text."""
    text = str(aggregate)
    return "count(*)" if text == "count()" else text


def _dotted(tree: exp.Expression) -> str:
    fields = []
    while isinstance(tree, exp.Dot):
        fields.append(_dotted(tree.expression))
        tree = tree.this
    if fields:
        return ".".join((_dotted(tree), *reversed(fields)))
    if isinstance(tree, exp.Column):
        # A dot within a name is no dot between names.
        return ".".join(part.name.replace(".", "..") for part in tree.parts)
    if isinstance(tree, (exp.Func, exp.Anonymous)):
        # With arguments, it is a call like any other.
        return f"{tree.name}({'...' if tree.expressions else ''})"
    return tree.name


def _field(place: str) -> exp.Expression:
    root, _, name = place.partition(".")
    return exp.column(name, table=root) if name else exp.column(root)


def _of(tree: exp.Expression, tokens: Sequence[Token]) -> Sequence[Token]:
    """Those among some words that a part of their tree was read from."""
    places = [node.meta for node in tree.walk() if "start" in node.meta]
    if not places:
        return tokens
    first, last = min(place["start"] for place in places), max(place["end"] for place in places)
    begin = next((i for i, token in enumerate(tokens) if token.start >= first), 0)
    end, depth = begin, 0
    # What is open in between is closed right behind.
    while end < len(tokens) and (tokens[end].end <= last or (depth and tokens[end].token_type is TokenType.R_PAREN)):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(tokens[end].token_type, 0)
        end += 1
    return tokens[begin:end] or tokens


def _names_of(tree: object) -> list[SqlName]:
    """The aggregates that a call may be: COUNT is one with DISTINCT and one without."""
    if not isinstance(tree, exp.Func):
        return []
    function = _function(tree)
    return [each for each in sql_names() if _function_of(each.call(*each.example)) == function]


def _function(tree: object) -> type | str:
    """Which function is called: its class, or the name of one that the parser does not know."""
    return tree.name.upper() if isinstance(tree, exp.Anonymous) else type(tree)


@cache
def _function_of(call: str) -> type | str:
    return _function(parse_one(call, dialect=PANES))


def _given(call: exp.Expression) -> tuple[bool, list[exp.Expression]]:
    """Whether a call says DISTINCT, and its arguments in order."""
    values = [each for value in call.args.values() for each in (value if isinstance(value, list) else [value])]
    parts = [each for each in values if isinstance(each, exp.Expression)]
    if len(parts) == 1 and isinstance(parts[0], exp.Distinct):
        return True, [*parts[0].expressions, *filter(None, [parts[0].args.get("on")])]
    return False, parts


def _spelt(text: str, tokens: Sequence[Token]) -> str:
    return text[tokens[0].start : tokens[-1].end + 1]
