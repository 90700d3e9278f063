"""The constructors of all aggregates, and the names that SQL has for them: one table, to which every chapter adds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from inspect import Parameter, signature
from pkgutil import iter_modules
from typing import Any, Final, TypeAlias, TypeVar

import panes.aggregates
from panes.aggregates.aggregate import Aggregate
from panes.errors import DeclarationError
from panes.suggestions import helpful

F = TypeVar("F", bound=Callable[..., Aggregate])

ELSEWHERE: Final = {
    **dict.fromkeys(("column", "col", "x", "field", "expr", "expression", "on", "arg"), "value"),
    **dict.fromkeys(
        ("over", "window", "windows", "every", "period", "rolling"),
        "windows belong to the query, as pn.query(..., over=pn.hopping('1 hour', every='1 min')).",
    ),
    **dict.fromkeys(("by", "key", "keys", "group_by", "partition_by"), "keys belong to the query, as by='card'."),
    **dict.fromkeys(
        ("where", "filter", "condition"),
        "write where= of the query, or 'CASE WHEN ok THEN amount END' for one aggregate alone.",
    ),
    **dict.fromkeys(("name", "alias"), "columns are named where they are selected, as select={'total': ...}."),
    **dict.fromkeys(("at", "order_by", "time", "ts"), "event time belongs to the query, as at='ts'."),
    "distinct": "write pn.count_distinct('user') or pn.distinct('user').",
    **dict.fromkeys(("ignore_nulls", "skipna", "nulls"), "nulls never count; leave it out."),
}
"""What other systems call the parameters of an aggregate, and what to write here."""

SqlNames: TypeAlias = str | Mapping[str, Mapping[str, Any]]
"""A name in SQL; or several, with the options that each implies."""


@dataclass(frozen=True)
class SqlName:
    """A name that SQL has for an aggregate.

    Parameters
    ----------
    name
        In capitals; ``COUNT DISTINCT`` is written ``COUNT(DISTINCT x)``.
    make
        The constructor.
    options
        The arguments of the constructor that the name implies.
    """

    name: str
    make: Callable[..., Aggregate]
    options: Mapping[str, Any]

    @cached_property
    def parameters(self) -> dict[str, type]:
        """What is written in the parentheses: ``str`` for a column or expression, ``int`` or ``float`` for a number."""
        found = signature(self.make).parameters.values()
        given = [each for each in found if each.kind is not Parameter.KEYWORD_ONLY and each.name not in self.options]
        return {each.name: {"int": int, "float": float}.get(each.annotation, str) for each in given}

    @cached_property
    def example(self) -> tuple[str, ...]:
        """Arguments that are right, for messages.

        Examples
        --------
        >>> import panes as pn
        >>> SqlName("APPROX_TOP_K", pn.top, {}).example, SqlName("MAX_BY", pn.arg_max, {}).example
        (('x', '10'), ('x', 'y'))
        """
        columns = iter("xyz")
        return tuple({int: "10", float: "0.5"}.get(kind) or next(columns) for kind in self.parameters.values())

    @cached_property
    def takes_all(self) -> bool:
        """Whether it may have no argument, which SQL writes as a star."""
        return all(signature(self.make).parameters[name].default is not Parameter.empty for name in self.parameters)

    def call(self, *arguments: str) -> str:
        """The text of a call.

        Examples
        --------
        >>> from panes.aggregates.collecting import count_distinct
        >>> SqlName("COUNT DISTINCT", count_distinct, {}).call("user")
        'COUNT(DISTINCT user)'
        """
        function, _, before = self.name.partition(" ")
        return f"{function}({f'{before} ' if before else ''}{', '.join(arguments)})"

    def spell(self, aggregate: Aggregate) -> str | None:
        """An aggregate as a call of this name; None where the name says something else."""
        columns = list(self.parameters.values()).count(str)
        if len(aggregate.arguments) != columns or not all(hasattr(aggregate, n) for n in self._numbers):
            return None
        numbers = [getattr(aggregate, name) for name in self._numbers]
        try:
            if self.takes_all and self.make(**self.options) == aggregate:
                return self.call("*")
            same = self.make(*aggregate.arguments, *numbers, **self.options) == aggregate
        except DeclarationError:
            return None
        return self.call(*aggregate.arguments, *map(repr, numbers)) if same else None

    @property
    def _numbers(self) -> list[str]:
        return [name for name, kind in self.parameters.items() if kind is not str]


_SQL_NAMES: Final[list[SqlName]] = []


def sql_names() -> list[SqlName]:
    """Every name that SQL has for an aggregate; of several for one, the first is written."""
    _import_chapters()
    return _SQL_NAMES


@cache
def _import_chapters() -> None:
    for chapter in iter_modules(panes.aggregates.__path__):
        import_module(f"panes.aggregates.{chapter.name}")


def to_sql(aggregate: Aggregate) -> str | None:
    """An aggregate as SQL; None where SQL has no name for it.

    Examples
    --------
    >>> import panes as pn
    >>> to_sql(pn.std("temp", ddof=0)), to_sql(pn.quantile("temp", 0.5)), to_sql(pn.count()), to_sql(pn.trend("temp"))
    ('STDDEV_POP(temp)', 'PERCENTILE(temp, 0.5)', 'COUNT(*)', None)
    """
    return next((text for each in sql_names() if (text := each.spell(aggregate)) is not None), None)


def constructor(example: str, note: str | None = None, *, sql: SqlNames = "", **renamed: str) -> Callable[[F], F]:
    """Mark a function that makes an aggregate: it explains wrong calls, and SQL has names for it.

    Parameters
    ----------
    example, note, renamed
        As in ``helpful``; what all aggregates have in common is known.
    sql
        The name in SQL, as ``"SUM"``; or several with their options, as ``{"VAR_SAMP": {}, "VAR_POP": {"ddof": 0}}``.
    """

    def wrap(function: F) -> F:
        made = helpful(example, note, **{**ELSEWHERE, **renamed})(function)
        names: Mapping[str, Mapping[str, Any]] = ({sql: {}} if sql else {}) if isinstance(sql, str) else sql
        _SQL_NAMES.extend(SqlName(name, made, options) for name, options in names.items())
        return made

    return wrap


def arguments_of(*values: str) -> tuple[str, ...]:
    """The arguments of an aggregate, each a column or an expression."""
    for value in values:
        if not isinstance(value, str):
            number = isinstance(value, int) and not isinstance(value, bool)
            rows = " The rows of a window are its size, as over=pn.sliding(pn.rows(100))." if number else ""
            raise DeclarationError(
                f"{value!r} is not a column or expression. Write its name or SQL as a string, as 'price * qty'.{rows}"
            )
    return values
