"""Compare stored SQL text with expressions of today, by meaning.

A later release of Panes or of sqlglot may spell an expression otherwise. What was stored before must be found again,
and nothing else be taken for it. Texts are parsed only where they differ: workers compare them too, and importing a
parser would take them longer than most of their tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from panes.errors import ExpressionError
from panes.expressions.expression import Expression

if TYPE_CHECKING:
    from panes.aggregates.aggregate import Aggregate
    from panes.aggregates.component import Component

T = TypeVar("T", "Aggregate", "Component")


def same_meaning(stored: str | None, now: str | None) -> bool:
    """Return whether two texts are the same expression; None stands for no expression.

    Examples
    --------
    >>> same_meaning("case when (amount>0) then amount end", "CASE WHEN amount > 0 THEN amount END")
    True
    >>> same_meaning("amount > 0", "amount >= 0"), same_meaning(None, "amount > 0"), same_meaning("rand()", "1")
    (False, False, False)
    """
    if stored == now:
        return True
    if stored is None or now is None:
        return False
    try:
        return Expression(stored) == Expression(now)
    except ExpressionError:
        return False


def spelt_as_stored(value: T, arguments: Sequence[str]) -> T | None:
    """Return an aggregate or component with its arguments as they were stored; None if these mean something else.

    Examples
    --------
    >>> import panes as pn
    >>> str(spelt_as_stored(pn.sum("amount * 2"), ["(Amount*2)"])), str(spelt_as_stored(pn.sum("a"), ["(a)"]))
    ('None', 'sum((a))')
    """
    now = value.arguments
    if len(arguments) != len(now) or not all(map(same_meaning, arguments, now)):
        return None
    return cast("T", replace(cast("Any", value), arguments=tuple(arguments)))
