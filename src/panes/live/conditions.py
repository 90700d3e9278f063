"""Which range of an indexed column the keys that pass a condition have."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from panes.expressions.expression import Expression

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True, slots=True)
class Range:
    """Answers of a column lie above one number and below another; None where there is no such end."""

    column: str
    above: float | None = None
    below: float | None = None

    def and_(self, other: Range) -> Range:
        """Both of two ranges of one column."""
        above = [end for end in (self.above, other.above) if end is not None]
        below = [end for end in (self.below, other.below) if end is not None]
        return Range(self.column, max(above, default=None), min(below, default=None))

    def __str__(self) -> str:
        parts = [f"{word} {end:g}" for word, end in (("above", self.above), ("below", self.below)) if end is not None]
        return f"{self.column} {' and '.join(parts)}"


def range_of(condition: Expression, numeric: Collection[str], indexed: Collection[str]) -> Range | None:
    """A range that the answers of an indexed column lie in wherever a condition holds; None where there is none.

    Conjuncts are read from the left, up to the first one that is anything else than a comparison of a column with a
    number: a later one is not evaluated where an earlier one is false, and might fail.

    Parameters
    ----------
    numeric, indexed
        Output columns: those that are numbers, and of these the ones that have an index.

    Examples
    --------
    >>> columns = ["total", "n"]
    >>> found = range_of(Expression("n >= 2 AND 1000 < total AND total < 5000"), columns, ["total"])
    >>> round(found.above), round(found.below)
    (1000, 5000)
    >>> range_of(Expression("n / total > 2 AND total > 7"), columns, ["total"]) is None
    True
    """
    found: dict[str, Range] = {}
    known = {name.lower(): name for name in numeric}
    for part in _conjuncts(condition.tree):
        range_ = _compared(part)
        if range_ is None or range_.column.lower() not in known:
            break
        name = known[range_.column.lower()]
        own = Range(name, range_.above, range_.below)
        found[name] = found[name].and_(own) if name in found else own
    some = [range_ for name, range_ in found.items() if name in indexed]
    # Keys below a limit are most keys.
    return next((range_ for range_ in some if range_.above is not None), next(iter(some), None))


def _conjuncts(tree: exp.Expression) -> Iterator[exp.Expression]:
    from sqlglot import exp

    pending = [tree]
    while pending:
        part = pending.pop()
        if isinstance(part, exp.And):
            pending += (part.expression, part.this)
        else:
            yield part


def _compared(tree: exp.Expression) -> Range | None:
    from sqlglot import exp

    if isinstance(tree, exp.Between):
        low, high = _number(tree.args["low"]), _number(tree.args["high"])
        column = _column(tree.this)
        return None if column is None or low is None or high is None else _within(column, low, high)
    if not isinstance(tree, (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ)):
        return None
    column, number, more = _column(tree.this), _number(tree.expression), isinstance(tree, (exp.GT, exp.GTE))
    if column is None or number is None:
        column, number, more = _column(tree.expression), _number(tree.this), not more
    if column is None or number is None:
        return None
    if isinstance(tree, exp.EQ):
        return _within(column, number, number)
    return _within(column, number if more else None, None if more else number)


def _column(tree: exp.Expression) -> str | None:
    from sqlglot import exp

    return tree.name if isinstance(tree, exp.Column) else None


def _number(tree: exp.Expression) -> float | None:
    from sqlglot import exp

    sign, tree = (-1, tree.this) if isinstance(tree, exp.Neg) else (1, tree)
    if not isinstance(tree, exp.Literal) or tree.is_string:
        return None
    try:
        return sign * float(tree.name)
    except ValueError:
        return None


def _within(column: str, low: float | None, high: float | None) -> Range | None:
    """A little more than a closed range, whatever was rounded when a number became a double."""
    above = None if low is None else math.nextafter(low, -math.inf)
    below = None if high is None else math.nextafter(high, math.inf)
    above, below = (None if end is None or not math.isfinite(end) else end for end in (above, below))
    return None if above is None and below is None else Range(column, above, below)
