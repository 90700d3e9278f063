"""What stands behind SELECT and HAVING: aggregates, and expressions over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from panes.aggregates import approximate as make_approximate
from panes.aggregates import constructors as make
from panes.aggregates.aggregates import Aggregate
from panes.dialect.tokens import PANES, fail
from panes.errors import DeclarationError, ExpressionError, nearest
from panes.expressions.expression import Expression
from panes.expressions.parsing import checked
from panes.expressions.writing import write
from panes.queries.query import EXPIRES, RESERVED

AGGREGATES: Mapping[type[exp.Expression], Callable[..., Aggregate]] = {
    exp.Sum: make.sum,
    exp.Avg: make.mean,
    exp.Min: make.min,
    exp.Max: make.max,
    exp.Variance: make.var,
    exp.VariancePop: lambda value: make.var(value, ddof=0),
    exp.Stddev: make.std,
    exp.StddevSamp: make.std,
    exp.StddevPop: lambda value: make.std(value, ddof=0),
    exp.First: make.first,
    exp.Last: make.last,
    exp.ArgMin: make.arg_min,
    exp.ArgMax: make.arg_max,
    exp.ApproxDistinct: make_approximate.approx_count_distinct,
    exp.ArrayUniqueAgg: make.distinct,
    exp.Corr: make.corr,
    exp.Median: lambda value: make.quantile(value, 0.5),
}
KNOWN = (
    "COUNT, SUM, AVG, MIN, MAX, VAR_SAMP, VAR_POP, STDDEV_SAMP, STDDEV_POP, FIRST, LAST, MIN_BY, MAX_BY, CORR, "
    "PERCENTILE, MEDIAN, COLLECT_SET, APPROX_COUNT_DISTINCT, APPROX_PERCENTILE, APPROX_TOP_K"
)

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
                fail(self.text, tokens, f"{_dotted(tree)!r} is no key. Write the key as it stands in GROUP BY.")
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
            fail(self.text, tokens, "WHERE is about events, which have no window yet. Write this behind HAVING.")
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
            fail(self.text, named, f"two columns are called {alias!r}, in whatever case. {instead}")
        if alias.lower() in self._own_keys:
            fail(self.text, named, f"{alias!r} is a key already, which every answer has. {instead}")
        if alias.lower() in RESERVED:
            fail(self.text, named, f"every answer has a column {alias!r} by itself. {instead}")
        if alias.startswith("__"):
            fail(self.text, named, f"names that begin with '__' are taken. {instead}")
        if alias in self.hidden and self.hidden.pop(alias) != value:
            fail(self.text, named, f"{alias!r} already stands for another aggregate here. {instead}")
        self.select[alias] = value

    def _tree(self, tokens: Sequence[Token]) -> exp.Expression:
        if not tokens:
            fail(self.text, tokens, "an expression is missing.")
        try:
            trees = PANES.parser().parse(list(tokens), self.text)
        except (ParseError, RecursionError) as error:
            details = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
            reason = str(details.get("description") or "it is nested too deeply").split(" for <class")[0]
            fail(self.text, tokens, f"this cannot be read: {reason[:1].lower()}{reason[1:]}.")
        tree = trees[0] if len(trees) == 1 else None
        if not isinstance(tree, exp.Expression):
            fail(self.text, tokens, "this is no expression.")
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
        every, tokens = tokens, _of(tree, tokens)
        if isinstance(tree, (exp.Window, exp.Filter)):
            word = "OVER" if isinstance(tree, exp.Window) else "FILTER"
            instead = "Write a condition into the argument, as SUM(CASE WHEN a > 1 THEN x END)."
            fail(self.text, tokens, f"{word} behind an aggregate is not supported. {instead}")
        if isinstance(tree, exp.Count):
            return self._count(tree, tokens)
        if type(tree) is exp.Quantile:  # Sketches are quantiles, too.
            return self._quantile(tree, tokens, every)
        if isinstance(tree, (exp.ApproxQuantile, exp.ApproxTopK)):
            return self._approximate(tree, tokens)
        if type(tree) not in AGGREGATES:
            return None
        extra = [name for name, value in tree.args.items() if value and name not in ("this", "expression")]
        if extra or isinstance(tree.this, exp.Distinct):
            fail(
                self.text,
                tokens,
                "DISTINCT stands in COUNT alone, and aggregates have one argument, or MIN_BY, MAX_BY and CORR two.",
            )
        arguments = [tree.args[name] for name in ("this", "expression") if tree.args.get(name) is not None]
        checked = [self._checked(argument, _of(argument, tokens)).sql for argument in arguments]
        make_one = AGGREGATES[type(tree)]
        try:
            signature(make_one).bind(*checked)
        except TypeError:
            fail(self.text, tokens, "aggregates have one argument, MIN_BY, MAX_BY and CORR two.")
        return make_one(*checked)

    def _count(self, tree: exp.Count, tokens: Sequence[Token]) -> Aggregate:
        if isinstance(tree.this, exp.Distinct):
            if len(tree.this.expressions) != 1 or tree.this.args.get("on"):
                fail(self.text, tokens, "COUNT(DISTINCT ...) takes one argument: write COUNT(DISTINCT x).")
            (value,) = tree.this.expressions
            return make.count_distinct(self._checked(value, _of(value, tokens)).sql)
        if tree.expressions or tree.this is None:
            fail(self.text, tokens, "write COUNT(*) or COUNT(x).")
        if isinstance(tree.this, exp.Star):
            return make.count()
        return make.count(self._checked(tree.this, _of(tree.this, tokens)).sql)

    def _quantile(self, tree: exp.Quantile, tokens: Sequence[Token], every: Sequence[Token]) -> Aggregate:
        part = tree.args.get("quantile")
        if _arguments_of("PERCENTILE", every) > 2:
            # Spark's counts of each value; the parser drops them.
            fail(self.text, tokens, "PERCENTILE takes a value and a number here: write PERCENTILE(x, 0.5).")
        if not isinstance(part, exp.Literal) or part.is_string:
            fail(self.text, tokens, "PERCENTILE takes a value and a number: write PERCENTILE(x, 0.5).")
        try:
            return make.quantile(self._checked(tree.this, _of(tree.this, tokens)).sql, float(part.name))
        except DeclarationError as error:
            fail(self.text, tokens, str(error))

    def _approximate(self, tree: exp.ApproxQuantile | exp.ApproxTopK, tokens: Sequence[Token]) -> Aggregate:
        """Aggregates whose second argument is a number; the size of a sketch has no SQL."""
        quantile = isinstance(tree, exp.ApproxQuantile)
        number = tree.args.get("quantile" if quantile else "expression")
        extra = [name for name, value in tree.args.items() if value and name not in ("this", "quantile", "expression")]
        if extra or not isinstance(number, exp.Literal) or number.is_string or not (quantile or number.is_int):
            usage = "APPROX_PERCENTILE(x, 0.5)" if quantile else "APPROX_TOP_K(x, 10)"
            fail(self.text, tokens, f"write {usage}, with a number and nothing behind it.")
        value = self._checked(tree.this, _of(tree.this, tokens)).sql
        try:
            if quantile:
                return make_approximate.approx_quantile(value, float(number.name))
            return make_approximate.top(value, int(number.name))
        except DeclarationError as error:
            fail(self.text, tokens, str(error))

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
                what = f"{root!r} is no key and no selected column ({nearest(root, known)})."
                here = [token for token in tokens if token.text.lower() == root.lower()][:1]
                fail(self.text, here or tokens, f"{what} Outside of aggregates, only these can be used.")
        return value

    def _checked(self, tree: exp.Expression, tokens: Sequence[Token]) -> Expression:
        try:
            return Expression(write(checked(tree, "".join(_spelt(self.text, tokens)))))
        except (ExpressionError, RecursionError) as error:
            reason = "it is nested too deeply." if isinstance(error, RecursionError) else str(error).splitlines()[0]
            if "an aggregate reads many rows" in reason:
                # That error speaks to users of Python.
                reason = (
                    f"an aggregate stands here within another, or where events are chosen, or it is none of {KNOWN}."
                )
            fail(self.text, tokens, reason)
        except DeclarationError as error:
            fail(self.text, tokens, str(error))


def label(aggregate: Aggregate) -> str:
    """What an aggregate is called that was given no name: its own text."""
    text = str(aggregate)
    return "count(*)" if text == "count()" else text


def _dotted(tree: exp.Expression) -> str:
    if isinstance(tree, exp.Dot):
        return f"{_dotted(tree.this)}.{_dotted(tree.expression)}"
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


def _arguments_of(name: str, tokens: Sequence[Token]) -> int:
    """The largest number of arguments in any call of a function."""
    most = 0
    for i, token in enumerate(tokens):
        if token.text.upper() == name and i + 1 < len(tokens) and tokens[i + 1].token_type is TokenType.L_PAREN:
            depth, count = 0, 1
            for later in tokens[i + 1 :]:
                depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(later.token_type, 0)
                count += depth == 1 and later.token_type is TokenType.COMMA
                if not depth:
                    break
            most = max(most, count)
    return most


def _spelt(text: str, tokens: Sequence[Token]) -> str:
    return text[tokens[0].start : tokens[-1].end + 1]
